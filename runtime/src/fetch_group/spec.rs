//! What is wanted of a metric, and why it cannot be had.

use pmderive_core::model::{PmStatus, ValueType};
use pmderive_core::source::SourceError;

/// What is wanted of a metric in a fetch group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemSpec {
    pub(super) metric: Box<str>,
    pub(super) instance: Option<Box<str>>,
    pub(super) scale: Option<Box<str>>,
    pub(super) value_type: Option<ValueType>,
    pub(super) most: usize,
}

impl ItemSpec {
    /// A metric by its name; a counter as a rate per second, everything else as
    /// it is.
    pub fn of(metric: impl Into<Box<str>>) -> ItemSpec {
        ItemSpec {
            metric: metric.into(),
            instance: None,
            scale: None,
            value_type: None,
            most: usize::MAX,
        }
    }

    /// The value of this instance.
    #[must_use]
    pub fn instance(self, name: impl Into<Box<str>>) -> ItemSpec {
        ItemSpec { instance: Some(name.into()), ..self }
    }

    /// In these units, as pmParseUnitsStr(3) reads them, perhaps with a number:
    /// a rate if they have one dimension of time less than the metric. `rate`
    /// asks for a rate per second, and `instant` for the value as it is.
    #[must_use]
    pub fn scale(self, scale: impl Into<Box<str>>) -> ItemSpec {
        ItemSpec { scale: Some(scale.into()), ..self }
    }

    /// As a value of this type, where the handle's type is
    /// [`Value`](pmderive_core::model::Value).
    #[must_use]
    pub fn value_type(self, value_type: ValueType) -> ItemSpec {
        ItemSpec { value_type: Some(value_type), ..self }
    }

    /// Of so many instances, or event records, and no more.
    #[must_use]
    pub fn at_most(self, most: usize) -> ItemSpec {
        ItemSpec { most, ..self }
    }
}

/// Why a metric cannot be a part of a fetch group.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtendError {
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The source does not have what is wanted, or it cannot be converted.
    #[error("{metric}: {problem} ({status})")]
    Refused {
        /// Name of the metric.
        metric: Box<str>,
        /// What is wrong.
        problem: String,
        /// What pmExtendFetchGroup_item(3) and its kin would answer.
        status: PmStatus,
    },
}

impl ExtendError {
    /// The PMAPI status this error would be to a caller of libpcp.
    pub fn status(&self) -> PmStatus {
        match self {
            ExtendError::Source(error) => error.status(),
            ExtendError::Refused { status, .. } => *status,
        }
    }
}
