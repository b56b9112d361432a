//! A sample with everything that reports show: what each metric has, the names
//! of instances, and what is wrong with definitions.

use std::sync::Arc;

use pmderive_runtime::eval::{Evaluation, Values};
use pmderive_runtime::model::{InstId, InstanceDomain, PmStatus};
use pmderive_runtime::program::{Reason, Status};

use super::Metric;

/// One sample as it is shown.
pub struct Shown<'s> {
    /// Name of the source.
    pub source: &'s str,
    /// The metrics, in the order asked for.
    pub metrics: &'s [Metric],
    /// Values of those that have an output.
    pub values: &'s Evaluation<'s>,
    /// Parallel to the metrics: the instances of those that have a domain and values.
    pub domains: &'s [Option<Arc<InstanceDomain>>],
    /// Parallel to the metrics: what is wrong with those that have no output.
    pub mistakes: &'s [Option<String>],
}

/// What a metric has in a sample.
#[derive(Clone, Copy)]
pub enum Finding<'s> {
    /// Values.
    Values(Values<'s>),
    /// No value, for a reason.
    Empty(Reason),
    /// A status in place of values.
    Failed(PmStatus),
    /// A definition that cannot be used; a status, and what is wrong.
    Unusable(PmStatus, &'s str),
}

impl<'s> Shown<'s> {
    /// The metrics with their findings, in the order asked for.
    pub fn findings(&self) -> impl Iterator<Item = (&'s Metric, Finding<'s>)> + '_ {
        (0..self.metrics.len()).map(|index| (&self.metrics[index], self.finding(index)))
    }

    /// What the metric at a position has.
    pub fn finding(&self, index: usize) -> Finding<'s> {
        let metric = &self.metrics[index];
        let output = match (&metric.desc, metric.output) {
            (Ok(_), Some(output)) => output,
            (Ok(_), None) => return Finding::Failed(PmStatus::BOTCH),
            (Err(status), _) => {
                let mistakes: &'s [Option<String>] = self.mistakes;
                let mistake = mistakes.get(index).and_then(Option::as_deref);
                return Finding::Unusable(*status, mistake.unwrap_or("the definition is wrong"));
            }
        };
        let values: Values<'s> = self.values.get(output);
        match values.status {
            Status::Values => Finding::Values(values),
            Status::Empty(reason) => Finding::Empty(reason),
            Status::Failed(status) => Finding::Failed(status),
        }
    }

    /// The instances of the metric at a position, if it has a domain and values.
    pub fn domain(&self, index: usize) -> Option<&'s InstanceDomain> {
        let domains: &'s [Option<Arc<InstanceDomain>>] = self.domains;
        domains.get(index)?.as_deref()
    }

    /// Name of an instance of the metric at a position, if the source knows it.
    pub fn instance_name(&self, index: usize, instance: InstId) -> Option<&'s str> {
        self.domain(index)?.name(instance)
    }
}
