//! The metadata file: descriptors, names, instance domains, labels and help texts.
//!
//! | type | record                                  | what becomes of it                |
//! |------|-----------------------------------------|-----------------------------------|
//! | 1    | descriptor                              | kept decoded                      |
//! | 2    | instances, version 2                    | kept as a position, see `domains` |
//! | 3, 7 | labels, versions 2 and 3                | kept as a position, see `labels`  |
//! | 4    | help text                               | kept as a position, see `texts`   |
//! | 5, 6 | instances, version 3: whole, difference | kept as a position, see `domains` |
//!
//! A descriptor record: length, type, pmid, type of values, instance domain,
//! semantics, units, number of names, and each name with its length in front,
//! all words of 4 bytes; then the length again.
//!
//! In: the file, read once from front to back. Out: lookups. What a writer
//! appends later is found by [`Metadata::refresh`]. Values are not known here.

use std::collections::HashMap;
use std::sync::Arc;

use crate::archive::bytes::Window;
use crate::archive::domains::{Change, DomainHistory, DomainRecord, Observation};
use crate::archive::label::{ArchiveLabel, Role};
use crate::archive::labels::{LabelHistory, LabelObservation, LabelRecord};
use crate::archive::names::Names;
use crate::archive::record::{Damage, Fields, LENGTH_WORD, ReadError, Version, text, until_nul};
use crate::archive::texts::Texts;
use crate::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, Semantics, TextKind,
    TextSubject, Timestamp, Units, ValueType,
};

/// Length words and the type of a record.
const FRAME: usize = 3 * LENGTH_WORD;

/// The metadata of one archive.
pub(super) struct Metadata {
    window: Window,
    /// Offset of the first record that was not read yet.
    next: u64,
    names: Names,
    contents: Contents,
    /// Names of instances are looked up as libpcp does it.
    lookup_by_beginning: bool,
}

/// What records say, but for the names.
#[derive(Default)]
struct Contents {
    descs: HashMap<Pmid, MetricDesc>,
    domains: HashMap<InDom, DomainHistory>,
    labels: HashMap<LabelLevel, LabelHistory>,
    texts: Texts,
}

impl Metadata {
    /// Reads the metadata of the archive whose first data volume has the label `first`.
    pub(super) fn open(mut window: Window, first: &ArchiveLabel) -> Result<Metadata, ReadError> {
        let label = ArchiveLabel::read(&mut window, Role::Metadata)?;
        label.belongs_to(first)?;
        let next = label.version.label_size() as u64;
        let (names, contents) = (Names::default(), Contents::default());
        let mut metadata = Metadata { window, next, names, contents, lookup_by_beginning: false };
        if let Tail::Cut(damage) = metadata.scan()? {
            return Err(damage.into());
        }
        if metadata.contents.descs.is_empty() {
            let message = "there is no descriptor of a metric";
            return Err(Damage::new(PmStatus::NODATA, next, message).into());
        }
        Ok(metadata)
    }

    /// Reads what was appended since. True when there are new descriptors or names.
    pub(super) fn refresh(&mut self) -> Result<bool, ReadError> {
        let before = (self.contents.descs.len(), self.names.len());
        // A record cut short is one that is being written.
        self.scan()?;
        Ok(before != (self.contents.descs.len(), self.names.len()))
    }

    fn scan(&mut self) -> Result<Tail, ReadError> {
        let mut names = Vec::new();
        let tail = loop {
            let header = self.window.at(self.next, 2 * LENGTH_WORD)?;
            // Fewer bytes than a header are no record yet.
            if header.len() < 2 * LENGTH_WORD {
                break Tail::Complete;
            }
            let length = Fields::new("record", header, self.next).u32("length")?;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if length < FRAME || i32::try_from(length).is_err() {
                let message = format!("record.length: {length} is impossible");
                return Err(Damage::new(PmStatus::LOGREC, self.next, message).into());
            }
            if !self.window.holds(self.next, length)? {
                let message = format!("record.length: {length}, but the file ends before that");
                break Tail::Cut(Damage::new(PmStatus::LOGREC, self.next, message));
            }
            let record = &self.window.at(self.next, length)?[..length];
            self.contents.take_record(record, self.next, &mut names)?;
            self.next += length as u64;
        };
        if !names.is_empty() {
            self.names.extend(names);
        }
        Ok(tail)
    }

    /// Looks names of instances up as libpcp does it. To be called before
    /// any domain is asked for.
    pub(super) fn look_up_by_beginning(&mut self) {
        self.lookup_by_beginning = true;
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    pub(super) fn desc(&self, pmid: Pmid) -> Option<MetricDesc> {
        self.contents.descs.get(&pmid).copied()
    }

    /// The instance domain in force at `time`.
    pub(super) fn domain(
        &mut self,
        indom: InDom,
        time: Timestamp,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, ReadError> {
        let Metadata { window, contents, lookup_by_beginning, .. } = self;
        let Some(history) = contents.domains.get_mut(&indom) else {
            return Ok(Err(PmStatus::INDOM_LOG));
        };
        let domain = history.at(time, |observation, before| {
            let domain = observed(window, observation, before)?;
            Ok::<_, ReadError>(match lookup_by_beginning {
                true => domain.with_lookup_by_beginning(),
                false => domain,
            })
        })?;
        Ok(domain.ok_or(PmStatus::INDOM_LOG))
    }

    /// Every instance that a domain ever has.
    pub(super) fn whole_domain(
        &mut self,
        indom: InDom,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, ReadError> {
        let Metadata { window, contents, .. } = self;
        let Some(history) = contents.domains.get(&indom) else {
            return Ok(Err(PmStatus::INDOM_LOG));
        };
        let union = history.union(|observation, before| observed(window, observation, before))?;
        Ok(Ok(Arc::new(union)))
    }

    /// A help text. Where only one line is known, that is the help as well.
    pub(super) fn text(
        &mut self,
        of: TextSubject,
        kind: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, ReadError> {
        let found = match self.contents.texts.place(of, kind) {
            Ok(place) => {
                let bytes = self.window.at(place.offset, place.length)?;
                Ok(text(until_nul(&bytes[..place.length.min(bytes.len())])))
            }
            Err(status) => Err(status),
        };
        let missing = found.as_ref().map_or(true, |text| text.is_empty());
        if missing && kind == TextKind::Help {
            return self.text(of, TextKind::OneLine);
        }
        Ok(found)
    }

    /// The labels of a level in force at `time`: none when it never had any.
    pub(super) fn labels(
        &mut self,
        level: LabelLevel,
        time: Timestamp,
    ) -> Result<Vec<LabelSet>, ReadError> {
        let Metadata { window, contents, .. } = self;
        let history = contents.labels.get_mut(&level.of_cluster());
        let Some(found) = history.and_then(|history| history.at(time)) else {
            return Ok(Vec::new());
        };
        let bytes = window.at(found.offset, found.length)?;
        let bytes = &bytes[..found.length.min(bytes.len())];
        Ok(LabelRecord::decode(bytes, found.offset, found.version)?.sets()?)
    }

    /// True when there are, at any time, labels of the archive as a whole.
    pub(super) fn has_context_labels(&self) -> bool {
        self.contents.labels.contains_key(&LabelLevel::Context)
    }
}

/// A domain after an observation, from what it was before.
fn observed(
    window: &mut Window,
    observation: &Observation,
    before: Option<&InstanceDomain>,
) -> Result<InstanceDomain, ReadError> {
    let Observation { offset, length, version, change, .. } = *observation;
    let bytes = window.at(offset, length)?;
    let bytes = &bytes[..length.min(bytes.len())];
    let record = DomainRecord::decode(bytes, offset, version, change)?;
    Ok(record.apply(before))
}

/// How the metadata ends.
enum Tail {
    Complete,
    /// In the middle of a record.
    Cut(Damage),
}

impl Contents {
    /// Takes one record, whose header is complete and whose length was checked.
    fn take_record(
        &mut self,
        record: &[u8],
        offset: u64,
        names: &mut Vec<(Box<str>, Pmid)>,
    ) -> Result<(), Damage> {
        let body = record.len() - LENGTH_WORD;
        let mut header = Fields::new("record", record, offset);
        let length = header.u32("length")?;
        let at_type = header;
        let kind = header.u32("type")?;
        let at_trailer = offset + body as u64;
        let trailer = Fields::new("record", &record[body..], at_trailer).u32("trailer")?;
        if trailer != length {
            let message = format!("record.trailer: {trailer} instead of {length}");
            return Err(Damage::new(PmStatus::LOGREC, at_trailer, message));
        }
        match kind {
            1 => take_desc(&record[..body], offset, &mut self.descs, names),
            2 => self.take_instances(record, offset, Version::V2, Change::Whole),
            3 => self.take_labels(record, offset, Version::V2),
            4 => self.texts.add(record, offset),
            5 => self.take_instances(record, offset, Version::V3, Change::Whole),
            6 => self.take_instances(record, offset, Version::V3, Change::Difference),
            7 => self.take_labels(record, offset, Version::V3),
            _ => {
                let damage = at_type.damage("type", format_args!("{kind} is unknown"));
                Err(Damage { status: PmStatus::RECTYPE, ..damage })
            }
        }
    }

    fn take_instances(
        &mut self,
        record: &[u8],
        offset: u64,
        version: Version,
        change: Change,
    ) -> Result<(), Damage> {
        let instances = DomainRecord::decode(record, offset, version, change)?;
        // An empty list leaves the older one in force.
        if instances.len() > 0 {
            self.domains.entry(instances.indom).or_default().add(Observation {
                stamp: instances.stamp,
                offset,
                length: record.len(),
                version,
                change,
            });
        }
        Ok(())
    }

    fn take_labels(&mut self, record: &[u8], offset: u64, version: Version) -> Result<(), Damage> {
        let LabelRecord { stamp, level, .. } = LabelRecord::decode(record, offset, version)?;
        if let Some(level) = level {
            let length = record.len();
            let observation = LabelObservation { stamp, offset, length, version };
            self.labels.entry(level).or_default().add(observation);
        }
        Ok(())
    }
}

fn take_desc(
    body: &[u8],
    offset: u64,
    descs: &mut HashMap<Pmid, MetricDesc>,
    names: &mut Vec<(Box<str>, Pmid)>,
) -> Result<(), Damage> {
    let mut fields = Fields::new("desc", body, offset);
    fields.take(2 * LENGTH_WORD, "header")?;
    let pmid = Pmid(fields.u32("pmid")?);
    let desc = MetricDesc {
        pmid,
        value_type: ValueType::from_code(fields.i32("type")?),
        indom: InDom::from_wire(fields.u32("indom")?),
        semantics: Semantics::from_code(fields.i32("sem")?),
        units: Units::from_wire(fields.u32("units")?),
    };
    let known = descs.entry(pmid).or_insert(desc);
    let change = if known.value_type != desc.value_type {
        Some((PmStatus::LOGCHANGETYPE, "type"))
    } else if known.semantics != desc.semantics {
        Some((PmStatus::LOGCHANGESEM, "sem"))
    } else if known.indom != desc.indom {
        Some((PmStatus::LOGCHANGEINDOM, "indom"))
    } else if known.units != desc.units {
        Some((PmStatus::LOGCHANGEUNITS, "units"))
    } else {
        None
    };
    if let Some((status, field)) = change {
        let message = format!("desc.{field}: metric {pmid} was described differently before");
        return Err(Damage::new(status, offset, message));
    }
    // Writers leave the number of names out when there are none.
    if fields.rest().is_empty() {
        return Ok(());
    }
    for _ in 0..fields.count(LENGTH_WORD + 1, "names")? {
        let length = fields.count(1, "name length")?;
        let at_name = fields;
        // Some writers pad names with NULs.
        let name = until_nul(fields.take(length, "name")?);
        if name.is_empty() {
            return Err(at_name.damage("name", "it is empty"));
        }
        names.push((text(name), pmid));
    }
    if !fields.rest().is_empty() {
        return Err(fields.damage("trailer", "bytes follow the last name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with its length words around the given words.
    fn record(words: &[u32], tail: &[u8]) -> Vec<u8> {
        let length = u32::try_from(4 * words.len() + tail.len() + 8).expect("small");
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        bytes.extend_from_slice(tail);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes
    }

    /// A descriptor of metric 1.2.3: type, instance domain, semantics, units, one name.
    fn desc(words: [u32; 4], name: &[u8]) -> Vec<u8> {
        let [kind, indom, semantics, units] = words;
        let length = u32::try_from(name.len()).expect("short");
        let pmid = Pmid::new(1, 2, 3).0;
        record(&[1, pmid, kind, indom, semantics, units, 1, length], name)
    }

    const NONE: u32 = 0xffff_ffff;

    fn open(records: &[Vec<u8>]) -> Result<Metadata, (PmStatus, String)> {
        let mut label = record(&[0x5005_2602, 7, 0, 0, NONE], &[0; 104]);
        label[24] = b'h';
        let bytes: Arc<[u8]> = Arc::from([label, records.concat()].concat());
        let mut window = Window::new(Box::new(Arc::clone(&bytes)));
        let first = ArchiveLabel::read(&mut window, Role::Metadata).expect("the label is good");
        Metadata::open(window, &first).map_err(|error| {
            let error = error.in_file("f");
            (error.status(), error.to_string())
        })
    }

    #[test]
    fn descriptors_accumulate_names() {
        let good = [1, NONE, 1, 0];
        let metadata = open(&[
            desc(good, b"a.b\0\0"),
            // Labels of a level that nobody asks for, and a help text.
            record(&[3, 0, 0, 64, 0], b"xyz"),
            record(&[4, 5, 2], b"help"),
            desc(good, b"c.d"),
            vec![0; 7],
        ])
        .unwrap_or_else(|(_, error)| panic!("{error}"));
        for name in ["a.b", "c.d"] {
            assert_eq!(metadata.names().lookup(name), Ok(Pmid::new(1, 2, 3)));
        }
        let desc = metadata.desc(Pmid::new(1, 2, 3)).expect("it is described");
        assert_eq!((desc.value_type, desc.indom), (ValueType::U32, None));
        assert_eq!(metadata.desc(Pmid::new(1, 2, 4)), None);
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
            (vec![cut], PmStatus::LOGREC, "132: record.length: 43, but the file ends before that"),
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
