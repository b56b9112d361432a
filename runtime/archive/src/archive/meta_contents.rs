//! The records of a metadata file.
//!
//! | type | record                                  | what becomes of it                |
//! |------|-----------------------------------------|-----------------------------------|
//! | 1    | descriptor                              | kept decoded                      |
//! | 2    | instances, version 2                    | kept as a position, see `domains` |
//! | 3, 7 | labels, versions 2 and 3                | kept as a position, see `labels`  |
//! | 4    | help text                               | kept as a position, see `texts`   |
//! | 5, 6 | instances, version 3: whole, difference | kept as a position, see `domains` |
//!
//! A descriptor record consists of 4-byte words: length, type, pmid, type of values,
//! instance domain, semantics, units and number of names. Each name follows with its
//! length before it, then the length of the record again.
//!
//! Input: a file, read from front to back. Output: the contents of its records. Several
//! archives matter here only as the number of the file in each place.

use std::collections::HashMap;
use std::sync::Arc;

use pmderive_core::model::{
    InDom, LabelLevel, MetricDesc, PmStatus, Pmid, Semantics, TextKind, TextSubject, Units,
    ValueType, text_of_bytes, until_nul,
};

use crate::archive::bytes::Window;
use crate::archive::domain_record::{Change, DomainRecord};
use crate::archive::framing::{Damage, Fields, LENGTH_WORD, ReadError};
use crate::archive::labels::LabelRecord;
use crate::archive::layout;
use crate::archive::meta_files::RecordPlace;
use crate::archive::observations::{Observation, Observations};
use crate::archive::positions::MetadataFileId;
use crate::archive::texts::{Texts, decode_text};

/// Length in bytes of a record's length words and type.
const FRAME: usize = 3 * LENGTH_WORD;

/// Everything that the records say.
#[derive(Clone, Default)]
pub(super) struct Contents {
    pub(super) descs: Arc<HashMap<Pmid, MetricDesc>>,
    pub(super) domains: HashMap<InDom, Observations>,
    pub(super) labels: HashMap<LabelLevel, Observations>,
    pub(super) texts: Arc<Texts>,
    /// Names with their metrics in the order of the file, until the name space gets
    /// them.
    pub(super) names: Vec<(Box<str>, Pmid)>,
}

/// What a record says.
pub(super) enum Decoded<'a> {
    /// A metric with its names, or further names of a known metric.
    Metric(MetricDesc, Vec<Box<str>>),
    Instances(DomainRecord<'a>),
    Labels(LabelLevel, LabelRecord<'a>),
    /// The text may have a NUL.
    Text((TextSubject, TextKind), &'a [u8]),
}

/// The contents at an offset of the metadata.
pub(super) enum NextRecord {
    /// A complete record of this many bytes, with equal lengths before and after it.
    Record(usize),
    End(Tail),
}

/// The end of the metadata. An incomplete record is still being written, or its writer
/// was stopped.
pub(super) enum Tail {
    Complete,
    /// The file ends within length and type of a record. libpcp does not count that as
    /// a record.
    Begun(Damage),
    /// The file ends within a record, after its type.
    Cut(Damage),
}

impl Tail {
    /// The incomplete record, if there is one.
    pub(super) fn missing(&self) -> Option<&Damage> {
        match self {
            Tail::Complete => None,
            Tail::Begun(damage) | Tail::Cut(damage) => Some(damage),
        }
    }
}

/// Looks at the record that begins at `offset`.
pub(super) fn next_record(window: &mut Window, offset: u64) -> Result<NextRecord, ReadError> {
    let header = window.at(offset, 2 * LENGTH_WORD)?;
    if header.is_empty() {
        return Ok(NextRecord::End(Tail::Complete));
    }
    if header.len() < 2 * LENGTH_WORD {
        return Ok(NextRecord::End(Tail::Begun(unfinished(offset, "record"))));
    }
    let mut header = Fields::new("record", header, offset);
    let length = usize::try_from(header.u32("length")?).unwrap_or(usize::MAX);
    let at_type = header;
    let kind = header.u32("type")?;
    // In a cut record the type is valid. If it is not, the length cannot be trusted
    // either.
    let what = kind_name(kind).ok_or_else(|| unknown_type(&at_type, kind));
    if length < FRAME || i32::try_from(length).is_err() {
        let message = format!("record.length: {length} is impossible");
        return Err(Damage::new(PmStatus::LOGREC, offset, message).into());
    }
    if !window.holds(offset, length)? {
        let what = format!("{} of {length} bytes", what?);
        return Ok(NextRecord::End(Tail::Cut(unfinished(offset, &what))));
    }
    let body = length - LENGTH_WORD;
    let at_trailer = offset + body as u64;
    let record = window.at(offset, length)?;
    let trailer = Fields::new("record", &record[body..length], at_trailer).u32("trailer")?;
    if usize::try_from(trailer) != Ok(length) {
        let message = format!("record.trailer: {trailer} instead of {length}");
        return Err(Damage::new(PmStatus::LOGREC, at_trailer, message).into());
    }
    Ok(NextRecord::Record(length))
}

/// Describes a record that the file ends in.
fn unfinished(offset: u64, what: &str) -> Damage {
    let message = format!(
        "a {what} begins here, but the file ends before its end: cut off, or not written yet"
    );
    Damage::new(PmStatus::LOGREC, offset, message)
}

/// The name of a kind of records.
fn kind_name(kind: u32) -> Option<&'static str> {
    Some(match kind {
        layout::DESC => "descriptor",
        layout::INSTANCES_V2 | layout::INSTANCES | layout::INSTANCES_DELTA => "list of instances",
        layout::LABELS_V2 | layout::LABELS => "record of labels",
        layout::TEXT => "help text",
        _ => return None,
    })
}

/// The error for a type that no record has.
fn unknown_type(at_type: &Fields<'_>, kind: u32) -> Damage {
    let damage = at_type.damage("type", format_args!("{kind} is unknown"));
    Damage { status: PmStatus::RECTYPE, ..damage }
}

impl Contents {
    /// Reads the records of a file from the offset `next` on. Moves `next` to the end
    /// of the last record that was read.
    pub(super) fn scan(
        &mut self,
        window: &mut Window,
        file: MetadataFileId,
        next: &mut u64,
    ) -> Result<Tail, ReadError> {
        loop {
            let offset = *next;
            let length = match next_record(window, offset)? {
                NextRecord::Record(length) => length,
                NextRecord::End(tail) => return Ok(tail),
            };
            let record = &window.at(offset, length)?[..length];
            self.take_record(record, RecordPlace { file, offset, length })?;
            *next += length as u64;
        }
    }

    /// Adds everything from another archive, except for the names. The caller has
    /// checked that both agree on their metrics.
    pub(super) fn merge(&mut self, other: Contents) {
        if self.descs.is_empty() {
            *self = other;
            return;
        }
        Arc::make_mut(&mut self.descs).extend(other.descs.iter());
        for (indom, history) in other.domains {
            self.domains.entry(indom).or_default().merge(history);
        }
        for (level, history) in other.labels {
            self.labels.entry(level).or_default().merge(history);
        }
        Arc::make_mut(&mut self.texts).merge(&other.texts);
    }

    /// Restores the order of time. Must be called after records were read.
    pub(super) fn settle(&mut self) {
        self.domains.values_mut().for_each(Observations::settle);
        self.labels.values_mut().for_each(Observations::settle);
    }

    /// Takes what one complete record says.
    fn take_record(&mut self, record: &[u8], place: RecordPlace) -> Result<(), Damage> {
        match decode(record, place.offset)? {
            None => {}
            Some(Decoded::Metric(desc, names)) => {
                let pmid = desc.pmid;
                let known = Arc::make_mut(&mut self.descs).entry(pmid).or_insert(desc);
                if let Some((status, field, ..)) = difference(known, &desc) {
                    let message =
                        format!("desc.{field}: metric {pmid} was described differently before");
                    return Err(Damage::new(status, place.offset, message));
                }
                self.names.extend(names.into_iter().map(|name| (name, pmid)));
            }
            Some(Decoded::Instances(DomainRecord { stamp, indom, change, .. })) => {
                let observation = Observation { stamp, place, change };
                self.domains.entry(indom).or_default().add(observation);
            }
            Some(Decoded::Labels(level, LabelRecord { stamp, .. })) => {
                let observation = Observation { stamp, place, change: Change::Whole };
                self.labels.entry(level).or_default().add(observation);
            }
            Some(Decoded::Text(key, text)) => {
                Arc::make_mut(&mut self.texts).add(key, text.len(), place);
            }
        }
        Ok(())
    }
}

/// Decodes a complete record that begins at `offset` in its file. `None` if it says
/// nothing: an empty list of instances does not replace the list before it, and no
/// question covers an unknown level of labels or kind of text.
pub(super) fn decode(record: &[u8], offset: u64) -> Result<Option<Decoded<'_>>, Damage> {
    let mut header = Fields::new("record", record, offset);
    header.u32("length")?;
    let at_type = header;
    Ok(match header.u32("type")? {
        layout::DESC => {
            let (desc, names) = decode_desc(&record[..record.len() - LENGTH_WORD], offset)?;
            Some(Decoded::Metric(desc, names))
        }
        layout::INSTANCES_V2 | layout::INSTANCES | layout::INSTANCES_DELTA => {
            let instances = DomainRecord::decode(record, offset)?;
            (instances.len() > 0).then_some(Decoded::Instances(instances))
        }
        layout::LABELS_V2 | layout::LABELS => {
            let labels = LabelRecord::decode(record, offset)?;
            labels.level.map(|level| Decoded::Labels(level, labels))
        }
        layout::TEXT => decode_text(record, offset)?.map(|(key, text)| Decoded::Text(key, text)),
        kind => return Err(unknown_type(&at_type, kind)),
    })
}

/// The descriptor and the names of a record. `body` is the record without its last
/// length word.
pub(super) fn decode_desc(body: &[u8], offset: u64) -> Result<(MetricDesc, Vec<Box<str>>), Damage> {
    let mut fields = Fields::new("desc", body, offset);
    fields.take(2 * LENGTH_WORD, "header")?;
    let desc = MetricDesc {
        pmid: Pmid(fields.u32("pmid")?),
        value_type: ValueType::from_code(fields.i32("type")?),
        indom: InDom::from_wire(fields.u32("indom")?),
        semantics: Semantics::from_code(fields.i32("sem")?),
        units: Units::from_wire(fields.u32("units")?),
    };
    let mut names = Vec::new();
    // Some writers omit the number of names if there are none.
    if fields.rest().is_empty() {
        return Ok((desc, names));
    }
    for _ in 0..fields.count(LENGTH_WORD + 1, "names")? {
        let length = fields.count(1, "name length")?;
        let at_name = fields;
        // Some writers pad names with NULs.
        let name = until_nul(fields.take(length, "name")?);
        if name.is_empty() {
            return Err(at_name.damage("name", "it is empty"));
        }
        names.push(text_of_bytes(name).into());
    }
    if !fields.rest().is_empty() {
        return Err(fields.damage("trailer", "bytes follow the last name"));
    }
    Ok((desc, names))
}

/// The first difference between two descriptors of a metric: its status, the field, and
/// the value in each of the two.
pub(super) fn difference(
    known: &MetricDesc,
    desc: &MetricDesc,
) -> Option<(PmStatus, &'static str, String, String)> {
    let indom = |desc: &MetricDesc| match desc.indom {
        Some(indom) => indom.to_string(),
        None => "none".to_owned(),
    };
    let units = |desc: &MetricDesc| match desc.units.to_string() {
        none if none.is_empty() => "none".to_owned(),
        units => units,
    };
    if known.value_type != desc.value_type {
        let shown = |desc: &MetricDesc| desc.value_type.to_string();
        Some((PmStatus::LOGCHANGETYPE, "type", shown(known), shown(desc)))
    } else if known.semantics != desc.semantics {
        let shown = |desc: &MetricDesc| desc.semantics.to_string();
        Some((PmStatus::LOGCHANGESEM, "sem", shown(known), shown(desc)))
    } else if known.indom != desc.indom {
        Some((PmStatus::LOGCHANGEINDOM, "indom", indom(known), indom(desc)))
    } else if known.units != desc.units {
        Some((PmStatus::LOGCHANGEUNITS, "units", units(known), units(desc)))
    } else {
        None
    }
}
