//! Encodes descriptors, help texts and labels as records. `archive::meta`,
//! `archive::texts` and `archive::labels` have the layouts.
//!
//! Input: values that `known` has checked. Output: the bytes of one record. If the
//! record would be too long, the error is its length.

use pmderive_core::model::{
    InDom, LabelLevel, LabelSet, MetricDesc, TextKind, TextSubject, Timestamp,
};

use crate::archive::framing::Version;
use crate::archive::layout;
use crate::archive_writer::encode::{record, stamp, word};

/// Encodes a descriptor with names.
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
        // libpcp refuses an archive with a record that has no number of names.
        word(out, names.len() as u32);
        for name in names {
            word(out, name.len() as u32);
            out.extend_from_slice(name.as_bytes());
        }
    })
}

/// Encodes a help text.
pub(super) fn text(
    out: &mut Vec<u8>,
    of: TextSubject,
    kind: TextKind,
    text: &str,
) -> Result<(), usize> {
    let (kind, ident) = of.to_wire(kind);
    record(out, |out| {
        word(out, layout::TEXT);
        word(out, kind);
        word(out, ident);
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    })
}

/// Encodes all sets of a level. Their texts and labels must fit.
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
        // `known` has checked that the sizes fit into one or two bytes.
        out.extend_from_slice(&(place.name as u16).to_be_bytes());
        out.extend_from_slice(&[place.name_len as u8, place.flags.0]);
        out.extend_from_slice(&(place.value as u16).to_be_bytes());
        out.extend_from_slice(&(place.value_len as u16).to_be_bytes());
    }
}
