//! Names to suggest in place of unknown ones: those of a source and those of
//! the definitions.

use std::cell::{Cell, OnceCell, RefCell};

use pmderive_runtime::source::{MetadataSource, SourceError};

use super::registry::Registry;
use crate::syntax::nearest_metric;

/// Names that are compared for suggestions at most: where very many are
/// unknown, the last ones go without.
const MAX_COMPARISONS: usize = 20_000_000;

/// The names of a source, which is asked for them when the first unknown one
/// is met, and of a registry.
pub(super) struct Vocabulary<'v> {
    source: RefCell<&'v mut dyn MetadataSource>,
    registry: &'v Registry,
    names: OnceCell<Result<Vec<String>, SourceError>>,
    /// How many more names may be compared.
    left: Cell<usize>,
}

impl<'v> Vocabulary<'v> {
    pub fn new(source: &'v mut dyn MetadataSource, registry: &'v Registry) -> Vocabulary<'v> {
        let left = Cell::new(MAX_COMPARISONS);
        Vocabulary { source: RefCell::new(source), registry, names: OnceCell::new(), left }
    }

    /// The name that is most like `name`.
    pub fn nearest(&self, name: &str) -> Option<String> {
        let names = self.names.get_or_init(|| self.source.borrow_mut().traverse(""));
        let names = names.as_ref().ok()?.iter().map(String::as_str);
        let count = names.len() + self.registry.definitions().len();
        self.left.set(self.left.get().checked_sub(count)?);
        nearest_metric(name, names.chain(self.registry.names())).map(str::to_string)
    }

    /// Whether the source failed meanwhile.
    pub fn finish(self) -> Result<(), SourceError> {
        self.names.into_inner().transpose().map(drop)
    }
}
