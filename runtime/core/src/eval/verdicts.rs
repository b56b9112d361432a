//! What patterns say of instances, by their names: each time anew, or, as in
//! libpcp, as they said when they saw the instance first.
//!
//! Takes instances and names, and knows nothing of values and layouts.

use std::collections::HashMap;

use crate::model::InstId;
use crate::pattern::{Pattern, TooMuchWork};
use crate::program::NodeId;

/// What each pattern said of each instance when it saw it first.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// By filter and instance; only of programs whose verdicts stay.
    given: HashMap<(NodeId, InstId), bool>,
}

/// A filter by names.
#[derive(Clone, Copy, Debug)]
pub struct Filter<'p> {
    /// The node that it is.
    pub node: NodeId,
    /// What it looks for.
    pub pattern: &'p Pattern,
    /// It takes those that do not match.
    pub negated: bool,
    /// Its verdicts stay, [`crate::program::Program::verdicts_stay`].
    pub verdicts_stay: bool,
}

impl Verdicts {
    /// True if a filter takes an instance. One without a name is never taken,
    /// and where verdicts stay that is one, too.
    ///
    /// # Errors
    /// [`TooMuchWork`].
    pub fn takes(
        &mut self,
        filter: Filter<'_>,
        id: InstId,
        name: Option<&str>,
    ) -> Result<bool, TooMuchWork> {
        let key = (filter.node, id);
        if let (true, Some(given)) = (filter.verdicts_stay, self.given.get(&key)) {
            return Ok(*given);
        }
        let verdict = match name {
            Some(name) => filter.pattern.is_match(first_word(name))? != filter.negated,
            None => false,
        };
        if filter.verdicts_stay {
            self.given.insert(key, verdict);
        }
        Ok(verdict)
    }
}

/// The part of an external instance name that patterns see.
fn first_word(name: &str) -> &str {
    name.split(' ').next().unwrap_or(name)
}
