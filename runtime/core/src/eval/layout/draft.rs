//! A section's shape while it is determined, with the instances of its sets.

use std::collections::HashMap;
use std::sync::Arc;

use super::shape::{SetId, Shape};
use super::{FilterChoices, Plan, SectionId, State};
use crate::eval::lanes::{are_same, has_repeats};
use crate::model::InstId;

crate::positions! {
    /// Position in [`Analysis::drafts`](super::Analysis::drafts).
    pub DraftId;
}

/// A section's shape with the instances of its sets.
#[derive(Debug)]
pub struct Draft {
    /// The section.
    pub section: SectionId,
    /// Its shape.
    pub shape: Shape,
    /// The plan for the shape, if it is already known. Then only the inputs of
    /// `shape` are filled in.
    pub plan: Option<Arc<Plan>>,
    /// The instances of each set.
    pub sets: Vec<Arc<[InstId]>>,
    /// The instances that filters choose.
    pub taken: FilterChoices,
    /// False if the draft serves only one fetch. Either a value could not be
    /// decoded, so the same counts may mean something else next time; or a
    /// previous sample has other lanes than its operand now; or a filter left
    /// out instances whose differences begin.
    pub lasting: bool,
    /// For each set, true if it has an instance twice; `None` before that is
    /// determined.
    repeats: Vec<Option<bool>>,
    /// The sets by their instances, once there are many sets.
    index: HashMap<Arc<[InstId]>, SetId>,
    /// The set that was last used. Inputs over one domain follow each other.
    latest: Option<SetId>,
    /// The common instances of two sets; `None` if there are none.
    pub(super) meetings: HashMap<(SetId, SetId), Option<SetId>>,
}

/// Up to this many sets are searched one by one.
const FEW: usize = 16;

impl Draft {
    pub(super) fn new(section: SectionId) -> Draft {
        Draft {
            section,
            shape: Shape::default(),
            plan: None,
            sets: Vec::new(),
            taken: FilterChoices::default(),
            lasting: true,
            repeats: Vec::new(),
            index: HashMap::new(),
            latest: None,
            meetings: HashMap::new(),
        }
    }

    /// True if a set has an instance twice.
    pub(super) fn has_repeats(&mut self, set: SetId) -> bool {
        let at = set.index();
        if self.repeats.len() <= at {
            self.repeats.resize(at + 1, None);
        }
        *self.repeats[at].get_or_insert_with(|| has_repeats(&self.sets[at]))
    }

    /// The set with these instances, which are not empty. If the state `before`
    /// has a list of the same instances, it is shared.
    pub(super) fn intern(
        &mut self,
        ids: impl AsRef<[InstId]> + Into<Arc<[InstId]>>,
        before: Option<&State>,
    ) -> SetId {
        let wanted = ids.as_ref();
        if let Some(latest) = self.latest
            && are_same(&self.sets[latest.index()], wanted)
        {
            return latest;
        }
        // Compares long lists with a long common beginning only if necessary.
        let find = |is_meant: fn(&[InstId], &[InstId]) -> bool| {
            let at = self.sets.iter().position(|set| is_meant(set, wanted));
            at.map(|at| SetId(at as u32))
        };
        let known = match self.sets.len() {
            0..=FEW => find(|a, b| std::ptr::eq(a, b)).or_else(|| find(are_same)),
            _ => self.index.get(wanted).copied(),
        };
        let set = known.unwrap_or_else(|| {
            let had =
                before.and_then(|state| state.sets.iter().find(|set| are_same(set, ids.as_ref())));
            let ids: Arc<[InstId]> = had.map_or_else(|| ids.into(), Arc::clone);
            self.sets.push(Arc::clone(&ids));
            let set = SetId(self.sets.len() as u32 - 1);
            if self.sets.len() == FEW + 1 {
                let all = (0..).map(SetId).zip(&self.sets);
                self.index = all.map(|(set, ids)| (Arc::clone(ids), set)).collect();
            } else if self.sets.len() > FEW {
                self.index.insert(ids, set);
            }
            set
        });
        self.latest = Some(set);
        set
    }
}
