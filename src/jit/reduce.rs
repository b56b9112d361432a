//! The loops of reductions: one value from a column.
//!
//! Sums and averages in floating point keep the order of lanes, because each addition
//! rounds. Sums of integers and extremes do not depend on the order, except in one case.
//! Vectors therefore compute them in parts.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use pmderive_runtime::kernel::{BinaryOp, LANE_GROUP, ReduceOp, Scalar};

use super::conditions::{extreme_condition, float_condition};
use super::constants;
use super::emit::Emitter;
use super::group::{Group, GroupEmitter};
use super::target::{HAS_VECTORS, memory, type_of};
use super::vectors::{TURNS_SIGNS, choose, vector_of};

/// Number of vectors that keep parts of a reduction. With so many, only the
/// loads limit the speed.
const PARTS: usize = 8;

impl Emitter<'_, '_> {
    /// The reduction of a column.
    pub(super) fn reduce(&mut self, op: ReduceOp, column: Value, lanes: Value) -> Value {
        let scalar = self.ir.operands[0].scalar;
        debug_assert!(op.is_compiled());
        match op {
            ReduceOp::Sum if !scalar.is_float() && HAS_VECTORS => {
                self.sum_in_any_order(scalar, column, lanes)
            }
            ReduceOp::Max | ReduceOp::Min => self.extreme(op, scalar, column, lanes),
            ReduceOp::Greatest | ReduceOp::Least => {
                let best = self.extreme(op.of_numbers(), scalar, column, lanes);
                self.nan_or(best, scalar, column, lanes)
            }
            _ => self.in_order(op, scalar, column, lanes),
        }
    }

    /// The address of a lane of a column.
    fn lane_address(&mut self, scalar: Scalar, column: Value, lane: Value) -> Value {
        let offset = self.offsets(lane)(scalar);
        self.address(column, offset)
    }

    fn lane(&mut self, scalar: Scalar, column: Value, lane: Value) -> Value {
        let address = self.lane_address(scalar, column, lane);
        self.builder.ins().load(type_of(scalar), memory(), address, 0)
    }

    /// Loops over a column that keep parts in vectors, as far as the column has
    /// whole vectors. Returns the parts in one vector, and the next lane. `read`
    /// changes the lanes of a vector before they are joined.
    fn in_parts(
        &mut self,
        scalar: Scalar,
        (column, lanes): (Value, Value),
        first: Value,
        read: impl Fn(&mut Self, Value) -> Value,
        add: impl Fn(&mut Self, Value, Value) -> Value,
    ) -> (Value, Value) {
        let kind = vector_of(scalar);
        let step = PARTS * 16 / scalar.bytes();
        let end = self.whole(lanes, step);
        let zero = self.builder.ins().iconst(types::I64, 0);
        let round = |emitter: &mut Self, lane: Value, parts: &[Value]| -> Vec<Value> {
            let address = emitter.lane_address(scalar, column, lane);
            let part = |(part, offset): (&Value, i32)| {
                let lanes = emitter.builder.ins().load(kind, memory(), address, offset);
                let lanes = read(emitter, lanes);
                add(emitter, *part, lanes)
            };
            parts.iter().zip((0..).step_by(16)).map(part).collect()
        };
        let (long, _) = self.block(&[]);
        let (rest, rest_args) = self.block(&[kind]);
        self.branch(end, (long, &[]), (rest, &[first]));
        self.builder.switch_to_block(long);
        let parts = self.each((zero, end), step, &[first; PARTS], round);
        let part = parts.into_iter().reduce(|a, b| add(self, a, b)).expect("there are parts");
        self.jump(rest, &[part]);

        // The remaining lanes, a vector at a time.
        self.builder.switch_to_block(rest);
        let behind = self.whole(lanes, 16 / scalar.bytes());
        let part = self.each((end, behind), 16 / scalar.bytes(), &rest_args, round);
        (part[0], behind)
    }

    /// The sum of the lanes, for floating point in any fast order.
    fn sum_in_any_order(&mut self, scalar: Scalar, column: Value, lanes: Value) -> Value {
        let add = |emitter: &mut Self, a, b| match scalar.is_float() {
            true => emitter.builder.ins().fadd(a, b),
            false => emitter.builder.ins().iadd(a, b),
        };
        let (mut sum, mut end) = (self.zero(scalar), self.builder.ins().iconst(types::I64, 0));
        if HAS_VECTORS {
            let first = self.builder.ins().splat(vector_of(scalar), sum);
            let (part, behind) =
                self.in_parts(scalar, (column, lanes), first, |_, lanes| lanes, add);
            let part = self.lanes_of(scalar, part).into_iter();
            sum = part.reduce(|a, b| add(self, a, b)).unwrap_or(sum);
            end = behind;
        }
        let sum = self.each((end, lanes), 1, &[sum], |emitter, lane, sum| {
            let value = emitter.lane(scalar, column, lane);
            vec![add(emitter, sum[0], value)]
        });
        sum[0]
    }

    /// The first lane that is NaN, or else `best`. If the sum is a number, no lane is
    /// NaN. Infinities can make the sum NaN as well, so the loop then checks the lanes.
    fn nan_or(&mut self, best: Value, scalar: Scalar, column: Value, lanes: Value) -> Value {
        if !scalar.is_float() {
            return best;
        }
        let sum = self.sum_in_any_order(scalar, column, lanes);
        let (search, _) = self.block(&[]);
        let (done, found) = self.block(&[type_of(scalar)]);
        let is_number = self.builder.ins().fcmp(FloatCC::Ordered, sum, sum);
        self.branch(is_number, (done, &[best]), (search, &[]));
        self.builder.switch_to_block(search);
        let zero = self.builder.ins().iconst(types::I64, 0);
        let first = self.each((zero, lanes), 1, &[best], |emitter, lane, best| {
            let value = emitter.lane(scalar, column, lane);
            let mut is_nan = |lane| emitter.builder.ins().fcmp(FloatCC::Unordered, lane, lane);
            let (has_found, is_nan) = (is_nan(best[0]), is_nan(value));
            let next = emitter.builder.ins().select(is_nan, value, best[0]);
            vec![emitter.builder.ins().select(has_found, best[0], next)]
        });
        self.jump(done, &first);
        self.builder.switch_to_block(done);
        found[0]
    }

    /// The lanes of a vector.
    fn lanes_of(&mut self, scalar: Scalar, vector: Value) -> Vec<Value> {
        let lanes = 0..(16 / scalar.bytes()) as u8;
        lanes.map(|lane| self.builder.ins().extractlane(vector, lane)).collect()
    }

    /// The lane that wins: the first one, unless a later one is further.
    fn further(&mut self, op: ReduceOp, scalar: Scalar, best: Value, lane: Value) -> Value {
        let is_vector = self.builder.func.dfg.value_type(best).is_vector();
        let best_wins = if op == ReduceOp::Max { BinaryOp::Max } else { BinaryOp::Min };
        if !scalar.is_float() {
            let signed = scalar.is_signed_integer();
            if is_vector && scalar.bytes() == 4 {
                let ins = self.builder.ins();
                return match (op, signed) {
                    (ReduceOp::Max, true) => ins.smax(lane, best),
                    (ReduceOp::Max, false) => ins.umax(lane, best),
                    (_, true) => ins.smin(lane, best),
                    (_, false) => ins.umin(lane, best),
                };
            }
            let wins = self.builder.ins().icmp(extreme_condition(best_wins, signed), lane, best);
            return self.choose(wins, lane, best);
        }
        // `best < lane` for the greatest: one instruction does that and the choice.
        let less = float_condition(BinaryOp::Lt);
        let (a, b) = if op == ReduceOp::Max { (best, lane) } else { (lane, best) };
        let wins = self.builder.ins().fcmp(less, a, b);
        self.choose(wins, lane, best)
    }

    fn choose(&mut self, condition: Value, yes: Value, no: Value) -> Value {
        let kind = self.builder.func.dfg.value_type(yes);
        if !kind.is_vector() {
            return self.builder.ins().select(condition, yes, no);
        }
        choose(self.builder, self.target.has_blend, condition, [yes, no])
    }

    /// The first lane, then each that is further.
    ///
    /// Parts begin with the first lane: if it is NaN they stay so, as in order.
    /// Equal numbers have equal bits, except for zeros. If the extreme is a
    /// zero and the first lane is not, the sign is that of the first zero. The
    /// lanes are then read again in order.
    fn extreme(&mut self, op: ReduceOp, scalar: Scalar, column: Value, lanes: Value) -> Value {
        let kind = type_of(scalar);
        let first = self.builder.ins().load(kind, memory(), column, 0);
        let zero = self.builder.ins().iconst(types::I64, 0);
        let (mut best, mut end) = (first, zero);
        if HAS_VECTORS {
            let splat = self.builder.ins().splat(vector_of(scalar), first);
            // Parts have their signs turned where only signed numbers can be compared.
            let is_turned = scalar == Scalar::U64 && TURNS_SIGNS;
            let turned = |emitter: &mut Self, lanes| match is_turned {
                true => {
                    let sign = emitter.kept.vector(emitter.builder, constants::SIGN);
                    emitter.builder.ins().bxor(lanes, sign)
                }
                false => lanes,
            };
            let compared = if is_turned { Scalar::I64 } else { scalar };
            let splat = turned(self, splat);
            let (part, behind) =
                self.in_parts(scalar, (column, lanes), splat, turned, |emitter, best, lanes| {
                    emitter.further(op, compared, best, lanes)
                });
            let part = turned(self, part);
            for lane in self.lanes_of(scalar, part) {
                best = self.further(op, scalar, best, lane);
            }
            end = behind;
        }
        let rest = |emitter: &mut Self, start: Value, best: Value| {
            let best = emitter.each((start, lanes), 1, &[best], |emitter, lane, best| {
                let value = emitter.lane(scalar, column, lane);
                vec![emitter.further(op, scalar, best[0], value)]
            });
            best[0]
        };
        let best = rest(self, end, best);
        if !scalar.is_float() || !HAS_VECTORS {
            return best;
        }
        let (again, _) = self.block(&[]);
        let (done, done_args) = self.block(&[kind]);
        let nothing = self.zero(scalar);
        let is_zero = self.builder.ins().fcmp(FloatCC::Equal, best, nothing);
        let is_not = self.builder.ins().fcmp(FloatCC::NotEqual, first, nothing);
        let unsure = self.builder.ins().band(is_zero, is_not);
        self.branch(unsure, (again, &[]), (done, &[best]));
        self.builder.switch_to_block(again);
        let best = rest(self, zero, first);
        self.jump(done, &[best]);
        self.builder.switch_to_block(done);
        done_args[0]
    }

    /// A sum or an average of rounded parts, in the order of lanes.
    fn in_order(&mut self, op: ReduceOp, scalar: Scalar, column: Value, lanes: Value) -> Value {
        let total = match op {
            ReduceOp::AvgSingle => Scalar::F32,
            ReduceOp::SumDouble | ReduceOp::AvgDouble => Scalar::F64,
            _ => scalar,
        };
        let count = match op {
            ReduceOp::AvgSingle => self.builder.ins().fcvt_from_uint(types::F32, lanes),
            ReduceOp::AvgDouble => self.builder.ins().fcvt_from_uint(types::F64, lanes),
            _ => lanes,
        };
        let zero = self.builder.ins().iconst(types::I64, 0);
        let end = if HAS_VECTORS { self.whole(lanes, LANE_GROUP) } else { zero };
        let mut sum = vec![self.zero(total)];
        if HAS_VECTORS {
            sum = self.each((zero, end), LANE_GROUP, &sum, |emitter, lane, sum| {
                let values = emitter.group_of(scalar, total, column, lane);
                let share = |emitter: &mut Self, value| match op {
                    ReduceOp::AvgSingle => emitter.builder.ins().fdiv(value, count),
                    _ => value,
                };
                let add = |sum, value| {
                    let value = share(emitter, value);
                    emitter.binary(BinaryOp::Add, total, sum, value)
                };
                vec![values.into_iter().fold(sum[0], add)]
            });
        }
        let sum = self.each((end, lanes), 1, &sum, |emitter, lane, sum| {
            let mut value = emitter.lane(scalar, column, lane);
            if scalar != total {
                value = emitter.convert(scalar, total, value);
            }
            if op == ReduceOp::AvgSingle {
                value = emitter.builder.ins().fdiv(value, count);
            }
            vec![emitter.binary(BinaryOp::Add, total, sum[0], value)]
        });
        match op {
            ReduceOp::AvgDouble => {
                let mean = self.builder.ins().fdiv(sum[0], count);
                self.builder.ins().fdemote(types::F32, mean)
            }
            ReduceOp::SumDouble => self.builder.ins().fdemote(types::F32, sum[0]),
            _ => sum[0],
        }
    }

    /// The four lanes of a group in another type.
    fn group_of(
        &mut self,
        scalar: Scalar,
        total: Scalar,
        column: Value,
        lane: Value,
    ) -> Vec<Value> {
        let address = self.lane_address(scalar, column, lane);
        // Vectors do not convert 64-bit integers to single precision.
        let in_vectors = scalar != total && (total == Scalar::F64 || scalar.bytes() == 4);
        if !in_vectors {
            let value = |lane: usize| {
                let offset = i32::try_from(lane * scalar.bytes()).expect("a few bytes");
                let value = self.builder.ins().load(type_of(scalar), memory(), address, offset);
                if scalar == total { value } else { self.convert(scalar, total, value) }
            };
            return (0..LANE_GROUP).map(value).collect();
        }
        let types = [scalar];
        let mut group = GroupEmitter::new(self.builder, &types, vec![None], None, &self.kept);
        let loaded = group.load(scalar, address, 0);
        match group.convert(scalar, total, loaded) {
            Group::Wide(lanes) | Group::WideMask(lanes) => {
                lanes.into_iter().flat_map(|lanes| self.lanes_of(total, lanes)).collect()
            }
            Group::Narrow(lanes) | Group::NarrowMask(lanes) | Group::NarrowNot(lanes) => {
                self.lanes_of(total, lanes)
            }
        }
    }
}
