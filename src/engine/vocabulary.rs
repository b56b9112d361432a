//! Names to suggest in place of unknown ones: those of a source and those of
//! the definitions.
//!
//! It asks no source. A caller that checks definitions without a source's names
//! learns whether a suggestion needed them, and then checks again with them.
//! Only definitions with unknown names need that.

use std::cell::Cell;

use super::registry::Registry;
use crate::syntax::nearest_metric;

/// Largest number of comparisons for suggestions. If very many names are
/// unknown, the last ones get no suggestion.
const MAX_COMPARISONS: usize = 20_000_000;

/// The names of a registry and, if they are known, of a source.
pub(super) struct Vocabulary<'v> {
    registry: &'v Registry,
    names: Option<&'v [String]>,
    needs_names: Cell<bool>,
    /// Number of comparisons that remain.
    left: Cell<usize>,
}

impl<'v> Vocabulary<'v> {
    /// A vocabulary without the names of a source.
    pub fn unknown(registry: &'v Registry) -> Vocabulary<'v> {
        let (needs_names, left) = (Cell::new(false), Cell::new(MAX_COMPARISONS));
        Vocabulary { registry, names: None, needs_names, left }
    }

    /// A vocabulary with the names of a source.
    pub fn known(names: &'v [String], registry: &'v Registry) -> Vocabulary<'v> {
        Vocabulary { names: Some(names), ..Vocabulary::unknown(registry) }
    }

    /// The name most similar to `name`.
    pub fn nearest(&self, name: &str) -> Option<String> {
        let Some(names) = self.names else {
            self.needs_names.set(true);
            return None;
        };
        let names = names.iter().map(String::as_str);
        let count = names.len() + self.registry.definitions().len();
        self.left.set(self.left.get().checked_sub(count)?);
        nearest_metric(name, names.chain(self.registry.names())).map(str::to_string)
    }

    /// True if a suggestion needed the names of a source, which are not known.
    pub fn needs_names(&self) -> bool {
        self.needs_names.get()
    }
}
