//! The result of one test: how results differ from the expected ones.

use std::time::Duration;

use pmderive_runtime::model::PmStatus;

use super::compare::{Got, Mismatch, Why, compare};
use super::file::{Case, Expected, FileText};
use super::series;

/// Most differences that are kept for one case.
const MAX_FAILURES: usize = 20;

/// The result of one test.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the test, and its place.
    pub name: FileText,
    /// The first differences. Without any, the test has passed.
    pub failures: Vec<Failure>,
    /// Number of further differences.
    pub omitted: usize,
}

/// A difference between expected and actual results.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The metric or expression.
    pub metric: Box<str>,
    /// The step, and its time since the first.
    pub step: Option<(usize, Duration)>,
    /// The instance. `None` for the metric as a whole.
    pub instance: Option<Box<str>>,
    /// The expected result.
    pub expected: String,
    /// The actual result.
    pub got: String,
    /// The reason why there is no value.
    pub why: Option<Why>,
}

impl Report {
    pub(super) fn new(name: &FileText) -> Report {
        Report { name: name.clone(), failures: Vec::new(), omitted: 0 }
    }

    /// True if there are no differences.
    pub fn has_passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Adds how a result differs from the expected one. `told` is there for a metric that
    /// cannot be used, which is reported once.
    pub(super) fn compare(
        &mut self,
        expected: &Expected,
        at: (usize, Duration),
        got: &Got<'_>,
        told: Option<&mut bool>,
    ) {
        let mismatches = compare(expected, at.0, got);
        let is_new =
            mismatches.is_empty() || told.is_none_or(|told| !std::mem::replace(told, true));
        for mismatch in mismatches.into_iter().filter(|_| is_new) {
            self.add(&expected.subject.text, Some(at), mismatch);
        }
    }

    /// Adds how what is expected of a definition differs from its failure at each step.
    pub(super) fn compare_unread(&mut self, expected: &Expected, case: &Case, why: &str) {
        let (got, mut told) = (Got::Failed(PmStatus::BADDERIVE, Some(why)), false);
        for step in 0..case.steps {
            self.compare(expected, (step, series::time_of(case, step)), &got, Some(&mut told));
        }
    }

    /// Adds that a way to compute has another result than the first one.
    pub(super) fn add_disagreement(
        &mut self,
        expected: &Expected,
        at: (usize, Duration),
        first: &str,
        other: &str,
        backend: &str,
    ) {
        let mismatch = Mismatch {
            instance: None,
            expected: format!("{first} from both ways to compute"),
            got: format!("{other} from {backend}"),
            why: None,
        };
        self.add(&expected.subject.text, Some(at), mismatch);
    }

    pub(super) fn add(
        &mut self,
        metric: &str,
        step: Option<(usize, Duration)>,
        mismatch: Mismatch,
    ) {
        if self.failures.len() == MAX_FAILURES {
            self.omitted += 1;
            return;
        }
        let Mismatch { instance, expected, got, why } = mismatch;
        self.failures.push(Failure { metric: metric.into(), step, instance, expected, got, why });
    }
}

pub(super) fn unusable(why: &str) -> Mismatch {
    Mismatch { instance: None, expected: "values".to_owned(), got: why.to_owned(), why: None }
}
