//! Layouts that evaluators of one program have in common: what was thought out
//! for one host holds for every other that delivers the same constellation.
//!
//! Only layouts that last are here, and none that depend on the names of
//! instances, which are each host's own. They exist as long as someone uses them.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use super::decode::Survey;
use super::layout::Layout;
use crate::weak_table::WeakTable;

/// What evaluators of one program have in common. They hold it for as long as
/// they use the program, so that it is there for the next evaluator.
pub trait InCommon: fmt::Debug + Send + Sync {
    /// Their layouts.
    fn layouts(&self) -> &SharedLayouts;
}

impl InCommon for SharedLayouts {
    fn layouts(&self) -> &SharedLayouts {
        self
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct SharedLayouts {
    table: Mutex<WeakTable<Layout>>,
}

impl SharedLayouts {
    /// How many are in use.
    pub fn count(&self) -> usize {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).count()
    }

    /// The layout that is meant, if there is one; `hash` is that of the surveys.
    pub(super) fn find(
        &self,
        hash: u64,
        is_meant: impl Fn(&Layout) -> bool,
    ) -> Option<Arc<Layout>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).find(hash, is_meant)
    }

    /// Lets others have a layout; `hash` is that of the surveys that it was
    /// made for.
    pub(super) fn share(&self, hash: u64, layout: &Arc<Layout>) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.insert(hash, layout);
    }
}

/// A number that equal surveys share.
pub(super) fn hash(surveys: &[Survey]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for survey in surveys {
        (survey.raw_count, &survey.ids).hash(&mut hasher);
    }
    hasher.finish()
}
