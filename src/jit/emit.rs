//! From a kernel's form to Cranelift IR.
//!
//! The function loops over segment rows. It first computes, once per segment, the values that do
//! not depend on the lane. A loop over the lanes does the rest, or a loop over [groups of
//! them](super::columns) where vectors suffice.
//!
//! ```text
//! entry ─► segment ─► lanes ─┐
//!   │         ▲          ▲ │  │
//!   │         │          └─┼──┘
//!   │         └─── next ◄──┘
//!   └─► exit ◄──────┘
//! ```
//!
//! Loads and stores follow the layout of [`pmderive_runtime::kernel::rows`].
//! [`operations`] has the operations of a lane, [`quick`] the code around a quick
//! form.

mod operations;
mod quick;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, Block, BlockArg, Function, InstBuilder, Type, Value, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use pmderive_runtime::kernel::{Access, BinaryOp, Body, Inst, KernelIr, ReduceOp, Reg, Scalar};

use super::constants::{self, ConstantVectors};
use super::divide::Divisor;
use super::library::Calls;
use super::map::{Frequency, Map, suitable};
use super::quick::Quick;
use super::target::{HAS_VECTORS, Target, memory, type_of};

/// Builds the function of a verified kernel; `calls` are the functions that it
/// needs.
pub fn emit(
    ir: &KernelIr,
    calls: Calls,
    target: Target,
    function: &mut Function,
    builder_context: &mut FunctionBuilderContext,
) {
    let pointer = target.frontend.pointer_type();
    function.signature.params.push(AbiParam::new(pointer));
    function.signature.returns.push(AbiParam::new(types::I64));
    let mut builder = FunctionBuilder::new(function, builder_context);
    Emitter::new(&mut builder, ir, calls, target).emit();
    builder.seal_all_blocks();
    builder.finalize(target.frontend);
}

/// Builds one function.
pub struct Emitter<'e, 'f> {
    pub(super) builder: &'e mut FunctionBuilder<'f>,
    pub(super) ir: &'e KernelIr,
    calls: Calls,
    pub(super) target: Target,
    pointer: Type,
    pub(super) types: Vec<Scalar>,
    /// True for each register of a map that is the same in every lane.
    is_uniform: Vec<bool>,
    /// Value of each register that is already computed.
    pub(super) values: Vec<Option<Value>>,
    /// Divisors of quotients that are computed as products, by position.
    divisors: Vec<Option<Divisor>>,
    /// Constants that loops over groups use.
    pub(super) kept: ConstantVectors,
}

/// The addresses of a segment's columns, and its number of lanes.
pub struct Segment {
    operands: Vec<Value>,
    /// The row, and the workspace and the history.
    row: Value,
    bases: [Value; 2],
    pub(super) output: Value,
    pub(super) lanes: Value,
}

/// The work of a kernel on each segment.
enum Task<'m> {
    Reduce(ReduceOp),
    Map(Map<'m>, Option<Quick>),
}

/// Largest number of operands whose addresses are kept during a loop. Beyond
/// it, each round reads them from the row. Registers would not suffice, and
/// allocating them would dominate the time of compiling.
const KEPT_ADDRESSES: usize = 8;

impl<'e, 'f> Emitter<'e, 'f> {
    fn new(
        builder: &'e mut FunctionBuilder<'f>,
        ir: &'e KernelIr,
        calls: Calls,
        target: Target,
    ) -> Self {
        let types = ir.register_types().expect("kernels are verified when they are made");
        let values = vec![None; types.len()];
        let pointer = target.frontend.pointer_type();
        let (is_uniform, divisors, kept) =
            (uniform_registers(ir), Vec::new(), ConstantVectors::default());
        Emitter { builder, ir, calls, target, pointer, types, is_uniform, values, divisors, kept }
    }

    pub(super) fn block(&mut self, params: &[Type]) -> (Block, Vec<Value>) {
        let block = self.builder.create_block();
        let values =
            params.iter().map(|param| self.builder.append_block_param(block, *param)).collect();
        (block, values)
    }

    pub(super) fn jump(&mut self, to: Block, args: &[Value]) {
        let args = block_args(args);
        self.builder.ins().jump(to, &args);
    }

    /// Jumps to one block if a condition holds, or else to another.
    pub(super) fn branch(
        &mut self,
        condition: Value,
        (yes, yes_args): (Block, &[Value]),
        (no, no_args): (Block, &[Value]),
    ) {
        let (yes_args, no_args) = (block_args(yes_args), block_args(no_args));
        self.builder.ins().brif(condition, yes, &yes_args, no, &no_args);
    }

    fn emit(mut self) {
        let (entry, _) = self.block(&[]);
        self.builder.append_block_params_for_function_params(entry);
        // Only kernels with flags keep them.
        let has_flags = matches!(&self.ir.body, Body::Map { flags, .. } if !flags.is_empty());
        let flags = vec![types::I64; usize::from(has_flags)];
        let (segment, segment_args) = self.block(&[&[self.pointer], flags.as_slice()].concat());
        let (exit, exit_args) = self.block(&flags);

        self.builder.switch_to_block(entry);
        let frame = self.builder.block_params(entry)[0];
        let bytes = i32::try_from(self.pointer.bytes()).expect("pointers have a few bytes");
        let bases = self.builder.ins().load(self.pointer, memory(), frame, 0);
        let rows = self.builder.ins().load(self.pointer, memory(), frame, bytes);
        let count = self.builder.ins().load(types::I64, memory(), frame, 2 * bytes);
        let has_previous = self.ir.operands.iter().any(|operand| operand.previous);
        let wanted = [true, has_previous, !self.ir.constants.is_empty()];
        let [work, history, constants] = [0, 1, 2].map(|at| match wanted[at] {
            true => self.builder.ins().load(self.pointer, memory(), bases, at as i32 * bytes),
            false => bases,
        });
        let step = i64::try_from(self.ir.row_words() * 4).expect("rows have a few words");
        let size = self.builder.ins().imul_imm_s(count, step);
        let end = self.address(rows, size);
        let zero: Vec<Value> =
            flags.iter().map(|kind| self.builder.ins().iconst(*kind, 0)).collect();
        let body = self.ir.body.clone();
        let (task, kept) = self.task(&body);
        if !kept.is_empty() && HAS_VECTORS {
            // The count of rows is unsigned.
            let nothing = self.builder.ins().ushr_imm_u(count, 63);
            self.kept = ConstantVectors::new(self.builder, nothing, kept);
        }
        self.branch(count, (segment, &[&[rows], zero.as_slice()].concat()), (exit, &zero));

        self.builder.switch_to_block(segment);
        let row = segment_args[0];
        let flags = segment_args.get(1).copied();
        let flags = flags.unwrap_or_else(|| self.builder.ins().iconst(types::I64, 0));
        let lanes = self.word(row, 0);
        let operands: Vec<Value> = (0..self.ir.operands.len())
            .map(|at| self.operand_address(row, [work, history], at))
            .collect();
        let output = self.word(row, operands.len() + 1);
        let output = self.address(work, output);
        let constants = match self.ir.constants.is_empty() {
            true => constants,
            false => {
                let at = self.word(row, operands.len() + 2);
                self.address(constants, at)
            }
        };
        let flags = match task {
            Task::Reduce(op) => {
                let value = self.reduce(op, operands[0], lanes);
                self.builder.ins().store(memory(), value, output, 0);
                flags
            }
            Task::Map(map, quick) => {
                self.uniform(map.insts, &operands, constants);
                let bases = [work, history];
                let segment = Segment { operands, row, bases, output, lanes };
                if self.ir.is_single() {
                    let value = self.value(map.result);
                    self.builder.ins().store(memory(), value, output, 0);
                    self.flags(flags, &map.flags)
                } else if let Some(quick) = quick {
                    self.quick_or_exact(&map, &segment, &quick, flags)
                } else {
                    self.exact(&map, &segment, flags, Frequency::Mostly)
                }
            }
        };
        let row = self.builder.ins().iadd_imm_s(row, step);
        let left = self.builder.ins().icmp(IntCC::UnsignedLessThan, row, end);
        let flags = &[flags][..exit_args.len()];
        self.branch(left, (segment, &[&[row], flags].concat()), (exit, flags));

        self.builder.switch_to_block(exit);
        let flags = exit_args.first().copied();
        let flags = flags.unwrap_or_else(|| self.builder.ins().iconst(types::I64, 0));
        self.builder.ins().return_(&[flags]);
    }

    /// A word of a row.
    fn word(&mut self, row: Value, at: usize) -> Value {
        let offset = i32::try_from(at * 4).expect("rows have a few words");
        self.builder.ins().uload32(memory(), row, offset)
    }

    /// The address of an operand, from its row.
    fn operand_address(&mut self, row: Value, [work, history]: [Value; 2], at: usize) -> Value {
        let base = if self.ir.operands[at].previous { history } else { work };
        let offset = self.word(row, at + 1);
        self.address(base, offset)
    }

    /// The address of a lane of an operand's column, in a loop.
    pub(super) fn operand_lane(&mut self, segment: &Segment, at: usize, offset: Value) -> Value {
        let begin = match self.ir.operands.len() <= KEPT_ADDRESSES {
            true => segment.operands[at],
            false => self.operand_address(segment.row, segment.bases, at),
        };
        self.address(begin, offset)
    }

    pub(super) fn address(&mut self, base: Value, offset: Value) -> Value {
        let offset = if self.pointer == types::I64 {
            offset
        } else {
            self.builder.ins().ireduce(self.pointer, offset)
        };
        self.builder.ins().iadd(base, offset)
    }

    fn value(&self, register: usize) -> Value {
        self.values[register].expect("registers are assigned in order")
    }

    /// The task for each segment, and the constants that its loops use.
    fn task<'m>(&self, body: &'m Body) -> (Task<'m>, Vec<u64>) {
        let (insts, result, flags) = match body {
            Body::Reduce(op) => {
                let constants = constants::of_reduction(*op, self.ir.operands[0].scalar);
                return (Task::Reduce(*op), constants);
            }
            Body::Map { insts, result, flags } => (insts, result, flags),
        };
        let flags = flags.iter().map(|flag| usize::from(flag.0)).collect();
        let map = Map { insts, result: usize::from(result.0), flags };
        if self.ir.is_single() {
            return (Task::Map(map, None), Vec::new());
        }
        let quick = Quick::of(&map, &self.types, &self.is_uniform, self.target);
        let constants = constants::of_map(&map, &self.types, &self.is_uniform, quick.as_ref());
        (Task::Map(map, quick), constants)
    }

    /// Computes the registers that are the same in every lane.
    fn uniform(&mut self, insts: &[Inst], operands: &[Value], constants: Value) {
        for (at, inst) in insts.iter().enumerate() {
            if !self.is_uniform[at] {
                continue;
            }
            let scalar = self.types[at];
            let value = match inst {
                Inst::Operand(index) => {
                    let address = operands[usize::from(*index)];
                    self.builder.ins().load(type_of(scalar), memory(), address, 0)
                }
                Inst::Constant(index) => {
                    let offset = i32::from(*index) * 8;
                    self.builder.ins().load(type_of(scalar), memory(), constants, offset)
                }
                inst => self.operation(inst),
            };
            self.values[at] = Some(value);
        }
    }

    /// A loop over the lanes from `start` to below `end`, in steps of `step`.
    /// `round` builds its body from the first lane and the results of the round
    /// before. Returns the results of the last round.
    pub(super) fn each(
        &mut self,
        (start, end): (Value, Value),
        step: usize,
        first: &[Value],
        round: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let mut kinds = vec![types::I64];
        kinds.extend(first.iter().map(|value| self.builder.func.dfg.value_type(*value)));
        let (body, args) = self.block(&kinds);
        let (next, next_args) = self.block(&kinds[1..]);
        let with = |index: Value, kept: &[Value]| [&[index], kept].concat();
        let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, start, end);
        self.branch(more, (body, &with(start, first)), (next, first));

        // The condition at the end makes one taken branch per round.
        self.builder.switch_to_block(body);
        let kept = round(self, args[0], &args[1..]);
        let index = self.builder.ins().iadd_imm_s(args[0], step as i64);
        let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, index, end);
        self.branch(more, (body, &with(index, &kept)), (next, &kept));

        self.builder.switch_to_block(next);
        next_args
    }

    /// The greatest multiple of `step`, a power of two, not above `lanes`.
    pub(super) fn whole(&mut self, lanes: Value, step: usize) -> Value {
        self.builder.ins().band_imm_s(lanes, -(step as i64))
    }

    /// Offsets of a lane in columns of eight and of four bytes per lane.
    pub(super) fn offsets(&mut self, lane: Value) -> impl Fn(Scalar) -> Value + use<> {
        let wide = self.builder.ins().ishl_imm_u(lane, 3);
        let narrow = self.builder.ins().ishl_imm_u(lane, 2);
        move |scalar| if scalar.bytes() == 8 { wide } else { narrow }
    }

    /// The loop over the lanes of a segment; returns the flags after it.
    fn lanes(&mut self, map: &Map<'_>, segment: &Segment, flags: Value) -> Value {
        let uniform = self.values.clone();
        let zero = self.builder.ins().iconst(types::I64, 0);
        let kept = self.each((zero, segment.lanes), 1, &[flags], |emitter, lane, kept| {
            let offset = emitter.offsets(lane);
            for (at, inst) in map.insts.iter().enumerate() {
                if emitter.values[at].is_some() {
                    continue;
                }
                let value = match inst {
                    Inst::Operand(operand) => {
                        let scalar = emitter.types[at];
                        let (at, offset) = (usize::from(*operand), offset(scalar));
                        let address = emitter.operand_lane(segment, at, offset);
                        emitter.builder.ins().load(type_of(scalar), memory(), address, 0)
                    }
                    Inst::Binary(_, a, _)
                        if let Some(divisor) = emitter.divisors.get(at).copied().flatten() =>
                    {
                        let a = emitter.value(usize::from(a.0));
                        divisor.divide(emitter.builder, emitter.types[at], a)
                    }
                    inst => emitter.operation(inst),
                };
                emitter.values[at] = Some(value);
            }
            let value = emitter.value(map.result);
            let address = emitter.address(segment.output, offset(emitter.types[map.result]));
            emitter.builder.ins().store(memory(), value, address, 0);
            vec![emitter.flags(kept[0], &map.flags)]
        });
        self.values = uniform;
        kept[0]
    }

    /// The lanes of a segment in the kernel's exact form; returns the flags after it.
    pub(super) fn exact(
        &mut self,
        map: &Map<'_>,
        segment: &Segment,
        flags: Value,
        often: Frequency,
    ) -> Value {
        if HAS_VECTORS && suitable(map.insts, &self.types) {
            return self.groups(map, segment, flags, often);
        }
        let Some((divisors, holds)) = self.divisors(map) else {
            return self.lanes(map, segment, flags);
        };
        let [(by_product, _), (by_division, _)] = [self.block(&[]), self.block(&[])];
        let (done, done_args) = self.block(&[types::I64]);
        self.branch(holds, (by_product, &[]), (by_division, &[]));

        self.builder.switch_to_block(by_product);
        self.divisors = divisors;
        let after = self.lanes(map, segment, flags);
        self.divisors.clear();
        self.jump(done, &[after]);

        self.builder.switch_to_block(by_division);
        let after = self.lanes(map, segment, flags);
        self.jump(done, &[after]);

        self.builder.switch_to_block(done);
        done_args[0]
    }

    /// Divisors of integers that are the same in all lanes, as factors, and
    /// whether the factors are valid. `None` if there are none.
    fn divisors(&mut self, map: &Map<'_>) -> Option<(Vec<Option<Divisor>>, Value)> {
        let mut divisors = vec![None; map.insts.len()];
        let mut holds: Option<Value> = None;
        for (at, inst) in map.insts.iter().enumerate() {
            let Inst::Binary(BinaryOp::Div, a, b) = *inst else { continue };
            let [a, b] = [a, b].map(|reg| self.values[usize::from(reg.0)]);
            let is_64 = matches!(self.types[at], Scalar::U64 | Scalar::I64);
            let (None, Some(divisor), true) = (a, b, is_64) else { continue };
            let (divisor, holds_here) = Divisor::new(self.builder, divisor);
            divisors[at] = Some(divisor);
            holds = Some(match holds {
                Some(before) => self.builder.ins().band(before, holds_here),
                None => holds_here,
            });
        }
        Some((divisors, holds?))
    }

    fn flags(&mut self, mut flags: Value, set: &[usize]) -> Value {
        for register in set {
            let flag = self.value(*register);
            let flag = self.builder.ins().uextend(types::I64, flag);
            flags = self.builder.ins().bor(flags, flag);
        }
        flags
    }
}

/// True for each register of a map that is the same in every lane. Empty for a
/// reduction.
fn uniform_registers(ir: &KernelIr) -> Vec<bool> {
    let Body::Map { insts, .. } = &ir.body else { return Vec::new() };
    let mut uniform: Vec<bool> = Vec::with_capacity(insts.len());
    for inst in insts {
        let is = |reg: &Reg| uniform[usize::from(reg.0)];
        uniform.push(match inst {
            Inst::Operand(at) => ir.operands[usize::from(*at)].access != Access::Column,
            Inst::Constant(_) => true,
            Inst::Unary(_, a) => is(a),
            Inst::Binary(_, a, b) => is(a) && is(b),
            Inst::Select(a, b, c) => is(a) && is(b) && is(c),
        });
    }
    uniform
}

fn block_args(values: &[Value]) -> Vec<BlockArg> {
    values.iter().copied().map(BlockArg::from).collect()
}
