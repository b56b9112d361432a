//! Finds problems in the files of an archive outside of its data records.
//!
//! Input: an open archive. Output: problems of its metadata that no reader reports, and
//! of its index, which readers can do without. Readers report problems of data records when
//! they read them; this module only compares their places with the index.

use std::collections::HashSet;

use pmderive_core::model::{MetricDesc, PmStatus, Semantics, Timestamp, UtcTime, ValueType};
use pmderive_core::source::SourceError;

use crate::archive::bytes::Window;
use crate::archive::files::Member;
use crate::archive::framing::{Damage, Fields, LENGTH_WORD, ReadError, Version};
use crate::archive::index::{IndexEntry, IndexReader};
use crate::archive::label::{ArchiveLabel, Role};
use crate::archive::labels::LabelRecord;
use crate::archive::layout;
use crate::archive::meta_contents::{NextRecord, Tail, decode_desc, next_record};
use crate::archive::positions::VolumeId;
use crate::archive::single::SingleArchive;
use crate::archive::texts::decode_text;
use crate::archive::volume::open_volume;

/// Largest difference between the times of an entry and its records, in seconds. Some
/// writers have rounded, or have stored the time of a mark for that of the record before
/// it.
const TOLERANCE: f64 = 0.002;

/// Receives the problems one by one.
type Report<'f> = &'f mut dyn FnMut(SourceError);

/// Inspects metadata and index. Missing volumes are reported when they are read.
pub(super) fn inspect(archive: &SingleArchive, report: Report<'_>) {
    let metadata_size = inspect_metadata(archive, report);
    inspect_label(archive, (&archive.files.metadata, Role::Metadata), report);
    if let Some(member) = &archive.files.index {
        inspect_index(archive, (member, metadata_size), report);
        inspect_label(archive, (member, Role::Index), report);
    }
}

/// Compares the label of a file with that of the first volume. Writers give all files
/// the same label, except for the number of the file. Labels may differ in an archive
/// that has lost its first volume.
fn inspect_label(archive: &SingleArchive, (member, role): (&Member, Role), report: Report<'_>) {
    // A label that readers refuse was reported before.
    if open(member, &archive.label, role).is_err() {
        return;
    }
    let version = archive.label.version;
    let label = |member: &Member| -> Option<Vec<u8>> {
        let size = version.label_size();
        let mut window = Window::new(member.open().ok()?);
        Some(window.at(0, size).ok()?.get(..size)?.to_vec())
    };
    let Some((0, first)) = archive.files.volumes.first() else { return };
    let (Some(first), Some(other)) = (label(first), label(member)) else { return };
    let differs = |at: &usize| first[*at] != other[*at] && !version.volume_in_label().contains(at);
    if let Some(at) = (0..first.len()).find(differs) {
        let message = format!(
            "label: {:#04x} differs from {:#04x} in that of the first data volume",
            other[at], first[at]
        );
        report(fault(member, Damage::new(PmStatus::LABEL, at as u64, message)));
    }
}

fn is_before(one: Timestamp, other: Timestamp) -> bool {
    other.seconds_since(one) > TOLERANCE
}

fn fault(member: &Member, error: impl Into<ReadError>) -> SourceError {
    error.into().in_file(&member.name())
}

fn open(member: &Member, first: &ArchiveLabel, role: Role) -> Result<(Window, u64), ReadError> {
    let mut window = Window::new(member.open()?);
    let label = ArchiveLabel::read(&mut window, role)?;
    label.belongs_to(first)?;
    Ok((window, label.version.label_size() as u64))
}

/// Finds records that every reader skips. Returns the size of the metadata if the last
/// record is complete; an incomplete one is reported when the archive is opened.
fn inspect_metadata(archive: &SingleArchive, report: Report<'_>) -> Option<u64> {
    let member = &archive.files.metadata;
    let opened = open(member, &archive.label, Role::Metadata);
    let (mut window, mut next) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            report(fault(member, error));
            return None;
        }
    };
    loop {
        let read = next_record(&mut window, next).and_then(|record| match record {
            NextRecord::Record(length) => Ok(Ok(&window.at(next, length)?[..length])),
            NextRecord::End(tail) => Ok(Err(tail)),
        });
        match read {
            Ok(Ok(record)) => {
                let version = archive.label.version;
                let inspected = inspect_version(record, next, version)
                    .and_then(|()| inspect_metadata_record(record, next));
                if let Err(damage) = inspected {
                    report(fault(member, damage));
                }
                next += record.len() as u64;
            }
            Ok(Err(Tail::Complete)) => return Some(next),
            Ok(Err(Tail::Begun(_) | Tail::Cut(_))) => return None,
            Err(error) => {
                report(fault(member, error));
                return None;
            }
        }
    }
}

/// Finds records of the version that the archive does not have. Readers accept
/// them.
fn inspect_version(record: &[u8], offset: u64, version: Version) -> Result<(), Damage> {
    let kind =
        Fields::new("record", &record[LENGTH_WORD..], offset + LENGTH_WORD as u64).u32("type")?;
    let of = match kind {
        layout::INSTANCES_V2 | layout::LABELS_V2 => Version::V2,
        layout::INSTANCES | layout::INSTANCES_DELTA | layout::LABELS => Version::V3,
        _ => version,
    };
    if of == version {
        return Ok(());
    }
    let (of, version) = (of.number(), version.number());
    let message =
        format!("record.type: {kind} is of version {of}, but the archive is of version {version}");
    Err(Damage::new(PmStatus::RECTYPE, offset + LENGTH_WORD as u64, message))
}

fn inspect_metadata_record(record: &[u8], offset: u64) -> Result<(), Damage> {
    let damage = |at: usize, message: String| {
        Err(Damage::new(PmStatus::LOGREC, offset + at as u64, message))
    };
    let word = |at: usize| {
        let bytes = record.get(at..).and_then(|rest| rest.first_chunk::<LENGTH_WORD>());
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    };
    let kind = word(LENGTH_WORD);
    match kind {
        layout::DESC => {
            let body = record.len() - LENGTH_WORD;
            let (desc, names) = decode_desc(&record[..body], offset)?;
            if let Some((word, message)) = without_meaning(&desc) {
                return damage(word * LENGTH_WORD, message);
            }
            match names.iter().find(|name| name.split('.').any(str::is_empty)) {
                Some(name) => {
                    damage(0, format!("desc.name: {name:?} of {} is not a valid name", desc.pmid))
                }
                None => Ok(()),
            }
        }
        layout::TEXT => match decode_text(record, offset)? {
            Some(_) => Ok(()),
            None => {
                let at = 2 * LENGTH_WORD;
                damage(at, format!("text.kind: {} is unknown", word(at)))
            }
        },
        layout::LABELS_V2 | layout::LABELS => {
            let version = if kind == layout::LABELS { Version::V3 } else { Version::V2 };
            let labels = LabelRecord::decode(record, offset)?;
            let at = 2 * LENGTH_WORD + version.stamp_size();
            match labels.level {
                Some(_) => labels.sets().map(|_| ()),
                None => damage(at, format!("labels.level: {} is unknown", word(at))),
            }
        }
        _ => Ok(()),
    }
}

/// A word of a descriptor record that has no meaning, and its name. Readers accept it nevertheless.
/// A metric that is not supported may have no semantics.
fn without_meaning(desc: &MetricDesc) -> Option<(usize, String)> {
    let MetricDesc { pmid, units, .. } = desc;
    match (desc.value_type, desc.semantics) {
        (ValueType::Other(code), _) => Some((3, format!("desc.type: {code} of {pmid} is unknown"))),
        (ValueType::NoSupport, Semantics::Other(0)) => None,
        (_, Semantics::Other(code)) => Some((5, format!("desc.sem: {code} of {pmid} is unknown"))),
        _ if units.have_words() => None,
        _ => {
            let word = units.to_wire();
            let what = "a scale or a quantity is unknown";
            Some((6, format!("desc.units: {word:#010x} of {pmid}: {what}")))
        }
    }
}

/// Finds entries that lead nowhere. If metadata or a volume are cut, only the cut is
/// reported, not the entries for the missing part.
fn inspect_index(
    archive: &SingleArchive,
    (member, metadata_size): (&Member, Option<u64>),
    report: Report<'_>,
) {
    let opened = open(member, &archive.label, Role::Index);
    let (window, first) = match opened {
        Ok(opened) => opened,
        Err(error) => return report(fault(member, error)),
    };
    let mut entries = Vec::new();
    let mut last: Option<IndexEntry> = None;
    let mut reader = IndexReader::new(window, archive.label.version, first);
    loop {
        let at = reader.position();
        let entry = match reader.next() {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(error) => return report(fault(member, error)),
        };
        let mut wrong = |message: String| {
            report(fault(member, Damage::new(PmStatus::LOGREC, at, format!("index: {message}"))));
        };
        if let Some(last) = last {
            if is_before(entry.stamp, last.stamp) {
                let (time, before) = (UtcTime(entry.stamp), UtcTime(last.stamp));
                wrong(format!(
                    "its time, {time}, is before {before}, the time of the previous entry"
                ));
            } else if (entry.volume, entry.offset) < (last.volume, last.offset) {
                wrong(format!(
                    "it leads to byte {} of volume {}, before the place that the previous entry leads to",
                    entry.offset, entry.volume
                ));
            }
        }
        if let Some(size) = metadata_size.filter(|size| entry.metadata > *size) {
            let offset = entry.metadata;
            wrong(format!("it leads to byte {offset} of the metadata, which have {size} bytes"));
        }
        last = Some(entry);
        entries.push((entry, at));
    }
    if let Some(rest) = reader.rest() {
        let (at, message) =
            (reader.position(), format!("index: {rest} bytes are left, too few for an entry"));
        report(fault(member, Damage::new(PmStatus::LOGREC, at, message)));
    }
    entries.sort_by_key(|(entry, _)| (entry.volume, entry.offset));
    let mut told = HashSet::new();
    for volume in entries.chunk_by(|(one, _), (other, _)| one.volume == other.volume) {
        inspect_entries(archive, volume, &mut |at, message| {
            // Many entries may lead to the same place.
            if told.insert(at) {
                report(fault(member, Damage::new(PmStatus::LOGREC, at, message)));
            }
        });
    }
}

/// Compares entries that lead to one volume, in order of their offsets, with its
/// records. An entry must lead to the beginning of a record or to the end of the last
/// one. Its time must not be that of earlier or later records.
fn inspect_entries(
    archive: &SingleArchive,
    entries: &[(IndexEntry, u64)],
    wrong: &mut dyn FnMut(u64, String),
) {
    let Some((first, _)) = entries.first() else { return };
    let volumes = &archive.files.volumes;
    let Some(position) = volumes.iter().position(|(number, _)| *number == first.volume) else {
        for (entry, at) in entries {
            wrong(*at, format!("index: there is no volume {}", entry.volume));
        }
        return;
    };
    // Problems of the volume are reported when it is read.
    let Ok((mut volume, ..)) = open_volume(&archive.files, VolumeId::at(position)) else {
        return;
    };
    let mut entries = entries.iter().peekable();
    let mut before: Option<Timestamp> = None;
    loop {
        let boundary = volume.position();
        while let Some((entry, at)) = entries.next_if(|(entry, _)| entry.offset < boundary) {
            wrong(*at, format!("index: no record begins at byte {} of its volume", entry.offset));
        }
        let read = volume.next();
        let record = read.as_ref().ok().and_then(Option::as_ref);
        while let Some((entry, at)) = entries.next_if(|(entry, _)| entry.offset == boundary) {
            let is_late = record.is_some_and(|record| is_before(record.stamp, entry.stamp));
            if is_late || before.is_some_and(|before| is_before(entry.stamp, before)) {
                wrong(
                    *at,
                    format!(
                        "index: its time, {}, is not that of the records at byte {boundary} of \
                         its volume",
                        UtcTime(entry.stamp)
                    ),
                );
            }
        }
        match read {
            Ok(Some(record)) => before = Some(record.stamp),
            Ok(None) => break,
            // Without a record here, nothing is known about the bytes after it.
            Err(_) if volume.position() == boundary => return,
            Err(_) => {}
        }
    }
    let size = volume.position();
    for (IndexEntry { offset, .. }, at) in entries {
        let message = format!("index: it leads to byte {offset} of its volume, which has {size}");
        wrong(*at, message + " bytes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_the_other_version_are_told() {
        let record = |kind: u32| [[0, 0, 0, 12], kind.to_be_bytes(), [0, 0, 0, 12]].concat();
        let versions = [Version::V2, Version::V3];
        let is_told =
            |kind| versions.map(|version| inspect_version(&record(kind), 0, version).is_err());
        for kind in [layout::DESC, layout::TEXT] {
            assert_eq!(is_told(kind), [false, false], "{kind}");
        }
        for kind in [layout::INSTANCES_V2, layout::LABELS_V2] {
            assert_eq!(is_told(kind), [false, true], "{kind}");
        }
        for kind in [layout::INSTANCES, layout::INSTANCES_DELTA, layout::LABELS] {
            assert_eq!(is_told(kind), [true, false], "{kind}");
        }
    }
}
