//! Metadata of metrics in a file, for checking definitions without a source.
//!
//! [`RecordedMetadata`] is taken from a source, written as JSON and read back.
//! It is then itself a source of metadata. It has only the recorded metadata,
//! and no values. The file is one object:
//!
//! ```text
//! {
//!   "format": "pmderive metadata",
//!   "version": 1,
//!   "source": "the name of the source it was taken from",
//!   "metrics": [
//!     {"name": "disk.dev.read_bytes", "pmid": "60.0.38", "type": "U64", "indom": "60.1",
//!      "sem": "counter", "units": "Kbyte", "dim": [1,0,0], "scale": [1,0,0]},
//!     ...
//!   ],
//!   "missing": [{"name": "no.such", "err": -12357, "errname": "PM_ERR_NAME"}, ...],
//!   "domains": [{"indom": "60.1", "instances": [[0,"sda"], [1,"sdb"]]}, ...]
//! }
//! ```
//!
//! `type`, `sem` and `units` are in the form of `pminfo -d`. `indom` is `null`
//! for a single value. `dim` and `scale` are those of space, time and count; an
//! extra unit is `"extra": [quantity,unit]` beside them. A file written by hand
//! may leave out `dim`, `scale` and `extra`; then `units` alone counts.
//! `missing` has names that the source was asked for and lacks. Such a name has
//! a `pmid` if only the descriptor is missing. `missing` and `domains` may be
//! left out. When a file is written, metrics, names and domains are sorted, one
//! on a line, so that files can be compared; instances are in the source's
//! order. A reader ignores the order of lists.

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod read;
mod write;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use pmderive_runtime::bounded;
use pmderive_runtime::model::{InDom, InstanceDomain, MetricDesc, PmStatus, Pmid};
use pmderive_runtime::source::{
    Answer, Fact, MetadataSource, Question, SourceError, by_simpler_questions, is_at_or_below,
};

pub use read::MetadataError;

use crate::escape;
use crate::syntax::nearest_metric;

/// The value of a file's first member.
const FORMAT: &str = "pmderive metadata";

/// The version of the format that is read and written.
const VERSION: u32 = 1;

/// Largest file that is read, in bytes.
pub const MAX_METADATA_BYTES: u64 = 64 << 20;

/// Metadata of some metrics of a source, as they were at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedMetadata {
    /// Name of the source.
    source: Box<str>,
    /// Every recorded name.
    names: BTreeMap<Box<str>, Recorded>,
    /// Descriptors by identifier, or the status if there is none.
    descs: HashMap<Pmid, Result<MetricDesc, PmStatus>>,
    /// Domains with recorded instances.
    domains: BTreeMap<InDom, Arc<InstanceDomain>>,
}

/// The recorded meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Recorded {
    /// A metric. Its descriptor may still be missing.
    Metric(Pmid),
    /// Not a metric, with the source's status.
    Missing(PmStatus),
}

/// The reason why a file is not recorded metadata.
#[derive(Debug, thiserror::Error)]
#[error("not metadata as `pmderive deps --format metadata` writes it: {0}")]
struct NotMetadata(MetadataError);

impl RecordedMetadata {
    /// Copies the descriptors of metrics and the instances of domains from a
    /// source. For a name that the source lacks, it also copies the metrics with
    /// the nearest names, and all those of a group. The record then leads to the
    /// same suggestions.
    ///
    /// # Errors
    /// The source failed.
    pub fn record<'n>(
        names: impl IntoIterator<Item = &'n str>,
        domains: impl IntoIterator<Item = InDom>,
        source: &mut dyn MetadataSource,
    ) -> Result<RecordedMetadata, SourceError> {
        let mut recorded = RecordedMetadata { source: source.name().into(), ..Self::default() };
        let names: Vec<&str> = BTreeSet::from_iter(names).into_iter().collect();
        recorded.add(&names, source)?;
        let missing = |name: &&str| matches!(recorded.names.get(*name), Some(Recorded::Missing(_)));
        let missing: Vec<&str> = names.into_iter().filter(missing).collect();
        if !missing.is_empty() {
            let all = source.traverse("")?;
            let all = || all.iter().map(String::as_str);
            let near = |name: &&str| nearest_metric(name, all());
            let below = |name: &&str| {
                let group = name.strip_suffix('.').unwrap_or(name).to_owned();
                let is_group = !group.is_empty();
                all().filter(move |name| is_group && is_at_or_below(name, &group))
            };
            let near: BTreeSet<&str> =
                missing.iter().filter_map(near).chain(missing.iter().flat_map(below)).collect();
            recorded.add(&Vec::from_iter(near), source)?;
        }
        for indom in BTreeSet::from_iter(domains) {
            if let Ok(domain) = source.known_instances(indom)? {
                recorded.domains.insert(indom, domain);
            }
        }
        Ok(recorded)
    }

    fn add(&mut self, names: &[&str], source: &mut dyn MetadataSource) -> Result<(), SourceError> {
        let found = source.lookup_names(names)?;
        let pmids: Vec<Pmid> = found.iter().filter_map(|found| found.ok()).collect();
        let descs = source.lookup_descs(&pmids)?;
        self.descs.extend(pmids.into_iter().zip(descs));
        for (name, found) in names.iter().zip(found) {
            let recorded = found.map_or_else(Recorded::Missing, Recorded::Metric);
            self.names.insert((*name).into(), recorded);
        }
        Ok(())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not in [this format](self).
    pub fn open(path: impl AsRef<Path>) -> Result<RecordedMetadata, SourceError> {
        let path = path.as_ref();
        let target = escape::path(&path).into_owned();
        let bytes = match bounded::read_file(path, MAX_METADATA_BYTES) {
            Ok(bytes) => bytes,
            Err(source) => return Err(SourceError::Io { target, source }),
        };
        RecordedMetadata::from_json(&bytes).map_err(|error| {
            let source = Box::new(NotMetadata(error));
            SourceError::Malformed { target, source }
        })
    }

    /// Names of all metrics, ascending.
    fn metrics(&self) -> impl Iterator<Item = &str> {
        let metric = |recorded: &Recorded| matches!(recorded, Recorded::Metric(_));
        self.names.iter().filter(move |(_, recorded)| metric(recorded)).map(|(name, _)| &**name)
    }

    fn lookup(&self, name: &str) -> Result<Pmid, PmStatus> {
        match self.names.get(name) {
            Some(Recorded::Metric(pmid)) => Ok(*pmid),
            Some(Recorded::Missing(status)) => Err(*status),
            None if self.metrics().any(|known| is_at_or_below(known, name)) => {
                Err(PmStatus::NONLEAF)
            }
            None => Err(PmStatus::NAME),
        }
    }
}

impl MetadataSource for RecordedMetadata {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        for question in questions {
            answers.push(match *question {
                Question::Pmid(name) | Question::PmidIfAny(name) => {
                    self.lookup(name).map(Fact::Pmid)
                }
                Question::Desc(pmid) => {
                    self.descs.get(&pmid).copied().unwrap_or(Err(PmStatus::PMID)).map(Fact::Desc)
                }
                Question::Domain(indom, _) => {
                    self.domains.get(&indom).cloned().map(Fact::Domain).ok_or(PmStatus::INDOM)
                }
                Question::MetricsBelow(node) => {
                    let below = self.metrics().filter(|name| is_at_or_below(name, node));
                    Ok(Fact::Names(below.map(Box::from).collect()))
                }
                other => by_simpler_questions(self, other)?,
            });
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.source.to_string()
    }

    fn metadata_epoch(&self) -> u64 {
        0
    }
}
