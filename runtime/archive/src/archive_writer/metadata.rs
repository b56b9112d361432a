//! Descriptors, help texts and labels as records (layouts: see
//! `archive::meta`, `archive::texts` and `archive::labels`).
//!
//! Input: what was checked in `known`. Output: bytes of one record. Gives the length
//! back when the record would be too long.

use pmderive_core::model::{
    InDom, LabelLevel, LabelSet, MetricDesc, TextKind, TextSubject, Timestamp,
};

use crate::archive::layout;
use crate::archive::record::Version;
use crate::archive_writer::encode::{record, stamp, word};

/// A metric with names.
pub(super) fn desc(out: &mut Vec<u8>, desc: &MetricDesc, names: &[&str]) -> Result<(), usize> {
    record(out, |out| {
        let words = [
            layout::DESC,
            desc.pmid.0,
            desc.value_type.code().cast_unsigned(),
            InDom::to_wire(desc.indom),
            desc.semantics.code().cast_unsigned(),
            desc.units.to_wire(),
        ];
        words.into_iter().for_each(|value| word(out, value));
        // A record without the number of names makes libpcp refuse the archive.
        word(out, names.len() as u32);
        for name in names {
            word(out, name.len() as u32);
            out.extend_from_slice(name.as_bytes());
        }
    })
}

/// A help text.
pub(super) fn text(
    out: &mut Vec<u8>,
    of: TextSubject,
    kind: TextKind,
    text: &str,
) -> Result<(), usize> {
    let (kind, ident) = layout::text_code(of, kind);
    record(out, |out| {
        word(out, layout::TEXT);
        word(out, kind);
        word(out, ident);
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    })
}

/// All sets of a level, whose texts and labels were found to fit.
pub(super) fn labels(
    out: &mut Vec<u8>,
    version: Version,
    time: Timestamp,
    level: LabelLevel,
    sets: &[LabelSet],
) -> Result<(), usize> {
    let code = match version {
        Version::V2 => layout::LABELS_V2,
        Version::V3 => layout::LABELS,
    };
    record(out, |out| {
        word(out, code);
        stamp(out, version, time);
        word(out, level.bit().into());
        word(out, level.ident());
        word(out, sets.len() as u32);
        for set in sets {
            label_set(out, set);
        }
    })
}

fn label_set(out: &mut Vec<u8>, set: &LabelSet) {
    word(out, set.instance().cast_unsigned());
    word(out, set.json().len() as u32);
    out.extend_from_slice(set.json().as_bytes());
    match set.failure() {
        Some(status) => word(out, status.0.cast_unsigned()),
        None => word(out, set.places().len() as u32),
    }
    for place in set.places() {
        // The sizes were checked: two bytes, or one.
        out.extend_from_slice(&(place.name as u16).to_be_bytes());
        out.extend_from_slice(&[place.name_len as u8, place.flags.0]);
        out.extend_from_slice(&(place.value as u16).to_be_bytes());
        out.extend_from_slice(&(place.value_len as u16).to_be_bytes());
    }
}
