//! The report on one test: differences between actual and expected results.

use std::time::Duration;

use pmderive_runtime::model::PmStatus;

use super::compare::{Got, Why, compare};
use super::file::{Case, ExpectedTimelines, FileText};
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

    /// Adds the differences between a result and the expected one. `told` is set for a metric
    /// that cannot be used, as that is reported once.
    pub(super) fn compare(
        &mut self,
        expected: &ExpectedTimelines,
        at: (usize, Duration),
        got: &Got<'_>,
        told: Option<&mut bool>,
    ) {
        let failures = compare(expected, at, got);
        let is_new = failures.is_empty() || told.is_none_or(|told| !std::mem::replace(told, true));
        failures.into_iter().filter(|_| is_new).for_each(|failure| self.add(failure));
    }

    /// Adds a difference at each step for a definition that cannot be read.
    pub(super) fn compare_unread(&mut self, expected: &ExpectedTimelines, case: &Case, why: &str) {
        let (got, mut told) = (Got::Failed(PmStatus::BADDERIVE, Some(why)), false);
        for step in 0..case.steps {
            self.compare(expected, (step, series::time_of(case, step)), &got, Some(&mut told));
        }
    }

    /// As [`Report::compare`] for the first backend, which leaves its result in `first`. The
    /// results of other backends must be the same.
    pub(super) fn compare_backend(
        &mut self,
        expected: &ExpectedTimelines,
        at: (usize, Duration),
        got: &Got<'_>,
        told: Option<&mut bool>,
        first: &mut Option<String>,
        backend: &str,
    ) {
        let digest = got.digest();
        match first {
            None => {
                self.compare(expected, at, got, told);
                *first = Some(digest);
            }
            Some(first) if *first != digest => self.add(Failure {
                metric: expected.subject.text.clone(),
                step: Some(at),
                instance: None,
                expected: format!("{first} from both ways to compute"),
                got: format!("{digest} from {backend}"),
                why: None,
            }),
            Some(_) => {}
        }
    }

    pub(super) fn add(&mut self, failure: Failure) {
        match self.failures.len() < MAX_FAILURES {
            true => self.failures.push(failure),
            false => self.omitted += 1,
        }
    }
}

/// The failure of a metric or of a whole case that could not be tried.
pub(super) fn unusable(metric: &str, why: &str) -> Failure {
    refused(metric, "values".to_owned(), why.to_owned())
}

/// A difference that concerns no step.
pub(super) fn refused(metric: &str, expected: String, got: String) -> Failure {
    Failure { metric: metric.into(), step: None, instance: None, expected, got, why: None }
}
