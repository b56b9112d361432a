//! Names to suggest in place of unknown ones: those of a source and those of
//! the definitions.
//!
//! This module asks no source. A caller first checks definitions without a
//! source's names. If a suggestion needed them, the caller checks again with
//! them. Only definitions with unknown names need the second check.

use std::cell::Cell;

use super::nesting::needed;
use super::registry::{Registered, Registry};
use crate::check::Suggest;
use crate::syntax::{Group, nearest_metric};

/// Largest number of comparisons for suggestions. If very many names are
/// unknown, the last ones get no suggestion.
const MAX_COMPARISONS: usize = 2_000_000;

/// Largest number of near names that may not be used. Beyond it, none is
/// suggested.
const MAX_UNUSABLE: usize = 3;

/// The names of a registry and, if they are known, of a source.
pub(super) struct Vocabulary<'v> {
    registry: &'v Registry,
    names: Option<&'v [String]>,
    needs_names: Cell<bool>,
    /// Number of comparisons that remain.
    left: Cell<usize>,
    /// True if there were too few for a name.
    is_exhausted: Cell<bool>,
}

impl<'v> Vocabulary<'v> {
    /// A vocabulary without the names of a source.
    pub fn unknown(registry: &'v Registry) -> Vocabulary<'v> {
        let (needs_names, left) = (Cell::new(false), Cell::new(MAX_COMPARISONS));
        Vocabulary { registry, names: None, needs_names, left, is_exhausted: Cell::new(false) }
    }

    /// A vocabulary with the names of a source.
    pub fn known(names: &'v [String], registry: &'v Registry) -> Vocabulary<'v> {
        Vocabulary { names: Some(names), ..Vocabulary::unknown(registry) }
    }

    /// The names of the source, to compare each of them and `others` further
    /// names with one unknown name. `None` without names of the source, or
    /// after too many comparisons.
    fn names_to_compare(&self, others: usize) -> Option<&'v [String]> {
        let Some(names) = self.names else {
            self.needs_names.set(true);
            return None;
        };
        match self.left.get().checked_sub(names.len() + others) {
            Some(left) => self.left.set(left),
            None => {
                self.is_exhausted.set(true);
                return None;
            }
        }
        Some(names)
    }

    /// True if a suggestion needed the names of a source, which are not known.
    pub fn needs_names(&self) -> bool {
        self.needs_names.get()
    }
}

/// The vocabulary for the definition of a name, which cannot be its own operand.
pub(super) struct Words<'w> {
    pub vocabulary: &'w Vocabulary<'w>,
    pub own: Option<&'w str>,
}

impl Words<'_> {
    /// True for a definition that needs the one that is being checked.
    fn needs_own(&self, name: &str) -> bool {
        let registry = self.vocabulary.registry;
        let is_own = |one: &&Registered| Some(&*one.name) == self.own;
        registry.get(name).is_some_and(|one| needed(registry, &[one]).iter().any(is_own))
    }
}

impl Suggest for Words<'_> {
    fn nearest(&self, name: &str, with_derived: bool) -> Option<String> {
        let Words { vocabulary, own } = self;
        let registry = vocabulary.registry;
        let mut unusable = Vec::new();
        while unusable.len() < MAX_UNUSABLE {
            let names = vocabulary.names_to_compare(registry.definitions().len())?;
            let derived = registry.names().filter(|one| with_derived && Some(*one) != *own);
            let names = names.iter().map(String::as_str).chain(derived);
            let near = nearest_metric(name, names.filter(|one| !unusable.contains(one)))?;
            if !self.needs_own(near) {
                return Some(near.to_owned());
            }
            unusable.push(near);
        }
        None
    }

    fn below(&self, group: &str) -> Group {
        let names = self.vocabulary.names_to_compare(0).unwrap_or_default();
        Group::below(group, names.iter().map(String::as_str))
    }

    fn is_unnamed(&self) -> bool {
        self.own.is_none()
    }

    fn compares_all(&self) -> bool {
        self.vocabulary.names.is_some() && !self.vocabulary.is_exhausted.get()
    }
}
