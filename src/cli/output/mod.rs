//! Samples as text: one view of a sample, and a renderer for each form.
//!
//! A renderer appends to a buffer that is used again for the next sample, so
//! that nothing is allocated for a value. Renderers know neither sources nor
//! where the text goes.

mod csv;
mod json;
mod text;

use std::fmt;
use std::sync::Arc;

use clap::ValueEnum;
use pmderive_runtime::eval::{Evaluation, Values};
use pmderive_runtime::model::{InstId, InstanceDomain, PmStatus};
use pmderive_runtime::program::{Reason, Status};

use crate::engine::Metric;

pub use csv::Csv;
pub use json::Json;
pub use text::Text;

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
    fn domain(&self, index: usize) -> Option<&'s InstanceDomain> {
        let domains: &'s [Option<Arc<InstanceDomain>>] = self.domains;
        domains.get(index)?.as_deref()
    }

    /// Name of an instance of the metric at a position, if the source knows it.
    fn instance_name(&self, index: usize, instance: InstId) -> Option<&'s str> {
        self.domain(index)?.name(instance)
    }
}

/// Writes samples in one form.
pub trait Renderer {
    /// Appends what stands before all samples.
    fn begin(&mut self, _out: &mut String) {}

    /// Appends a sample.
    fn sample(&mut self, shown: &Shown<'_>, out: &mut String);

    /// False for a form that has no place for metrics that fail.
    fn shows_failures(&self) -> bool {
        true
    }
}

/// Forms of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EvalFormat {
    /// As pminfo prints them.
    #[default]
    Text,
    /// One object for each sample, on one line.
    Json,
    /// One line for each value.
    Csv,
}

impl EvalFormat {
    /// The renderer of the form. `several` samples have their times with them
    /// in every form; `why` asks for reasons where the form leaves a choice.
    pub fn renderer(self, several: bool, why: bool) -> Box<dyn Renderer> {
        match self {
            EvalFormat::Text => Box::new(Text::new(several, why)),
            EvalFormat::Json => Box::new(Json),
            EvalFormat::Csv => Box::new(Csv),
        }
    }
}

/// Appends formatted text.
fn append(out: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = fmt::Write::write_fmt(out, text);
}
