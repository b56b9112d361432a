//! Code for a group of lanes at a time, in vectors of 16 bytes.
//!
//! Input: the form of a kernel and the addresses of its columns. Output: the body of the
//! loop over groups. Columns are padded to whole groups, so the last group needs no loop
//! of its own; only its flags are cut to the existing lanes. A form is not
//! [suitable](super::map::suitable) if it has an operation that vectors lack.
//!
//! This file has the registers of a group, as numbers and as masks, and moves them from
//! and to columns. [`operations`] and [`quick_forms`] have the operations on them.

mod operations;
mod quick_forms;

use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use cranelift_frontend::FunctionBuilder;
use pmderive_runtime::kernel::{BinaryOp, Inst, LANE_GROUP, Scalar};

use super::constants::{self, ConstantVectors};
use super::quick::{Form, Quick};
use super::target::memory;
use super::vectors::{LOW_HALVES, cast, vector_of};

/// Contents of the vectors below: one has 4-byte lanes, two have 8-byte lanes.
const _: () = assert!(LANE_GROUP == 4);

/// The lanes of a group in one register. If only half of a group is computed, both
/// vectors of 8-byte lanes are the same.
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
    /// The quick form, and its prepared values.
    quick: Option<(&'e Quick, &'e [Option<Value>])>,
    kept: &'e ConstantVectors,
    /// True if the processor chooses between lanes by the signs of a mask.
    pub has_blend: bool,
    /// The half of the group to compute, if not the whole.
    pub half: Option<usize>,
    /// Watched differences, and registers whose signs are watched.
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

/// Offset of the `at`th group.
fn offset_of(scalar: Scalar, at: usize) -> i32 {
    i32::try_from(at * LANE_GROUP * scalar.bytes()).expect("a few groups")
}

impl<'e, 'f> GroupEmitter<'e, 'f> {
    /// An emitter for the builder's current block. `registers` holds the
    /// registers that are the same in every lane.
    pub fn new(
        builder: &'e mut FunctionBuilder<'f>,
        types: &'e [Scalar],
        registers: Vec<Option<Group>>,
        quick: Option<(&'e Quick, &'e [Option<Value>])>,
        kept: &'e ConstantVectors,
    ) -> GroupEmitter<'e, 'f> {
        let (watched, has_blend, half) = (Default::default(), false, None);
        GroupEmitter { builder, types, registers, quick, kept, has_blend, half, watched }
    }

    /// Computes all registers of the `at`th group after `addresses`, which lie
    /// in the operands' columns. `there` is a mask of the lanes to watch.
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

    /// Adds the flags of a group to the mask `flagged`: those of all its lanes,
    /// or of the lanes in `there`.
    pub fn flags(&mut self, flagged: Value, set: &[usize], there: Option<Value>) -> Value {
        set.iter().fold(flagged, |flagged, register| {
            let mask = match (self.truth(*register, true), there) {
                // The number of the lane does not matter.
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
                let ones = self.constant(constants::ONES);
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
        let zero = self.constant(constants::ZERO);
        self.cast(vector_of(scalar), zero)
    }

    /// Mask of the lanes of a register that are not zero, or (`wanted` false)
    /// of those that are.
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
}
