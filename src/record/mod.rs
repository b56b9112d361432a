//! Recording: writes the values of a source, base and derived metrics alike, to
//! an archive that every tool of PCP reads.
//!
//! ```text
//! names ──► selection ──► Session ──► results ──► ArchiveWriter
//!               │               │               ▲
//!               │               ├──► domains ───┤  instances, before their values
//!               └───────────────┴──► metadata ──┘  descriptors, names, texts, labels
//! ```
//!
//! The caller decides when to take the next sample and how to react if the
//! source fails.

mod domains;
mod error;
mod identifiers;
mod label;
mod metadata;
mod recording;
mod selection;
mod tidy;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pmderive_runtime::archive_writer::{ArchiveWriter, WriteError, WriterOptions};
use pmderive_runtime::model::{InstId, LabelLevel, Pmid, Timestamp};
use pmderive_runtime::result::{FetchResult, MetricValues, ResultBatch};
use pmderive_runtime::source::{FetchEvents, FetchList, FetchSource, MetadataSource, SourceError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dialect::Dialect;
use crate::engine::{Retry, Session};

use self::domains::Domains;
pub use self::error::RecorderError;
pub use self::label::Origin;
use self::metadata::WrittenMetadata;
pub use self::recording::{Recording, Records};
pub use self::selection::{LeftOut, Notice};
use self::selection::{Metric, Selection, search_in_order};
use self::tidy::tidy;

/// First and longest time from one look for left-out metrics of a live source to the next.
const WAITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// The result of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sampled {
    /// The values of this time are recorded, if there are any.
    Recorded(Timestamp),
    /// The sample is older than the last record and was skipped.
    LeftOut,
    /// There is no metric to record now.
    NoMetrics,
    /// The end of the source's archive or of the time to record was reached.
    End,
}

/// The extent of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Number of records, without marks.
    pub records: u64,
    /// Times of the first and the last record.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Number of samples that were skipped because the source's clock had been
    /// set back.
    pub left_out: u64,
}

/// A recording in progress. The archive is created with the first record.
///
/// ```
/// use pmderive::record::{Origin, Recorder, Recording, Sampled};
/// use pmderive::runtime::archive::Version;
/// use pmderive::runtime::local::LocalContext;
/// use pmderive::{Definitions, Engine, Session};
///
/// let base = std::env::temp_dir().join("shop");
/// # let folder = tempfile::tempdir()?;
/// # let base = folder.path().join("shop");
/// let definitions = Definitions::default();
/// definitions.register("shop.load", "sum(kernel.all.load) / hinv.ncpu")?;
/// let mut session = Session::new(Engine::default(), definitions, LocalContext::new())?;
/// let recording = Recording {
///     base,
///     version: Version::V3,
///     volume_bytes: None,
///     origin: Origin::of_live(&mut session)?,
///     names: vec!["shop.load".into(), "mem.util".into()],
///     with_operands: false,
///     end: None,
///     is_archive: false,
///     label_times: Vec::new(),
///     records: None,
/// };
/// let mut recorder = Recorder::new(session, recording)?;
/// // A program of yours samples again and again, and waits between.
/// assert!(matches!(recorder.sample()?, Sampled::Recorded(_)));
/// assert_eq!(recorder.finish()?.records, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Recorder<S> {
    context: Session<S>,
    recording: Recording<S>,
    selection: Selection,
    /// The metrics to fetch. If no metric can be recorded now, it has the former ones: only a fetch
    /// tells that metrics are back.
    list: FetchList,
    batch: ResultBatch,
    /// Epoch of the source's metadata when the selection was looked up.
    epoch: u64,
    /// True if the source failed, so that it may now be another one.
    is_lost: bool,
    /// The next look for metrics that are left out.
    retry: Option<Retry<Instant>>,
    /// True if there was a gap since the last record that is not marked yet.
    gap: bool,
    /// The mark at the source's end that is the last record.
    marked: Option<Timestamp>,
    writer: Option<ArchiveWriter>,
    described: WrittenMetadata,
    domains: Domains,
    extent: Extent,
    /// The last time for which anything was written. If a sample broke off,
    /// that may be metadata for a record that was not written.
    latest: Option<Timestamp>,
    /// Largest number of metrics that were recorded at a time.
    most_metrics: usize,
    notices: Vec<Notice>,
    /// Metrics with instances without a name, each with the last such instance.
    /// `None` once it has been reported.
    nameless: FxHashMap<Pmid, Option<InstId>>,
    /// Metrics with values that were not of their types, which has been reported.
    misfits: FxHashSet<Pmid>,
    /// True if the last sample was older than the last record.
    is_back_in_time: bool,
    /// Number of label changes up to the last record.
    labels_passed: usize,
}

impl<S> fmt::Debug for Recorder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("base", &self.recording.base)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl<S: FetchSource> Recorder<S> {
    /// Looks up the metrics of a recording. Writes nothing yet.
    ///
    /// # Errors
    /// The source failed.
    pub fn new(context: Session<S>, recording: Recording<S>) -> Result<Recorder<S>, SourceError> {
        let mut recorder = Recorder {
            epoch: context.metadata_epoch(),
            context,
            selection: Selection::default(),
            list: FetchList::new(Vec::new(), Vec::new()),
            recording,
            batch: ResultBatch::default(),
            is_lost: false,
            retry: None,
            gap: false,
            marked: None,
            writer: None,
            described: WrittenMetadata::default(),
            domains: Domains::default(),
            extent: Extent::default(),
            most_metrics: 0,
            notices: Vec::new(),
            nameless: FxHashMap::default(),
            misfits: FxHashSet::default(),
            is_back_in_time: false,
            latest: None,
            labels_passed: 0,
        };
        recorder.select()?;
        // The caller asks for the skipped names directly.
        recorder.notices.clear();
        Ok(recorder)
    }

    /// The source, with derived metrics.
    pub fn context(&mut self) -> &mut Session<S> {
        &mut self.context
    }

    /// Requested names that are not recorded now, in the order of names.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &LeftOut)> {
        self.selection.left_out()
    }

    /// Number of metrics that are recorded now.
    pub fn metrics(&self) -> usize {
        self.selection.metrics.len()
    }

    /// Largest number of metrics that were recorded at a time.
    pub fn most_metrics(&self) -> usize {
        self.most_metrics
    }

    /// The extent of the recording so far.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Events that concern metrics since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Fetches and writes a record.
    ///
    /// # Errors
    /// The source failed: the next call reconnects if that may help. A gap is marked when the
    /// source reports one. Or the archive cannot be written: everything before is complete, and the
    /// recording should end.
    pub fn sample(&mut self) -> Result<Sampled, RecorderError> {
        let outcome = self.fetch_and_write();
        if let Err(RecorderError::Source(error)) = &outcome {
            self.is_lost |= error.is_transient();
        }
        outcome
    }

    fn fetch_and_write(&mut self) -> Result<Sampled, RecorderError> {
        let is_due = self.retry.is_some_and(|retry| retry.is_due(Instant::now()));
        if self.is_lost || is_due || self.context.metadata_epoch() != self.epoch {
            self.select()?;
            self.is_lost = false;
        }
        if self.list.pmids().is_empty() {
            return Ok(Sampled::NoMetrics);
        }
        let was_gap_known = self.gap;
        let Some(mut events) = self.fetch()? else { return Ok(Sampled::End) };
        let mut fetched = Arc::clone(&self.selection.metrics);
        if self.context.metadata_epoch() != self.epoch {
            // These values may already be of other metrics than the requested
            // ones.
            self.select()?;
        }
        // The computed values span the mark if the source did not report the gap itself.
        if self.gap && !events.gap && !was_gap_known && self.forgets_at_marks() {
            fetched = Arc::clone(&self.selection.metrics);
            let Some(again) = self.fetch()? else { return Ok(Sampled::End) };
            events = events.with(again);
        }
        let time = self.batch.timestamp();
        if fetched.is_empty() || self.selection.metrics.is_empty() {
            return Ok(Sampled::NoMetrics);
        }
        let result = FetchResult::of_batch(&self.batch, events.changes);
        if self.is_too_early(time) {
            return Ok(Sampled::LeftOut);
        }
        self.write(&fetched, result, events)?;
        Ok(Sampled::Recorded(time))
    }

    /// True if no rate is to span a mark that is the recorder's own. An archive has its marks, and
    /// libpcp computes across them.
    fn forgets_at_marks(&self) -> bool {
        !self.recording.is_archive && self.context.dialect() == Dialect::Fixed
    }

    /// Fetches the list, and notes gaps. After a known gap, no rate begins before the gap. `None`
    /// at the end of the source's archive, which is marked, or of the time to record.
    fn fetch(&mut self) -> Result<Option<FetchEvents>, RecorderError> {
        let forgets = self.forgets_at_marks();
        if self.gap && forgets {
            self.context.forget_history();
        }
        let events = match self.context.fetch(&self.list, &mut self.batch) {
            Err(error) if error.is_end_of_archive() => {
                self.mark_end()?;
                return Ok(None);
            }
            events => events?,
        };
        if forgets {
            // Metrics that were left out start without a previous sample when they are back.
            self.context.forget_absent();
        }
        let time = self.batch.timestamp();
        if self.recording.end.is_some_and(|end| time > end) {
            return Ok(None);
        }
        // An agent that is back has reset its counters, like an agent that pmcd has restarted.
        self.gap |= events.gap || events.changes.agent_added();
        Ok(Some(events))
    }

    /// Marks the end, as the source does.
    fn mark_end(&mut self) -> Result<(), WriteError> {
        let mark = self.mark_of_source();
        if let (Some(writer), Some(mark)) = (&mut self.writer, mark)
            && self.latest.is_some_and(|last| last <= mark)
            && self.marked != Some(mark)
        {
            writer.mark(mark)?;
            self.marked = Some(mark);
        }
        Ok(())
    }

    /// The last mark of a source that is an archive.
    fn mark_of_source(&mut self) -> Option<Timestamp> {
        let Records { last_mark, .. } = self.recording.records?;
        last_mark(self.context.source())
    }

    /// Looks up the selection again.
    fn select(&mut self) -> Result<(), SourceError> {
        let before = Arc::clone(&self.selection.metrics);
        self.gap |=
            self.selection.look_up(&mut self.context, &self.recording, &mut self.notices)?;
        // The first question may have connected to another peer.
        let epoch = self.context.metadata_epoch();
        let is_missing = !self.recording.is_archive && self.left_out().next().is_some();
        let former = self.retry.filter(|_| self.epoch == epoch);
        self.retry = is_missing.then(|| Retry::after(former, Instant::now(), WAITS));
        self.epoch = epoch;
        if before != self.selection.metrics && !self.selection.metrics.is_empty() {
            let pmids = self.selection.metrics.iter().map(|metric| metric.desc.pmid);
            self.list = FetchList::new(pmids.collect(), Vec::new());
        }
        self.described.labels_are_due = true;
        Ok(())
    }

    /// True for a time before the last record. The first record after the clock
    /// has caught up follows a mark, because more time has passed than the
    /// clock shows.
    fn is_too_early(&mut self, time: Timestamp) -> bool {
        let Some(last) = self.latest.filter(|last| time < *last) else {
            self.is_back_in_time = false;
            return false;
        };
        if !std::mem::replace(&mut self.is_back_in_time, true) {
            self.notices.push(Notice::TimeWentBack { from: last, to: time });
        }
        self.gap = true;
        self.extent.left_out += 1;
        true
    }

    fn write(
        &mut self,
        fetched: &Arc<[Metric]>,
        result: FetchResult,
        events: FetchEvents,
    ) -> Result<(), RecorderError> {
        let time = result.timestamp;
        let mut sets = self.choose(fetched, result.sets);
        // A record without metrics would be a mark.
        if sets.is_empty() {
            return Ok(());
        }
        let is_first = self.writer.is_none();
        let of_source = self.mark_of_source();
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(create(&self.recording, time)?),
        };
        if std::mem::take(&mut self.gap)
            && let Some(last) = self.latest
        {
            let of_source = of_source.filter(|mark| (last..=time).contains(mark));
            // The code for an archive's end may already have written this mark.
            if of_source.is_none() || of_source != self.marked {
                writer.mark(of_source.unwrap_or_else(|| behind(last, time)))?;
            }
        }
        self.latest = Some(time);
        let metrics = &self.selection.metrics;
        let times = &self.recording.label_times;
        let passed = times.partition_point(|change| *change <= time);
        self.described.labels_are_due |=
            is_first || passed > self.labels_passed || events.changes.concerns_labels();
        self.labels_passed = passed;
        self.described.write(&mut self.context, metrics, time, writer)?;
        self.described.write_parameters(&mut self.context, metrics, &sets, writer)?;
        let is_archive = self.recording.is_archive;
        self.domains.write(&mut self.context, is_archive, metrics, &sets, time, writer)?;
        for indom in self.domains.written() {
            let levels = [LabelLevel::Instances(*indom)];
            self.described.write_labels(&mut self.context, &levels, time, writer)?;
        }
        self.notices.extend(self.described.take_refused());
        let mut metric_of = search_in_order(metrics);
        for set in &mut sets {
            let Some(metric) = metric_of(set.pmid) else { continue };
            let domain = metric.desc.indom.and_then(|indom| self.domains.get(indom));
            // An archive may have values of instances without a name. Derived values
            // include them, so they stay.
            let had_values = set.outcome.is_ok();
            let nameless = tidy(metric, domain, is_archive, set);
            if had_values
                && let Err(status) = set.outcome
                && self.misfits.insert(set.pmid)
            {
                self.notices.push(Notice::Misfit(metric.name.clone(), status));
            }
            let Some(instance) = nameless else { continue };
            // An instance of a host may well disappear between the fetch and the question
            // for its name.
            let before = self.nameless.insert(set.pmid, Some(instance));
            let (is_told, is_again) = (before == Some(None), before == Some(Some(instance)));
            if is_told || is_again {
                self.nameless.insert(set.pmid, None);
                if !is_told {
                    self.notices.push(Notice::Nameless(metric.name.clone(), instance));
                }
            }
        }
        writer.record(&FetchResult { timestamp: time, changes: result.changes, sets })?;
        self.most_metrics = self.most_metrics.max(metrics.len());
        let first = self.extent.times.map_or(time, |(first, _)| first);
        self.extent.records += 1;
        self.extent.times = Some((first, time));
        Ok(())
    }

    /// The sets to record, each with the identifier of its metric in the
    /// archive.
    fn choose(&mut self, fetched: &Arc<[Metric]>, sets: Vec<MetricValues>) -> Vec<MetricValues> {
        let now = Arc::clone(&self.selection.metrics);
        let is_same = Arc::ptr_eq(fetched, &now);
        let mut chosen = Vec::with_capacity(sets.len());
        for (metric, set) in fetched.iter().zip(sets) {
            if !is_same && !now.contains(metric) {
                continue;
            }
            let has_values = !matches!(&set.outcome, Ok(values) if values.is_empty());
            if has_values || self.is_in_record(metric) {
                chosen.push(MetricValues { pmid: metric.recorded.pmid, ..set });
            }
        }
        chosen
    }

    /// False if an archive's record lacks a metric.
    fn is_in_record(&mut self, metric: &Metric) -> bool {
        let Some(Records { holds, .. }) = self.recording.records else { return true };
        let source = self.context.source();
        match metric.operands.as_deref() {
            None => holds(source, metric.desc.pmid),
            Some(operands) => operands.iter().any(|operand| holds(source, *operand)),
        }
    }

    /// Ends the archive properly and returns its extent. Without a record there
    /// is no archive.
    ///
    /// # Errors
    /// The last bytes cannot be written. Everything before is complete.
    pub fn finish(self) -> Result<Extent, WriteError> {
        if let Some(writer) = self.writer {
            writer.finish()?;
        }
        Ok(self.extent)
    }
}

fn create<S>(recording: &Recording<S>, first: Timestamp) -> Result<ArchiveWriter, WriteError> {
    let Origin { host, timezone, zoneinfo, pid, start } = &recording.origin;
    let options = WriterOptions {
        version: recording.version,
        // The start must not be later than the first record, whatever the
        // source's label has.
        start: start.map_or(first, |start| start.min(first)),
        host: host.clone(),
        timezone: timezone.clone(),
        zoneinfo: zoneinfo.clone(),
        pid: *pid,
        volume_bytes: recording.volume_bytes,
    };
    let mut writer = ArchiveWriter::create(&recording.base, options)?;
    if recording.is_archive {
        writer.allow_instances_without_names();
    }
    Ok(writer)
}

/// The time of a mark after a record at `last`: a millisecond later, as in
/// PCP's tools, but not after the record at `next`.
fn behind(last: Timestamp, next: Timestamp) -> Timestamp {
    const MILLISECOND: i64 = 1_000_000;
    Timestamp::new(last.sec, i64::from(last.nsec) + MILLISECOND).min(next)
}
