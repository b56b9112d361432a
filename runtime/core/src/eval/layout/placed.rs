//! The layout of a section in a workspace: the offsets of its columns, and the
//! copies, calls, fills and saves with these offsets.
//!
//! Input: a plan, the instances of one host, and the section's offset.

use std::collections::HashMap;
use std::mem::take;
use std::sync::Arc;

use super::geometry::Geometry;
use super::plan::{Call, FillBits, Place, Plan};
use super::shape::SetId;
use super::{State, TooLarge};
use crate::eval::lanes::{Finder, Run, align};
use crate::kernel::{Access, Operand, Rows, Segment};
use crate::program::HistoryId;

/// The layout of a section.
#[derive(Debug, Default)]
pub struct Placed {
    /// The state that the section is laid out for; `None` if the layout is not
    /// valid.
    state: Option<Arc<State>>,
    base: u32,
    room: usize,
    geometry: Geometry,
    /// Columns in other lanes, parallel to the plan's list of them.
    aligned: Vec<AlignedColumn>,
    /// Copies, by level.
    pub copies: Vec<Copy>,
    /// Kernel calls, by level as in the plan.
    pub calls: Vec<PlacedCall>,
    /// Values to write before anything is computed.
    pub fills: Vec<PlacedFill>,
    /// Columns to keep for the next evaluation.
    pub saves: Vec<Save>,
}

/// A column in the lanes of another set.
#[derive(Clone, Debug)]
enum AlignedColumn {
    /// In one piece, at this offset.
    At(u32),
    /// In pieces of the column at this offset.
    Pieces(u32, Arc<[Run]>),
}

/// Least average number of lanes in a piece. Shorter pieces are copied
/// together.
const LONG: usize = 64;

/// A range of bytes to copy.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The phase before which the copy is needed.
    pub level: u32,
    /// True if the source is in the block of previous samples, false for the
    /// workspace.
    pub from_kept: bool,
    /// True if the destination is in the block of previous samples.
    pub to_kept: bool,
    /// Source offset.
    pub from: u32,
    /// Destination offset.
    pub to: u32,
    /// Number of bytes.
    pub bytes: u32,
}

/// A kernel call with its segments.
#[derive(Debug)]
pub struct PlacedCall {
    /// The phase.
    pub level: u32,
    /// The segments: one or more for each row of the plan's call.
    pub rows: Rows,
    /// The row of each segment. Empty if each row has one segment.
    row_of: Vec<u32>,
}

impl PlacedCall {
    /// Position of a segment's row.
    pub fn row_of(&self, segment: usize) -> usize {
        self.row_of.get(segment).map_or(segment, |row| *row as usize)
    }
}

/// The same bits in consecutive lanes.
#[derive(Clone, Copy, Debug)]
pub struct PlacedFill {
    /// First lane.
    pub offset: u32,
    /// Number of lanes.
    pub lanes: u32,
    /// Bytes of a lane.
    pub width: u32,
    /// Bits of a lane.
    pub bits: u64,
}

/// A column that is kept as the next previous sample.
#[derive(Clone, Copy, Debug)]
pub struct Save {
    /// The history that the sample belongs to.
    pub history: HistoryId,
    /// Offset in the workspace.
    pub from: u32,
    /// Offset in the section's block.
    pub to: u32,
    /// Number of bytes.
    pub bytes: u32,
}

impl Placed {
    /// True if the section is laid out for this state.
    pub fn is_for(&self, state: &Arc<State>) -> bool {
        let Some(own) = &self.state else { return false };
        let same_sets = || {
            // Usually only the numbers of instances matter.
            let plan = &state.plan;
            let by_instance = !plan.aligned.is_empty() || !plan.firsts.is_empty();
            own.sets
                .iter()
                .zip(&state.sets)
                .all(|(a, b)| a.len() == b.len() && (!by_instance || Arc::ptr_eq(a, b) || a == b))
        };
        Arc::ptr_eq(own, state) || Arc::ptr_eq(&own.plan, &state.plan) && same_sets()
    }

    /// Offset of a place: in the workspace, or for previous samples in their
    /// block.
    pub fn offset(&self, place: Place) -> u32 {
        match place {
            Place::Fixed(offset) => offset,
            Place::Lanes { set, unit } => {
                let geometry = &self.geometry;
                self.base + geometry.work[set.index()] + unit * geometry.caps[set.index()]
            }
            Place::Kept { .. } => self.geometry.kept(place),
            Place::Aligned(at) => match self.aligned[at as usize] {
                AlignedColumn::At(offset) | AlignedColumn::Pieces(offset, _) => offset,
            },
        }
    }

    /// True for a place in the block of previous samples.
    fn is_kept(place: Place) -> bool {
        matches!(place, Place::Kept { .. })
    }

    /// Number of a row's lanes from `lane` on that are in one piece in all
    /// operands.
    fn piece(&self, operands: &[Place], lane: u32, lanes: u32) -> u32 {
        let runs = operands.iter().filter_map(|place| self.run(*place, lane));
        runs.map(|run| run.to + run.len - lane).fold(lanes - lane, u32::min)
    }

    /// The piece of a column that contains a lane, if the column is in pieces.
    fn run(&self, place: Place, lane: u32) -> Option<&Run> {
        match &self.aligned[place.aligned()? as usize] {
            AlignedColumn::At(_) => None,
            AlignedColumn::Pieces(_, runs) => runs.iter().rfind(|run| run.to <= lane),
        }
    }

    /// Offset of a lane of an operand.
    fn lane(&self, place: Place, operand: &Operand, lane: u32) -> u32 {
        let lane = match (self.run(place, lane), operand.access) {
            (Some(run), _) => run.from + lane - run.to,
            (None, Access::Column) => lane,
            (None, Access::Single) => 0,
        };
        self.offset(place) + lane * operand.scalar.bytes() as u32
    }

    /// Begins the layout for a host and returns the number of bytes that it
    /// needs. Until [`Placed::lay_out`] the layout is not valid.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn begin(&mut self, state: &State) -> Result<usize, TooLarge> {
        self.state = None;
        self.geometry.renew(state)?;
        Ok(self.geometry.work_size)
    }

    /// Size in bytes of the section's present place.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Moves the section to an offset, with room for this many bytes.
    pub fn move_to(&mut self, base: u32, room: usize) {
        (self.base, self.room) = (base, room);
    }

    /// Lays the section out at its place, for the state that [`Placed::begin`]
    /// got.
    pub fn lay_out(&mut self, histories: &[HistoryId], state: &Arc<State>) {
        self.lay_out_plan(&state.plan, state);
        self.saves.reserve_exact(histories.len());
        for (history, kept) in histories.iter().zip(&state.plan.histories) {
            let Ok(kept) = kept else { continue };
            let lanes = state.ids(kept.set).len() as u32;
            self.saves.push(Save {
                history: *history,
                from: self.offset(kept.from),
                to: self.geometry.kept(kept.to),
                bytes: lanes * kept.scalar.bytes() as u32,
            });
        }
        self.state = Some(Arc::clone(state));
    }

    /// Turns the places of a plan into offsets.
    fn lay_out_plan(&mut self, plan: &Plan, state: &State) {
        self.lay_out_copies(plan, state);
        let lanes_of = |set: SetId| state.ids(set).len() as u32;
        self.fills.clear();
        self.fills.reserve_exact(plan.fills.len());
        for fill in &plan.fills {
            let offset = self.offset(fill.to);
            let bits = match fill.bits {
                FillBits::Constant(bits) => bits,
                FillBits::CountOf(set) => u64::from(lanes_of(set)),
            };
            let (lanes, width) = (lanes_of(fill.set), fill.width);
            self.fills.push(PlacedFill { offset, lanes, width, bits });
        }
        self.calls.truncate(plan.calls.len());
        self.calls.reserve_exact(plan.calls.len() - self.calls.len());
        let has_pieces = self.aligned.iter().any(|one| matches!(one, AlignedColumn::Pieces(..)));
        let mut offsets = Vec::new();
        for (at, call) in plan.calls.iter().enumerate() {
            let ir = call.kernel.ir();
            let before = self.calls.get_mut(at);
            let (mut rows, mut row_of) = match before {
                Some(before) => (take(&mut before.rows), take(&mut before.row_of)),
                None => (Rows::new(ir), Vec::new()),
            };
            rows.clear(ir);
            rows.reserve(call.rows.len());
            row_of.clear();
            for (number, row) in (0u32..).zip(&call.rows) {
                let places = call.operands_of(number as usize);
                let lanes = lanes_of(row.lanes);
                if !has_pieces {
                    offsets.clear();
                    offsets.extend(places.iter().map(|place| self.offset(*place)));
                    let (output, constants) = (self.offset(row.output), row.constants);
                    rows.push(ir, Segment { lanes, operands: &offsets, output, constants });
                    continue;
                }
                let mut lane = 0;
                while lane < lanes {
                    let piece = self.piece(places, lane, lanes);
                    let operands = places.iter().zip(&ir.operands);
                    offsets.clear();
                    offsets.extend(operands.map(|(place, own)| self.lane(*place, own, lane)));
                    let output = self.offset(row.output) + lane * ir.output().bytes() as u32;
                    let constants = row.constants;
                    rows.push(ir, Segment { lanes: piece, operands: &offsets, output, constants });
                    row_of.push(number);
                    lane += piece;
                }
            }
            let placed = PlacedCall { level: call.level, rows, row_of };
            match self.calls.get_mut(at) {
                Some(before) => *before = placed,
                None => self.calls.push(placed),
            }
        }
        self.saves.clear();
    }

    /// Lays out the copies between lanes of different sets.
    fn lay_out_copies(&mut self, plan: &Plan, state: &State) {
        self.aligned.clear();
        self.copies.clear();
        let mut runs: HashMap<(SetId, SetId), Arc<[Run]>> = HashMap::new();
        for one in &plan.aligned {
            let runs = runs.entry((one.have, one.want)).or_insert_with(|| {
                let (have, want) = (&state.sets[one.have.index()], &state.sets[one.want.index()]);
                align(have, want).unwrap_or_default().into()
            });
            let (from, to) = (self.offset(one.from), self.offset(one.to));
            if let [run] = runs[..] {
                self.aligned.push(AlignedColumn::At(from + run.from * one.width));
                continue;
            }
            if !one.in_one_piece && runs.len() * LONG <= state.sets[one.want.index()].len() {
                self.aligned.push(AlignedColumn::Pieces(from, Arc::clone(runs)));
                continue;
            }
            let kept = Placed::is_kept(one.from);
            self.copies.extend(runs.iter().map(|run| Copy {
                level: one.level,
                from_kept: kept,
                to_kept: kept,
                from: from + run.from * one.width,
                to: to + run.to * one.width,
                bytes: run.len * one.width,
            }));
            self.aligned.push(AlignedColumn::At(to));
        }
        for first in &plan.firsts {
            let lane = match (state.sets.get(first.have.index()), state.sets.get(first.of.index()))
            {
                (Some(have), Some(of)) => {
                    of.first().and_then(|id| Finder::new(have).find(*id)).unwrap_or(0) as u32
                }
                _ => 0,
            };
            self.copies.push(Copy {
                level: first.level,
                from_kept: Placed::is_kept(first.from),
                to_kept: false,
                from: self.offset(first.from) + lane * first.width,
                to: first.to,
                bytes: first.width,
            });
        }
        self.copies.sort_by_key(|copy| copy.level);
    }
}

impl Placed {
    /// Discards the layout and its place.
    pub fn give_up(&mut self) {
        self.state = None;
        (self.base, self.room) = (0, 0);
    }

    /// The plan that the section is laid out for.
    pub fn plan(&self) -> Option<&Plan> {
        self.state.as_deref().map(|state| &*state.plan)
    }

    /// The copies before a phase.
    pub fn copies_of(&self, level: u32) -> &[Copy] {
        let first = self.copies.partition_point(|copy| copy.level < level);
        let count = self.copies[first..].iter().take_while(|copy| copy.level == level).count();
        &self.copies[first..first + count]
    }

    /// The calls of a phase, as planned and as laid out.
    pub fn calls_of(&self, level: u32) -> impl Iterator<Item = (&Arc<Call>, &PlacedCall)> {
        let planned = self.plan().into_iter().flat_map(|plan| &plan.calls);
        let first = self.calls.partition_point(|call| call.level < level);
        let own = self.calls[first..].iter().take_while(move |call| call.level == level);
        planned.skip(first).zip(own)
    }
}
