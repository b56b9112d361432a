//! A file of unit tests as data: what [`super::read()`] makes and
//! [`super::run()`] runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use pmderive_runtime::memory::MemoryMetadata;
use pmderive_runtime::model::{InDom, InstId, PmStatus, Pmid};

use crate::diag::Code;
use crate::dialect::Language;
use crate::syntax::ast::Spanned;
use crate::text::{SourceId, Span};

use super::timeline::{Timeline, Tolerance};

/// A file of unit tests.
#[derive(Debug)]
pub struct TestFile {
    /// The file's text among the sources.
    pub source: SourceId,
    /// Language of the definitions.
    pub language: Language,
    /// Definition files and directories.
    pub files: Vec<Spanned<PathBuf>>,
    /// Definitions in the file itself.
    pub definitions: Option<Written>,
    /// Names, descriptors and all instances of the metrics.
    pub metadata: MemoryMetadata,
    /// Names of instances by domain; the position is the identifier.
    pub instances: BTreeMap<InDom, Vec<Box<str>>>,
    /// The cases, in their order.
    pub cases: Vec<Case>,
    /// Definitions that have to be refused.
    pub rejected: Vec<Rejected>,
}

/// One test: samples, and what is to come of them.
#[derive(Debug)]
pub struct Case {
    /// What it is called.
    pub name: Written,
    /// Time from one step to the next.
    pub interval: Duration,
    /// Number of steps.
    pub steps: usize,
    /// Steps before which continuity ended.
    pub gaps: BTreeSet<usize>,
    /// Steps at which the fetch as a whole fails.
    pub failures: BTreeMap<usize, PmStatus>,
    /// Samples by metric.
    pub samples: BTreeMap<Pmid, Vec<(InstId, Timeline)>>,
    /// What is expected, by metric or expression.
    pub expected: Vec<Expected>,
}

/// What is expected of one metric or expression.
#[derive(Debug)]
pub struct Expected {
    /// The name or expression.
    pub subject: Written,
    /// Timelines by the names of instances; without a name for the metric as
    /// a whole.
    pub timelines: Vec<(Option<Box<str>>, Timeline)>,
    /// How near numbers have to be that say nothing of it themselves.
    pub tolerance: Option<Tolerance>,
}

/// A definition or expression that has to be refused.
#[derive(Debug)]
pub struct Rejected {
    /// What the test is called.
    pub name: Written,
    /// Name of a definition, or an expression.
    pub subject: Subject,
    /// Code of an error that it has to have.
    pub code: Code,
}

/// What has to be refused.
#[derive(Debug)]
pub enum Subject {
    /// The definition of this name.
    Definition(Written),
    /// An expression.
    Expression(Written),
}

/// A text of the file.
#[derive(Clone, Debug)]
pub struct Written {
    /// The text.
    pub text: Box<str>,
    /// Where it stands, quotes included.
    pub span: Span,
    /// Offset in the file of its first byte, if it stands there as it is.
    pub content: Option<u32>,
}
