//! The changes that damage to a volume may cause, by the kind of the bytes it
//! hits.

use std::collections::BTreeSet;
use std::ops::Range;

use pmderive_runtime::model::Pmid;

use super::damage::Damage;
use super::subject::{Subject, word};

/// The kind of a byte in a data record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Length,
    Trailer,
    Stamp,
    Count,
    Pmid,
    Numval,
    Format,
    Instance,
    Value,
    Position,
    BlockHead,
    BlockType,
    Padding,
}

/// The kind of each byte of a record, and its metric.
fn fields(record: &[u8], label: usize) -> Vec<(Field, Option<Pmid>)> {
    let header = if label == 808 { 16 } else { 12 };
    let mut fields = vec![(Field::Padding, None); record.len()];
    let mut mark = |range: Range<usize>, field, pmid| fields[range].fill((field, pmid));
    mark(0..4, Field::Length, None);
    mark(4..header, Field::Stamp, None);
    mark(header..header + 4, Field::Count, None);
    let mut at = header + 4;
    for _ in 0..word(record, header) {
        let pmid = Some(Pmid(word(record, at)));
        let count = word(record, at + 4).cast_signed();
        mark(at..at + 4, Field::Pmid, pmid);
        mark(at + 4..at + 8, Field::Numval, pmid);
        at += 8;
        if count <= 0 {
            continue;
        }
        let in_blocks = word(record, at) != 0;
        mark(at..at + 4, Field::Format, pmid);
        at += 4;
        for _ in 0..count {
            mark(at..at + 4, Field::Instance, pmid);
            mark(at + 4..at + 8, if in_blocks { Field::Position } else { Field::Value }, pmid);
            if in_blocks {
                let block = 4 * word(record, at + 4) as usize - 8;
                let length = (word(record, block) & 0xff_ffff) as usize;
                mark(block..block + 1, Field::BlockType, pmid);
                mark(block + 1..block + 4, Field::BlockHead, pmid);
                mark(block + 4..block + length, Field::Value, pmid);
            }
            at += 8;
        }
    }
    mark(record.len() - 4..record.len(), Field::Trailer, None);
    fields
}

/// The changes that damage to a volume may cause.
#[derive(Debug, Default)]
pub struct Allowed {
    /// Records that may be missing.
    pub missing: BTreeSet<usize>,
    /// True if the reader must report the missing part: length, trailer or time of
    /// a record are hit.
    pub must_be_told: bool,
    /// The record that may come with another stamp, or
    pub stamp: Option<usize>,
    /// with other values of these metrics.
    pub values: Option<(usize, BTreeSet<Pmid>)>,
}

impl Subject {
    /// The changes that damage to a volume may cause. `None` if its label is
    /// hit.
    pub fn allowed(&self, suffix: &str, damage: &Damage) -> Option<Allowed> {
        let (touched, has_moved) = damage.touches();
        if touched.start < self.label {
            return None;
        }
        let (_, places) = self.places.iter().find(|(name, _)| name == suffix).expect("a volume");
        let bytes = self.bytes(suffix);
        let mut allowed = Allowed::default();
        let mut is_lost = false;
        let mut is_moved_in_time = false;
        for (place, number) in places {
            let is_behind = has_moved && place.end > touched.start;
            if is_lost || is_behind {
                allowed.missing.extend(number);
            }
            if has_moved {
                continue;
            }
            let hit = place.start.max(touched.start)..place.end.min(touched.end);
            for at in hit {
                let (field, pmid) = fields(&bytes[place.clone()], self.label)[at - place.start];
                if !matches!(field, Field::Value | Field::Padding | Field::BlockType) {
                    allowed.missing.extend(number);
                }
                allowed.must_be_told |=
                    matches!(field, Field::Length | Field::Trailer | Field::Stamp);
                match field {
                    Field::Length => is_lost = true,
                    Field::Stamp => {
                        allowed.stamp = *number;
                        is_moved_in_time = true;
                    }
                    _ => {}
                }
                let is_soft = matches!(
                    field,
                    Field::Pmid
                        | Field::Numval
                        | Field::Instance
                        | Field::Value
                        // A text may lose bytes to its padding.
                        | Field::BlockHead
                );
                if let Some((number, pmid)) = number.zip(pmid).filter(|_| is_soft) {
                    let values = allowed.values.get_or_insert((number, BTreeSet::new()));
                    if values.0 == number {
                        values.1.insert(pmid);
                    }
                    if field == Field::Pmid {
                        let changed = damage.apply(bytes);
                        values.1.insert(Pmid(word(&changed, at & !3)));
                    }
                }
            }
        }
        // A record from the past is left out, and so are those before one of the future.
        if is_moved_in_time {
            allowed.missing.extend(0..self.records.len());
        }
        Some(allowed)
    }
}
