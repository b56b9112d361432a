//! Encodes the common parts of all records: words, time stamps and the length words around a
//! record. Also encodes the records that consist of nothing else: labels, index entries and marks.
//!
//! Input: values that are known to fit; `mod` checks the limits where values come in.
//! Output: bytes. Only the length of a whole record can be an error here.

use pmderive_core::model::Timestamp;

use crate::archive::framing::{LENGTH_WORD, Version};
use crate::archive::index::IndexEntry;
use crate::archive::label::Role;
use crate::archive::layout::MAGIC;
use crate::archive_writer::WriterOptions;

/// Appends a big-endian word.
pub(super) fn word(out: &mut Vec<u8>, word: u32) {
    out.extend_from_slice(&word.to_be_bytes());
}

/// Appends a time stamp. Its seconds must fit into the version.
pub(super) fn stamp(out: &mut Vec<u8>, version: Version, time: Timestamp) {
    // The two words of the seconds are written separately, so nothing is lost.
    let (low, high) = (time.sec as u32, (time.sec >> 32) as u32);
    word(out, low);
    match version {
        Version::V2 => word(out, time.nsec / 1000),
        Version::V3 => {
            word(out, high);
            word(out, time.nsec);
        }
    }
}

/// Makes `out` one record: the bytes that `body` appends, between two length words. If
/// a length word cannot express the length, the error is that length.
pub(super) fn record(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), usize> {
    out.clear();
    word(out, 0);
    body(out);
    let length = out.len() + LENGTH_WORD;
    let encoded = i32::try_from(length).map_err(|_| length)?.cast_unsigned();
    out[..LENGTH_WORD].copy_from_slice(&encoded.to_be_bytes());
    word(out, encoded);
    Ok(())
}

/// Encodes the label of one file. The texts must fit.
pub(super) fn label(options: &WriterOptions, role: Role) -> Vec<u8> {
    let version = options.version;
    let sizes = version.label_texts();
    let mut out = Vec::with_capacity(version.label_size());
    let result = record(&mut out, |out| {
        word(out, MAGIC | version.number());
        word(out, options.pid.cast_unsigned());
        stamp(out, version, options.start);
        word(out, role.code().cast_unsigned());
        if version == Version::V3 {
            // Feature bits, and a word that is reserved.
            word(out, 0);
            word(out, 0);
        }
        let texts = [
            (&options.host, sizes.host),
            (&options.timezone, sizes.timezone),
            (&options.zoneinfo, sizes.zoneinfo),
        ];
        for (text, size) in texts {
            let end = out.len() + size;
            // Version 2 has no room for `zoneinfo`: its size is 0 there.
            out.extend_from_slice(&text.as_bytes()[..text.len().min(size)]);
            out.resize(end, 0);
        }
    });
    debug_assert!(result.is_ok() && out.len() == version.label_size());
    out
}

/// Appends an entry of the index. Its offsets must fit into the version.
pub(super) fn index_entry(out: &mut Vec<u8>, version: Version, entry: IndexEntry) {
    stamp(out, version, entry.stamp);
    word(out, entry.volume.cast_unsigned());
    for offset in [entry.metadata, entry.offset] {
        match version {
            // The writer limits the sizes of version 2's files.
            Version::V2 => word(out, offset as u32),
            Version::V3 => out.extend_from_slice(&offset.to_be_bytes()),
        }
    }
}

/// Encodes a mark: a data record without metrics.
pub(super) fn mark(out: &mut Vec<u8>, version: Version, time: Timestamp) {
    let result = record(out, |out| {
        stamp(out, version, time);
        word(out, 0);
    });
    debug_assert!(result.is_ok());
}
