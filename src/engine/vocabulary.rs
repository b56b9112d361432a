//! Names to suggest in place of unknown ones: those of a source and those of
//! the definitions.
//!
//! It asks no source. Whoever checks definitions without a source's names
//! learns whether a suggestion needed them, and then checks again with them.
//! Only definitions with unknown names need that.

use std::cell::Cell;

use super::registry::Registry;
use crate::syntax::nearest_metric;

/// Names that are compared for suggestions at most: where very many are
/// unknown, the last ones go without.
const MAX_COMPARISONS: usize = 20_000_000;

/// The names of a source, if they are known, and of a registry.
pub(super) struct Vocabulary<'v> {
    registry: &'v Registry,
    names: Option<&'v [String]>,
    is_missed: Cell<bool>,
    /// How many more names may be compared.
    left: Cell<usize>,
}

impl<'v> Vocabulary<'v> {
    /// The names of a source are not known.
    pub fn unknown(registry: &'v Registry) -> Vocabulary<'v> {
        let (is_missed, left) = (Cell::new(false), Cell::new(MAX_COMPARISONS));
        Vocabulary { registry, names: None, is_missed, left }
    }

    /// The names of a source.
    pub fn known(names: &'v [String], registry: &'v Registry) -> Vocabulary<'v> {
        Vocabulary { names: Some(names), ..Vocabulary::unknown(registry) }
    }

    /// The name that is most like `name`.
    pub fn nearest(&self, name: &str) -> Option<String> {
        let Some(names) = self.names else {
            self.is_missed.set(true);
            return None;
        };
        let names = names.iter().map(String::as_str);
        let count = names.len() + self.registry.definitions().len();
        self.left.set(self.left.get().checked_sub(count)?);
        nearest_metric(name, names.chain(self.registry.names())).map(str::to_string)
    }

    /// True if a suggestion was wanted for which names of a source are missing.
    pub fn is_missed(&self) -> bool {
        self.is_missed.get()
    }
}
