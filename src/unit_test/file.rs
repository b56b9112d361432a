//! A file of unit tests as data: [`super::read()`] makes it, and
//! [`super::run()`] runs it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use pmderive_runtime::memory::MemoryMetadata;
use pmderive_runtime::model::{InDom, InstId, MetricDesc, PmStatus, Pmid};

use crate::diag::Code;
use crate::dialect::Language;
use crate::project::Folders;
use crate::syntax::ast::Spanned;
use crate::text::{SourceId, Span};

use super::timeline::{Timeline, Tolerance};

/// A file of unit tests.
#[derive(Debug)]
pub struct TestFile {
    /// The file's text in the source map.
    pub source: SourceId,
    /// Language of all definitions in the file.
    pub language: Language,
    /// True if the file names that dialect.
    pub has_dialect: bool,
    /// Whether definitions may use extensions if their folder does not say.
    pub extensions: bool,
    /// True if the file decides about extensions instead of folders.
    pub has_extensions: bool,
    /// The settings of the definition files' folders; filled by `read_settings`.
    pub(crate) folders: Folders,
    /// Definition files and directories.
    pub files: Vec<Spanned<PathBuf>>,
    /// Definitions in the file itself.
    pub definitions: Option<FileText>,
    /// Files of definitions over a fleet.
    pub fleet_files: Vec<Spanned<PathBuf>>,
    /// Definitions over a fleet in the file itself.
    pub fleet_definitions: Option<FileText>,
    /// Names, descriptors and all instances of the metrics.
    pub metadata: MemoryMetadata,
    /// Names of instances by domain. An instance's position is its identifier.
    pub instances: BTreeMap<InDom, Vec<Box<str>>>,
    /// The cases, in order.
    pub cases: Vec<Case>,
    /// Definitions that must be refused.
    pub rejected: Vec<ExpectedRefusal>,
}

/// One test: samples, and the expected results.
#[derive(Debug)]
pub struct Case {
    /// Name of the test.
    pub name: FileText,
    /// Time from one step to the next.
    pub interval: Duration,
    /// Number of steps.
    pub steps: usize,
    /// The samples of a single host.
    pub samples: Samples,
    /// The hosts of a fleet. If there are any, the expected results are over them.
    pub hosts: Vec<Host>,
    /// The expected results, by metric or expression.
    pub expected: Vec<ExpectedTimelines>,
}

/// The samples of one host.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Steps before which there is a gap.
    pub gaps: BTreeSet<usize>,
    /// Steps at which the whole fetch fails.
    pub failures: BTreeMap<usize, PmStatus>,
    /// Samples by metric.
    pub of_metrics: BTreeMap<Pmid, Vec<(InstId, Timeline)>>,
    /// Metrics whose metadata differ from those of the other hosts.
    pub metadata: Vec<(Box<str>, MetricDesc)>,
}

/// A host of a fleet.
#[derive(Debug)]
pub struct Host {
    /// Name of the host.
    pub name: Box<str>,
    /// Labels of the host.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Steps at which the host is not asked.
    pub missed: BTreeSet<usize>,
    /// Samples of the host.
    pub samples: Samples,
}

/// The expected results of one metric or expression.
#[derive(Debug)]
pub struct ExpectedTimelines {
    /// The name or expression.
    pub subject: FileText,
    /// Timelines by instance, or over a fleet by group of hosts. A timeline without a
    /// name is for the metric as a whole.
    pub timelines: Vec<(Option<FileText>, Timeline)>,
    /// Tolerance for numbers without one of their own.
    pub tolerance: Option<Tolerance>,
}

/// A definition or expression that must be refused.
#[derive(Debug)]
pub struct ExpectedRefusal {
    /// Name of the test.
    pub name: FileText,
    /// The definition or expression.
    pub subject: Subject,
    /// Code of the expected error.
    pub code: Code,
}

/// The subject of a refusal.
#[derive(Debug)]
pub enum Subject {
    /// The definition with this name.
    Definition(FileText),
    /// An expression.
    Expression(FileText),
}

/// A text of the file.
#[derive(Clone, Debug)]
pub struct FileText {
    /// The text.
    pub text: Box<str>,
    /// Place of the text, including its quotes.
    pub span: Span,
    /// Offset in the file of the text's first byte, if the text is there
    /// without escapes.
    pub content: Option<u32>,
}
