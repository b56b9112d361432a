//! Names of instances that filters have met and that have left their domain.
//!
//! Such instances can still have values: between two records of an archive,
//! later in old archives, and live in the fetch in which they leave. Selectors
//! and patterns use the names that they had.
//!
//! Input: the domains as delivered. Output: the domains for looking names up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::decode::Surveys;
use super::evaluator::OtherNames;
use super::layout::Domain;
use crate::model::{InstId, InstanceDomain};
use crate::program::{InputSlot, Op, Program, Status};

/// Names that instances had when filters met them and that their domains no
/// longer have.
#[derive(Debug, Default)]
pub struct SelectedNames {
    /// By the domain's position in the program and the name.
    found: HashMap<(usize, Box<str>), InstId>,
    /// Earlier forms of domains that patterns read, the latest last.
    earlier: HashMap<usize, Vec<Arc<InstanceDomain>>>,
}

/// Number of earlier forms of a domain that are kept.
const EARLIER_KEPT: usize = 4;

impl SelectedNames {
    /// The domains `named`, extended by instances that have values but have
    /// left. `others` has their names at other times, as far as the source
    /// knows them. Records the instances that are selected now.
    pub fn names(
        &mut self,
        program: &Program,
        surveys: &Surveys,
        named: &[Domain],
        others: OtherNames,
    ) -> Vec<Domain> {
        let mut names = named.to_vec();
        for (at, others) in others.into_iter().filter(|(_, others)| !others.is_empty()) {
            names[at] = with(names[at].as_ref().ok(), others);
        }
        if !program.verdicts_stay {
            for (at, now) in named.iter().enumerate() {
                self.remember(program, surveys, at, &mut names[at], now);
            }
        }
        for node in &program.nodes {
            let Op::Named { domain: slot, name, .. } = &node.op else { continue };
            let at = slot.index();
            let now = named[at].as_ref().ok();
            let id = now.and_then(|domain| domain.lookup(name));
            // If names are found by their beginning, the instance that was
            // found stays selected as long as it has values. A better match
            // that comes later does not replace it.
            if let Some(domain) = now.filter(|domain| domain.looks_up_by_beginning())
                && let Some(found) = self.found.get(&(at, name.clone()))
                && id != Some(*found)
                && domain.name(*found).is_some()
                && program.named_domains[at].iter().any(|slot| surveys.ids(*slot).contains(found))
            {
                let known = names[at].as_ref().unwrap_or(domain);
                names[at] = Ok(Arc::new(known.with_name_of(*found, name)));
                continue;
            }
            if let Some(id) = id {
                let mut inputs = program.named_domains[at].iter();
                let has_values = |slot: &InputSlot| {
                    surveys.get(*slot).is_some_and(|survey| survey.status == Status::Values)
                };
                if inputs.any(has_values) {
                    self.found.insert((at, name.clone()), id);
                }
                continue;
            }
            let Some(id) = self.found.get(&(at, name.clone())) else { continue };
            let domain = names[at].as_ref().ok();
            if domain.is_none_or(|domain| domain.name(*id).is_none()) {
                names[at] = with(domain, vec![(*id, name.clone())]);
            }
        }
        names
    }

    /// Gives instances that have values but have left a domain their earlier
    /// names. Records the domain's present form.
    fn remember(
        &mut self,
        program: &Program,
        surveys: &Surveys,
        at: usize,
        names: &mut Domain,
        now: &Domain,
    ) {
        let earlier = self.earlier.entry(at).or_default();
        let missing = lacking(program, surveys, at, names).into_iter().filter_map(|id| {
            let known = earlier.iter().rev().find_map(|domain| domain.name(id));
            known.map(|name| (id, name.into()))
        });
        let missing: Vec<(InstId, Box<str>)> = missing.collect();
        if let Ok(now) = now
            && !earlier.last().is_some_and(|last| Arc::ptr_eq(last, now))
        {
            earlier.push(Arc::clone(now));
            let surplus = earlier.len().saturating_sub(EARLIER_KEPT);
            earlier.drain(..surplus);
        }
        if !missing.is_empty() {
            *names = with(names.as_ref().ok(), missing);
        }
    }
}

/// Instances with values that filters look up in a domain and that the domain
/// lacks.
pub fn lacking(program: &Program, surveys: &Surveys, at: usize, domain: &Domain) -> Vec<InstId> {
    let domain = domain.as_ref().ok();
    let ids = program.named_domains[at].iter().flat_map(|slot| surveys.ids(*slot));
    let mut seen = HashSet::new();
    let lacks = |id: &InstId| domain.is_none_or(|domain| domain.name(*id).is_none());
    ids.copied().filter(lacks).filter(|id| seen.insert(*id)).collect()
}

/// A domain extended by further instances.
fn with(domain: Option<&Arc<InstanceDomain>>, further: Vec<(InstId, Box<str>)>) -> Domain {
    let have = domain.into_iter().flat_map(|domain| domain.instances());
    let list = have.map(|(id, name)| (id, name.into())).chain(further).collect();
    let all = InstanceDomain::new(list);
    Ok(Arc::new(match domain.is_some_and(|domain| domain.looks_up_by_beginning()) {
        true => all.with_lookup_by_beginning(),
        false => all,
    }))
}
