//! One metric of a compiled selection.

use std::sync::Arc;

use pmderive_runtime::model::PmStatus;
use pmderive_runtime::program::OutputId;

use crate::bind::Desc;

/// A derived metric, or an expression without a name, after compilation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Metric {
    /// Name; for an expression without a name, its text.
    pub name: Arc<str>,
    /// Metadata of the values, or a status: `PM_ERR_BADDERIVE` for a definition
    /// that cannot be used in this context.
    pub desc: Result<Desc, PmStatus>,
    /// The program's output that has its values, if there is one.
    pub output: Option<OutputId>,
    /// True if the source has a metric with this name. Then the source's metric
    /// takes precedence.
    pub is_hidden: bool,
}
