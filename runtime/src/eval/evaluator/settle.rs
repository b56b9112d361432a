//! From a batch to columns: the layout in force if everything is as it
//! expects, and otherwise the one that fits.

use std::sync::Arc;

use super::pending::Inconsistent;
use super::{Buffers, Evaluator, OtherNames};
use crate::eval::decode::{Survey, decode_column, raw_count, survey};
use crate::eval::lanes::LaneSet;
use crate::eval::layout::{Domain, InputLayout, Layout, TooLarge};
use crate::eval::shared_layouts::hash;
use crate::model::PmStatus;
use crate::program::{HistoryId, Program, Reason, Status};
use crate::result::{ResultBatch, ResultPart, ValueSet};

/// Layouts kept: archives alternate between a few kinds of records.
const LAYOUTS_KEPT: usize = 8;

/// What was found out about a batch that is not as the layout in force expects.
#[derive(Debug)]
pub struct Found {
    /// Parallel to the program's inputs.
    pub surveys: Vec<Survey>,
    /// Parallel to the domains that filters look at.
    pub named: Vec<Domain>,
}

impl Evaluator {
    /// Takes note of the time of a batch that is about to be evaluated. Previous
    /// samples are forgotten if they are later; at a gap they have been already.
    pub(super) fn note_time(&mut self, batch: &ResultBatch, at_gap: bool) {
        let goes_back = self.history.goes_back(batch.timestamp());
        if goes_back && !at_gap && self.program.forget_at_gap {
            self.forget(Reason::Backward);
        }
    }

    /// Decodes into the buffers if everything is as the layout in force
    /// expects it; `named` are the domains that filters look at.
    pub(super) fn decode_as_expected(
        &mut self,
        named: &[Domain],
        batch: &ResultBatch,
        buffers: &mut Buffers,
    ) -> bool {
        let Some(layout) = self.layouts.first().filter(|layout| layout.lasting) else {
            return false;
        };
        let fetched = self.own_domains(batch);
        if !same_domains(named, &layout.named) || !same_domains(fetched, &layout.fetched) {
            return false;
        }
        let part = match batch.parts() {
            [part] if buffers.arena.len() >= layout.work_size => Some(part),
            _ => None,
        };
        if part.is_some_and(|part| self.delivered.decode(part, layout.id, &mut buffers.arena)) {
            buffers.blobs.clear();
            return true;
        }
        let is_decoded = decode(layout, &self.program, batch, buffers);
        if let Some(part) = part.filter(|_| is_decoded) {
            let inputs = layout.inputs.iter().zip(&self.program.inputs);
            let inputs = inputs.map(|(input, spec)| {
                (input.status == Status::Values).then_some((spec.value_type, input.offset as usize))
            });
            self.delivered.learn(part, layout.id, inputs);
        }
        is_decoded
    }

    /// Finds out what a batch is like.
    pub(super) fn survey(&self, batch: &ResultBatch) -> Result<Vec<Survey>, Inconsistent> {
        let (want, got) = (self.program.fetched_domains, batch.domains.len());
        if got < want {
            return Err(Inconsistent::Domains { want, got });
        }
        let sets = batch.parts().iter().flat_map(|part| part.sets().map(move |set| (part, set)));
        let inputs = self.program.inputs.iter();
        let mut surveys: Vec<Survey> = inputs
            .zip(sets)
            .map(|(input, (part, set)): (_, (&ResultPart, ValueSet<'_>))| {
                survey(part, &set, input.value_type)
            })
            .collect();
        if self.program.derived_is_unknown {
            for (survey, pmid) in surveys.iter_mut().zip(self.list.pmids()) {
                if pmid.is_derived() && survey.status == Status::Failed(PmStatus::NOAGENT) {
                    survey.status = Status::Failed(PmStatus::PMID);
                }
            }
        }
        let (want, got) = (self.program.inputs.len(), surveys.len());
        if got != want {
            return Err(Inconsistent::ValueSets { want, got });
        }
        Ok(surveys)
    }

    /// Positions of the filters' domains that lack an instance which has
    /// values: they may have changed since they were learnt.
    pub(super) fn outdated(&self, found: &Found) -> Vec<usize> {
        let is_outdated = |position: &usize| {
            let lacks = |survey: &Survey| match &found.named[*position] {
                Ok(domain) => survey.ids.iter().any(|id| domain.name(*id).is_none()),
                Err(_) => true,
            };
            let used = &self.program.named_domains[*position];
            used.iter().any(|slot| lacks(&found.surveys[slot.index()]))
        };
        (0..found.named.len()).filter(is_outdated).collect()
    }

    /// Finds or makes the layout for a batch, puts it in force and decodes.
    pub(super) fn change_layout(
        &mut self,
        found: Found,
        others: OtherNames,
        batch: &ResultBatch,
        buffers: &mut Buffers,
    ) -> Result<(), Inconsistent> {
        let Found { surveys, named } = found;
        let names = self.selected.names(&self.program, &surveys, &named, others);
        let before = self.layouts.first().cloned();
        let fetched = self.own_domains(batch);
        let known = self
            .layouts
            .iter()
            .position(|layout| layout.lasting && layout.matches(&surveys, &named, &names, fetched));
        // What names decide is each host's own.
        let is_sharable = named.is_empty() && fetched.is_empty();
        let hash = if is_sharable { hash(&surveys) } else { 0 };
        let of_others = || match is_sharable {
            true => {
                self.shared.layouts().find(hash, |layout| layout.matches(&surveys, &[], &[], &[]))
            }
            false => None,
        };
        let known = match known {
            Some(at) => Some(self.layouts.remove(at)),
            None => of_others(),
        };
        let layout = match known {
            Some(layout) => layout,
            None => {
                let fetched = fetched.to_vec();
                let samples: Vec<Option<LaneSet>> = (0u32..)
                    .zip(&self.program.histories)
                    .map(|(index, _)| {
                        self.history.resident_lanes(HistoryId(index), self.layouts.first()?)
                    })
                    .collect();
                let layout = Layout::new(
                    &self.program,
                    &mut self.verdicts,
                    &samples,
                    surveys,
                    named,
                    names,
                    fetched,
                );
                let layout = Arc::new(layout.map_err(|TooLarge| Inconsistent::TooLarge)?);
                if is_sharable && layout.lasting {
                    self.shared.layouts().share(hash, &layout);
                }
                layout
            }
        };
        self.history.change_layout(before.as_ref(), &layout, &mut buffers.former);
        self.layouts.retain(|layout| layout.lasting);
        self.layouts.truncate(LAYOUTS_KEPT - 1);
        self.layouts.insert(0, layout);
        self.find_irregular();
        decode(&self.layouts[0], &self.program, batch, buffers);
        Ok(())
    }

    /// The delivered domains that the program has asked for.
    fn own_domains<'b>(&self, batch: &'b ResultBatch) -> &'b [Domain] {
        &batch.domains[..batch.domains.len().min(self.program.fetched_domains)]
    }
}

impl Layout {
    /// True when the layout was made for just this constellation.
    fn matches(
        &self,
        surveys: &[Survey],
        named: &[Domain],
        names: &[Domain],
        fetched: &[Domain],
    ) -> bool {
        let input = |(input, survey): (&InputLayout, &Survey)| {
            survey.sound
                && input.raw_count == survey.raw_count
                && input.status == survey.status
                && *input.ids == survey.ids[..]
        };
        self.inputs.iter().zip(surveys).all(input)
            && same_domains(&self.named, named)
            && *self.names == *names
            && same_domains(&self.fetched, fetched)
    }
}

/// Sources give the same domain again as long as nothing has changed in it.
fn same_domains(a: &[Domain], b: &[Domain]) -> bool {
    let same = |(a, b): (&Domain, &Domain)| match (a, b) {
        (Ok(a), Ok(b)) => Arc::ptr_eq(a, b),
        (Err(a), Err(b)) => a == b,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// Decodes a batch into the arena; false when it is not as the layout expects.
fn decode(layout: &Layout, program: &Program, batch: &ResultBatch, buffers: &mut Buffers) -> bool {
    let Buffers { arena, blobs, .. } = buffers;
    if arena.len() < layout.work_size {
        arena.resize(layout.work_size, 0);
    }
    blobs.clear();
    let sets = batch.parts().iter().flat_map(|part| part.sets().map(move |set| (part, set)));
    let mut expected = layout.inputs.iter().zip(&program.inputs);
    for (part, set) in sets {
        // What follows the program's inputs is not its affair.
        let Some((input, spec)) = expected.next() else { return true };
        if raw_count(&set) != input.raw_count {
            return false;
        }
        if input.status != Status::Values {
            continue;
        }
        let width = spec.value_type.lane_bytes();
        let column = &mut arena[input.offset as usize..][..input.ids.len() * width];
        if !decode_column(part, &set, spec.value_type, &input.ids, column, blobs) {
            return false;
        }
    }
    expected.next().is_none()
}
