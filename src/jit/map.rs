//! The map that a kernel computes in each lane, and whether vectors can do it.

use pmderive_runtime::kernel::{BinaryOp, Inst, Reg, Scalar, UnaryOp};

/// The computation in each lane; registers are known by their positions.
pub struct Map<'m> {
    pub insts: &'m [Inst],
    pub result: usize,
    pub flags: Vec<usize>,
}

/// The frequency of a form. A form that seldom runs has one loop less, which
/// saves a quarter of the time of compiling.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Frequency {
    /// Usually.
    Mostly,
    /// Only where a quick form does not hold.
    Seldom,
}

/// True if vectors can do every operation of a map.
pub fn suitable(insts: &[Inst], types: &[Scalar]) -> bool {
    suitable_if(insts, types, |_| false)
}

/// True if vectors can do every operation of a map, except those whose position
/// is `done` otherwise.
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
        // Calls compute one lane at a time.
        Inst::Unary(UnaryOp::Log, _) | Inst::Binary(BinaryOp::Pow, ..) => false,
        _ => true,
    })
}

/// True if every lane of a map has 8 bytes, except for masks that only choose or flag.
/// Half a group can then be computed without the other. `is_uniform` tells for the
/// position of a register whether it is the same in every lane.
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
