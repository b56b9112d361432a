//! The quick form of a map: fewer instructions, under conditions that nearly
//! always hold.
//!
//! | instruction | becomes | where |
//! |---|---|---|
//! | comparison that only says that a counter fell | nothing | the difference is below 2^52 |
//! | that difference in double precision | two instructions | the same |
//! | quotient of a whole number by one divisor for all lanes | a product and two corrections | the divisor is neither tiny nor huge |
//! | product and quotient of 64-bit integers by one number for all lanes | shifts | that is a power of two |
//!
//! Operands that are the same in all lanes are tested before the loop. Differences are tested
//! inside it: if one was too large, the exact loop runs over the segment again. So the
//! result always has the bits of the exact form, whatever the numbers are.
//!
//! # A quotient by a reciprocal
//!
//! Of `x / d`, with `y = RN(1 / d)` (`RN` rounds to the nearest double),
//!
//! ```text
//! q = RN(x * y)    r = RN(x - q * d)    result = RN(q + r * y)
//! ```
//!
//! gives `RN(x / d)` if nothing overflows, is subnormal or is -0. Markstein has
//! shown it for a `q` within one unit in the last place of `x / d`; ours can be
//! further away, so here is all of it. Powers of two change nothing, so let
//! `x` and `d` be in `[1, 2)`: multiples of 2^-52. `d = 1` is plain; else `y` is
//! in `[1/2, 1]` and `|y - 1/d| <= 2^-54`. Let `u` be the unit of `x / d`, which
//! is 2^-52 if `x >= d` and 2^-53 if not, and `e = q - x / d`.
//!
//! 1. *Size of e.* `|x * y - x / d| <= x * 2^-54`. If `x >= d`, that is below
//!    `u/2`, and `|e| < u`. If `x < d`, it is `(x/2) u`, and
//!    `|e| <= (x/2 + 1/2) u < 3/2 u`.
//! 2. *r is exact* unless `|r| >= 2^-52` and `x < d`: `x - q * d` is a multiple of
//!    `u * 2^-52` with at most 53 bits. (For `x >= d`, `q` can be below 1 only if
//!    `x = d`, and then `r = d * 2^-53`.)
//! 3. *Beside a midpoint.* A midpoint `q + k`, `|k| = u/2`, is never `x / d`, as its
//!    product with `d` has more than 53 bits. Let `x / d > q + k` with `k > 0`; the
//!    other cases are alike. Then `r > k d`, and as both are multiples of
//!    `u/2 * 2^-52`, `r >= k (d + 2^-52)`. So `r y >= k (d + 2^-52) (1/d - 2^-54)`,
//!    which is above `k` since `d^2 < 4 - 2^-52 d`. So `q + r y` lies on the side of
//!    the midpoint on which `x / d` lies.
//! 4. *The next midpoint*, at `3/2 u`, is reached by neither: not by `x / d`, as
//!    the size of `e` says, and not by `r y`, if `|e| <= u`. Else `x < d`, and
//!    `|r y| <= (x/2 + 1/2) (1 + d 2^-54) u + 2^-105 y` (the last term for the
//!    rounding of `r`), with `y < 3/4`, since `|e| > u` needs `d > 4/3`. With
//!    `x = 2 - n 2^-52` this is below `3/2 u` for `n > 3`. As `x < d < 2`, there are
//!    three pairs with `n` 2 and 3, and in each `r` is at most 2^-104 away from
//!    -2^-52 or from 0: `|r y| < 1.1 u`.
//! 5. If `r` is not exact, `|r| >= 2^-52`, so `x / d` and `q + r y` are both further
//!    than `u/2` from `q`, to the same side, and not further than `3/2 u`.
//!
//! So both are rounded to the same double. A test tries the corners.

use pmderive_runtime::kernel::{BinaryOp, Inst, Reg, Scalar, UnaryOp};

use super::map::{Map, suitable_if};
use super::target::{HAS_VECTORS, Target};

/// The form of an instruction in the quick loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The instruction itself.
    Plain,
    /// A flag that is false where the watched difference is small.
    False,
    /// A watched difference, with the register whose sign is watched too.
    Watched(Reg),
    /// The conversion of a watched difference.
    OfSmall,
    /// The quotient by the reciprocal of the divisor.
    ByReciprocal,
    /// A product with a power of two: the other factor, shifted.
    ShiftedLeft(Reg),
    /// The quotient by a power of two.
    ShiftedRight,
}

/// The quick form of a map.
#[derive(Debug)]
pub struct Quick {
    /// Parallel to the instructions.
    pub forms: Vec<Form>,
}

/// Divisors between 2^-200 and 2^200 divide whole numbers of 65 bits without
/// overflow, and so that all parts are normal.
pub const DIVISORS: [f64; 2] =
    [f64::from_bits((1023 - 200) << 52), f64::from_bits((1023 + 200) << 52)];

impl Quick {
    /// The quick form of a map; `None` if it would not be quicker. `types` and
    /// `is_uniform` are parallel to its instructions.
    pub fn of(
        map: &Map<'_>,
        types: &[Scalar],
        is_uniform: &[bool],
        target: Target,
    ) -> Option<Quick> {
        if !HAS_VECTORS {
            return None;
        }
        let mut forms = vec![Form::Plain; map.insts.len()];
        let scalar = |reg: Reg| types[usize::from(reg.0)];
        let uniform = |reg: Reg| is_uniform[usize::from(reg.0)];
        for flag in &map.flags {
            let Inst::Binary(BinaryOp::Lt, a, b) = map.insts[*flag] else { continue };
            let difference = Inst::Binary(BinaryOp::Sub, a, b);
            let found = map.insts.iter().position(|inst| *inst == difference);
            let sign = match scalar(a) {
                Scalar::U64 => b,
                Scalar::I64 => a,
                _ => continue,
            };
            if let Some(at) = found
                && !is_uniform[at]
                && !is_operand(map, *flag)
            {
                (forms[*flag], forms[at]) = (Form::False, Form::Watched(sign));
            }
        }
        let mut whole = vec![false; map.insts.len()];
        let mut shifts = false;
        for (at, inst) in map.insts.iter().enumerate() {
            let is_64 = matches!(types[at], Scalar::U64 | Scalar::I64);
            match *inst {
                Inst::Unary(UnaryOp::Convert(Scalar::F64), a) if !scalar(a).is_float() => {
                    whole[at] = true;
                    if matches!(forms[usize::from(a.0)], Form::Watched(_)) {
                        forms[at] = Form::OfSmall;
                    }
                }
                Inst::Binary(BinaryOp::Sub, a, b) if types[at] == Scalar::F64 => {
                    // A difference of equal numbers is +0, as the proof requires.
                    whole[at] = [a, b].iter().all(|reg| is_converted(map, types, *reg));
                }
                Inst::Binary(BinaryOp::Div, a, b) if uniform(b) && !uniform(a) => {
                    if types[at] == Scalar::F64 && whole[usize::from(a.0)] && target.has_fma {
                        forms[at] = Form::ByReciprocal;
                    } else if is_64 {
                        forms[at] = Form::ShiftedRight;
                        shifts = true;
                    }
                }
                Inst::Binary(BinaryOp::Mul, a, b) if is_64 => {
                    match [a, b].map(uniform) {
                        [true, false] => forms[at] = Form::ShiftedLeft(b),
                        [false, true] => forms[at] = Form::ShiftedLeft(a),
                        _ => {}
                    };
                }
                _ => {}
            }
        }
        for form in &mut forms {
            // A product alone is too fast to be worth it.
            if !shifts && matches!(form, Form::ShiftedLeft(_)) {
                *form = Form::Plain;
            }
        }
        let quicker = forms.iter().any(|form| *form != Form::Plain);
        let can_be_done = |at: usize| forms[at] == Form::ShiftedRight || is_uniform[at];
        let suitable = suitable_if(map.insts, types, can_be_done);
        (quicker && suitable).then_some(Quick { forms })
    }

    /// True if differences are watched.
    pub fn watches(&self) -> bool {
        self.forms.iter().any(|form| matches!(form, Form::Watched(_)))
    }

    /// The flags that remain in the quick form.
    pub fn flags(&self, map: &Map<'_>) -> Vec<usize> {
        map.flags.iter().copied().filter(|flag| self.forms[*flag] != Form::False).collect()
    }
}

/// True if an instruction reads a register, or if it is the map's result.
fn is_operand(map: &Map<'_>, register: usize) -> bool {
    let is = |reg: &Reg| usize::from(reg.0) == register;
    map.result == register
        || map.insts.iter().any(|inst| match inst {
            Inst::Operand(_) | Inst::Constant(_) => false,
            Inst::Unary(_, a) => is(a),
            Inst::Binary(_, a, b) => is(a) || is(b),
            Inst::Select(a, b, c) => is(a) || is(b) || is(c),
        })
}

/// True if a register is a converted integer.
fn is_converted(map: &Map<'_>, types: &[Scalar], reg: Reg) -> bool {
    matches!(map.insts[usize::from(reg.0)], Inst::Unary(UnaryOp::Convert(Scalar::F64), a)
        if !types[usize::from(a.0)].is_float())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// The quotient as [`super::Form::ByReciprocal`] computes it.
    fn by_reciprocal(x: f64, d: f64) -> f64 {
        let y = 1.0 / d;
        let q = x * y;
        (-q).mul_add(d, x).mul_add(y, q)
    }

    fn check(x: f64, d: f64) {
        assert_eq!(by_reciprocal(x, d).to_bits(), (x / d).to_bits(), "{x:e} / {d:e}");
    }

    /// Numbers whose quotients lie close to midpoints: a few units from the
    /// ends of a binade, both ways, and those of the proof.
    #[test]
    fn corners_of_the_proof() {
        let unit = f64::EPSILON;
        for m in 0..200 {
            for n in 0..200 {
                let (m, n) = (f64::from(m), f64::from(n));
                for x in [1.0 + m * unit, 2.0 - m * unit, 1.5 + m * unit, 1.5 - m * unit] {
                    for d in [1.0 + n * unit, 2.0 - n * unit, 1.5 + n * unit, 4.0 / 3.0 + n * unit]
                    {
                        check(x, d);
                        check(x * 2f64.powi(52), d * 2f64.powi(-30));
                    }
                }
            }
        }
        for d in super::DIVISORS.map(|bound| bound * 1.1) {
            for x in [0.0, 1.0, -1.0, u64::MAX as f64, i64::MIN as f64] {
                check(x, if d > 1.0 { d / 1.3 } else { d });
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 20_000,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        #[test]
        fn reciprocals_divide(x: u64, shift in 0u32..64, d in 1u64..1 << 53, scale in -60i32..60) {
            check((x >> shift) as f64, d as f64 * 2f64.powi(scale));
        }
    }
}
