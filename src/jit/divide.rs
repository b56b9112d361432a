//! Division of 64-bit integers by one number, as a product.
//!
//! Of a divisor `d` from 1 to 2^32, with the least `l` such that `2^l >= d` and
//! `m = 2^64 (2^l - d) / d + 1`, rounded down before the 1 is added, Granlund and
//! Montgomery have shown that for each `n` below 2^64, `t` being the upper half
//! of `m n`,
//!
//! ```text
//! n / d = (t + (n - t) / 2) / 2^(l - 1)      for d > 1, and n for d = 1
//! ```
//!
//! where nothing exceeds 64 bits. It is: `m = (2^(64 + l) - 2^64 d + e) / d` with
//! `1 <= e <= d`, so that `n + t` is `n (2^(64 + l) + e) / (2^64 d)` rounded down,
//! and `n e / (2^(64 + l) d) < 1 / d`, too little to reach the next whole number.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use pmderive_runtime::kernel::Scalar;

/// A divisor in the form of a factor.
#[derive(Clone, Copy)]
pub struct Divisor {
    factor: Value,
    /// Numbers of bits to shift the difference and the sum.
    shifts: [Value; 2],
}

impl Divisor {
    /// The factor of a divisor, and whether it is valid: the divisor is from 1 to
    /// 2^32.
    pub fn new(builder: &mut FunctionBuilder<'_>, divisor: Value) -> (Divisor, Value) {
        let one = builder.ins().iconst(types::I64, 1);
        let less = builder.ins().isub(divisor, one);
        let end = builder.ins().iconst(types::I64, 1 << 32);
        let holds = builder.ins().icmp(IntCC::UnsignedLessThan, less, end);
        // Prevents a division by zero, even if the quotient is not used.
        let divisor = builder.ins().umax(divisor, one);

        let zeros = builder.ins().clz(less);
        let all = builder.ins().iconst(types::I64, 64);
        let length = builder.ins().isub(all, zeros);
        // Where it is used, it has at most 33 bits.
        let power = builder.ins().ishl(one, length);
        let high = builder.ins().isub(power, divisor);
        // A division of 96 bits by digits of 32.
        let (upper, rest) = digit(builder, high, divisor);
        let (lower, _) = digit(builder, rest, divisor);
        let upper = builder.ins().ishl_imm_u(upper, 32);
        let factor = builder.ins().bor(upper, lower);
        let factor = builder.ins().iadd(factor, one);

        let first = builder.ins().umin(length, one);
        let second = builder.ins().isub(length, first);
        (Divisor { factor, shifts: [first, second] }, holds)
    }

    /// The quotient of a number, towards zero.
    pub fn divide(&self, builder: &mut FunctionBuilder<'_>, scalar: Scalar, n: Value) -> Value {
        if !scalar.is_signed_integer() {
            return self.divide_unsigned(builder, n);
        }
        let sign = builder.ins().sshr_imm_u(n, 63);
        let flipped = builder.ins().bxor(n, sign);
        let magnitude = builder.ins().isub(flipped, sign);
        let quotient = self.divide_unsigned(builder, magnitude);
        let flipped = builder.ins().bxor(quotient, sign);
        builder.ins().isub(flipped, sign)
    }

    fn divide_unsigned(&self, builder: &mut FunctionBuilder<'_>, n: Value) -> Value {
        let [first, second] = self.shifts;
        let t = builder.ins().umulhi(n, self.factor);
        let rest = builder.ins().isub(n, t);
        let half = builder.ins().ushr(rest, first);
        let sum = builder.ins().iadd(t, half);
        builder.ins().ushr(sum, second)
    }
}

/// `2^32 high / divisor`, and the remainder.
fn digit(builder: &mut FunctionBuilder<'_>, high: Value, divisor: Value) -> (Value, Value) {
    let dividend = builder.ins().ishl_imm_u(high, 32);
    let digit = builder.ins().udiv(dividend, divisor);
    let product = builder.ins().imul(digit, divisor);
    (digit, builder.ins().isub(dividend, product))
}
