//! Instances that selectors have found by name: they stay selected while
//! their domain knows nothing else of them.
//!
//! Domains of old archives forget instances that still have values. Takes
//! the domains as delivered and gives those that names are looked up in.

use std::collections::HashMap;
use std::sync::Arc;

use super::decode::Survey;
use super::layout::Domain;
use crate::model::{InstId, InstanceDomain};
use crate::program::{Op, Program, Status};

/// See the module's description.
#[derive(Debug, Default)]
pub struct Selected {
    /// By the domain's position in the program, and name.
    found: HashMap<(usize, Box<str>), InstId>,
}

impl Selected {
    /// The domains with the instances that were selected before and are not
    /// in them now. Takes note of those that are selected now.
    pub fn names(
        &mut self,
        program: &Program,
        surveys: &[Survey],
        named: &[Domain],
    ) -> Vec<Domain> {
        let mut names = named.to_vec();
        for node in &program.nodes {
            let Op::Named { domain: slot, name, .. } = &node.op else { continue };
            let at = slot.index();
            let id = named[at].as_ref().ok().and_then(|domain| domain.lookup(name));
            if let Some(id) = id {
                let mut inputs = program.named_domains[at].iter();
                if inputs.any(|input| surveys[input.index()].status == Status::Values) {
                    self.found.insert((at, name.clone()), id);
                }
                continue;
            }
            let Some(id) = self.found.get(&(at, name.clone())) else { continue };
            let domain = names[at].as_ref().ok();
            if domain.is_none_or(|domain| domain.name(*id).is_none()) {
                let have = domain.into_iter().flat_map(|domain| domain.instances());
                let mut list: Vec<(InstId, Box<str>)> =
                    have.map(|(id, name)| (id, name.into())).collect();
                list.push((*id, name.clone()));
                names[at] = Ok(Arc::new(InstanceDomain::new(list)));
            }
        }
        names
    }
}
