//! Selects the value sets of a fetch from a data record.
//!
//! Input: a list of metrics, and records. Output: whether a record has any of the
//! metrics, and their sets in the order of the list.

use std::ops::Range;

use pmderive_core::model::{InstId, Pmid};
use pmderive_core::source::FetchList;

use crate::archive::framing::Damage;
use crate::archive::values::{EMPTY_SET, SET_HEADER, SetRange, block_of, check, walk, word};

/// The slot number of a free place in a [`SlotTable`].
const FREE: u32 = u32::MAX;

/// Finds the slot of a metric.
#[derive(Debug, Default)]
pub(super) struct SlotTable {
    /// Open hash table of metrics with their slots. Its length is a power of two, and
    /// at most half of it is used.
    table: Vec<(Pmid, u32)>,
    /// Number of bits of a hash that are dropped to get a place in `table`.
    shift: u32,
}

impl SlotTable {
    /// Gives each metric its position in `pmids` as its slot.
    pub(super) fn assign(&mut self, pmids: impl ExactSizeIterator<Item = Pmid>) {
        let size = (2 * pmids.len()).next_power_of_two().max(2);
        self.shift = 32 - size.trailing_zeros();
        self.table.clear();
        self.table.resize(size, (Pmid::NULL, FREE));
        for (slot, pmid) in (0u32..).zip(pmids) {
            let mut at = self.home(pmid);
            while self.table[at].1 != FREE {
                at = (at + 1) & (size - 1);
            }
            self.table[at] = (pmid, slot);
        }
    }

    fn home(&self, pmid: Pmid) -> usize {
        // Fibonacci hashing, because identifiers differ mostly in their low bits.
        (pmid.0.wrapping_mul(0x9e37_79b9) >> self.shift) as usize
    }

    /// The slot of a metric. [`SlotTable::assign`] must have been called before.
    pub(super) fn slot(&self, pmid: Pmid) -> Option<usize> {
        let mut at = self.home(pmid);
        loop {
            match self.table[at] {
                (_, FREE) => return None,
                (other, slot) if other == pmid => return Some(slot as usize),
                _ => at = (at + 1) & (self.table.len() - 1),
            }
        }
    }
}

/// Finds the metrics of a fetch in records. It is prepared once for a list of metrics
/// and allocates nothing per record.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Identifier of the list that this is prepared for.
    list: Option<u64>,
    slots: SlotTable,
    /// For each slot, the last set found and the number of its record.
    found: Vec<(u64, SetRange)>,
    /// Number of the last record scanned.
    record: u64,
}

impl Selection {
    /// Prepares for a list of metrics unless that was done before.
    pub(super) fn prepare(&mut self, list: &FetchList) {
        if self.list == Some(list.id()) {
            return;
        }
        self.list = Some(list.id());
        let pmids = list.pmids();
        self.slots.assign(pmids.iter().copied());
        let nothing = SetRange { start: 0, end: 0, in_blocks: false };
        self.found.clear();
        self.found.resize(pmids.len(), (0, nothing));
        self.record = 0;
    }

    /// Scans a record with `count` value sets that begin at `start`. True if it holds
    /// at least one of the metrics, with or without values. In that case the whole
    /// record was checked, unless the caller states that it is sound.
    pub(super) fn scan(
        &mut self,
        record: &[u8],
        (start, count): (usize, usize),
        is_sound: bool,
    ) -> Result<bool, Damage> {
        self.record += 1;
        let mut any = false;
        walk(record, start, count, |pmid, set| {
            if let Some(slot) = self.slots.slot(pmid)
                // If a metric has two sets, the first one counts.
                && self.found[slot].0 != self.record
            {
                self.found[slot] = (self.record, set);
                any = true;
            }
        })?;
        if any && !is_sound {
            check(record, start, count)?;
        }
        Ok(any)
    }

    /// The part of the last record scanned that has the blocks of the metrics: few
    /// bytes of a large record if there are few metrics.
    pub(super) fn blocks(&self, record: &[u8]) -> Range<usize> {
        let found =
            self.found.iter().filter(|(number, set)| *number == self.record && set.in_blocks);
        let lanes = found.flat_map(|(_, set)| {
            record.get(set.start + SET_HEADER..set.end).unwrap_or_default().as_chunks::<8>().0
        });
        let (mut first, mut last) = (usize::MAX, 0);
        for block in lanes.filter_map(block_of) {
            (first, last) = (first.min(block), last.max(block));
        }
        let length = word(record, last).map_or(0, |head| (head & 0xff_ffff) as usize);
        let end = (last + length).min(record.len());
        first.min(end)..end
    }

    /// Offsets of the value sets of the last record scanned, in the order of the list.
    pub(super) fn places<'s>(
        &'s self,
        pmids: &'s [Pmid],
    ) -> impl Iterator<Item = (Pmid, Option<usize>)> + use<'s> {
        let latest = self.record;
        let offset =
            move |(record, set): &(u64, SetRange)| (*record == latest).then_some(set.start);
        pmids.iter().copied().zip(self.found.iter().map(offset))
    }

    /// Records the result for a record without a scan. `holds` has for each metric of
    /// the list whether the record has it.
    pub(super) fn note(&mut self, holds: &[bool]) {
        self.record += 1;
        for ((record, _), _) in self.found.iter_mut().zip(holds).filter(|(_, holds)| **holds) {
            *record = self.record;
        }
    }

    /// True if the last record that was scanned or noted has a metric of the list, with or without
    /// values.
    pub(super) fn holds(&self, pmid: Pmid) -> bool {
        let slot = self.list.and_then(|_| self.slots.slot(pmid));
        slot.is_some_and(|slot| self.found[slot].0 == self.record)
    }

    /// Appends the value sets of the last record scanned in the order of the list.
    /// Metrics that it lacks get a set without values.
    pub(super) fn append_sets(&self, record: &[u8], pmids: &[Pmid], bytes: &mut Vec<u8>) {
        for (pmid, (number, set)) in pmids.iter().zip(&self.found) {
            if *number == self.record {
                bytes.extend_from_slice(&record[set.start..set.end]);
            } else {
                append_empty(*pmid, bytes);
            }
        }
    }

    /// Like [`Selection::append_sets`], but only with values of instances that `admits`
    /// accepts.
    pub(super) fn append_admitted(
        &self,
        record: &[u8],
        pmids: &[Pmid],
        bytes: &mut Vec<u8>,
        admits: impl Fn(Pmid, InstId) -> bool,
    ) {
        for (pmid, (number, set)) in pmids.iter().zip(&self.found) {
            if *number != self.record {
                append_empty(*pmid, bytes);
                continue;
            }
            let start = bytes.len();
            bytes.extend_from_slice(&record[set.start..set.end.min(set.start + SET_HEADER)]);
            let mut count = 0u32;
            for lane in (set.start + SET_HEADER..set.end).step_by(8) {
                let instance = word(record, lane).unwrap_or_default() as InstId;
                if admits(*pmid, instance) {
                    bytes.extend_from_slice(&record[lane..lane + 8]);
                    count += 1;
                }
            }
            if set.end - set.start > EMPTY_SET {
                bytes[start + 4..start + 8].copy_from_slice(&count.to_be_bytes());
                if count == 0 {
                    bytes.truncate(start + EMPTY_SET);
                }
            }
        }
    }
}

fn append_empty(pmid: Pmid, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&pmid.0.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_sets_come_in_the_order_of_the_list() {
        let words = [
            &[0, 0, 0, 3][..],            // header
            &[10, 1, 0, 0xffff_ffff, 42], // in place
            &[11, 0xffff_cfc2],           // status
            &[12, 1, 1, 0xffff_ffff, 18], // block at byte 64
            &[0x0600_0007, 0x6869_007e],  // "hi" and padding
            &[72],                        // trailer
        ]
        .concat();
        let record: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
        assert_eq!(record.len(), 76);
        let list = FetchList::new(vec![Pmid(12), Pmid(99), Pmid(10)], vec![]);
        let mut selection = Selection::default();
        selection.prepare(&list);
        assert!(selection.scan(&record, (16, 3), false).expect("sound"));
        assert_eq!(selection.blocks(&record), 64..71);
        let mut bytes = record.clone();
        selection.append_sets(&record, list.pmids(), &mut bytes);
        let expected = [&record[44..64], &[0, 0, 0, 99, 0, 0, 0, 0], &record[16..36]].concat();
        assert_eq!(bytes[record.len()..], expected);

        let other = FetchList::new(vec![Pmid(99)], vec![]);
        selection.prepare(&other);
        assert!(!selection.scan(&record, (16, 3), false).expect("sound"));
    }
}
