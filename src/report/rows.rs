//! The rows of a sample, one for each value: metrics in the order asked for, the
//! instances of each as the source has them.

use std::fmt;

use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{InstId, InstanceDomain, PmStatus};
use pmderive_runtime::program::Reason;

use super::table::Sampling;
use crate::check::typed::Desc;
use crate::engine::{Finding, Shown};

/// One row, without what it has in common with all rows of its sample.
#[derive(Clone, Copy, Debug)]
pub struct Row<'r> {
    /// Position of the metric among those of the sample.
    pub metric: usize,
    /// Metadata of its values.
    pub desc: &'r Desc,
    /// Instance, of a metric with a domain.
    pub instance: Option<InstId>,
    /// External name of the instance.
    pub instance_name: Option<&'r str>,
    /// The value, or why there is none.
    pub content: Content<'r>,
}

/// What a row is for.
#[derive(Clone, Copy, Debug)]
pub enum Content<'r> {
    /// A value.
    Value(Value<'r>),
    /// The metric has none.
    Without(Without),
}

/// Why a metric has no value; prints as in the column `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// None comes out, for this reason.
    Reason(Reason),
    /// The metric failed.
    Failed(PmStatus),
}

impl fmt::Display for Without {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Without::Reason(reason) => f.write_str(reason.word()),
            Without::Failed(status) => match status.name() {
                Some(name) => f.write_str(&name),
                None => write!(f, "{}", status.0),
            },
        }
    }
}

/// Calls a function with each row of a sample, until it fails.
///
/// # Errors
/// That of the function.
pub fn for_each_row<E>(
    shown: &Shown<'_>,
    sampling: Sampling,
    mut take: impl FnMut(Row<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for (metric, (about, finding)) in shown.findings().enumerate() {
        let Ok(desc) = &about.desc else { continue };
        let without = match finding {
            Finding::Values(values) => {
                let mut names = shown.domain(metric).map(InstanceDomain::names);
                for (instance, value) in values.iter() {
                    // A single value may bear an instance in any case.
                    let instance = Some(instance).filter(|instance| *instance != -1);
                    let name = |instance| names.as_mut()?.of(instance);
                    take(Row {
                        metric,
                        desc,
                        instance,
                        instance_name: instance.and_then(name),
                        content: Content::Value(value),
                    })?;
                }
                continue;
            }
            // What a record has nothing of is not missing from it.
            Finding::Empty(Reason::OperandEmpty) if sampling == Sampling::Records => continue,
            Finding::Empty(reason) => Without::Reason(reason),
            Finding::Failed(status) => Without::Failed(status),
            Finding::Unusable(..) => continue,
        };
        let content = Content::Without(without);
        take(Row { metric, desc, instance: None, instance_name: None, content })?;
    }
    Ok(())
}
