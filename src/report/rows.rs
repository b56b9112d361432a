//! The rows of a sample, one for each value: metrics in the order of the
//! request, and instances in the order of the source.

use std::fmt;

use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{InstId, InstanceDomain, PmStatus};
use pmderive_runtime::program::Reason;

use super::table::Sampling;
use crate::bind::Desc;
use crate::engine::{Finding, ReportSample};

/// One row, without the fields that all rows of its sample share.
#[derive(Clone, Copy, Debug)]
pub struct Row<'r> {
    /// Position of the metric in the sample.
    pub metric: usize,
    /// Metadata of its values.
    pub desc: &'r Desc,
    /// Instance, if the metric has a domain.
    pub instance: Option<InstId>,
    /// External name of the instance.
    pub instance_name: Option<&'r str>,
    /// The value, or the reason why there is none.
    pub content: Result<Value<'r>, Without>,
}

/// The reason why a metric has no value. It prints as in the column `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// Nothing failed, but there is no value for this reason.
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

/// Calls a function with each row of a sample, until it fails. The rows are those of the
/// tables: an application can put them into a form of its own.
///
/// ```
/// use std::sync::Arc;
///
/// use pmderive::engine::ReportSample;
/// use pmderive::report::table::{Sampling, for_each_row};
/// use pmderive::runtime::archive::ArchiveContext;
/// use pmderive::{Definitions, Engine, Session, Space};
///
/// let definitions = Arc::new(Definitions::default());
/// definitions.register("disk.avgsz", "delta(disk.dev.total_bytes) / delta(disk.dev.total)")?;
/// let archive = ArchiveContext::open("tests/archives/own-fleet")?;
/// let mut session = Session::new(Engine::default(), Arc::clone(&definitions), archive)?;
/// session.choose(&definitions.snapshot().registry.all(), &mut Default::default())?;
///
/// let mut rows = Vec::new();
/// let mut space = Space::default();
/// loop {
///     let mut sample = match session.sample(&mut space) {
///         Err(error) if error.is_end_of_archive() => break,
///         sample => sample?,
///     };
///     let domains = sample.domains()?;
///     let (metrics, values) = (sample.metrics, &sample.values);
///     let shown = ReportSample::new("own-fleet", metrics, values, &domains);
///     for_each_row::<pmderive::report::table::ExportError>(&shown, Sampling::Records, |row| {
///         let value = match row.content {
///             Ok(value) => value.to_string(),
///             Err(without) => without.to_string(),
///         };
///         let (time, name) = (values.timestamp(), &metrics[row.metric].name);
///         rows.push((time, name.to_string(), row.instance_name.map(str::to_owned), value));
///         Ok(())
///     })?;
/// }
/// assert!(rows.iter().any(|(_, name, disk, value)| {
///     name == "disk.avgsz" && disk.as_deref() == Some("vdb") && value == "0.8221153846153846"
/// }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The error of the function.
pub fn for_each_row<E>(
    shown: &ReportSample<'_>,
    sampling: Sampling,
    mut take: impl FnMut(Row<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for (metric, (about, finding)) in shown.findings().enumerate() {
        let Ok(desc) = &about.desc else { continue };
        let without = match finding {
            Finding::Values(values) => {
                let mut names = shown.domain(metric).map(InstanceDomain::names);
                for (instance, value) in values.iter() {
                    // Old archives have instance numbers of single values, too.
                    let instance = desc.indom.and(Some(instance).filter(|one| *one != -1));
                    let name = instance.and_then(|instance| names.as_mut()?.as_text(instance));
                    take(Row {
                        metric,
                        desc,
                        instance,
                        instance_name: name.as_deref(),
                        content: Ok(value),
                    })?;
                }
                continue;
            }
            // A record need not have every metric.
            Finding::Empty(Reason::OperandEmpty) if sampling == Sampling::Records => continue,
            Finding::Empty(reason) => Without::Reason(reason),
            Finding::Failed(status) => Without::Failed(status),
            Finding::Unusable(..) => continue,
        };
        let content = Err(without);
        take(Row { metric, desc, instance: None, instance_name: None, content })?;
    }
    Ok(())
}
