//! The workspace of evaluations, and where everything lies in it: the offsets
//! that follow from plans and from numbers of instances.
//!
//! A frame serves any number of hosts of one program, one after the other, and
//! remembers for which plans and numbers it was laid out last. Where the next
//! host, or the next fetch, has the same, nothing is to be done; otherwise the
//! sections that differ are laid out anew, and the others stay where they are.
//!
//! Knows neither values nor where they come from.

use std::collections::HashMap;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::{Call, FillBits, Place, Plan};
use super::sections::Sections;
use super::shape::SetId;
use super::{State, TooLarge};
use crate::eval::lanes::{Finder, Run, align};
use crate::kernel::{Access, LANE_GROUP, Operand, Rows};
use crate::model::InstId;
use crate::program::{HistoryId, KernelSlot, Program, Status};

/// Kernels may read whole groups of lanes beyond a column's end.
pub const COLUMN_SLACK: usize = LANE_GROUP * 8;

/// See the module's description.
#[derive(Debug)]
pub struct Frame {
    /// Whose it is.
    pub sections: Arc<Sections>,
    /// The columns of inputs, steps and outputs.
    pub arena: Vec<u8>,
    /// Parallel to the sections.
    pub placed: Vec<Placed>,
    /// Parallel to the program's inputs.
    pub inputs: Vec<Expected>,
    /// Changes with everything that is laid out; 0 if nothing is.
    pub stamp: u64,
    /// Where the next section can be laid out, and bytes that are not used any more.
    end: usize,
    wasted: usize,
}

/// What the decoder has to expect of a metric, and where its column is.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Its section.
    pub section: u32,
    /// Its instances.
    pub set: SetId,
    /// Whether there are values.
    pub has_values: bool,
    /// The value set's own count or status.
    pub raw_count: i32,
    /// The instance of a single value.
    pub instance: InstId,
    /// Offset of its column.
    pub offset: u32,
}

/// A section as it is laid out.
#[derive(Debug, Default)]
pub struct Placed {
    /// What it was laid out for; `None` if that does not hold any more.
    state: Option<Arc<State>>,
    base: u32,
    room: usize,
    geometry: Geometry,
    /// Columns in other lanes, parallel to the plan's.
    aligned: Vec<InOtherLanes>,
    /// By level.
    pub copies: Vec<Copy>,
    /// By level, as in the plan.
    pub calls: Vec<PlacedCall>,
    /// Values to write before anything is computed.
    pub fills: Vec<PlacedFill>,
    /// Columns to keep for the next evaluation.
    pub saves: Vec<Save>,
}

/// A column in other lanes.
#[derive(Clone, Debug)]
enum InOtherLanes {
    /// In one piece, at this offset.
    At(u32),
    /// In pieces of the column at this offset.
    Pieces(u32, Arc<[Run]>),
}

/// Lanes that a piece has on average at least: shorter ones are copied together.
const LONG: usize = 64;

/// Where the columns of sets begin.
#[derive(Clone, Debug, Default)]
pub struct Geometry {
    /// Lanes that a column of the workspace has room for, by set.
    caps: Vec<u32>,
    /// The same of a column of previous samples.
    kept_caps: Vec<u32>,
    /// Offset of each set's columns in the section's part of the workspace.
    work: Vec<u32>,
    /// The same in the block of previous samples.
    kept: Vec<u32>,
    /// Bytes of the columns.
    pub work_size: usize,
    /// Bytes of the block.
    pub kept_size: usize,
}

/// Bytes to copy.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The phase before which they are needed.
    pub level: u32,
    /// From the block of previous samples, else from the workspace.
    pub from_kept: bool,
    /// Into that block.
    pub to_kept: bool,
    /// Source offset.
    pub from: u32,
    /// Destination offset.
    pub to: u32,
    /// Number of bytes.
    pub bytes: u32,
}

/// A kernel with its segments.
#[derive(Debug)]
pub struct PlacedCall {
    /// The phase.
    pub level: u32,
    /// The kernel.
    pub kernel: KernelSlot,
    /// Its segments: one for each row of the plan's call, or several.
    pub rows: Rows,
    /// Row of each segment, if some may have several.
    row_of: Vec<u32>,
}

impl PlacedCall {
    /// Position of the row of a segment.
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
    /// Of which history.
    pub history: HistoryId,
    /// Offset in the workspace.
    pub from: u32,
    /// Offset in the section's block.
    pub to: u32,
    /// Number of bytes.
    pub bytes: u32,
}

impl Geometry {
    /// The geometry of a section of a host.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn of(state: &State) -> Result<Geometry, TooLarge> {
        let mut geometry = Geometry::default();
        geometry.renew(state)?;
        Ok(geometry)
    }

    fn renew(&mut self, state: &State) -> Result<(), TooLarge> {
        let plan = &state.plan;
        self.caps.clear();
        for set in &state.sets {
            self.caps.push(offset(set.len().next_multiple_of(LANE_GROUP))?);
        }
        let count = |set: SetId| state.sets.get(set.index()).map_or(0, |ids| ids.len());
        // What is computed piece by piece goes beyond a piece's end.
        for one in plan.aligned.iter().filter(|one| !one.in_one_piece) {
            if let Some(cap) = self.caps.get_mut(one.want.index()) {
                *cap = offset((count(one.want) + LANE_GROUP).next_multiple_of(LANE_GROUP))?;
            }
        }
        self.kept_caps.clear();
        self.kept_caps.extend(state.sets.iter().map(|ids| lasting_room(ids.len() as u32)));
        for (set, before) in &plan.displaced {
            let room = lasting_room(count(*before) as u32);
            if let Some(cap) = self.kept_caps.get_mut(set.index()) {
                *cap = room.max(*cap);
            }
        }
        self.work.clear();
        self.kept.clear();
        let (mut work, mut kept) = (0, 0);
        let caps = self.caps.iter().zip(&self.kept_caps);
        for ((own, previous), (cap, kept_cap)) in plan.work.iter().zip(&plan.kept).zip(caps) {
            self.work.push(offset(work)?);
            self.kept.push(offset(kept)?);
            work += (*cap as usize * *own as usize).next_multiple_of(8);
            kept += (*kept_cap as usize * *previous as usize).next_multiple_of(8);
        }
        // Offsets within the last column must fit as well.
        offset(work)?;
        offset(kept)?;
        if plan.section == 0 {
            kept = plan.histories.len() * 8;
        }
        self.work_size = work;
        self.kept_size = kept + COLUMN_SLACK;
        Ok(())
    }

    /// Offset of a column of previous samples in their block.
    pub fn kept(&self, place: Place) -> u32 {
        match place {
            Place::Kept { set: SetId::SINGLE, unit } => unit,
            Place::Kept { set, unit } => self.kept[set.index()] + unit * self.kept_cap(set),
            _ => 0,
        }
    }

    /// Lanes that a column of previous samples of a set has room for.
    pub fn kept_cap(&self, set: SetId) -> u32 {
        self.kept_caps[set.index()]
    }
}

/// Lanes to make room for where there are so many now. Those that come and go
/// one by one mostly find room, so that the columns stay where they are.
fn lasting_room(lanes: u32) -> u32 {
    let step = (lanes / 32).next_power_of_two().max(LANE_GROUP as u32);
    lanes.next_multiple_of(step)
}

/// An offset in 32 bits.
fn offset(bytes: usize) -> Result<u32, TooLarge> {
    u32::try_from(bytes).map_err(|_| TooLarge)
}

impl Placed {
    /// True if the section is laid out for that.
    fn is_for(&self, state: &Arc<State>) -> bool {
        let Some(own) = &self.state else { return false };
        let same_sets = || {
            // Mostly their numbers are all that matters.
            let plan = &state.plan;
            let by_instance = !plan.aligned.is_empty() || !plan.firsts.is_empty();
            own.sets
                .iter()
                .zip(&state.sets)
                .all(|(a, b)| a.len() == b.len() && (!by_instance || Arc::ptr_eq(a, b) || a == b))
        };
        Arc::ptr_eq(own, state) || Arc::ptr_eq(&own.plan, &state.plan) && same_sets()
    }

    /// Offset of a place: in the workspace, or for previous samples in their block.
    pub fn offset(&self, place: Place) -> u32 {
        match place {
            Place::Fixed(offset) => offset,
            Place::Lanes { set, unit } => {
                let geometry = &self.geometry;
                self.base + geometry.work[set.index()] + unit * geometry.caps[set.index()]
            }
            Place::Kept { .. } => self.geometry.kept(place),
            Place::Aligned(at) => match self.aligned[at as usize] {
                InOtherLanes::At(offset) | InOtherLanes::Pieces(offset, _) => offset,
            },
        }
    }

    /// True for a place in the block of previous samples.
    fn is_kept(place: Place) -> bool {
        matches!(place, Place::Kept { .. })
    }

    /// How many of a row's lanes lie in one piece of all operands from `lane` on.
    fn piece(&self, operands: &[Place], lane: u32, lanes: u32) -> u32 {
        let runs = operands.iter().filter_map(|place| self.run(*place, lane));
        runs.map(|run| run.to + run.len - lane).fold(lanes - lane, u32::min)
    }

    /// The piece of a column that a lane is in, if it lies in pieces.
    fn run(&self, place: Place, lane: u32) -> Option<&Run> {
        match &self.aligned[place.aligned()? as usize] {
            InOtherLanes::At(_) => None,
            InOtherLanes::Pieces(_, runs) => runs.iter().rfind(|run| run.to <= lane),
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

    /// Makes offsets of a plan's places.
    fn lay_out(&mut self, program: &Program, plan: &Plan, state: &State) {
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
        let has_pieces = self.aligned.iter().any(|one| matches!(one, InOtherLanes::Pieces(..)));
        let mut offsets = Vec::new();
        for (at, call) in plan.calls.iter().enumerate() {
            let ir = program.kernels[call.kernel.index()].ir();
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
                    rows.push(ir, lanes, &offsets, self.offset(row.output), row.constants);
                    continue;
                }
                let mut lane = 0;
                while lane < lanes {
                    let piece = self.piece(places, lane, lanes);
                    let operands = places.iter().zip(&ir.operands);
                    offsets.clear();
                    offsets.extend(operands.map(|(place, own)| self.lane(*place, own, lane)));
                    let output = self.offset(row.output) + lane * ir.output().bytes() as u32;
                    rows.push(ir, piece, &offsets, output, row.constants);
                    row_of.push(number);
                    lane += piece;
                }
            }
            let placed = PlacedCall { level: call.level, kernel: call.kernel, rows, row_of };
            match self.calls.get_mut(at) {
                Some(before) => *before = placed,
                None => self.calls.push(placed),
            }
        }
        self.saves.clear();
    }

    /// Copies between lanes of different sets.
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
                self.aligned.push(InOtherLanes::At(from + run.from * one.width));
                continue;
            }
            if !one.in_one_piece && runs.len() * LONG <= state.sets[one.want.index()].len() {
                self.aligned.push(InOtherLanes::Pieces(from, Arc::clone(runs)));
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
            self.aligned.push(InOtherLanes::At(to));
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

impl Frame {
    /// An empty frame for a program.
    pub fn new(sections: Arc<Sections>) -> Frame {
        let mut placed = Vec::new();
        placed.resize_with(sections.all.len(), Placed::default);
        let expect = |home: &super::sections::Home| Expected {
            section: home.section,
            set: SetId::SINGLE,
            has_values: false,
            raw_count: 0,
            instance: -1,
            offset: 0,
        };
        let inputs = sections.inputs.iter().map(expect).collect();
        let end = sections.fixed_size as usize;
        let arena = vec![0; end + COLUMN_SLACK];
        Frame { sections, arena, placed, inputs, stamp: 0, end, wasted: 0 }
    }

    /// Gives up what is laid out if much room is between it that nothing uses.
    /// Not once something is decoded, which would not move along.
    pub fn give_up_waste(&mut self) {
        if self.wasted > self.end / 2 {
            self.placed.iter_mut().for_each(Placed::give_up);
            (self.end, self.wasted) = (self.sections.fixed_size as usize, 0);
            self.stamp = 0;
        }
    }

    /// Lays out what is not laid out yet for the sections of a host, and leaves
    /// the others where they are. True if that was anything.
    ///
    /// # Errors
    /// [`TooLarge`]; then the frame is of no use until it is laid out again.
    pub fn adopt(
        &mut self,
        program: &Program,
        states: &[Option<Arc<State>>],
    ) -> Result<bool, TooLarge> {
        let mut changed = false;
        for (section, state) in (0u32..).zip(states) {
            let Some(state) = state else { continue };
            if !self.placed[section as usize].is_for(state) {
                self.lay_out(program, section, state)?;
                changed = true;
            }
        }
        if changed {
            static NEXT: AtomicU64 = AtomicU64::new(1);
            self.stamp = NEXT.fetch_add(1, Ordering::Relaxed);
            self.arena.resize(self.arena.len().max(self.end + COLUMN_SLACK), 0);
        }
        Ok(changed)
    }

    fn lay_out(
        &mut self,
        program: &Program,
        section: u32,
        state: &Arc<State>,
    ) -> Result<(), TooLarge> {
        let sections = Arc::clone(&self.sections);
        let own = &sections.all[section as usize];
        let plan = &state.plan;
        let placed = &mut self.placed[section as usize];
        // Until it is through, it is for nothing.
        placed.state = None;
        placed.geometry.renew(state)?;
        let need = placed.geometry.work_size;
        if need > placed.room {
            // A little more, so that not every instance that comes moves it.
            let room = (need + need / 8).next_multiple_of(64);
            self.wasted += placed.room;
            placed.base = offset(self.end)?;
            self.end += room;
            offset(self.end)?;
            placed.room = room;
        }
        placed.lay_out(program, plan, state);
        placed.saves.reserve_exact(plan.histories.len());
        for (history, kept) in own.histories.iter().zip(&plan.histories) {
            let Ok(kept) = kept else { continue };
            let lanes = state.ids(kept.set).len() as u32;
            placed.saves.push(Save {
                history: *history,
                from: placed.offset(kept.from),
                to: placed.geometry.kept(kept.to),
                bytes: lanes * kept.scalar.bytes() as u32,
            });
        }
        for ((slot, input), place) in own.inputs.iter().zip(&plan.shape.inputs).zip(&plan.inputs) {
            let expected = &mut self.inputs[slot.index()];
            expected.has_values = input.status == Status::Values;
            expected.set = input.set;
            expected.raw_count = match input.set {
                SetId::SINGLE => input.raw_count,
                set => state.sets[set.index()].len() as i32,
            };
            expected.instance = input.instance;
            expected.offset = placed.offset(*place);
        }
        placed.state = Some(Arc::clone(state));
        Ok(())
    }
}

impl Placed {
    /// Forgets what it is laid out for, and where.
    fn give_up(&mut self) {
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
    pub fn calls_of(&self, level: u32) -> impl Iterator<Item = (&Call, &PlacedCall)> {
        let planned = self.plan().into_iter().flat_map(|plan| &plan.calls);
        let first = self.calls.partition_point(|call| call.level < level);
        let own = self.calls[first..].iter().take_while(move |call| call.level == level);
        planned.skip(first).zip(own)
    }
}
