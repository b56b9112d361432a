//! A context of one archive: metadata as of a time, and fetches record by record.
//!
//! In: the path of an archive, or its files in memory. Out: what
//! [`MetadataSource`] and [`FetchSource`] promise. Values stay encoded; they
//! are neither decoded nor interpolated here.

use std::path::Path;
use std::sync::Arc;

use crate::archive::bytes::Window;
use crate::archive::end::end_time;
use crate::archive::files::ArchiveFiles;
use crate::archive::index::{IndexEntry, read_index};
use crate::archive::label::ArchiveLabel;
use crate::archive::meta::Metadata;
use crate::archive::record::ReadError;
use crate::archive::values::{BLOCK_ORIGIN, Selection};
use crate::archive::volumes::Volumes;
use crate::model::{
    InDom, InstanceDomain, LabelFlags, LabelLevel, LabelMap, LabelSet, MetricDesc, PmStatus, Pmid,
    TextKind, TextSubject, Timestamp, json_string,
};
use crate::result::ResultBatch;
use crate::source::{
    Child, FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError,
};

/// An open archive, read forward record by record (`pmNewContext(3)` with
/// `PM_CONTEXT_ARCHIVE`, and `PM_MODE_FORW` of `pmSetMode(3)`).
///
/// The context has an origin: the time of the record fetched last, at first
/// the start of the archive. Instance domains are those in force at the
/// origin, and records from before it are passed over.
pub struct ArchiveContext {
    name: String,
    label: ArchiveLabel,
    metadata: Metadata,
    metadata_name: String,
    volumes: Volumes,
    /// Entries of the index, once they were needed.
    index: Option<Vec<IndexEntry>>,
    origin: Timestamp,
    /// True while records are passed over to reach the origin.
    seeking: bool,
    /// A mark was passed since the record delivered last.
    gap: bool,
    /// The end of the archive was met; the writer may have gone on since.
    at_end: bool,
    epoch: u64,
    /// Epoch that the last fetch reported.
    reported_epoch: u64,
    selection: Selection,
}

impl ArchiveContext {
    /// Opens an archive, given its base name or any of its files, and
    /// positions it at its start.
    ///
    /// # Errors
    /// [`SourceError::Specification`] for several archives and for files in
    /// a compression other than xz and zstd, [`SourceError::Io`] when there
    /// is nothing of that name, [`SourceError::Damaged`] with the status that
    /// `pmNewContext(3)` gives for the rest.
    pub fn open(path: &Path) -> Result<ArchiveContext, SourceError> {
        ArchiveContext::from_files(ArchiveFiles::find(path)?)
    }

    /// Opens an archive whose files are known.
    pub(super) fn from_files(files: ArchiveFiles) -> Result<ArchiveContext, SourceError> {
        let name = files.base.display().to_string();
        let metadata_member = files.metadata.clone();
        let (volumes, label) = Volumes::open(files)?;
        let metadata_name = metadata_member.name();
        let metadata = metadata_member
            .open()
            .map_err(ReadError::Io)
            .and_then(|file| Metadata::open(Window::new(file), &label))
            .map_err(|error| error.in_file(&metadata_name))?;
        Ok(ArchiveContext {
            name,
            origin: label.start,
            label,
            metadata,
            metadata_name,
            volumes,
            index: None,
            seeking: true,
            gap: false,
            at_end: false,
            epoch: 0,
            reported_epoch: 0,
            selection: Selection::default(),
        })
    }

    /// Looks names of instances up as libpcp does it, see
    /// [`InstanceDomain::with_lookup_by_beginning`]. To be called before
    /// anything else.
    pub fn look_up_instances_by_beginning(&mut self) {
        self.metadata.look_up_by_beginning();
    }

    /// The archive's label (`pmGetArchiveLabel(3)`).
    pub fn label(&self) -> &ArchiveLabel {
        &self.label
    }

    /// Time of the last record, marks included (`pmGetArchiveEnd(3)`). The
    /// position is not affected. A growing archive gives a later time later.
    ///
    /// # Errors
    /// `PM_ERR_LOGREC` when there is no complete record.
    pub fn end_time(&mut self) -> Result<Timestamp, SourceError> {
        self.load_index();
        end_time(self.volumes.files(), self.index.as_deref().unwrap_or_default())
    }

    /// The time that metadata is as of: that of the record fetched last.
    pub fn origin(&self) -> Timestamp {
        self.origin
    }

    /// Makes the next fetch deliver the first record at `when` or later
    /// (`pmSetMode(3)` with `PM_MODE_FORW`), and `when` the origin.
    ///
    /// # Errors
    /// The first data volume can no longer be opened.
    pub fn set_position(&mut self, when: Timestamp) -> Result<(), SourceError> {
        self.load_index();
        self.origin = when;
        self.seeking = true;
        self.gap = false;
        self.volumes.seek(when, self.index.as_deref().unwrap_or_default())
    }

    /// Reads the index, unless that was done. One that is missing, damaged or
    /// of another archive is as good as empty: all it can do is save time.
    fn load_index(&mut self) {
        if self.index.is_some() {
            return;
        }
        let entries = self.volumes.files().index.as_ref().and_then(|member| {
            let mut window = Window::new(member.open().ok()?);
            read_index(&mut window, &self.label).ok()
        });
        self.index = Some(entries.unwrap_or_default());
    }

    /// Reads what was appended to the metadata.
    fn refresh_metadata(&mut self) -> Result<(), SourceError> {
        let changed = self.metadata.refresh().map_err(|e| e.in_file(&self.metadata_name))?;
        self.epoch += u64::from(changed);
        Ok(())
    }

    fn domain_at_origin(
        &mut self,
        indom: InDom,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.metadata.domain(indom, self.origin).map_err(|e| e.in_file(&self.metadata_name))
    }

    fn status(&self, status: PmStatus) -> SourceError {
        SourceError::Status { target: self.name.clone(), status }
    }

    /// Moves to the next record at or after the origin that is no mark and
    /// holds one of the metrics, and copies it to a part of `batch`. False at
    /// the end.
    fn next_selected(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<bool, SourceError> {
        self.selection.prepare(list);
        while let Some(record) = self.volumes.next()? {
            if record.stamp < self.origin {
                self.gap |= record.is_mark() && !self.seeking;
                continue;
            }
            self.seeking = false;
            if record.is_mark() {
                self.gap = true;
                continue;
            }
            let bytes = self.volumes.bytes(&record)?;
            let selected = match self.selection.scan(bytes, record.first_set, record.set_count) {
                // Without metrics every record counts: constants have a value in each.
                Ok(any) => any || list.pmids().is_empty(),
                Err(mut damage) => {
                    self.gap = true;
                    damage.offset += record.offset;
                    return Err(self.volumes.damaged(damage));
                }
            };
            if !selected {
                continue;
            }
            let part = batch.add_part();
            part.bytes.extend_from_slice(bytes);
            part.timestamp = record.stamp;
            part.first_set = part.bytes.len();
            part.set_count = list.pmids().len();
            part.block_origin = BLOCK_ORIGIN;
            self.selection.append_sets(list.pmids(), &mut part.bytes);
            self.origin = record.stamp;
            return Ok(true);
        }
        Ok(false)
    }
}

impl MetadataSource for ArchiveContext {
    fn lookup_names(&mut self, names: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        Ok(names.iter().map(|name| self.metadata.names().lookup(name)).collect())
    }

    fn lookup_descs(
        &mut self,
        pmids: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError> {
        let desc = |pmid: &Pmid| self.metadata.desc(*pmid).ok_or(PmStatus::PMID_LOG);
        Ok(pmids.iter().map(desc).collect())
    }

    fn instance_domain(
        &mut self,
        indom: InDom,
        freshness: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        if freshness == Freshness::Current {
            self.refresh_metadata()?;
        }
        self.domain_at_origin(indom)
    }

    fn known_instances(
        &mut self,
        indom: InDom,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        self.metadata.whole_domain(indom).map_err(|e| e.in_file(&self.metadata_name))
    }

    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        self.metadata.names().traverse(prefix).ok_or_else(|| self.status(PmStatus::NAME))
    }

    fn children(&mut self, node: &str) -> Result<Result<Vec<Child>, PmStatus>, SourceError> {
        Ok(self.metadata.names().children(node))
    }

    fn names_of(&mut self, pmid: Pmid) -> Result<Result<Vec<Box<str>>, PmStatus>, SourceError> {
        Ok(self.metadata.names().of(pmid))
    }

    /// An archive without any text of the kind gives `PM_ERR_NOTHOST`.
    fn text(
        &mut self,
        of: TextSubject,
        kind: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        self.metadata.text(of, kind).map_err(|e| e.in_file(&self.metadata_name))
    }

    /// An archive without labels of its own has the host it was recorded from.
    fn labels(
        &mut self,
        level: LabelLevel,
    ) -> Result<Result<Vec<LabelSet>, PmStatus>, SourceError> {
        if level == LabelLevel::Context && !self.metadata.has_context_labels() {
            let host = json_string(&self.label.host);
            let flags = LabelFlags(level.bit());
            let labels = LabelMap::from([("hostname".into(), (host.into(), flags))]);
            return Ok(Ok(vec![LabelSet::from_map(-1, &labels)]));
        }
        let sets = self.metadata.labels(level, self.origin);
        sets.map(Ok).map_err(|e| e.in_file(&self.metadata_name))
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn metadata_epoch(&self) -> u64 {
        self.epoch
    }
}

impl FetchSource for ArchiveContext {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        batch.clear();
        if !self.next_selected(list, batch)? {
            self.at_end = true;
            return Err(self.status(PmStatus::EOL));
        }
        if std::mem::take(&mut self.at_end) {
            self.refresh_metadata()?;
        }
        for indom in list.domains() {
            let domain = self.domain_at_origin(*indom)?;
            batch.domains.push(domain);
        }
        let metadata_changed =
            std::mem::replace(&mut self.reported_epoch, self.epoch) != self.epoch;
        let gap = std::mem::take(&mut self.gap) | self.volumes.take_lost();
        Ok(FetchEvents { metadata_changed, gap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_move_between_threads() {
        fn check<T: Send>() {}
        check::<ArchiveContext>();
    }
}
