//! Labels of an archive over time.
//!
//! | offset v2 | v3  | size  | field                                            |
//! |-----------|-----|-------|--------------------------------------------------|
//! | 0         | 0   | 4     | length                                           |
//! | 4         | 4   | 4     | type: 3 (version 2) or 7 (version 3)             |
//! | 8         | 8   | 8, 12 | time stamp                                       |
//! | 16        | 20  | 4     | level: 1, 2, 4, 8, 16 or 32                      |
//! | 20        | 24  | 4     | ident: of the agent, domain or metric; or -1     |
//! | 24        | 28  | 4     | number of sets                                   |
//! | 28        | 32  |       | sets, one after another                          |
//! |           |     | 4     | length                                           |
//!
//! A set consists of its instance or -1, the length of its text, the text (JSON,
//! without terminator or padding), the number of its labels, and 8 bytes for each
//! label: offset of the name (2), its length (1), flags (1), offset of the value (2),
//! its length (2). Instead of the number of labels there may be a status; then there
//! are no labels.
//!
//! Input: such a record. Output: its sets, decoded and checked on demand, so a damaged
//! set does not affect the others.

use pmderive_core::model::{
    InstId, LabelFlags, LabelLevel, LabelPlace, LabelSet, PmStatus, Timestamp, label_text,
};

use crate::archive::framing::{Damage, Fields, LENGTH_WORD, Version};
use crate::archive::layout;

/// Maximum length in bytes of a set's text, and maximum number of labels in a set.
pub(crate) const MAX_TEXT: usize = 65_535;
pub(crate) const MAX_LABELS: i32 = 255;

/// A record of labels, decoded up to its sets.
pub(super) struct LabelRecord<'a> {
    pub(super) stamp: Timestamp,
    /// `None` for a level that no question covers.
    pub(super) level: Option<LabelLevel>,
    /// Begins with the number of sets.
    sets: Fields<'a>,
}

impl<'a> LabelRecord<'a> {
    /// Decodes a record, with its length words and type, that begins at `offset` in its
    /// file.
    pub(super) fn decode(bytes: &'a [u8], offset: u64) -> Result<LabelRecord<'a>, Damage> {
        let body = &bytes[..bytes.len().saturating_sub(LENGTH_WORD)];
        let mut sets = Fields::new("labels", body, offset);
        sets.u32("length")?;
        let version = match sets.u32("type")? {
            layout::LABELS_V2 => Version::V2,
            _ => Version::V3,
        };
        let stamp = sets.timestamp(version, "stamp")?;
        let bit = sets.u32("level")?;
        let ident = sets.u32("ident")?;
        let level = LabelLevel::from_wire(bit, ident).map(LabelLevel::of_cluster);
        Ok(LabelRecord { stamp, level, sets })
    }

    /// Decodes and checks the sets.
    pub(super) fn sets(mut self) -> Result<Vec<LabelSet>, Damage> {
        let count = self.sets.count(12, "sets")?;
        let mut sets = Vec::new();
        for _ in 0..count {
            sets.push(read_set(&mut self.sets)?);
        }
        Ok(sets)
    }
}

fn read_set(fields: &mut Fields<'_>) -> Result<LabelSet, Damage> {
    let instance: InstId = fields.i32("instance")?;
    let at_length = *fields;
    let length = fields.count(1, "text length")?;
    if length > MAX_TEXT {
        return Err(at_length.damage("text length", format_args!("{length} is too long")));
    }
    let text = fields.take(length, "text")?;
    let at_count = *fields;
    let count = fields.i32("count")?;
    if count < 0 {
        return Ok(LabelSet::failed(instance, PmStatus(count)));
    }
    if count > MAX_LABELS {
        let problem = format_args!("{count} is not between 0 and {MAX_LABELS}");
        return Err(at_count.damage("count", problem));
    }
    let at_places = *fields;
    let mut places = Vec::new();
    for _ in 0..count {
        places.push(read_place(fields)?);
    }
    LabelSet::new(instance, label_text(text), places)
        .map_err(|error| at_places.damage("places", error))
}

fn read_place(fields: &mut Fields<'_>) -> Result<LabelPlace, Damage> {
    let [name_high, name_low] = fields.array("name")?;
    let [name_len, flags] = fields.array("flags")?;
    let [value_high, value_low] = fields.array("value")?;
    let [len_high, len_low] = fields.array("value length")?;
    let half = |high, low| u32::from(u16::from_be_bytes([high, low]));
    Ok(LabelPlace {
        name: half(name_high, name_low),
        name_len: name_len.into(),
        flags: LabelFlags(flags),
        value: half(value_high, value_low),
        value_len: half(len_high, len_low),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmderive_core::model::Pmid;

    /// A record of labels for metric 1.2.3 at second 5. Its sets are given as bytes.
    fn record(version: Version, count: u32, sets: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0; 8 + version.stamp_size()];
        let seconds = [0, 0, 0, 5];
        bytes[7] = if version == Version::V2 { 3 } else { 7 };
        bytes[8..12].copy_from_slice(&seconds);
        for word in [16, Pmid::new(1, 2, 3).0, count] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        bytes.extend(sets.concat());
        bytes.extend_from_slice(&[0; 4]);
        bytes
    }

    const GOOD: &[u8] = b"\xff\xff\xff\xff\0\0\0\x07{\"a\":1}\0\0\0\x01\0\x02\x01\x10\0\x05\0\x01";
    const FAILED: &[u8] = b"\0\0\0\x09\0\0\0\0\xff\xff\xff\xea";
    const EMPTY: &[u8] = b"\0\0\0\x08\0\0\0\0\0\0\0\0";

    #[test]
    fn sets_have_labels_or_a_status_or_nothing() {
        for version in [Version::V2, Version::V3] {
            let bytes = record(version, 3, &[GOOD, FAILED, EMPTY]);
            let decoded = LabelRecord::decode(&bytes, 100).expect("a record");
            assert_eq!(decoded.stamp, Timestamp::new(5, 0));
            assert_eq!(decoded.level, Some(LabelLevel::Item(Pmid::new(1, 2, 3))));
            let sets = decoded.sets().expect("sets");
            let failures: Vec<_> = sets.iter().map(|s| (s.instance(), s.failure())).collect();
            assert_eq!(failures, [(-1, None), (9, Some(PmStatus(-22))), (8, None)]);
            let labels: Vec<_> = sets
                .iter()
                .flat_map(LabelSet::labels)
                .map(|l| (l.name, l.value, l.flags.0))
                .collect();
            assert_eq!(labels, [("a", "1", 16)]);
            for length in 0..bytes.len() - 1 {
                let cut = LabelRecord::decode(&bytes[..length], 100);
                assert!(cut.and_then(LabelRecord::sets).is_err(), "{length}");
            }
        }
    }

    #[test]
    fn bad_sets_give_their_place() {
        let with = |at: usize, byte: u8| {
            let mut set = GOOD.to_vec();
            set[at] = byte;
            record(Version::V2, 1, &[&set])
        };
        let cases = [
            (record(Version::V2, 4, &[GOOD]), 124, "labels.sets: 4 is not between 0 and 2"),
            (with(4, 0x80), 132, "labels.text length: -2147483641 is not between 0 and 19"),
            (with(7, 19), 155, "labels.count: 4 bytes wanted, but the record has 0 left"),
            (with(17, 1), 143, "labels.count: 257 is not between 0 and 255"),
            (with(18, 2), 155, "labels.name: 2 bytes wanted, but the record has 0 left"),
            (
                with(20, 7),
                147,
                "labels.places: the name of label 0, 1 bytes at 7, is not within the 7 bytes of the set's text",
            ),
            (
                with(26, 3),
                147,
                "labels.places: the value of label 0, 3 bytes at 5, is not within the 7 bytes of the set's text",
            ),
        ];
        for (bytes, offset, message) in cases {
            let decoded = LabelRecord::decode(&bytes, 100).expect("the head is good");
            let damage = decoded.sets().expect_err(message);
            assert_eq!((damage.offset, &*damage.message), (offset, message));
        }
    }
}
