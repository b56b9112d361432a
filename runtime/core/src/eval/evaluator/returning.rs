//! Layouts that alternate. The records of an archive may hold groups of metrics, and
//! each group has a layout. A layout that comes back is reused instead of made again.
//!
//! Input: a hash of a fetch's delivery. Output: the layout that fitted such a fetch before. The
//! decoder checks whether it still fits. While layouts take turns, the layout is looked up before
//! anything is decoded.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::pending::Inconsistent;
use super::{Buffers, Evaluator};
use crate::eval::decode::raw_count;
use crate::eval::layout::{Layout, SectionId, State, TooLarge};
use crate::result::ResultBatch;

/// Layouts that may return.
#[derive(Debug, Default)]
pub struct Returning {
    /// The deliveries that changed the layout, newest first. One that came again has the states
    /// of all sections. A delivery that came once has none: it would keep them in memory without
    /// use.
    known: VecDeque<(u64, Option<States>)>,
    /// Another layout returned for the latest delivery that was looked for.
    pub take_turns: bool,
}

/// States of all sections, parallel to them.
type States = Box<[Option<Arc<State>>]>;

/// Number of deliveries that are remembered.
const KEPT: usize = 64;

impl Returning {
    /// Bytes of memory besides the states.
    pub fn bytes(&self) -> usize {
        let states = self.known.iter().filter_map(|(_, states)| states.as_deref()).map(size_of_val);
        self.known.capacity() * size_of::<(u64, Option<States>)>() + states.sum::<usize>()
    }

    /// Records a layout that was made for a delivery.
    pub fn note(&mut self, delivery: u64, layout: &Layout) {
        if let Some((_, states)) = self.known.iter_mut().find(|(known, _)| *known == delivery) {
            // Known states did not fit. They are not tried again and again.
            let returns = states.is_none() && layout.states.iter().flatten().all(|own| own.lasting);
            *states = returns.then(|| layout.states.clone());
            return;
        }
        self.known.truncate(KEPT - 1);
        self.known.push_front((delivery, None));
    }
}

impl Evaluator {
    /// Puts the layout in force that fitted such a delivery before, if there is one. Returns a hash
    /// of the delivery. `None` if layouts depend on more than that, or if there was none yet.
    pub(super) fn return_by(
        &mut self,
        batch: &ResultBatch,
        buffers: &mut Buffers,
    ) -> Result<Option<u64>, Inconsistent> {
        self.returning.take_turns = false;
        let delivery = self.delivery(batch);
        if let Some(delivery) = delivery {
            self.returning.take_turns = self.return_to(delivery, buffers)?;
        }
        Ok(delivery)
    }

    fn delivery(&self, batch: &ResultBatch) -> Option<u64> {
        let layout = self.layout.as_ref()?;
        if self.evaluations == 0 || layout.needing_domains().next().is_some() {
            return None;
        }
        let mut hasher = FxHasher::default();
        for set in batch.sets().take(self.program.inputs.len()) {
            raw_count(&set).hash(&mut hasher);
            // Lists that differ usually do so at the end.
            if let Some(last) = set.len().checked_sub(1) {
                (set.instance(0), set.instance(last)).hash(&mut hasher);
            }
        }
        Some(hasher.finish())
    }

    /// Returns false if no other layout is known for it.
    fn return_to(&mut self, delivery: u64, buffers: &mut Buffers) -> Result<bool, Inconsistent> {
        let mut known = self.returning.known.iter().filter(|(known, _)| *known == delivery);
        let Some((_, Some(states))) = known.next() else { return Ok(false) };
        let Some(mut layout) = self.layout.take() else { return Ok(false) };
        let mut is_other = false;
        let all = (0..).map(SectionId).zip(states);
        for (section, state) in all.filter_map(|(at, state)| Some((at, state.as_ref()?))) {
            if layout.state(section).is_none_or(|own| !std::ptr::eq(own, &**state)) {
                is_other = true;
                buffers.make_dirty(section);
                self.history
                    .change_section(&mut layout, section, Arc::clone(state), &mut buffers.former)
                    .map_err(|TooLarge| Inconsistent::TooLarge)?;
            }
        }
        self.layout = Some(layout);
        if is_other {
            self.stamp = None;
            self.find_irregular_in(&buffers.dirty);
        }
        Ok(is_other)
    }
}
