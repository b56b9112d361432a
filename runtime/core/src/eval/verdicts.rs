//! Verdicts of patterns on instances by name. A verdict is made each time or, as in libpcp, only
//! when the pattern first sees the instance.
//!
//! This module knows instances and names, but neither values nor layouts.

use std::collections::HashMap;

use crate::model::InstId;
use crate::pattern::{Pattern, TooMuchWork};
use crate::program::NodeId;

/// The first verdict of each pattern on each instance.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// Verdicts by filter and instance. Empty for programs whose verdicts do
    /// not stay.
    given: HashMap<(NodeId, InstId), bool>,
}

/// A filter of instances by name.
#[derive(Clone, Copy, Debug)]
pub struct Filter<'p> {
    /// The node of the filter.
    pub node: NodeId,
    /// The pattern to search for.
    pub pattern: &'p Pattern,
    /// True to choose instances that do not match.
    pub negated: bool,
    /// True if verdicts stay; see [`crate::program::Program::verdicts_stay`].
    pub verdicts_stay: bool,
}

impl Verdicts {
    /// True if a filter chooses an instance. It never chooses an instance
    /// without a name; if verdicts stay, that is a verdict too.
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

/// The part of an external instance name that patterns see: up to the first
/// blank.
fn first_word(name: &str) -> &str {
    name.split(' ').next().unwrap_or(name)
}
