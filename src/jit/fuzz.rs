//! Random kernels over random data: native code must agree with the interpreter bit for
//! bit, except that any NaN equals any other.

use std::sync::Arc;

use pmderive_runtime::kernel::interp::{Scratch, read};
use pmderive_runtime::kernel::{
    Access, Arenas, BinaryOp, Body, Inst, Kernel, KernelIr, LANE_GROUP, Operand, ReduceOp, Reg,
    Rows, Scalar, Segment, UnaryOp,
};

use super::compile;

/// Choices from bytes. When the bytes run out, a fixed sequence continues.
struct Choices<'d> {
    data: &'d [u8],
    state: u64,
}

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        if let Some((first, rest)) = self.data.split_first() {
            self.data = rest;
            self.state = (self.state ^ u64::from(*first)).wrapping_mul(0x0000_0100_0000_01b3);
            return *first;
        }
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.to_be_bytes()[0]
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit.max(1)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Bits of a lane: often values at the edges of types.
    fn bits(&mut self) -> u64 {
        const EDGES: [u64; 12] = [
            0,
            1,
            u64::MAX,
            i64::MIN as u64,
            i64::MAX as u64,
            i32::MIN as u32 as u64,
            0x7ff8_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
            0x8000_0000_0000_0000,
            0x7fc0_0000_7f80_0000,
            0x43e0_0000_0000_0000,
        ];
        match self.below(6) {
            0 => self.pick(&EDGES),
            1 => ((self.below(100) as f64 - 50.0) / 2.0).to_bits(),
            // Counters that are close to each other, and powers of two.
            2 | 3 => (1 << 40) + self.below(256) as u64,
            4 => 1u64.rotate_left(self.below(64) as u32),
            _ => (0..8).fold(0, |bits, _| bits << 8 | u64::from(self.byte())),
        }
    }
}

fn reduction(choices: &mut Choices<'_>) -> KernelIr {
    let scalar = choices.pick(&Scalar::ALL);
    let quantile = ReduceOp::Quantile(0.4f64.to_bits());
    let op =
        ReduceOp::PLAIN.get(choices.below(ReduceOp::PLAIN.len() + 1)).copied().unwrap_or(quantile);
    KernelIr {
        operands: [Operand { scalar, access: Access::Column, previous: false }].into(),
        constants: [].into(),
        body: Body::Reduce(op),
    }
}

fn map(choices: &mut Choices<'_>) -> KernelIr {
    let operands: Vec<Operand> = (0..1 + choices.below(4))
        .map(|_| Operand {
            scalar: choices.pick(&Scalar::ALL),
            access: choices.pick(&[Access::Column, Access::Column, Access::Single]),
            previous: choices.below(4) == 0,
        })
        .collect();
    let constants: Vec<Scalar> =
        (0..choices.below(3)).map(|_| choices.pick(&Scalar::ALL)).collect();
    let mut insts: Vec<Inst> = Vec::new();
    let mut types: Vec<Scalar> = Vec::new();
    for (index, operand) in (0u16..).zip(&operands) {
        insts.push(Inst::Operand(index));
        types.push(operand.scalar);
    }
    for (index, scalar) in (0u16..).zip(&constants) {
        insts.push(Inst::Constant(index));
        types.push(*scalar);
    }
    let of_type = |choices: &mut Choices<'_>, types: &[Scalar], scalar: Scalar| {
        let all: Vec<usize> = (0..types.len()).filter(|at| types[*at] == scalar).collect();
        Reg(all[choices.below(all.len())] as u16)
    };
    let mut flags: Vec<Reg> = Vec::new();
    if choices.below(2) == 0 {
        idiom(choices, &mut insts, &mut types, &mut flags);
    }
    let most = choices.pick(&[4, 24]);
    for _ in 0..choices.below(most) {
        let at = choices.below(types.len());
        let (a, scalar) = (Reg(at as u16), types[at]);
        let (inst, scalar) = match choices.below(5) {
            0 => {
                let to = choices.pick(&Scalar::ALL);
                (Inst::Unary(UnaryOp::Convert(to), a), to)
            }
            1 => {
                let op = choices.pick(&UnaryOp::PLAIN);
                let Some(result) = op.result(scalar) else { continue };
                (Inst::Unary(op, a), result)
            }
            2 if types.contains(&Scalar::U32) => {
                let guard = of_type(choices, &types, Scalar::U32);
                let other = of_type(choices, &types, scalar);
                (Inst::Select(guard, a, other), scalar)
            }
            _ => {
                let op = choices.pick(&BinaryOp::ALL);
                let other = of_type(choices, &types, scalar);
                let Some(result) = op.result(scalar) else { continue };
                (Inst::Binary(op, a, other), result)
            }
        };
        insts.push(inst);
        types.push(scalar);
    }
    if types.contains(&Scalar::U32) && choices.below(3) == 0 {
        flags.push(of_type(choices, &types, Scalar::U32));
    }
    let result = Reg((types.len() - 1) as u16);
    KernelIr { operands, constants, body: Body::Map { insts, result, flags } }
}

/// Operations with a [quick form](super::quick): the rate of a counter, and
/// another unit of an integer.
fn idiom(
    choices: &mut Choices<'_>,
    insts: &mut Vec<Inst>,
    types: &mut Vec<Scalar>,
    flags: &mut Vec<Reg>,
) {
    let of_type = |choices: &mut Choices<'_>, types: &[Scalar], scalar: Scalar| {
        let all: Vec<usize> = (0..types.len()).filter(|at| types[*at] == scalar).collect();
        (!all.is_empty()).then(|| Reg(all[choices.below(all.len())] as u16))
    };
    let mut push = |types: &mut Vec<Scalar>, inst: Inst, scalar: Scalar| {
        insts.push(inst);
        types.push(scalar);
        Reg((types.len() - 1) as u16)
    };
    let scalar = choices.pick(&[Scalar::U64, Scalar::I64, Scalar::U32, Scalar::I32]);
    let [a, b, c] = [0; 3].map(|_| of_type(choices, types, scalar));
    let (Some(a), Some(b), Some(c)) = (a, b, c) else { return };
    if choices.below(2) == 0 {
        flags.push(push(types, Inst::Binary(BinaryOp::Lt, a, b), Scalar::U32));
        let difference = push(types, Inst::Binary(BinaryOp::Sub, a, b), scalar);
        let convert = Inst::Unary(UnaryOp::Convert(Scalar::F64), difference);
        let difference = push(types, convert, Scalar::F64);
        if let Some(elapsed) = of_type(choices, types, Scalar::F64) {
            push(types, Inst::Binary(BinaryOp::Div, difference, elapsed), Scalar::F64);
        }
    } else {
        let product = push(types, Inst::Binary(BinaryOp::Mul, a, b), scalar);
        let sum = push(types, Inst::Binary(BinaryOp::Add, product, b), scalar);
        push(types, Inst::Binary(BinaryOp::Div, sum, c), scalar);
    }
}

/// Makes a kernel and data from the bytes and runs it both ways.
///
/// # Panics
/// If the interpreter and native code disagree, or code cannot be made.
#[doc(hidden)]
pub fn fuzz_kernel_diff(data: &[u8]) {
    let mut choices = Choices { data, state: 0xcbf2_9ce4_8422_2325 };
    let choices = &mut choices;
    let ir = if choices.below(6) == 0 { reduction(choices) } else { map(choices) };
    let kernel = Kernel::new(ir.clone()).expect("the generator makes verified kernels");
    let native = Arc::new(Kernel::new(ir.clone()).expect("the generator makes verified kernels"));
    compile(&[Arc::clone(&native)]).expect("kernels compile on the machine of the test");

    /// Bytes of one column in the test's arenas.
    const COLUMN: usize = 48 * 8;
    let arena = |choices: &mut Choices<'_>, columns: usize| -> Vec<u8> {
        (0..columns * COLUMN / 8).flat_map(|_| choices.bits().to_ne_bytes()).collect()
    };
    let segments = 1 + choices.below(3);
    let mut rows = Rows::new(&ir);
    let mut lanes = Vec::new();
    let columns = segments * (ir.operands.len() + 1);
    let mut next = 0u32;
    for _ in 0..segments {
        // The caller must avoid a reduction of an empty column.
        let count = choices.below(48).max(usize::from(matches!(ir.body, Body::Reduce(_))));
        let mut place = || {
            next += COLUMN as u32;
            next - COLUMN as u32
        };
        let operands: Vec<u32> = ir.operands.iter().map(|_| place()).collect();
        let output = place();
        rows.push(&ir, Segment { lanes: count as u32, operands: &operands, output, constants: 0 });
        lanes.push((output as usize, if ir.is_single() { 1 } else { count }));
    }
    let work = arena(choices, columns);
    let history = arena(choices, columns);
    let constants: Vec<u8> = ir
        .constants
        .iter()
        .flat_map(|scalar| {
            let bits = choices.bits();
            let mut bytes = bits.to_ne_bytes();
            if scalar.bytes() == 4 {
                bytes[..4].copy_from_slice(&(bits as u32).to_ne_bytes());
            }
            bytes
        })
        .collect();

    let run = |kernel: &Kernel| {
        let mut work = work.clone();
        let mut arenas = Arenas { work: &mut work, history: &history, constants: &constants };
        let flagged = kernel.run(&mut Scratch::default(), &mut arenas, &rows, 0, segments) != 0;
        (work, flagged)
    };
    let (expected, expected_flag) = run(&kernel);
    let (mut got, got_flag) = run(&native);
    assert_eq!(expected_flag, got_flag, "flags of\n{ir}");
    let scalar = ir.output();
    for (offset, count) in lanes {
        for lane in 0..count {
            let at = offset + lane * scalar.bytes();
            let (a, b) = (read(scalar, &expected, at), read(scalar, &got, at));
            assert!(same(scalar, a, b), "lane {lane}: {a:#x} against {b:#x} of\n{ir}");
        }
        // Whole groups of lanes may be written, and nothing else.
        let written = if ir.is_single() { 1 } else { count.next_multiple_of(LANE_GROUP) };
        let written = offset..offset + written * scalar.bytes();
        got[written.clone()].copy_from_slice(&work[written]);
    }
    assert!(got == work, "native code wrote beyond the outputs of\n{ir}");
}

fn same(scalar: Scalar, a: u64, b: u64) -> bool {
    let nan = |bits: u64| match scalar {
        Scalar::F32 => f32::from_bits(bits as u32).is_nan(),
        Scalar::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    };
    a == b || nan(a) && nan(b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        // Inputs that fail are kept as inputs of the fuzz target.
        #![proptest_config(ProptestConfig {
            cases: 2000,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        #[test]
        fn native_code_agrees_with_the_interpreter(data in prop::collection::vec(any::<u8>(), 0..200)) {
            super::fuzz_kernel_diff(&data);
        }
    }
}
