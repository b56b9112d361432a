//! A group of lanes at a time, in vectors of 16 bytes.
//!
//! Input: the form of a kernel and the addresses of its columns. Output: the body
//! of the loop over groups. Columns are padded to whole groups, so the last group needs no
//! loop of its own; only its flags are cut to the lanes that are there. Every operation
//! gives the same bits as lane by lane. A form is not [`suitable`] if it has an operation
//! that vectors lack.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::FunctionBuilder;
use pmderive_runtime::kernel::{BinaryOp, Inst, LANE_GROUP, Reg, Scalar, UnaryOp};

use super::emit::{Map, extreme_condition, float_condition, integer_condition, memory};
use super::kept::{self, Kept, OfInteger};
use super::quick::{Form, Quick};

/// What the vectors below hold: one of 4-byte lanes, two of 8-byte lanes.
const _: () = assert!(LANE_GROUP == 4);

/// Comparing 64-bit numbers without sign takes turned signs.
pub(super) const TURNS_SIGNS: bool = cfg!(target_arch = "x86_64");

/// True when every operation of a map can be done in vectors.
pub fn suitable(insts: &[Inst], types: &[Scalar]) -> bool {
    suitable_if(insts, types, |_| false)
}

/// True when every operation of a map can be done in vectors, but for those whose
/// position is `done` otherwise.
pub fn suitable_if(insts: &[Inst], types: &[Scalar], done: impl Fn(usize) -> bool) -> bool {
    let scalar = |reg: &Reg| types[usize::from(reg.0)];
    insts.iter().enumerate().all(|(at, inst)| match inst {
        _ if done(at) => true,
        Inst::Unary(UnaryOp::Convert(to), a) => match (scalar(a), *to) {
            (from, to) if from.is_float() => to.is_float(),
            (from, Scalar::F32) => from.bytes() == 4,
            _ => true,
        },
        Inst::Binary(BinaryOp::Div, a, _) => scalar(a).is_float(),
        // Calls take one lane at a time.
        Inst::Unary(UnaryOp::Log, _) | Inst::Binary(BinaryOp::Pow, ..) => false,
        _ => true,
    })
}

/// True if every lane of a map has 8 bytes, but for masks that only choose or flag:
/// then half a group is computed without the other. `is_uniform` says of the register at a
/// position whether it is the same in every lane.
pub fn is_wide(map: &Map<'_>, types: &[Scalar], is_uniform: impl Fn(usize) -> bool) -> bool {
    let is_mask = |at: usize| {
        let only_chooses = |inst: &Inst| match inst {
            Inst::Operand(_) | Inst::Constant(_) => true,
            Inst::Unary(_, a) => usize::from(a.0) != at,
            Inst::Binary(_, a, b) => [a, b].iter().all(|reg| usize::from(reg.0) != at),
            Inst::Select(_, yes, no) => [yes, no].iter().all(|reg| usize::from(reg.0) != at),
        };
        matches!(map.insts[at], Inst::Binary(op, a, _)
            if op.is_comparison() && types[usize::from(a.0)].bytes() == 8)
            && map.insts.iter().all(only_chooses)
    };
    types[map.result].bytes() == 8
        && (0..map.insts.len()).all(|at| is_uniform(at) || types[at].bytes() == 8 || is_mask(at))
}

/// One of two values that are the same, or both.
fn distinct(values: &[Value; 2]) -> &[Value] {
    if values[0] == values[1] { &values[..1] } else { values }
}

/// The lanes of a group in one register. If only half of a group is computed, both
/// vectors of 8-byte lanes are the same one.
#[derive(Clone, Copy)]
pub enum Group {
    /// Numbers of 8 bytes: two lanes each.
    Wide([Value; 2]),
    /// Numbers of 4 bytes.
    Narrow(Value),
    /// The outcome of a comparison of numbers of 8 bytes: all bits of a lane or none.
    WideMask([Value; 2]),
    /// The outcome of a comparison of numbers of 4 bytes.
    NarrowMask(Value),
    /// The outcome of a comparison of numbers of 4 bytes: all bits where it is false.
    NarrowNot(Value),
}

/// Emits the operations of one group.
pub struct GroupEmitter<'e, 'f> {
    builder: &'e mut FunctionBuilder<'f>,
    types: &'e [Scalar],
    registers: Vec<Option<Group>>,
    /// The quick form, and what it has prepared.
    quick: Option<(&'e Quick, &'e [Option<Value>])>,
    kept: &'e Kept,
    /// The processor chooses between lanes by the signs of a mask.
    pub has_blend: bool,
    /// The half of the group that is computed, if it is not all.
    pub half: Option<usize>,
    /// Differences that are watched, and registers whose sign is.
    watched: [Vec<Value>; 2],
}

/// The registers that are the same in every lane, in groups.
pub fn splats(
    builder: &mut FunctionBuilder<'_>,
    types: &[Scalar],
    uniform: &[Option<Value>],
) -> Vec<Option<Group>> {
    let splat = |(value, scalar): (&Option<Value>, &Scalar)| {
        value.map(|value| {
            let vector = builder.ins().splat(vector_of(*scalar), value);
            if scalar.bytes() == 8 { Group::Wide([vector; 2]) } else { Group::Narrow(vector) }
        })
    };
    uniform.iter().zip(types).map(splat).collect()
}

pub(super) fn vector_of(scalar: Scalar) -> Type {
    match scalar {
        Scalar::I32 | Scalar::U32 => types::I32X4,
        Scalar::I64 | Scalar::U64 => types::I64X2,
        Scalar::F32 => types::F32X4,
        Scalar::F64 => types::F64X2,
    }
}

/// The same bits as another type of vector, lane 0 at the lowest address.
fn cast(builder: &mut FunctionBuilder<'_>, to: Type, value: Value) -> Value {
    let flags = MemFlagsData::new().with_endianness(Endianness::Little);
    builder.ins().bitcast(to, flags, value)
}

/// The lanes of one vector where a mask has all bits, of the other where it has none.
pub(super) fn choose(
    builder: &mut FunctionBuilder<'_>,
    has_blend: bool,
    mask: Value,
    [yes, no]: [Value; 2],
) -> Value {
    let kind = builder.func.dfg.value_type(yes);
    if has_blend && kind == types::I64X2 {
        // Cranelift makes one instruction of a choice between others by itself.
        let [mask, yes, no] = [mask, yes, no].map(|value| cast(builder, types::I8X16, value));
        let chosen = builder.ins().blendv(mask, yes, no);
        return cast(builder, kind, chosen);
    }
    let mask = cast(builder, kind, mask);
    builder.ins().bitselect(mask, yes, no)
}

/// Where the `at`th group begins.
fn offset_of(scalar: Scalar, at: usize) -> i32 {
    i32::try_from(at * LANE_GROUP * scalar.bytes()).expect("a few groups")
}

/// Bytes that pick the low half of each 8-byte lane, of two vectors.
const LOW_HALVES: [u8; 16] = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27];
/// Bytes that put the low halves of two vectors together.
const LOW_PAIRS: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
/// Bytes that bring the high half of a vector down.
const HIGH_PAIR: [u8; 16] = [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15];

impl<'e, 'f> GroupEmitter<'e, 'f> {
    /// An emitter for the block that the builder is in. `registers` holds those
    /// that are the same in every lane.
    pub fn new(
        builder: &'e mut FunctionBuilder<'f>,
        types: &'e [Scalar],
        registers: Vec<Option<Group>>,
        quick: Option<(&'e Quick, &'e [Option<Value>])>,
        kept: &'e Kept,
    ) -> GroupEmitter<'e, 'f> {
        let (watched, has_blend, half) = (Default::default(), false, None);
        GroupEmitter { builder, types, registers, quick, kept, has_blend, half, watched }
    }

    /// Computes all registers of the `at`th group after `addresses`, which lie
    /// in the operands' columns; `there` is a mask of the lanes to watch.
    pub fn compute(
        &mut self,
        insts: &[Inst],
        addresses: &[Option<Value>],
        at_group: usize,
        there: Option<Value>,
    ) {
        for (at, inst) in insts.iter().enumerate() {
            if self.registers[at].is_some() {
                continue;
            }
            let quick = self
                .quick
                .map_or((Form::Plain, None), |(quick, values)| (quick.forms[at], values[at]));
            let group = match (*inst, quick) {
                (_, (Form::False, _)) => continue,
                (inst, (form, prepared)) if form != Form::Plain => {
                    self.quickly(inst, form, prepared, there)
                }
                (Inst::Operand(index), _) => {
                    let address = addresses[usize::from(index)];
                    self.load(self.types[at], address.expect("single values are uniform"), at_group)
                }
                (Inst::Constant(_), _) => unreachable!("constants are uniform"),
                (Inst::Unary(op, a), _) => self.unary(op, a),
                (Inst::Binary(op, a, b), _) => self.binary(op, a, b),
                (Inst::Select(guard, yes, no), _) => self.select(guard, yes, no),
            };
            self.registers[at] = Some(group);
        }
    }

    /// An instruction in its [quick form](super::quick).
    fn quickly(
        &mut self,
        inst: Inst,
        form: Form,
        prepared: Option<Value>,
        there: Option<Value>,
    ) -> Group {
        match (inst, form) {
            (Inst::Binary(op, a, b), Form::Watched(sign)) => {
                let difference = self.binary(op, a, b);
                let sign = self.number(usize::from(sign.0));
                let mask = there.map(|there| self.widen(true, there));
                for (number, to) in [difference, sign].into_iter().zip([0, 1]) {
                    let Group::Wide(mut lanes) = number else { unreachable!("64-bit numbers") };
                    if let Some([low, high]) = mask {
                        lanes = [
                            self.builder.ins().band(lanes[0], low),
                            self.builder.ins().band(lanes[1], high),
                        ];
                    }
                    self.watched[to].extend(distinct(&lanes));
                }
                difference
            }
            (Inst::Unary(_, a), Form::OfSmall) => {
                // The bits of 2^52 and of a number below it are those of their sum.
                let bits = self.constant(kept::TWO_TO_52);
                let base = self.cast(types::F64X2, bits);
                let Group::Wide(a) = self.number(usize::from(a.0)) else {
                    unreachable!("64-bit numbers")
                };
                Group::Wide(self.both(a, |this, a| {
                    let sum = this.builder.ins().bor(a, bits);
                    let sum = this.cast(types::F64X2, sum);
                    this.builder.ins().fsub(sum, base)
                }))
            }
            (Inst::Binary(_, a, b), Form::ByReciprocal) => {
                let share = prepared.expect("a reciprocal is prepared");
                let numbers = [a, b].map(|reg| self.number(usize::from(reg.0)));
                let [Group::Wide(a), Group::Wide([divisor, _])] = numbers else {
                    unreachable!("64-bit numbers")
                };
                Group::Wide(self.both(a, |this, a| {
                    let quotient = this.builder.ins().fmul(a, share);
                    let negative = this.builder.ins().fneg(quotient);
                    let rest = this.builder.ins().fma(negative, divisor, a);
                    this.builder.ins().fma(rest, share, quotient)
                }))
            }
            (Inst::Binary(..), Form::ShiftedLeft(a)) => {
                let bits = prepared.expect("the number of bits is prepared");
                let Group::Wide(a) = self.number(usize::from(a.0)) else {
                    unreachable!("64-bit numbers")
                };
                Group::Wide(self.both(a, |this, a| this.builder.ins().ishl(a, bits)))
            }
            (Inst::Binary(_, a, _), Form::ShiftedRight) => {
                let bits = prepared.expect("the number of bits is prepared");
                let signed = self.types[usize::from(a.0)].is_signed_integer();
                let Group::Wide(a) = self.number(usize::from(a.0)) else {
                    unreachable!("64-bit numbers")
                };
                Group::Wide(self.both(a, |this, a| {
                    if !signed {
                        return this.builder.ins().ushr(a, bits);
                    }
                    // Towards zero: the magnitude is shifted.
                    let zero = this.zero(Scalar::I64);
                    let negative = this.builder.ins().icmp(IntCC::SignedLessThan, a, zero);
                    let flipped = this.builder.ins().bxor(a, negative);
                    let magnitude = this.builder.ins().isub(flipped, negative);
                    let shifted = this.builder.ins().ushr(magnitude, bits);
                    let flipped = this.builder.ins().bxor(shifted, negative);
                    this.builder.ins().isub(flipped, negative)
                }))
            }
            _ => unreachable!("no quick form of this instruction"),
        }
    }

    /// Adds what was watched to all that was before.
    pub fn watched(&mut self, large: &mut Value, top: &mut Value) {
        for (all, to) in self.watched.iter().zip([large, top]) {
            for lanes in all {
                *to = self.builder.ins().bor(*to, *lanes);
            }
        }
    }

    /// The lanes of the `at`th group after an address.
    pub fn load(&mut self, scalar: Scalar, address: Value, at: usize) -> Group {
        let first = offset_of(scalar, at);
        let mut load =
            |offset| self.builder.ins().load(vector_of(scalar), memory(), address, first + offset);
        match (scalar.bytes(), self.half) {
            (8, None) => Group::Wide([load(0), load(16)]),
            (8, Some(half)) => Group::Wide([load(16 * half as i32); 2]),
            _ => Group::Narrow(load(0)),
        }
    }

    /// Stores a register's lanes in the `at`th group after an address.
    pub fn store(&mut self, register: usize, address: Value, at: usize) {
        let (vectors, count) = match self.number(register) {
            Group::Wide(vectors) | Group::WideMask(vectors) => (vectors, 2),
            Group::Narrow(vector) | Group::NarrowMask(vector) | Group::NarrowNot(vector) => {
                ([vector; 2], 1)
            }
        };
        let first = offset_of(self.types[register], at);
        let (vectors, first) = match self.half {
            None => (&vectors[..count], first),
            Some(half) => (&vectors[..1], first + 16 * half as i32),
        };
        for (vector, offset) in vectors.iter().zip([0, 16]) {
            self.builder.ins().store(memory(), *vector, address, first + offset);
        }
    }

    /// Adds the flags of a group to `flagged`, a mask, of all its lanes or of
    /// those that are `there`.
    pub fn flags(&mut self, flagged: Value, set: &[usize], there: Option<Value>) -> Value {
        set.iter().fold(flagged, |flagged, register| {
            let mask = match (self.truth(*register, true), there) {
                // Which lane it was does not matter.
                (Group::WideMask([low, high]), None) => {
                    let any = if low == high { low } else { self.builder.ins().bor(low, high) };
                    self.cast(types::I32X4, any)
                }
                (mask, None) => self.narrow(mask),
                (mask, Some(there)) => {
                    let mask = self.narrow(mask);
                    self.builder.ins().band(mask, there)
                }
            };
            self.builder.ins().bor(flagged, mask)
        })
    }

    fn group(&self, register: usize) -> Group {
        self.registers[register].expect("registers are assigned in order")
    }

    fn both(&mut self, a: [Value; 2], op: impl Fn(&mut Self, Value) -> Value) -> [Value; 2] {
        self.each_pair(a, a, |this, a, _| op(this, a))
    }

    /// Does an operation with both halves of two operands.
    fn each_pair(
        &mut self,
        [a, c]: [Value; 2],
        [b, d]: [Value; 2],
        op: impl Fn(&mut Self, Value, Value) -> Value,
    ) -> [Value; 2] {
        let first = op(self, a, b);
        if (a, b) == (c, d) {
            return [first; 2];
        }
        [first, op(self, c, d)]
    }

    /// A constant in both halves of a vector of 64-bit integers.
    fn constant(&mut self, bits: u64) -> Value {
        self.kept.vector(self.builder, bits)
    }

    fn bytes(&mut self, value: Value) -> Value {
        self.cast(types::I8X16, value)
    }

    fn cast(&mut self, to: Type, value: Value) -> Value {
        cast(self.builder, to, value)
    }

    fn shuffle(&mut self, to: Type, [a, b]: [Value; 2], pick: &[u8; 16]) -> Value {
        let (a, b) = (self.bytes(a), self.bytes(b));
        let pick = self.builder.func.dfg.immediates.push(pick.as_slice().into());
        let bytes = self.builder.ins().shuffle(a, b, pick);
        self.cast(to, bytes)
    }

    /// A register's lanes as numbers.
    fn number(&mut self, register: usize) -> Group {
        match self.group(register) {
            group @ (Group::WideMask(_) | Group::NarrowMask(_) | Group::NarrowNot(_)) => {
                let ones = self.constant(kept::ONES);
                let one = self.cast(types::I32X4, ones);
                if let Group::NarrowNot(mask) = group {
                    // All bits are -1.
                    return Group::Narrow(self.builder.ins().iadd(mask, one));
                }
                let mask = self.narrow_mask(register);
                Group::Narrow(self.builder.ins().band(mask, one))
            }
            number => number,
        }
    }

    fn zero(&mut self, scalar: Scalar) -> Value {
        let zero = self.constant(kept::ZERO);
        self.cast(vector_of(scalar), zero)
    }

    /// Mask of the lanes of a register that are not zero, or of those that are.
    fn truth(&mut self, register: usize, wanted: bool) -> Group {
        let scalar = self.types[register];
        let op = if wanted { BinaryOp::Ne } else { BinaryOp::Eq };
        match self.group(register) {
            Group::Wide(a) => {
                let zero = self.zero(scalar);
                Group::WideMask(self.both(a, |this, a| this.compare(op, scalar, a, zero)))
            }
            Group::Narrow(a) => {
                let zero = self.zero(scalar);
                Group::NarrowMask(self.compare(op, scalar, a, zero))
            }
            mask if wanted => mask,
            Group::WideMask(a) => {
                Group::WideMask(self.both(a, |this, a| this.builder.ins().bnot(a)))
            }
            Group::NarrowMask(a) => Group::NarrowNot(a),
            Group::NarrowNot(a) => Group::NarrowMask(a),
        }
    }

    fn narrow(&mut self, mask: Group) -> Value {
        match mask {
            Group::WideMask(a) => self.shuffle(types::I32X4, a, &LOW_HALVES),
            Group::NarrowMask(a) => a,
            Group::NarrowNot(a) => self.builder.ins().bnot(a),
            Group::Wide(_) | Group::Narrow(_) => unreachable!("masks are no numbers"),
        }
    }

    fn narrow_mask(&mut self, register: usize) -> Value {
        let mask = self.truth(register, true);
        self.narrow(mask)
    }

    fn wide_mask(&mut self, register: usize) -> [Value; 2] {
        match self.truth(register, true) {
            Group::WideMask(mask) => mask,
            mask => {
                let mask = self.narrow(mask);
                [self.builder.ins().swiden_low(mask), self.builder.ins().swiden_high(mask)]
            }
        }
    }

    fn compare(&mut self, op: BinaryOp, scalar: Scalar, a: Value, b: Value) -> Value {
        if scalar.is_float() {
            // `b < a`, so that a choice of the greater one is seen to be that.
            let (op, a, b) = match op {
                BinaryOp::Gt => (BinaryOp::Lt, b, a),
                BinaryOp::Ge => (BinaryOp::Le, b, a),
                op => (op, a, b),
            };
            self.builder.ins().fcmp(float_condition(op), a, b)
        } else {
            let signed = scalar.is_signed_integer();
            let (condition, [a, b]) = self.order(integer_condition(op, signed), scalar, [a, b]);
            self.builder.ins().icmp(condition, a, b)
        }
    }

    /// A comparison of integers and what it compares, as processors have it: of 64-bit
    /// numbers x86-64 compares only those with a sign, which is turned for it.
    fn order(&mut self, condition: IntCC, scalar: Scalar, of: [Value; 2]) -> (IntCC, [Value; 2]) {
        let signed = match condition {
            IntCC::UnsignedLessThan => IntCC::SignedLessThan,
            IntCC::UnsignedLessThanOrEqual => IntCC::SignedLessThanOrEqual,
            IntCC::UnsignedGreaterThan => IntCC::SignedGreaterThan,
            IntCC::UnsignedGreaterThanOrEqual => IntCC::SignedGreaterThanOrEqual,
            _ => return (condition, of),
        };
        if scalar.bytes() != 8 || !TURNS_SIGNS {
            return (condition, of);
        }
        let sign = self.constant(kept::SIGN);
        (signed, of.map(|value| self.builder.ins().bxor(value, sign)))
    }

    fn unary(&mut self, op: UnaryOp, a: Reg) -> Group {
        let register = usize::from(a.0);
        let scalar = self.types[register];
        let negate = |this: &mut Self, a| {
            if !scalar.is_float() {
                return this.builder.ins().ineg(a);
            }
            let (kind, bits) = match scalar.bytes() {
                8 => (types::I64X2, this.constant(kept::SIGN)),
                _ => {
                    let sign = this.builder.ins().iconst(types::I32, i64::from(i32::MIN as u32));
                    (types::I32X4, this.builder.ins().splat(types::I32X4, sign))
                }
            };
            let a = this.cast(kind, a);
            let negative = this.builder.ins().bxor(a, bits);
            this.cast(vector_of(scalar), negative)
        };
        match op {
            UnaryOp::Convert(to) => {
                let number = self.number(register);
                self.convert(scalar, to, number)
            }
            UnaryOp::Neg => self.map(register, negate),
            UnaryOp::Truth => self.truth(register, true),
            UnaryOp::Not => self.truth(register, false),
            UnaryOp::Abs if scalar.is_float() => {
                self.map(register, |this, a| this.builder.ins().fabs(a))
            }
            UnaryOp::Abs if scalar.is_signed_integer() => {
                self.map(register, |this, a| this.builder.ins().iabs(a))
            }
            UnaryOp::Abs => self.number(register),
            UnaryOp::Floor => self.map(register, |this, a| this.builder.ins().floor(a)),
            UnaryOp::Ceil => self.map(register, |this, a| this.builder.ins().ceil(a)),
            UnaryOp::Round => self.map(register, |this, a| this.round(scalar, a)),
            UnaryOp::Sqrt => self.map(register, |this, a| this.builder.ins().sqrt(a)),
            UnaryOp::Log => unreachable!("not suitable"),
        }
    }

    /// A register's numbers, each vector by itself.
    fn map(&mut self, register: usize, op: impl Fn(&mut Self, Value) -> Value) -> Group {
        match self.number(register) {
            Group::Wide(a) => Group::Wide(self.both(a, op)),
            Group::Narrow(a) => Group::Narrow(op(self, a)),
            Group::WideMask(_) | Group::NarrowMask(_) | Group::NarrowNot(_) => {
                unreachable!("numbers are no masks")
            }
        }
    }

    /// The nearest whole numbers, halves away from zero.
    fn round(&mut self, scalar: Scalar, a: Value) -> Value {
        let (kind, bits) =
            (vector_of(scalar), if scalar.bytes() == 8 { types::I64X2 } else { types::I32X4 });
        let mut number = |value: f64| {
            let value = match scalar {
                Scalar::F32 => self.builder.ins().f32const(value as f32),
                _ => self.builder.ins().f64const(value),
            };
            self.builder.ins().splat(kind, value)
        };
        let (half, one, sign) = (number(0.5), number(1.0), number(-0.0));
        // What is cut off is exact, and NaN for infinities, which stay.
        let whole = self.builder.ins().trunc(a);
        let rest = self.builder.ins().fsub(a, whole);
        let rest = self.builder.ins().fabs(rest);
        let far = self.builder.ins().fcmp(FloatCC::GreaterThanOrEqual, rest, half);
        let [one, sign, a] = [one, sign, a].map(|value| self.cast(bits, value));
        let step = self.builder.ins().band(far, one);
        let sign = self.builder.ins().band(a, sign);
        let step = self.builder.ins().bor(step, sign);
        let step = self.cast(kind, step);
        self.builder.ins().fadd(whole, step)
    }

    pub fn convert(&mut self, from: Scalar, to: Scalar, number: Group) -> Group {
        let signed = from.is_signed_integer();
        match (number, from.is_float(), to) {
            (Group::Wide(a), false, Scalar::I32 | Scalar::U32) => {
                Group::Narrow(self.shuffle(types::I32X4, a, &LOW_HALVES))
            }
            (Group::Wide(a), false, Scalar::F64) => {
                Group::Wide(self.both(a, |this, a| this.double_of(from, a)))
            }
            (Group::Narrow(a), false, Scalar::I64 | Scalar::U64) => {
                Group::Wide(self.widen(signed, a))
            }
            (Group::Narrow(a), false, Scalar::F32) => {
                Group::Narrow(self.float_of(types::F32X4, signed, a))
            }
            (Group::Narrow(a), false, Scalar::F64) => {
                // The upper half is brought down since there is one instruction
                // for the lower one.
                let high = self.shuffle(types::I32X4, [a, a], &HIGH_PAIR);
                Group::Wide(self.both([a, high], |this, a| {
                    let a = match signed {
                        true => this.builder.ins().swiden_low(a),
                        false => this.builder.ins().uwiden_low(a),
                    };
                    this.float_of(types::F64X2, signed, a)
                }))
            }
            (Group::Narrow(a), true, Scalar::F64) => {
                let high = self.shuffle(types::F32X4, [a, a], &HIGH_PAIR);
                Group::Wide([a, high].map(|a| self.builder.ins().fvpromote_low(a)))
            }
            (Group::Wide(a), true, Scalar::F32) => {
                let a = self.both(a, |this, a| this.builder.ins().fvdemote(a));
                Group::Narrow(self.shuffle(types::F32X4, a, &LOW_PAIRS))
            }
            // Types of one size, whose bits are the same.
            (same, ..) => same,
        }
    }

    fn widen(&mut self, signed: bool, a: Value) -> [Value; 2] {
        if signed {
            [self.builder.ins().swiden_low(a), self.builder.ins().swiden_high(a)]
        } else {
            [self.builder.ins().uwiden_low(a), self.builder.ins().uwiden_high(a)]
        }
    }

    /// Doubles of 64-bit integers, in vectors: the halves of a number, as the low bits
    /// of 2^52 and of 2^84, whose sum less what was added is rounded once.
    fn double_of(&mut self, scalar: Scalar, a: Value) -> Value {
        let OfInteger { lower, of_low, of_high, added } = OfInteger::of(scalar);
        let [lower, of_low, of_high, added] =
            [lower, of_low, of_high, added].map(|bits| self.constant(bits));
        let low = self.builder.ins().band(a, lower);
        let low = self.builder.ins().bor(low, of_low);
        let bits = self.builder.ins().iconst(types::I32, 32);
        let high = self.builder.ins().ushr(a, bits);
        let high = self.builder.ins().bxor(high, of_high);
        let [low, high, added] = [low, high, added].map(|lanes| self.cast(types::F64X2, lanes));
        let high = self.builder.ins().fsub(high, added);
        self.builder.ins().fadd(high, low)
    }

    fn float_of(&mut self, to: Type, signed: bool, a: Value) -> Value {
        let ins = self.builder.ins();
        if signed { ins.fcvt_from_sint(to, a) } else { ins.fcvt_from_uint(to, a) }
    }

    fn binary(&mut self, op: BinaryOp, a: Reg, b: Reg) -> Group {
        let [a, b] = [a, b].map(|reg| usize::from(reg.0));
        let scalar = self.types[a];
        let is_number = matches!(
            op,
            BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::Div
                | BinaryOp::Ratio
                | BinaryOp::Min
                | BinaryOp::Max
        );
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            let [a, b] = [a, b].map(|register| self.truth(register, true));
            let join = |this: &mut Self, a, b| match op {
                BinaryOp::And => this.builder.ins().band(a, b),
                _ => this.builder.ins().bor(a, b),
            };
            return match (a, b) {
                (Group::WideMask(a), Group::WideMask(b)) => {
                    Group::WideMask(self.each_pair(a, b, join))
                }
                (a, b) => {
                    let (a, b) = (self.narrow(a), self.narrow(b));
                    Group::NarrowMask(join(self, a, b))
                }
            };
        }
        let apply = |this: &mut Self, a, b| match is_number {
            true => this.arithmetic(op, scalar, a, b),
            false => this.compare(op, scalar, a, b),
        };
        match (self.number(a), self.number(b)) {
            (Group::Wide(a), Group::Wide(b)) => {
                let lanes = self.each_pair(a, b, apply);
                if is_number { Group::Wide(lanes) } else { Group::WideMask(lanes) }
            }
            // Processors compare numbers without sign only for one order or the other.
            (Group::Narrow(a), Group::Narrow(b))
                if matches!(op, BinaryOp::Lt | BinaryOp::Gt) && scalar == Scalar::U32 =>
            {
                let not = if op == BinaryOp::Lt { BinaryOp::Ge } else { BinaryOp::Le };
                Group::NarrowNot(self.compare(not, scalar, a, b))
            }
            (Group::Narrow(a), Group::Narrow(b)) => {
                let lanes = apply(self, a, b);
                if is_number { Group::Narrow(lanes) } else { Group::NarrowMask(lanes) }
            }
            _ => unreachable!("both operands are of one type"),
        }
    }

    fn arithmetic(&mut self, op: BinaryOp, scalar: Scalar, a: Value, b: Value) -> Value {
        let ins = self.builder.ins();
        match (op, scalar.is_float()) {
            (BinaryOp::Add, true) => ins.fadd(a, b),
            (BinaryOp::Sub, true) => ins.fsub(a, b),
            (BinaryOp::Mul, true) => ins.fmul(a, b),
            (BinaryOp::Div, _) => ins.fdiv(a, b),
            (BinaryOp::Add, false) => ins.iadd(a, b),
            (BinaryOp::Sub, false) => ins.isub(a, b),
            (BinaryOp::Mul, false) => ins.imul(a, b),
            (BinaryOp::Min, true) => ins.fmin(a, b),
            (BinaryOp::Max, true) => ins.fmax(a, b),
            (BinaryOp::Min | BinaryOp::Max, false) => {
                let condition = extreme_condition(op, scalar.is_signed_integer());
                let (condition, turned) = self.order(condition, scalar, [a, b]);
                let first = self.builder.ins().icmp(condition, turned[0], turned[1]);
                self.choose(first, a, b)
            }
            _ => {
                let quotient = ins.fdiv(a, b);
                let zero = self.zero(scalar);
                let nothing = self.builder.ins().fcmp(FloatCC::Equal, a, zero);
                // Zero has no bits.
                let quotient = self.cast(types::I64X2, quotient);
                let quotient = self.builder.ins().band_not(quotient, nothing);
                self.cast(types::F64X2, quotient)
            }
        }
    }

    fn choose(&mut self, mask: Value, yes: Value, no: Value) -> Value {
        choose(self.builder, self.has_blend, mask, [yes, no])
    }

    fn select(&mut self, guard: Reg, yes: Reg, no: Reg) -> Group {
        let [guard, yes, no] = [guard, yes, no].map(|reg| usize::from(reg.0));
        match (self.number(yes), self.number(no)) {
            (Group::Wide([a, c]), Group::Wide([b, d])) => {
                let [low, high] = self.wide_mask(guard);
                let first = self.choose(low, a, b);
                if (low, a, b) == (high, c, d) {
                    return Group::Wide([first; 2]);
                }
                Group::Wide([first, self.choose(high, c, d)])
            }
            (Group::Narrow(a), Group::Narrow(b)) => {
                let mask = self.narrow_mask(guard);
                Group::Narrow(self.choose(mask, a, b))
            }
            _ => unreachable!("both branches are of one type"),
        }
    }
}
