//! Functions over moving windows of time: the samples that each window keeps,
//! and its values.
//!
//! Input, once per evaluation: the operand's instances, lanes and time stamp.
//! Output: as many lanes. An instance without a value loses its samples, and
//! all instances lose theirs when time goes backwards. An evaluation in which
//! no instance has a value is passed over.
//!
//! Definitions with the same window share its samples if they came together and
//! none of them was away since: then all have seen the same samples. A
//! definition that comes later keeps its own samples. Its operand may have had
//! fewer values, and samples that have left a window still affect the rounding
//! of a mean.
//!
//! Samples are kept in buckets. Usually each sample has its own. But samples that are closer to a
//! bucket's first sample than 1/[`BUCKETS`] of the window share that bucket. So memory per instance
//! is bounded at any pace of fetching. The cost per fetch does not depend on the length of the
//! window:
//!
//! ```text
//!   oldest                                newest
//!   [ front: each bucket with all later    |  back: each bucket alone ] running: all of the back
//!     ones of the front                    |
//! ```
//!
//! The result combines the oldest entry of the front and the running value.
//! When the front is used up, the back becomes the front. Nothing is ever
//! subtracted, so no rounding error outlives its sample.
//!
//! The values of all instances are one ring of buckets, each with a column for every instance.
//! A ring for each instance would need more memory than the values of a few samples.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::lanes::Finder;
use crate::kernel::ops::{self, BinaryFn, LaneBits};
use crate::kernel::{BinaryOp, Scalar};
use crate::model::{InstId, Timestamp};
use crate::program::{
    Binding, DefinitionKey, HistoryKey, Program, SampleKey, Window, WindowFunction, WindowId,
};

/// Largest number of buckets of a window.
const BUCKETS: f64 = 4096.0;
/// Number of half-lives after which an unused average is dropped.
const KEPT_HALF_LIVES: f64 = 64.0;
/// The number of the first sample of an instance without samples.
const NEVER: u64 = u64::MAX;

/// The windows of one context.
#[derive(Debug, Default)]
pub struct WindowStore {
    /// Positions in `states`, parallel to the windows of the current program.
    uses: Vec<u32>,
    /// The samples of windows. A parked window may share its samples too.
    states: Vec<Arc<State>>,
    /// The windows of definitions outside the current program. `None` if their
    /// samples are too old.
    parked: HashMap<SampleKey, Option<Arc<State>>>,
    /// Number of the current evaluation.
    evaluation: u64,
}

/// The samples of a window.
#[derive(Clone, Debug, Default)]
struct State {
    /// Number of the evaluation that added the latest sample.
    evaluation: u64,
    /// Time stamp of the latest sample.
    latest: Option<Timestamp>,
    /// Seconds for which the samples are worth keeping.
    keep: f64,
    /// Number of samples so far.
    samples: u64,
    /// Instances of the latest sample.
    ids: Vec<InstId>,
    /// Parallel to `ids`.
    rows: Vec<Row>,
    /// The buckets, oldest first.
    buckets: VecDeque<Bucket>,
    /// Bits of the values of the buckets, oldest first: `columns` for each. What no instance
    /// has in a bucket is meaningless.
    values: VecDeque<u64>,
    /// Number of columns of a bucket.
    columns: usize,
    /// Number of buckets in the front, counted from the oldest.
    front: usize,
}

impl State {
    fn bytes(&self) -> usize {
        size_of::<State>()
            + size_of::<InstId>() * self.ids.capacity()
            + size_of::<Row>() * self.rows.capacity()
            + size_of::<u64>() * self.values.capacity()
            + size_of::<Bucket>() * self.buckets.capacity()
    }
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Time stamp of its first sample.
    stamp: Timestamp,
    /// Number of its first sample.
    first: u64,
}

/// The samples of an instance. It has values in the bucket of its first sample and in all newer
/// ones.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Number of the instance's first sample, or [`NEVER`].
    joined: u64,
    /// Bits of the value of all buckets in the back together, or the moving
    /// average.
    running: u64,
    /// Column of its values.
    column: u32,
}

impl Row {
    /// An instance without samples.
    const NEW: Row = Row { joined: NEVER, running: 0, column: 0 };
}

impl WindowStore {
    /// Bytes of memory of the windows with their samples.
    pub fn bytes(&self) -> usize {
        let parked = size_of::<(SampleKey, Option<Arc<State>>)>() * self.parked.capacity();
        let uses = size_of::<u32>() * self.uses.capacity();
        uses + parked + self.states.iter().map(|state| state.bytes()).sum::<usize>()
    }

    /// Begins an evaluation. Each window then accepts one sample, however many
    /// definitions use the window.
    pub fn begin(&mut self) {
        self.evaluation += 1;
    }

    /// Forgets all samples.
    pub fn forget(&mut self) {
        self.parked.values_mut().for_each(|state| *state = None);
        self.states.iter_mut().for_each(|state| *state = Arc::default());
    }

    /// Forgets the samples of one window, whose operand has no values.
    pub fn clear(&mut self, window: WindowId) {
        self.states[self.uses[window.index()] as usize] = Arc::default();
    }

    /// Notes an evaluation without a sample. A window that was away has not seen it, so they
    /// share their samples no longer.
    pub fn pass_over(&mut self, window: WindowId) {
        let state = &mut self.states[self.uses[window.index()] as usize];
        if state.evaluation != self.evaluation {
            Arc::make_mut(state).evaluation = self.evaluation;
        }
    }

    /// Drops the windows of definitions that are not in the program.
    pub fn forget_parked(&mut self) {
        self.parked = HashMap::default();
    }

    /// Drops the parked windows of definitions that are gone for good.
    pub fn forget_definitions(&mut self, definitions: &[DefinitionKey]) {
        self.parked.retain(|key, _| definitions.binary_search(&key.history.definition).is_err());
    }

    /// Changes to the windows of a new program. The windows of the old program
    /// are parked under their keys as long as they may be useful.
    pub fn change_program(
        &mut self,
        old: Option<(&Program, &Binding)>,
        (program, binding): (&Program, &Binding),
    ) {
        if let Some((program, binding)) = old {
            let states = self.uses.iter().map(|at| Some(Arc::clone(&self.states[*at as usize])));
            self.parked.extend(keys(program, binding).zip(states));
        }
        let times = self.parked.values().flatten().filter_map(|state| state.latest);
        let latest = times.max();
        let is_old = |state: &mut Arc<State>| match (latest, state.latest) {
            (Some(latest), Some(own)) => latest.seconds_since(own) >= state.keep,
            _ => false,
        };
        self.parked.values_mut().for_each(|state| _ = state.take_if(is_old));
        self.uses.clear();
        self.states.clear();
        // Finds windows with the same function that are all new or already
        // shared samples.
        let mut known: HashMap<(WindowId, Option<*const State>), u32> = HashMap::new();
        for (window, key) in program.windows.iter().zip(keys(program, binding)) {
            let former = self.parked.remove(&key);
            let is_new = former.is_none();
            let state = former.flatten().unwrap_or_default();
            let kind = (window.like, (!is_new).then_some(Arc::as_ptr(&state)));
            let at = *known.entry(kind).or_insert_with(|| {
                self.states.push(state);
                self.states.len() as u32 - 1
            });
            self.uses.push(at);
        }
        if !self.parked.is_empty() {
            // Windows of former operands have a gap should these come back.
            let in_force: FxHashSet<HistoryKey> =
                program.windows.iter().map(|one| one.key).collect();
            self.parked.retain(|key, _| !in_force.contains(&key.history));
        }
    }

    /// Adds a sample of the operand's lanes to a window, unless another
    /// definition did so in this evaluation. Appends the window's values to
    /// `out`.
    pub fn advance(
        &mut self,
        id: WindowId,
        window: &Window,
        (ids, lanes): (&[InstId], &[u64]),
        now: Timestamp,
        out: &mut Vec<u64>,
    ) {
        let state = &mut self.states[self.uses[id.index()] as usize];
        if state.evaluation != self.evaluation {
            let state = Arc::make_mut(state);
            state.add(window, (ids, lanes), now);
            state.evaluation = self.evaluation;
        }
        state.values(window, out);
    }
}

/// Keys of the samples of a program's windows, in the order of the windows.
fn keys(program: &Program, binding: &Binding) -> impl Iterator<Item = SampleKey> {
    program.windows.iter().map(|window| binding.sample_key(window.key, &window.inputs))
}

impl State {
    /// Adds a sample.
    fn add(&mut self, window: &Window, (ids, lanes): (&[InstId], &[u64]), now: Timestamp) {
        if self.latest.is_some_and(|latest| now < latest) {
            *self = State::default();
        }
        self.align(ids);
        match window.function {
            WindowFunction::Ewma => {
                self.keep = window.seconds * KEPT_HALF_LIVES;
                self.average(window.seconds, lanes, now);
            }
            WindowFunction::Avg | WindowFunction::Max | WindowFunction::Min => {
                self.keep = window.seconds;
                self.slide(window, lanes, now);
            }
        }
        self.latest = Some(now);
    }

    /// The value of each instance of the latest sample.
    fn values(&self, window: &Window, out: &mut Vec<u64>) {
        if window.function == WindowFunction::Ewma {
            return out.extend(self.rows.iter().map(|row| row.running));
        }
        let combine = combine(window.function, window.scalar);
        let newest = self.samples - 1;
        let oldest = self.buckets.front().map_or(newest, |bucket| bucket.first);
        // Instances that came before this sample have all buckets.
        let second = self.buckets.get(1).map_or(NEVER, |bucket| bucket.first);
        out.extend(self.rows.iter().map(|row| {
            // The row's oldest bucket is in the front, unless the instance came
            // later.
            let missing = if row.joined < second { 0 } else { self.bucket_of(row.joined) };
            let all = match missing < self.front {
                true => combine(self.values[self.cell(missing, row)], row.running),
                false => row.running,
            };
            match window.function {
                WindowFunction::Avg => {
                    let count = self.samples - row.joined.max(oldest);
                    (f64::from_bits(all) / count as f64).to_bits64()
                }
                _ => all,
            }
        }));
    }

    /// The position of the bucket that has a sample.
    fn bucket_of(&self, sample: u64) -> usize {
        self.buckets.partition_point(|bucket| bucket.first <= sample).saturating_sub(1)
    }

    /// The position of a row's value in a bucket.
    fn cell(&self, bucket: usize, row: &Row) -> usize {
        bucket * self.columns + row.column as usize
    }

    /// Brings the rows into the order of `ids`, the instances of the next
    /// sample.
    fn align(&mut self, ids: &[InstId]) {
        if self.ids == ids {
            return;
        }
        let mut old: Vec<Option<Row>> = self.rows.drain(..).map(Some).collect();
        let mut finder = Finder::new(&self.ids);
        let row = |id: &InstId| finder.find(*id).and_then(|at| old[at].take()).unwrap_or(Row::NEW);
        self.rows = ids.iter().map(row).collect();
        self.ids.clear();
        self.ids.extend_from_slice(ids);
        match self.columns {
            0 => self.lay_out(ids.len()),
            columns if columns < ids.len() => self.lay_out(ids.len() + ids.len() / 4),
            columns if columns / 4 > ids.len() => self.lay_out(ids.len()),
            _ => self.give_columns(),
        }
    }

    /// Gives new rows the columns that no other row has.
    fn give_columns(&mut self) {
        let is_new = |row: &Row| row.joined == NEVER;
        if !self.rows.iter().any(is_new) {
            return;
        }
        let mut is_taken = vec![false; self.columns];
        for row in self.rows.iter().filter(|row| !is_new(row)) {
            is_taken[row.column as usize] = true;
        }
        let free = (0..).zip(&is_taken).filter(|(_, is_taken)| !**is_taken);
        for (row, (column, _)) in self.rows.iter_mut().filter(|row| is_new(row)).zip(free) {
            row.column = column;
        }
    }

    /// Gives buckets another number of columns, at least one for each row.
    fn lay_out(&mut self, columns: usize) {
        let mut values = VecDeque::with_capacity(self.buckets.len() * columns);
        for bucket in 0..self.buckets.len() {
            let value = |row| self.values.get(self.cell(bucket, row)).copied();
            values.extend(self.rows.iter().map(|row| value(row).unwrap_or_default()));
            values.resize((bucket + 1) * columns, 0);
        }
        (self.values, self.columns) = (values, columns);
        for (column, row) in (0..).zip(&mut self.rows) {
            row.column = column;
        }
    }

    /// Adds to the exponentially weighted moving average.
    fn average(&mut self, half_life: f64, lanes: &[u64], now: Timestamp) {
        let elapsed = self.latest.map_or(0.0, |latest| now.seconds_since(latest));
        // With a half-life of zero, only the present value counts.
        let weight = if half_life > 0.0 { 1.0 - (-elapsed / half_life).exp2() } else { 1.0 };
        for (row, bits) in self.rows.iter_mut().zip(lanes) {
            let (before, value) = (f64::from_bits(row.running), f64::from_bits(*bits));
            // With a weight of 1, the value would be lost beside an enormous one before. An
            // infinity or NaN would never leave the average again.
            let next = if row.joined == NEVER || weight == 1.0 || !before.is_finite() {
                value
            } else if (value - before).is_finite() {
                before + weight * (value - before)
            } else {
                before * (1.0 - weight) + value * weight
            };
            row.joined = 0;
            row.running = next.to_bits();
        }
    }

    /// Adds to the mean or extreme of the samples in the window.
    fn slide(&mut self, window: &Window, lanes: &[u64], now: Timestamp) {
        let combine = combine(window.function, window.scalar);
        self.expire(window.seconds, now, combine);
        let number = self.samples;
        self.samples += 1;
        let resolution = window.seconds / BUCKETS;
        let shares = |bucket: &Bucket| now.seconds_since(bucket.stamp) < resolution;
        let is_first = self.buckets.is_empty();
        let is_new = !self.buckets.back().is_some_and(shares);
        if is_new {
            self.buckets.push_back(Bucket { stamp: now, first: number });
            self.values.resize(self.buckets.len() * self.columns, 0);
        }
        let newest = (self.buckets.len() - 1) * self.columns;
        for (row, bits) in self.rows.iter_mut().zip(lanes) {
            let is_alone = row.joined == NEVER;
            let value = &mut self.values[newest + row.column as usize];
            *value = if is_new || is_alone { *bits } else { combine(*value, *bits) };
            row.running = if is_first || is_alone { *bits } else { combine(row.running, *bits) };
            row.joined = row.joined.min(number);
        }
    }

    /// Drops the buckets whose first sample has left the window.
    fn expire(&mut self, seconds: f64, now: Timestamp, combine: BinaryFn) {
        let is_old = |bucket: &&Bucket| now.seconds_since(bucket.stamp) >= seconds;
        let count = self.buckets.iter().take_while(is_old).count();
        if count == 0 {
            return;
        }
        self.buckets.drain(..count);
        let left = self.buckets.len();
        // The newest bucket stays in the back, where it can still grow.
        let turn = count > self.front;
        self.front = if turn { left.saturating_sub(1) } else { self.front - count };
        self.values.drain(..count * self.columns);
        if turn && left > 0 {
            let newest = (left - 1) * self.columns;
            for row in &mut self.rows {
                row.running = self.values[newest + row.column as usize];
            }
            for at in (0..newest.saturating_sub(self.columns)).rev() {
                self.values[at] = combine(self.values[at], self.values[at + self.columns]);
            }
        }
    }
}

/// The function that combines two samples.
fn combine(function: WindowFunction, scalar: Scalar) -> BinaryFn {
    let op = match function {
        WindowFunction::Max => BinaryOp::Max,
        WindowFunction::Min => BinaryOp::Min,
        WindowFunction::Avg | WindowFunction::Ewma => BinaryOp::Add,
    };
    ops::binary(op, scalar)
}

#[cfg(test)]
#[path = "windows_tests.rs"]
mod tests;
