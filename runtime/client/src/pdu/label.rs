//! Labels of one level.
//!
//! | offset | size | field   | LABEL_REQ                                    | LABEL       |
//! |--------|------|---------|----------------------------------------------|-------------|
//! | 0      | 12   | header  | type LABEL_REQ                               | type LABEL  |
//! | 12     | 4    | ident   | of the agent, domain or metric, or all ones  | the same    |
//! | 16     | 4    | type    | the level: 1, 2, 4, 8, 16 or 32              | the same    |
//! | 20     | 4    | padding |                                              | zero        |
//! | 24     | 4    | nsets   |                                              | number of sets |
//! | 28     | ...  | sets    |                                              | one after another |
//! |        | ...  | texts   |                                              | JSON, back to back |
//!
//! A set, and one entry of its table of labels:
//!
//! | offset | size | field   | meaning                                          |
//! |--------|------|---------|--------------------------------------------------|
//! | 0      | 4    | inst    | instance; -1 on the other levels                 |
//! | 4      | 4    | nlabels | number of labels, or negative: a status          |
//! | 8      | 4    | json    | offset of the set's text from the start of the PDU |
//! | 12     | 4    | jsonlen | length of the text                               |
//! | 16     | 8 * nlabels | table | the labels                                  |
//!
//! | offset | size | field    | meaning                                         |
//! |--------|------|----------|-------------------------------------------------|
//! | 0      | 2    | name     | offset of the name within the text of its set   |
//! | 2      | 1    | namelen  | its length                                      |
//! | 3      | 1    | flags    | level, compound name, optional label            |
//! | 4      | 2    | value    | offset of the value within the text             |
//! | 6      | 2    | valuelen | its length                                      |
//!
//! The texts are not padded. Up to three bytes may follow the last text.

use pmderive_core::model::{LabelFlags, LabelLevel, LabelPlace, LabelSet, PmStatus, label_text};

use super::reader::as_i64;
use super::{DecodeError, Pdu, PduType, Problem, Reader, Writer};

/// Size in bytes of a set without its table and text.
const SET_BYTES: usize = 16;

/// Size in bytes of a table entry.
const PLACE_BYTES: usize = 8;

/// Maximum number of labels in a set.
const MAX_LABELS: usize = 254;

/// Maximum length of a set's text in bytes.
const MAX_TEXT: usize = 65_534;

/// Request for the labels of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelRequest {
    /// The level of the requested labels.
    pub level: LabelLevel,
}

fn read_level(reader: &mut Reader<'_>) -> Result<LabelLevel, DecodeError> {
    let ident = reader.u32("ident")?;
    let offset = reader.offset();
    let bit = reader.u32("type")?;
    LabelLevel::from_wire(bit, ident)
        .ok_or_else(|| reader.error_at(offset, "type", Problem::Other("not one of the levels")))
}

fn write_level(writer: &mut Writer<'_>, level: LabelLevel) {
    writer.u32(level.ident());
    writer.u32(u32::from(level.bit()));
}

impl<'a> Pdu<'a> for LabelRequest {
    const NAME: &'static str = "label_req";
    const TYPES: &'static [PduType] = &[PduType::LabelRequest];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(LabelRequest { level: read_level(reader)? })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        write_level(writer, self.level);
    }
}

/// The labels of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The level that the labels are of.
    pub level: LabelLevel,
    /// Empty if there are no labels. The level of instances has one set per instance,
    /// other levels at most one set.
    pub sets: Vec<LabelSet>,
}

/// The fields of a set before its table.
struct SetHead {
    inst: i32,
    /// Number of labels, or the status that replaces it.
    labels: Result<usize, PmStatus>,
    json: i32,
    /// Offset of the field `json`.
    at_json: usize,
    json_len: usize,
}

fn read_head(reader: &mut Reader<'_>) -> Result<SetHead, DecodeError> {
    let inst = reader.i32("inst")?;
    let at_count = reader.offset();
    let nlabels = reader.i32("nlabels")?;
    let at_json = reader.offset();
    let json = reader.i32("json")?;
    let jsonlen = reader.i32("jsonlen")?;
    let out_of_range = |offset, field, found, high| {
        let problem = Problem::OutOfRange { found: i64::from(found), low: 0, high: as_i64(high) };
        reader.error_at(offset, field, problem)
    };
    let json_len = usize::try_from(jsonlen).ok().filter(|len| *len <= MAX_TEXT);
    let json_len =
        json_len.ok_or_else(|| out_of_range(at_json + 4, "jsonlen", jsonlen, MAX_TEXT))?;
    let labels = match usize::try_from(nlabels) {
        Ok(count) if count <= MAX_LABELS => Ok(count),
        Ok(_) => return Err(out_of_range(at_count, "nlabels", nlabels, MAX_LABELS)),
        Err(_) => Err(PmStatus(nlabels)),
    };
    Ok(SetHead { inst, labels, json, at_json, json_len })
}

fn read_place(reader: &mut Reader<'_>) -> Result<LabelPlace, DecodeError> {
    Ok(LabelPlace {
        name: reader.u16("name")?.into(),
        name_len: reader.u8("namelen")?.into(),
        flags: LabelFlags(reader.u8("flags")?),
        value: reader.u16("value")?.into(),
        value_len: reader.u16("valuelen")?.into(),
    })
}

/// The texts of all sets.
struct Texts<'a> {
    bytes: &'a [u8],
    /// Offset of the first text.
    start: usize,
    /// Number of bytes that no set has used yet.
    unused: usize,
}

impl<'a> Texts<'a> {
    /// The text of a set.
    fn take(&mut self, head: &SetHead) -> Result<&'a [u8], Problem> {
        let len = head.json_len;
        // A set without a text has no valid offset.
        if len == 0 {
            return Ok(&[]);
        }
        let from = usize::try_from(head.json).ok().and_then(|json| json.checked_sub(self.start));
        let text = from.and_then(|from| self.bytes.get(from..)?.get(..len));
        let text = text.ok_or_else(|| Problem::OutOfRange {
            found: i64::from(head.json),
            low: as_i64(self.start),
            high: as_i64(self.start + self.bytes.len()) - as_i64(len),
        })?;
        // If sets could share texts, a small PDU could expand to a lot of memory.
        let left = self.unused;
        self.unused = left.checked_sub(len).ok_or(Problem::Truncated { needed: len, left })?;
        Ok(text)
    }
}

fn read_set(reader: &mut Reader<'_>, texts: &mut Texts<'_>) -> Result<LabelSet, DecodeError> {
    let head = read_head(reader)?;
    let taken = texts.take(&head);
    let text = taken.map_err(|problem| reader.error_at(head.at_json, "json", problem))?;
    let count = match head.labels {
        Ok(count) => count,
        Err(status) => return Ok(LabelSet::failed(head.inst, status)),
    };
    let table = reader.offset();
    let places = (0..count).map(|_| read_place(reader)).collect::<Result<_, _>>()?;
    LabelSet::new(head.inst, label_text(text), places).map_err(|error| {
        let entry = table + PLACE_BYTES * error.label;
        let at = if error.field == "name" { entry } else { entry + 4 };
        reader.error_at(at, error.field, Problem::Other("not within the text of its set"))
    })
}

impl<'a> Pdu<'a> for Labels {
    const NAME: &'static str = "label";
    const TYPES: &'static [PduType] = &[PduType::Labels];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let level = read_level(reader)?;
        reader.u32("padding")?;
        let count = reader.count(SET_BYTES, "nsets")?;
        let mut heads = reader.clone();
        for _ in 0..count {
            let labels = read_head(reader)?.labels.unwrap_or(0);
            reader.bytes(labels * PLACE_BYTES, "table")?;
        }
        let start = reader.offset();
        let bytes = reader.bytes(reader.remaining(), "texts")?;
        let mut texts = Texts { bytes, start, unused: bytes.len() };
        let mut sets = Vec::with_capacity(count);
        for _ in 0..count {
            sets.push(read_set(&mut heads, &mut texts)?);
        }
        if texts.unused > 3 {
            let offset = start + bytes.len() - texts.unused;
            let problem = Problem::Trailing { bytes: texts.unused };
            return Err(reader.error_at(offset, "end", problem));
        }
        Ok(Labels { level, sets })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        write_level(writer, self.level);
        writer.u32(0);
        writer.count(self.sets.len());
        let tables: usize = self.sets.iter().map(|set| set.places().len() * PLACE_BYTES).sum();
        let mut json = writer.written() + self.sets.len() * SET_BYTES + tables;
        for set in &self.sets {
            writer.i32(set.instance());
            match set.failure() {
                Some(status) => writer.i32(status.0),
                None => writer.count(set.places().len()),
            }
            writer.count(json);
            writer.count(set.json().len());
            for place in set.places() {
                write_place(writer, place);
            }
            json += set.json().len();
        }
        for set in &self.sets {
            writer.bytes(set.json().as_bytes());
        }
    }
}

/// Encodes a place. The fields have 16 or 8 bits; a larger number, which no pmcd sends,
/// is written as the maximum, which peers refuse.
fn write_place(writer: &mut Writer<'_>, place: &LabelPlace) {
    let half = |number: u32| u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes();
    writer.bytes(&half(place.name));
    writer.bytes(&[u8::try_from(place.name_len).unwrap_or(u8::MAX), place.flags.0]);
    writer.bytes(&half(place.value));
    writer.bytes(&half(place.value_len));
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmderive_core::model::Pmid;

    /// A LABEL of metric 1.2.3, made of words, then bytes.
    fn labels(words: &[u32], texts: &[u8]) -> Result<Labels, String> {
        let mut pdu = Vec::new();
        let mut writer = Writer::begin(&mut pdu, PduType::Labels);
        writer.u32(Pmid::new(1, 2, 3).0);
        for word in words {
            writer.u32(*word);
        }
        writer.bytes(texts);
        writer.finish();
        Labels::decode(&pdu).map_err(|error| error.to_string())
    }

    const ONE: u32 = 0xffff_ffff;

    #[test]
    fn sets_may_fail_and_texts_need_not_be_utf_8() {
        let words = [16, 0, 2, 7, (-22i32).cast_unsigned(), 0, 0, ONE, 1, 68, 9];
        let place = [0x0002_0110, 0x0005_0003];
        let found = labels(&[&words[..], &place].concat(), b"{\"a\":\"\xe9\"}");
        let sets = found.expect("well formed").sets;
        assert_eq!((sets[0].instance(), sets[0].failure()), (7, Some(PmStatus(-22))));
        assert_eq!((sets[0].json(), sets[0].labels().len()), ("", 0));
        assert_eq!(sets[1].json(), "{\"a\":\"?\"}");
        let label = sets[1].labels().next().expect("one");
        assert_eq!((label.name, label.value, label.flags), ("a", "\"?\"", LabelFlags(16)));
    }

    #[test]
    fn labels_that_do_not_fit_are_refused_with_the_field_and_its_place() {
        let set = |json, jsonlen, name: u32, value: u32| {
            vec![16, 0, 1, ONE, 1, json, jsonlen, name, value]
        };
        let good = (0x0002_0110, 0x0005_0001);
        assert!(labels(&set(52, 7, good.0, good.1), b"{\"a\":1}").is_ok());
        let cases: &[(Vec<u32>, &str)] = &[
            (vec![3, 0, 0], "label.type at byte 16: not one of the levels"),
            (
                vec![16, 0, 0x1000_0000],
                "label.nsets at byte 24: 268435456 entries do not fit into the 7 bytes left",
            ),
            (
                vec![16, 0, ONE],
                "label.nsets at byte 24: -1 entries do not fit into the 7 bytes left",
            ),
            (
                vec![16, 0, 1, ONE, 255, 52, 7],
                "label.nlabels at byte 32: 255 is not between 0 and 254",
            ),
            (
                vec![16, 0, 1, ONE, 1, 52, 65_535],
                "label.jsonlen at byte 40: 65535 is not between 0 and 65534",
            ),
            (
                vec![16, 0, 1, ONE, 2, 60, 7, good.0, good.1],
                "label.table at byte 44: 16 bytes needed, 15 left",
            ),
            (set(51, 7, good.0, good.1), "label.json at byte 36: 51 is not between 52 and 52"),
            (set(ONE, 7, good.0, good.1), "label.json at byte 36: -1 is not between 52 and 52"),
            (set(52, 8, good.0, good.1), "label.json at byte 36: 52 is not between 52 and 51"),
            (set(52, 3, good.0, good.1), "label.value at byte 48: not within the text of its set"),
            (
                set(52, 7, 0x0007_0110, good.1),
                "label.name at byte 44: not within the text of its set",
            ),
            (vec![16, 0, 0], "label.end at byte 28: 7 bytes too many"),
            // Two sets share a text.
            (
                vec![16, 0, 2, 1, 0, 60, 7, 2, 0, 60, 7],
                "label.json at byte 52: 7 bytes needed, 0 left",
            ),
        ];
        for (words, message) in cases {
            let texts: &[u8] = b"{\"a\":1}";
            assert_eq!(labels(words, texts).expect_err(message), *message);
        }
    }
}
