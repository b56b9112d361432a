//! Runs kernels without native code: the oracle of native code in tests, and its
//! substitute where there is no executable memory.
//!
//! The interpreter processes lanes in blocks, one instruction at a time over the
//! block. The lanes of a block share the cost of dispatch.

use super::Kernel;
use super::ir::{Access, BinaryOp, Body, Inst, KernelIr, ReduceOp, Reg, Scalar};
use super::ops::{self, BinaryFn, LaneBits, UnaryFn, for_scalar};
use super::rows::Arenas;
use super::statistic::{quantile, std_dev};

/// Lanes per block.
const BLOCK: usize = 64;

type Block = [u64; BLOCK];

/// Instructions with their operations looked up.
#[derive(Debug)]
pub(super) struct PreparedKernel {
    steps: Vec<Step>,
    output: Scalar,
}

#[derive(Debug)]
enum Step {
    Operand(usize),
    Constant(usize, Scalar),
    Unary(UnaryFn, Reg),
    Binary(BinaryFn, Reg, Reg),
    Select(Reg, Reg, Reg),
}

/// Registers and values of statistics, kept from run to run.
#[derive(Debug, Default)]
pub struct Scratch {
    registers: Vec<Block>,
    numbers: Vec<f64>,
}

/// An operand of a map over lanes that are given as bits.
#[derive(Clone, Copy, Debug)]
pub enum Lanes<'a> {
    /// Bits of each lane.
    Column(&'a [u64]),
    /// Bits of the one lane for all.
    Single(u64),
}

impl PreparedKernel {
    /// Looks up the operations of a verified form whose registers have these types.
    pub(super) fn new(ir: &KernelIr, types: &[Scalar]) -> PreparedKernel {
        let scalar = |reg: Reg| types[usize::from(reg.0)];
        let output = ir.output();
        let Body::Map { insts, .. } = &ir.body else {
            return PreparedKernel { steps: Vec::new(), output };
        };
        let step = |inst: &Inst| match *inst {
            Inst::Operand(index) => Step::Operand(usize::from(index)),
            Inst::Constant(index) => {
                Step::Constant(usize::from(index), ir.constants[usize::from(index)])
            }
            Inst::Unary(op, reg) => Step::Unary(ops::unary(op, scalar(reg)), reg),
            Inst::Binary(op, left, right) => {
                Step::Binary(ops::binary(op, scalar(left)), left, right)
            }
            Inst::Select(guard, yes, no) => Step::Select(guard, yes, no),
        };
        PreparedKernel { steps: insts.iter().map(step).collect(), output }
    }

    /// Runs the instructions over `count` lanes (at most a block).
    fn run(
        &self,
        registers: &mut Vec<Block>,
        count: usize,
        constants: &[u8],
        load: impl Fn(usize, &mut [u64]),
    ) {
        if registers.len() < self.steps.len() {
            registers.resize(self.steps.len(), [0; BLOCK]);
        }
        for (at, step) in self.steps.iter().enumerate() {
            let (before, rest) = registers.split_at_mut(at);
            let out = &mut rest[0][..count];
            let reg = |reg: &Reg| &before[usize::from(reg.0)][..count];
            match step {
                Step::Operand(index) => load(*index, out),
                Step::Constant(index, scalar) => {
                    out.fill(read(*scalar, constants, index * 8));
                }
                Step::Unary(op, operand) => {
                    for (out, a) in out.iter_mut().zip(reg(operand)) {
                        *out = op(*a);
                    }
                }
                Step::Binary(op, left, right) => {
                    for ((out, a), b) in out.iter_mut().zip(reg(left)).zip(reg(right)) {
                        *out = op(*a, *b);
                    }
                }
                Step::Select(guard, yes, no) => {
                    let branches = reg(yes).iter().zip(reg(no));
                    for ((out, guard), (yes, no)) in out.iter_mut().zip(reg(guard)).zip(branches) {
                        *out = if *guard != 0 { *yes } else { *no };
                    }
                }
            }
        }
    }
}

/// Bits of the lane at a byte offset.
pub fn read(scalar: Scalar, bytes: &[u8], offset: usize) -> u64 {
    match scalar.bytes() {
        4 => {
            let lane = bytes[offset..].first_chunk::<4>().expect("arenas hold whole lanes");
            u64::from(u32::from_ne_bytes(*lane))
        }
        _ => {
            let lane = bytes[offset..].first_chunk::<8>().expect("arenas hold whole lanes");
            u64::from_ne_bytes(*lane)
        }
    }
}

/// Stores the bits of a lane at a byte offset.
pub fn write(scalar: Scalar, bytes: &mut [u8], offset: usize, bits: u64) {
    match scalar.bytes() {
        4 => bytes[offset..offset + 4].copy_from_slice(&(bits as u32).to_ne_bytes()),
        _ => bytes[offset..offset + 8].copy_from_slice(&bits.to_ne_bytes()),
    }
}

/// Runs a kernel over segment rows (see [`super::rows`]), as native code would.
/// The answer is not zero when a flag was.
pub(super) fn run_rows(
    ir: &KernelIr,
    prepared: &PreparedKernel,
    scratch: &mut Scratch,
    arenas: &mut Arenas<'_>,
    rows: &[u32],
) -> u64 {
    let mut flagged = 0;
    let out = prepared.output;
    for row in rows.chunks_exact(ir.row_words()) {
        let offset = |index: usize| row[index] as usize;
        let operands = ir.operands.len();
        let lanes =
            if ir.is_single() && !matches!(ir.body, Body::Reduce(_)) { 1 } else { offset(0) };
        let output = offset(operands + 1);
        let constants = &arenas.constants[offset(operands + 2)..];
        match &ir.body {
            Body::Reduce(op) => {
                let scalar = ir.operands[0].scalar;
                let column = &arenas.work[offset(1)..offset(1) + lanes * scalar.bytes()];
                let lane = |at| read(scalar, column, at * scalar.bytes());
                let bits = reduce(*op, scalar, scratch, lanes, lane);
                write(out, arenas.work, output, bits);
            }
            Body::Map { result, flags, .. } => {
                for start in (0..lanes).step_by(BLOCK) {
                    let count = BLOCK.min(lanes - start);
                    let load = |index: usize, block: &mut [u64]| {
                        let operand = ir.operands[index];
                        let bytes: &[u8] =
                            if operand.previous { arenas.history } else { arenas.work };
                        let (base, width) = (offset(index + 1), operand.scalar.bytes());
                        match operand.access {
                            Access::Single => block.fill(read(operand.scalar, bytes, base)),
                            Access::Column => {
                                for (lane, at) in block.iter_mut().zip(start..) {
                                    *lane = read(operand.scalar, bytes, base + at * width);
                                }
                            }
                        }
                    };
                    prepared.run(&mut scratch.registers, count, constants, load);
                    for (at, bits) in
                        scratch.registers[usize::from(result.0)][..count].iter().enumerate()
                    {
                        write(out, arenas.work, output + (start + at) * out.bytes(), *bits);
                    }
                    for flag in flags {
                        let block = &scratch.registers[usize::from(flag.0)][..count];
                        flagged |= block.iter().fold(0, |any, bits| any | bits);
                    }
                }
            }
        }
    }
    flagged
}

impl Kernel {
    /// Runs a map over `count` lanes that are given as bits. Appends them to `out`, and to
    /// `flagged` whether each set a flag. `operands` is parallel to the form's operands, whose
    /// access is ignored.
    pub fn run_lanes(
        &self,
        scratch: &mut Scratch,
        operands: &[Lanes<'_>],
        constants: &[u8],
        count: usize,
        out: &mut Vec<u64>,
        flagged: &mut Vec<bool>,
    ) {
        let Body::Map { result, flags, .. } = &self.ir.body else { return };
        for start in (0..count).step_by(BLOCK) {
            let block_count = BLOCK.min(count - start);
            let load = |index: usize, block: &mut [u64]| match operands[index] {
                Lanes::Single(bits) => block.fill(bits),
                Lanes::Column(bits) => block.copy_from_slice(&bits[start..start + block_count]),
            };
            self.prepared.run(&mut scratch.registers, block_count, constants, load);
            out.extend_from_slice(&scratch.registers[usize::from(result.0)][..block_count]);
            for at in 0..block_count {
                let set = flags.iter().any(|flag| scratch.registers[usize::from(flag.0)][at] != 0);
                flagged.push(set);
            }
        }
    }
}

/// Reduces `count` lanes; see [`ReduceOp`]. Of no lanes, sum and average are
/// zero; the others are for the caller to avoid.
#[allow(clippy::unnecessary_cast, reason = "the body is instantiated for each type")]
pub fn reduce(
    op: ReduceOp,
    scalar: Scalar,
    scratch: &mut Scratch,
    count: usize,
    lane: impl Fn(usize) -> u64,
) -> u64 {
    for_scalar!(scalar, N => {
        let mut lanes = (0..count).map(|at| N::from_bits64(lane(at)));
        match op {
            ReduceOp::Sum => {
                let add = ops::binary(BinaryOp::Add, scalar);
                lanes.fold((0 as N).to_bits64(), |sum, lane| add(sum, lane.to_bits64()))
            }
            ReduceOp::Max | ReduceOp::Min | ReduceOp::Greatest | ReduceOp::Least => {
                let is_max = op.of_numbers() == ReduceOp::Max;
                let counts_nan = op.of_numbers() != op;
                let is_nan = |lane: N| counts_nan && (lane as f64).is_nan();
                let Some(first) = lanes.next() else { return 0 };
                let wins = |a: N, b: N| is_nan(a) || if is_max { a > b } else { a < b };
                lanes
                    .fold(first, |best, lane| match !is_nan(best) && wins(lane, best) {
                        true => lane,
                        false => best,
                    })
                    .to_bits64()
            }
            ReduceOp::AvgSingle => {
                lanes.fold(0f32, |sum, lane| sum + lane as f32 / count as f32).to_bits64()
            }
            ReduceOp::AvgDouble if count == 0 => 0f32.to_bits64(),
            ReduceOp::SumDouble | ReduceOp::AvgDouble => {
                let sum = lanes.fold(0f64, |sum, lane| sum + lane as f64);
                let parts = if op == ReduceOp::AvgDouble { count as f64 } else { 1.0 };
                ((sum / parts) as f32).to_bits64()
            }
            ReduceOp::StdDev | ReduceOp::Quantile(_) => {
                scratch.numbers.clear();
                scratch.numbers.extend(lanes.map(|lane| lane as f64));
                match op {
                    ReduceOp::Quantile(q) => quantile(&mut scratch.numbers, f64::from_bits(q)),
                    _ => std_dev(&scratch.numbers),
                }
                .to_bits64()
            }
        }
    })
}
