//! The metadata of all archives of a context, as one.
//!
//! Input: metadata files. `meta_contents` reads them from front to back when archives
//! are opened. [`Metadata::refresh`] reads records that a writer appends later to the file of the
//! last archive. Output: lookups, as of a time if the answer depends on it.
//!
//! Archives must agree on their metrics. Their instances and labels form one line of
//! time. Of two texts for one subject the later one counts.

use std::collections::HashMap;
use std::sync::Arc;

use pmderive_core::model::{
    InDom, InstId, InstanceDomain, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, TextKind,
    TextSubject, Timestamp, text_of_bytes, until_nul,
};
use pmderive_core::source::{OneAnswer, SourceError};

use crate::archive::bytes::Window;
use crate::archive::domains::DomainVersion;
use crate::archive::files::Member;
use crate::archive::framing::{Damage, ReadError};
use crate::archive::identity::Identity;
use crate::archive::label::{ArchiveLabel, Role};
use crate::archive::labels::LabelRecord;
use crate::archive::lives::Lives;
use crate::archive::meta_contents::{Contents, Tail, difference};
use crate::archive::names::Names;
use crate::archive::observations::Observations;
use crate::archive::positions::MetadataFileId;
use crate::archive::shared_metadata::SharedMetadata;
use crate::archive::single::SingleArchive;

/// The metadata of a context's archives.
#[derive(Default)]
pub(super) struct Metadata {
    /// Everything read, which other contexts may share.
    known: Arc<SharedMetadata>,
    /// Names of instances are looked up as libpcp does (by their beginning).
    lookup_by_beginning: bool,
    /// The last requested version of each domain.
    current: HashMap<InDom, Option<DomainVersion>>,
}

/// The metadata of one archive, before they are compared with those of other archives.
struct ReadMetadata {
    window: Window,
    size: u64,
    /// Offset after the last record.
    next: u64,
    tail: Tail,
    contents: Contents,
}

/// A problem at the end of a metadata file.
pub(super) struct MissingPart {
    pub(super) what: SourceError,
    /// True if libpcp refuses the archive because of it.
    pub(super) is_refused: bool,
}

impl Metadata {
    /// The metadata of archives that another context has open.
    pub(super) fn of(known: Arc<SharedMetadata>) -> Metadata {
        Metadata { known, ..Metadata::default() }
    }

    /// Shares the contents with further contexts of the same files.
    pub(super) fn share(&mut self, identity: Identity, archives: &Arc<[Arc<SingleArchive>]>) {
        self.known = std::mem::take(&mut self.known).enter(identity, archives);
    }

    /// Adds the metadata of an archive whose first data volume has the label `first`.
    /// `is_last` is true if no later archive was added so far; a writer may append to
    /// the last one. Returns the missing part of the last record.
    ///
    /// # Errors
    /// The file is damaged, or it contradicts an earlier one. Then nothing was added.
    pub(super) fn add(
        &mut self,
        member: &Member,
        first: &ArchiveLabel,
        is_last: bool,
    ) -> Result<Option<MissingPart>, SourceError> {
        let file = self.known.files().next();
        let opened = member.open().map_err(ReadError::Io);
        let read = opened.and_then(|opened| read(Window::new(opened), first, file));
        let ReadMetadata { window, size, next, tail, mut contents } =
            read.map_err(|e| e.in_file(&member.name()))?;
        self.compare(&contents, member)?;
        let known = Arc::make_mut(&mut self.known);
        known.take_names(file, std::mem::take(&mut contents.names));
        known.contents.merge(contents);
        known.contents.settle();
        known.files().add(member, window);
        if is_last {
            (known.growing, known.size) = ((file, next), size);
            known.missing = tail.missing().cloned();
        }
        let (damage, is_refused) = match tail {
            Tail::Complete => return Ok(None),
            Tail::Begun(damage) => (damage, false),
            Tail::Cut(damage) => (damage, true),
        };
        Ok(Some(MissingPart { what: ReadError::from(damage).in_file(&member.name()), is_refused }))
    }

    /// Adds the metadata of an archive that was begun after all others were opened.
    ///
    /// # Errors
    /// As for [`Metadata::add`].
    pub(super) fn add_later(
        &mut self,
        member: &Member,
        first: &ArchiveLabel,
    ) -> Result<(), SourceError> {
        Arc::make_mut(&mut self.known).separate();
        self.add(member, first, true).map(drop)
    }

    /// Fails if a metric is described differently than before. Metrics are compared in
    /// the order of the file, so the first of several differences is reported.
    fn compare(&self, contents: &Contents, member: &Member) -> Result<(), SourceError> {
        let SharedMetadata { contents: before, names, .. } = &*self.known;
        if before.descs.is_empty() {
            return Ok(());
        }
        let named = contents.names.iter().map(|(_, pmid)| *pmid);
        for pmid in named.chain(contents.descs.keys().copied()) {
            let descs = before.descs.get(&pmid).zip(contents.descs.get(&pmid));
            let Some((status, field, before, now)) =
                descs.and_then(|(known, desc)| difference(known, desc))
            else {
                continue;
            };
            let field = match field {
                "sem" => "semantics",
                "indom" => "instance domain",
                field => field,
            };
            let names = names.of(pmid).unwrap_or_default();
            let name = names.first().map(|name| format!(" ({name})")).unwrap_or_default();
            return Err(SourceError::Damaged {
                target: member.name(),
                status,
                message: format!(
                    "metric {pmid}{name} has {field} {now} here and {before} in the archives \
                     before; leave one of them out, or make them agree with pmlogrewrite"
                ),
            });
        }
        Ok(())
    }

    /// Hides names below nodes that the first archive does not have, as libpcp 6 does,
    /// which marks new nodes of a name space as trimmed. Must be called before archives
    /// are added.
    pub(super) fn hide_new_nodes(&mut self) {
        Arc::make_mut(&mut self.known).hides_new_nodes = true;
    }

    /// A copy for another context, with everything read so far.
    pub(super) fn duplicate(&self) -> Metadata {
        let (known, current) = (Arc::clone(&self.known), self.current.clone());
        Metadata { known, lookup_by_beginning: self.lookup_by_beginning, current }
    }

    /// True if something was appended since the file was last read.
    pub(super) fn has_grown(&mut self) -> bool {
        self.known.present_size().is_ok_and(|size| size != self.known.size)
    }

    /// Reads the appended records. True if there are new descriptors or names.
    pub(super) fn refresh(&mut self) -> Result<bool, SourceError> {
        let Ok(size) = self.known.present_size() else { return Ok(false) };
        if size == self.known.size {
            return Ok(false);
        }
        let count = |known: &SharedMetadata| (known.contents.descs.len(), known.names.len());
        let before = count(&self.known);
        SharedMetadata::read_on(&mut self.known, size)?;
        Ok(before != count(&self.known))
    }

    /// The missing part of the last record when the growing file was last read.
    pub(super) fn unfinished(&self) -> Option<SourceError> {
        let missing = self.known.missing.clone()?;
        Some(self.known.files().failed(self.known.growing.0, missing))
    }

    /// Looks up names of instances as libpcp does (by their beginning). Must be called
    /// before the first question about a domain.
    pub(super) fn look_up_by_beginning(&mut self) {
        self.lookup_by_beginning = true;
    }

    /// Everything read.
    #[cfg(test)]
    pub(super) fn known(&self) -> &Arc<SharedMetadata> {
        &self.known
    }

    pub(super) fn names(&self) -> &Names {
        &self.known.names
    }

    pub(super) fn desc(&self, pmid: Pmid) -> Option<MetricDesc> {
        self.known.contents.descs.get(&pmid).copied()
    }

    /// The instance domain in force at `time`.
    pub(super) fn domain(
        &mut self,
        indom: InDom,
        time: Timestamp,
    ) -> OneAnswer<Arc<InstanceDomain>> {
        let Metadata { known, lookup_by_beginning, current } = self;
        let Some(history) = known.contents.domains.get(&indom) else {
            return Ok(Err(PmStatus::INDOM_LOG));
        };
        let current = current.entry(indom).or_default();
        let domain = history.at(time, current, |observation, before| {
            known.domain_after((indom, *lookup_by_beginning), observation, before)
        })?;
        Ok(domain.ok_or(PmStatus::INDOM_LOG))
    }

    /// A domain with all instances that it ever has, and when each exists.
    pub(super) fn whole_domain(
        &self,
        indom: InDom,
    ) -> OneAnswer<(Arc<InstanceDomain>, Arc<Lives>)> {
        let whole = self.known.whole_domain((indom, self.lookup_by_beginning))?;
        Ok(whole.ok_or(PmStatus::INDOM_LOG))
    }

    /// Names of those among `instances` that the domain ever has: the last name of each
    /// up to `time`, or else its first one.
    pub(super) fn names_near(
        &self,
        indom: InDom,
        instances: &[InstId],
        time: Timestamp,
    ) -> Result<Vec<(InstId, Box<str>)>, SourceError> {
        let Some(names) = self.known.names_over_time(indom)? else { return Ok(Vec::new()) };
        let name = |id: &InstId| Some((*id, names.near(*id, time)?.into()));
        Ok(instances.iter().filter_map(name).collect())
    }

    /// A help text. If there is only the one-line text, it serves as the long one too.
    pub(super) fn text(&self, of: TextSubject, kind: TextKind) -> OneAnswer<Box<str>> {
        let found: Result<Box<str>, _> = match self.known.contents.texts.place(of, kind) {
            Ok(place) => Ok(text_of_bytes(until_nul(self.known.files().at(place)?)).into()),
            Err(status) => Err(status),
        };
        let missing = found.as_ref().map_or(true, |text| text.is_empty());
        if missing && kind == TextKind::Help {
            return self.text(of, TextKind::OneLine);
        }
        Ok(found)
    }

    /// The labels of a level in force at `time`; empty if it never had any.
    pub(super) fn labels(
        &self,
        level: LabelLevel,
        time: Timestamp,
    ) -> Result<Vec<LabelSet>, SourceError> {
        let history = self.known.contents.labels.get(&level.of_cluster());
        let Some(found) = history.and_then(|history| history.last_at(time)) else {
            return Ok(Vec::new());
        };
        let place = found.place;
        let mut files = self.known.files();
        let record = LabelRecord::decode(files.at(place)?, place.offset);
        let sets = record.and_then(LabelRecord::sets);
        sets.map_err(|damage| files.failed(place.file, damage))
    }

    /// The times at which labels of any level change, in ascending order.
    pub(super) fn label_times(&self) -> Vec<Timestamp> {
        let histories = self.known.contents.labels.values();
        let mut times: Vec<Timestamp> = histories.flat_map(Observations::times).collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// True if the archive as a whole has labels at any time.
    pub(super) fn has_context_labels(&self) -> bool {
        self.known.contents.labels.contains_key(&LabelLevel::Context)
    }
}

/// Checks that a metadata file begins with the label of an archive whose first data
/// volume has the label `first`.
///
/// # Errors
/// It does not, or it cannot be read.
pub(super) fn check_label(member: &Member, first: &ArchiveLabel) -> Result<(), SourceError> {
    let opened = member.open().map_err(ReadError::Io);
    let label = opened.and_then(|opened| {
        Ok(ArchiveLabel::read(&mut Window::new(opened), Role::Metadata)?.belongs_to(first)?)
    });
    label.map_err(|error| error.in_file(&member.name()))
}

/// Reads a metadata file.
fn read(
    mut window: Window,
    first: &ArchiveLabel,
    file: MetadataFileId,
) -> Result<ReadMetadata, ReadError> {
    let label = ArchiveLabel::read(&mut window, Role::Metadata)?;
    label.belongs_to(first)?;
    let size = window.size()?;
    let mut next = label.version.label_size() as u64;
    let mut contents = Contents::default();
    let tail = contents.scan(&mut window, file, &mut next)?;
    if contents.descs.is_empty() {
        let message = "there is no descriptor of a metric";
        return Err(match tail {
            Tail::Cut(damage) => damage.into(),
            _ => Damage::new(PmStatus::NODATA, next, message).into(),
        });
    }
    Ok(ReadMetadata { window, size, next, tail, contents })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmderive_core::model::ValueType;

    /// A record of the given words and bytes, between its length words.
    fn record(words: &[u32], tail: &[u8]) -> Vec<u8> {
        let length = u32::try_from(4 * words.len() + tail.len() + 8).expect("small");
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        bytes.extend_from_slice(tail);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes
    }

    /// A descriptor of metric 1.2.3 with one name. The words are type, instance domain,
    /// semantics and units.
    fn desc(words: [u32; 4], name: &[u8]) -> Vec<u8> {
        let [kind, indom, semantics, units] = words;
        let length = u32::try_from(name.len()).expect("short");
        let pmid = Pmid::new(1, 2, 3).0;
        record(&[1, pmid, kind, indom, semantics, units, 1, length], name)
    }

    const NONE: u32 = 0xffff_ffff;

    type Opened = (Metadata, Option<MissingPart>);

    fn open(records: &[Vec<u8>]) -> Result<Opened, (PmStatus, String)> {
        let mut label = record(&[0x5005_2602, 7, 0, 0, NONE], &[0; 104]);
        label[24] = b'h';
        let bytes: Arc<[u8]> = Arc::from([label, records.concat()].concat());
        let mut window = Window::new(Box::new(Arc::clone(&bytes)));
        let first = ArchiveLabel::read(&mut window, Role::Metadata).expect("the label is good");
        let mut metadata = Metadata::default();
        match metadata.add(&Member::Memory { name: "f", bytes }, &first, true) {
            Ok(missing) => Ok((metadata, missing)),
            Err(error) => Err((error.status(), error.to_string())),
        }
    }

    #[test]
    fn descriptors_accumulate_names() {
        let good = [1, NONE, 1, 0];
        let (metadata, missing) = open(&[
            desc(good, b"a.b\0\0"),
            // No question covers the level of these labels.
            record(&[3, 0, 0, 64, 0], b"xyz"),
            record(&[4, 5, 2], b"help"),
            desc(good, b"c.d"),
        ])
        .unwrap_or_else(|(_, error)| panic!("{error}"));
        assert!(missing.is_none());
        for name in ["a.b", "c.d"] {
            assert_eq!(metadata.names().lookup(name), Ok(Pmid::new(1, 2, 3)));
        }
        let desc = metadata.desc(Pmid::new(1, 2, 3)).expect("it is described");
        assert_eq!((desc.value_type, desc.indom), (ValueType::U32, None));
        assert_eq!(metadata.desc(Pmid::new(1, 2, 4)), None);
    }

    #[test]
    fn a_last_record_that_is_cut_is_missing() {
        let good = || desc([1, NONE, 1, 0], b"a.b");
        let text = || record(&[4, 5, 2], b"help");
        let whole = text().len();
        for left in 0..=whole {
            let (metadata, missing) = open(&[good(), text()[..left].to_vec()])
                .unwrap_or_else(|(_, error)| panic!("{left}: {error}"));
            assert_eq!(metadata.names().lookup("a.b"), Ok(Pmid::new(1, 2, 3)));
            let what = match left {
                0 => None,
                1..8 => Some(("a record", false)),
                _ if left < whole => Some(("a help text of 24 bytes", true)),
                _ => None,
            };
            let expected = what.map(|(what, is_refused)| {
                let place = format!("f: at byte 175: {what} begins here, but the file ends");
                (format!("{place} before its end: cut off, or not written yet"), is_refused)
            });
            let found = missing.map(|missing| (missing.what.to_string(), missing.is_refused));
            assert_eq!(found, expected, "{left}");
        }
    }

    #[test]
    fn bad_metadata_gives_its_status_and_place() {
        let good = || desc([1, NONE, 1, 0], b"a.b");
        let cut = good()[..30].to_vec();
        let mut trailer = good();
        *trailer.last_mut().expect("not empty") += 1;
        let changed = |words, name| vec![good(), desc(words, name)];
        let cases = [
            (vec![], PmStatus::NODATA, "132: there is no descriptor of a metric"),
            (
                vec![cut],
                PmStatus::LOGREC,
                "132: a descriptor of 43 bytes begins here, but the file ends before its end: cut \
                 off, or not written yet",
            ),
            (
                vec![good(), record(&[9], b"")[..9].to_vec()],
                PmStatus::RECTYPE,
                "179: record.type: 9 is unknown",
            ),
            (vec![trailer], PmStatus::LOGREC, "171: record.trailer: 44 instead of 43"),
            (vec![vec![0; 8]], PmStatus::LOGREC, "132: record.length: 0 is impossible"),
            (vec![record(&[9], b"")], PmStatus::RECTYPE, "136: record.type: 9 is unknown"),
            (vec![desc([1, NONE, 1, 0], b"\0")], PmStatus::LOGREC, "168: desc.name: it is empty"),
            (
                vec![record(&[1, 2, 3], b"")],
                PmStatus::LOGREC,
                "148: desc.indom: 4 bytes wanted, but the record has 0 left",
            ),
            (
                changed([2, NONE, 1, 0], b"a.b"),
                PmStatus::LOGCHANGETYPE,
                "175: desc.type: metric 1.2.3 was described differently before",
            ),
            (
                changed([1, NONE, 3, 0], b"a.b"),
                PmStatus::LOGCHANGESEM,
                "175: desc.sem: metric 1.2.3 was described differently before",
            ),
            (
                changed([1, 5, 1, 0], b"a.b"),
                PmStatus::LOGCHANGEINDOM,
                "175: desc.indom: metric 1.2.3 was described differently before",
            ),
            (
                changed([1, NONE, 1, 0x1000_0000], b"a.b"),
                PmStatus::LOGCHANGEUNITS,
                "175: desc.units: metric 1.2.3 was described differently before",
            ),
        ];
        for (records, status, message) in cases {
            let Err((found, text)) = open(&records) else { panic!("{message}") };
            assert_eq!((found, text), (status, format!("f: at byte {message}")));
        }
    }
}
