//! A caller's request for a metric's values, and the reasons to refuse it.

use pmderive_core::model::{PmStatus, ValueType};
use pmderive_core::source::SourceError;

/// A request for a metric's value in a fetch group. A name alone is one, as
/// [`ItemSpec::of`] makes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ItemSpec {
    pub(super) metric: Box<str>,
    pub(super) instance: Option<Box<str>>,
    pub(super) scale: Option<Box<str>>,
    pub(super) value_type: Option<ValueType>,
    pub(super) most: usize,
}

impl ItemSpec {
    /// The value of a metric: a counter as a rate per second, everything else
    /// unchanged.
    pub fn of(metric: impl Into<Box<str>>) -> ItemSpec {
        ItemSpec {
            metric: metric.into(),
            instance: None,
            scale: None,
            value_type: None,
            most: usize::MAX,
        }
    }

    /// Selects an instance.
    #[must_use]
    pub fn instance(self, name: impl Into<Box<str>>) -> ItemSpec {
        ItemSpec { instance: Some(name.into()), ..self }
    }

    /// Sets the units, in the form of pmParseUnitsStr(3), perhaps with a
    /// number. Units with one time dimension less than the metric's ask for a
    /// rate. `rate` asks for a rate per second, and `instant` for the value
    /// itself.
    #[must_use]
    pub fn scale(self, scale: impl Into<Box<str>>) -> ItemSpec {
        ItemSpec { scale: Some(scale.into()), ..self }
    }

    /// Sets the type of the value, for handles of type
    /// [`Value`](pmderive_core::model::Value).
    #[must_use]
    pub fn value_type(self, value_type: ValueType) -> ItemSpec {
        ItemSpec { value_type: Some(value_type), ..self }
    }

    /// Limits the number of instances or event records.
    #[must_use]
    pub fn at_most(self, most: usize) -> ItemSpec {
        ItemSpec { most, ..self }
    }
}

impl From<&str> for ItemSpec {
    fn from(metric: &str) -> ItemSpec {
        ItemSpec::of(metric)
    }
}

impl From<String> for ItemSpec {
    fn from(metric: String) -> ItemSpec {
        ItemSpec::of(metric)
    }
}

impl From<&String> for ItemSpec {
    fn from(metric: &String) -> ItemSpec {
        ItemSpec::of(&**metric)
    }
}

/// The reason why a metric cannot be a part of a fetch group.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtendError {
    /// The source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The source lacks the metric or instance, or its value cannot be
    /// converted.
    #[error("{metric}: {problem} ({status})")]
    Refused {
        /// Name of the metric.
        metric: Box<str>,
        /// The fault.
        problem: String,
        /// The status that pmExtendFetchGroup_item(3) and its kin return.
        status: PmStatus,
    },
}

impl ExtendError {
    /// The PMAPI status that a caller of libpcp would get for this error.
    pub fn status(&self) -> PmStatus {
        match self {
            ExtendError::Source(error) => error.status(),
            ExtendError::Refused { status, .. } => *status,
        }
    }
}
