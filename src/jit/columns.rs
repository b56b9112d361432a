//! Loops over the lanes of a segment, in groups of lanes.
//!
//! Columns are padded to whole groups. A first loop does several groups in each round. A
//! second loop does the remaining groups one by one, and cuts the flags of the last one
//! to the existing lanes. Short columns need only the second loop.
//!
//! If a map has a [quick form](super::quick), that runs first. Where its result is not
//! exact, the exact form runs again.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use pmderive_runtime::kernel::{Access, Inst, LANE_GROUP, Operand};

use super::constants::ConstantVectors;
use super::emit::{Emitter, Segment};
use super::group::{Group, GroupEmitter, splats};
use super::map::{Frequency, Map, is_wide};
use super::quick::{Form, Quick};

/// Approximate number of vectors that a round of the first loop computes. More
/// would only hide the cost of the loop itself.
const VECTORS_PER_ROUND: usize = 24;
/// Largest number of groups in a round.
const MOST_GROUPS: usize = 4;

/// The lanes to collect flags from: `None` for all of a group, or the mask of
/// the existing ones.
type LaneMask = Option<Value>;

impl Emitter<'_, '_> {
    /// The loops over the groups of a segment's lanes; returns the flags after
    /// them.
    pub(super) fn groups(
        &mut self,
        map: &Map<'_>,
        segment: &Segment,
        flags: Value,
        often: Frequency,
    ) -> Value {
        let groups = match often {
            Frequency::Mostly => self.groups_per_round(map, None),
            Frequency::Seldom => 1,
        };
        let kept = self.rounds(map, segment, None, groups);
        self.with_flagged(flags, &kept[..usize::from(!map.flags.is_empty())])
    }

    /// The quick loops where their conditions hold, and the exact ones where not;
    /// returns the flags after them.
    pub(super) fn quick_or_exact(
        &mut self,
        map: &Map<'_>,
        segment: &Segment,
        quick: &Quick,
        flags: Value,
    ) -> Value {
        let (quickly, _) = self.block(&[]);
        let (exactly, _) = self.block(&[]);
        let (done, done_args) = self.block(&[types::I64]);
        let holds = self.prepare(quick);
        self.branch(holds.holds, (quickly, &[]), (exactly, &[]));

        self.builder.switch_to_block(quickly);
        let own = Map { insts: map.insts, result: map.result, flags: quick.flags(map) };
        let groups = self.groups_per_round(&own, Some(quick));
        let kept = self.rounds(&own, segment, Some((quick, &holds.values)), groups);
        let (flagged, watched) = kept.split_at(usize::from(!own.flags.is_empty()));
        let after = self.with_flagged(flags, flagged);
        match watched {
            [large, top] => {
                let wrong = self.was_wrong(*large, *top);
                self.branch(wrong, (exactly, &[]), (done, &[after]));
            }
            _ => self.jump(done, &[after]),
        }

        self.builder.switch_to_block(exactly);
        // Registers are for the quick form.
        self.kept = ConstantVectors::default();
        let after = self.exact(map, segment, flags, Frequency::Seldom);
        self.jump(done, &[after]);

        self.builder.switch_to_block(done);
        done_args[0]
    }

    fn with_flagged(&mut self, flags: Value, flagged: &[Value]) -> Value {
        flagged.iter().fold(flags, |flags, flagged| {
            let any = self.builder.ins().vany_true(*flagged);
            let any = self.builder.ins().uextend(types::I64, any);
            self.builder.ins().bor(flags, any)
        })
    }

    /// The two loops. They return a mask of flagged lanes, if the map has
    /// flags, and the watched values of the quick form, if it has any.
    fn rounds(
        &mut self,
        map: &Map<'_>,
        segment: &Segment,
        quick: Option<(&Quick, &[Option<Value>])>,
        groups: usize,
    ) -> Vec<Value> {
        let uniform = splats(self.builder, &self.types, &self.values);
        let mut first = Vec::new();
        if !map.flags.is_empty() {
            let none = self.builder.ins().iconst(types::I32, 0);
            first.push(self.builder.ins().splat(types::I32X4, none));
        }
        if quick.is_some_and(|(quick, _)| quick.watches()) {
            let none = self.builder.ins().iconst(types::I64, 0);
            let none = self.builder.ins().splat(types::I64X2, none);
            first.extend([none; 2]);
        }
        let collects = !first.is_empty();
        let zero = self.builder.ins().iconst(types::I64, 0);
        let lanes = segment.lanes;
        let mut start = zero;
        if groups > 1 {
            let step = groups * LANE_GROUP;
            let end = self.whole(lanes, step);
            first = self.each((zero, end), step, &first, |emitter, lane, kept| {
                let of = Round { map, segment, quick, uniform: &uniform };
                emitter.one_round(&of, lane, groups, None, kept)
            });
            start = end;
        }
        self.each((start, lanes), LANE_GROUP, &first, |emitter, lane, kept| {
            let there = collects.then(|| emitter.lanes_there(lane, lanes));
            let of = Round { map, segment, quick, uniform: &uniform };
            emitter.one_round(&of, lane, 1, there, kept)
        })
    }

    fn one_round(
        &mut self,
        of: &Round<'_>,
        lane: Value,
        groups: usize,
        there: LaneMask,
        kept: &[Value],
    ) -> Vec<Value> {
        let Round { map, segment, quick, uniform } = of;
        let offset = self.offsets(lane);
        let addresses: Vec<Option<Value>> = (0..self.ir.operands.len())
            .map(|at| {
                let Operand { scalar, access, .. } = self.ir.operands[at];
                let is_column = access == Access::Column;
                is_column.then(|| self.operand_lane(segment, at, offset(scalar)))
            })
            .collect();
        let output = self.address(segment.output, offset(self.types[map.result]));
        let mut kept = kept.to_vec();
        // Loads, operations and stores of one vector follow each other where possible,
        // which suits processors best.
        let in_halves = groups > 1 && is_wide(map, &self.types, |at| self.values[at].is_some());
        let halves = if in_halves { &[Some(0), Some(1)][..] } else { &[None] };
        for (at, half) in (0..groups).flat_map(|at| halves.iter().map(move |half| (at, *half))) {
            let mut group =
                GroupEmitter::new(self.builder, &self.types, uniform.to_vec(), *quick, &self.kept);
            (group.has_blend, group.half) = (self.target.has_blend, half);
            group.compute(map.insts, &addresses, at, there);
            group.store(map.result, output, at);
            let watched = usize::from(!map.flags.is_empty());
            if watched == 1 {
                kept[0] = group.flags(kept[0], &map.flags, there);
            }
            if let [large, top] = &mut kept[watched..] {
                group.watched(large, top);
            }
        }
        kept
    }

    /// Number of groups in a round of the first loop: a power of two.
    fn groups_per_round(&self, map: &Map<'_>, quick: Option<&Quick>) -> usize {
        let nothing = |at: usize| {
            self.values[at].is_some() || quick.is_some_and(|quick| quick.forms[at] == Form::False)
        };
        let vectors = |(at, _): (usize, &Inst)| match nothing(at) {
            true => 0,
            false => self.types[at].bytes() / 4,
        };
        let vectors: usize = map.insts.iter().enumerate().map(vectors).sum();
        let most = (VECTORS_PER_ROUND / vectors.max(1)).clamp(1, MOST_GROUPS);
        1 << most.ilog2()
    }

    /// Mask of the existing lanes of the group at `lane`.
    fn lanes_there(&mut self, lane: Value, lanes: Value) -> Value {
        let left = self.builder.ins().isub(lanes, lane);
        let numbers: Vec<u8> = (0..LANE_GROUP as u32).flat_map(u32::to_le_bytes).collect();
        let numbers = self.builder.func.dfg.constants.insert(numbers.into());
        let numbers = self.builder.ins().vconst(types::I32X4, numbers);
        let left = self.builder.ins().ireduce(types::I32, left);
        let left = self.builder.ins().splat(types::I32X4, left);
        // Columns are shorter than 2^31 lanes: offsets in bytes have 32 bits.
        self.builder.ins().icmp(IntCC::SignedGreaterThan, left, numbers)
    }
}

/// The computations of every round of a loop.
struct Round<'r> {
    map: &'r Map<'r>,
    segment: &'r Segment,
    quick: Option<(&'r Quick, &'r [Option<Value>])>,
    /// Registers that are the same in every lane.
    uniform: &'r [Option<Group>],
}
