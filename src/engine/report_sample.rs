//! A sample with everything that reports show: the result of each metric, the
//! names of instances, and the mistakes in definitions.

use std::sync::Arc;

use pmderive_runtime::eval::{Evaluation, Values};
use pmderive_runtime::model::{InstId, InstanceDomain, PmStatus, Timestamp};
use pmderive_runtime::program::{OutputId, Reason, Status};

use super::metric::Metric;

/// One sample in a form for reports.
#[derive(Clone, Copy, Debug)]
pub struct ReportSample<'s> {
    /// Name of the source.
    pub source: &'s str,
    /// The metrics, in the order of the request.
    pub metrics: &'s [Metric],
    /// Values of the metrics that have an output.
    pub values: Results<'s>,
    /// The instance domains of metrics with a domain and values, parallel to
    /// the metrics.
    pub domains: &'s [Option<Arc<InstanceDomain>>],
    /// The mistakes of metrics without an output, parallel to the metrics.
    pub mistakes: &'s [Option<String>],
    /// Parallel to the metrics, or empty: true if the sample is a record of an archive that lacks
    /// the metric's operands.
    pub lacking: &'s [bool],
}

/// The values of a sample.
#[derive(Clone, Copy, Debug)]
pub enum Results<'s> {
    /// Those of an evaluation.
    Evaluated(&'s Evaluation<'s>),
    /// The values of each output, from elsewhere, with their time.
    Given(Timestamp, &'s [Values<'s>]),
}

impl<'s> Results<'s> {
    /// Time of the sample.
    pub fn timestamp(&self) -> Timestamp {
        match self {
            Results::Evaluated(evaluation) => evaluation.timestamp(),
            Results::Given(time, _) => *time,
        }
    }

    /// Values of one of the outputs.
    ///
    /// # Panics
    /// There is no such output.
    pub fn get(&self, output: OutputId) -> Values<'s> {
        match self {
            Results::Evaluated(evaluation) => evaluation.get(output),
            Results::Given(_, values) => values[output.index()],
        }
    }
}

/// The result for a metric in a sample.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Finding<'s> {
    /// Values.
    Values(Values<'s>),
    /// No value, for a reason.
    Empty(Reason),
    /// A status in place of values.
    Failed(PmStatus),
    /// A definition that cannot be used: a status, and the mistake.
    Unusable(PmStatus, &'s str),
}

impl<'s> ReportSample<'s> {
    /// A sample without mistakes, of a source that has all metrics at each time. `domains` are
    /// those of [`Sample::domains`](super::Sample::domains), parallel to `metrics`.
    pub fn new(
        source: &'s str,
        metrics: &'s [Metric],
        values: &'s Evaluation<'s>,
        domains: &'s [Option<Arc<InstanceDomain>>],
    ) -> ReportSample<'s> {
        let values = Results::Evaluated(values);
        ReportSample { source, metrics, values, domains, mistakes: &[], lacking: &[] }
    }

    /// The metrics with their results, in the order of the request.
    pub fn findings(&self) -> impl Iterator<Item = (&'s Metric, Finding<'s>)> + '_ {
        (0..self.metrics.len()).map(|index| (&self.metrics[index], self.finding(index)))
    }

    /// The result for the metric at a position.
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

    /// The instances of the metric at a position, if it has a domain and
    /// values.
    pub fn domain(&self, index: usize) -> Option<&'s InstanceDomain> {
        let domains: &'s [Option<Arc<InstanceDomain>>] = self.domains;
        domains.get(index)?.as_deref()
    }

    /// Name of an instance of the metric at a position, if the source knows it.
    pub fn instance_name(&self, index: usize, instance: InstId) -> Option<&'s str> {
        self.domain(index)?.name(instance)
    }
}
