//! One record of the instances of a domain.
//!
//! | offset v2 | v3     | size  | field                                          |
//! |-----------|--------|-------|------------------------------------------------|
//! | 0         | 0      | 4     | length                                         |
//! | 4         | 4      | 4     | type: 2, or 5 (whole list) and 6 (difference)  |
//! | 8         | 8      | 8, 12 | time stamp                                     |
//! | 16        | 20     | 4     | instance domain                                |
//! | 20        | 24     | 4     | number of instances, N                         |
//! | 24        | 28     | 4 * N | instances                                      |
//! | 24 + 4N   | 28+4N  | 4 * N | offsets of their names; -1 removes an instance |
//! | 24 + 8N   | 28+8N  |       | names, each with a NUL                         |
//! |           |        | 4     | length                                         |
//!
//! Input: the bytes of a record; decoding checks every instance and name. Output: the
//! domain after the record, given the domain before it.

use std::ffi::CStr;

use pmderive_core::model::{InDom, InstId, InstanceDomain, Timestamp, text_of_bytes};

use crate::archive::framing::{Damage, Fields, LENGTH_WORD, Version};
use crate::archive::layout;

/// Stands in place of a name's offset: the instance is gone.
pub(crate) const REMOVED: i32 = -1;

/// Limits the expansion of a small record: instances may share names, but all of them together use
/// at most this many times the bytes of the names.
const SHARED_NAMES: usize = 16;

/// The way in which a record changes a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The record lists all instances.
    Whole,
    /// The record lists the instances that came and went.
    Difference,
}

/// The origin of an instance's name after a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name<'a> {
    /// It is that of the instance at this position before the record.
    Kept(usize),
    /// The record has it.
    New(&'a [u8]),
}

/// A record of instances, decoded up to its lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct DomainRecord<'a> {
    pub(super) stamp: Timestamp,
    pub(super) indom: InDom,
    pub(super) change: Change,
    /// Identifiers of the instances, 4 bytes each.
    instances: &'a [u8],
    /// Offsets of names, parallel to `instances`.
    offsets: &'a [u8],
    names: &'a [u8],
}

impl<'a> DomainRecord<'a> {
    /// Decodes a record, with its length words and type, that begins at `offset` in its
    /// file. Checks every instance and name.
    pub(super) fn decode(bytes: &'a [u8], offset: u64) -> Result<DomainRecord<'a>, Damage> {
        let body = &bytes[..bytes.len().saturating_sub(LENGTH_WORD)];
        let mut fields = Fields::new("instances", body, offset);
        fields.u32("length")?;
        let (version, change) = match fields.u32("type")? {
            layout::INSTANCES_V2 => (Version::V2, Change::Whole),
            layout::INSTANCES => (Version::V3, Change::Whole),
            _ => (Version::V3, Change::Difference),
        };
        let stamp = fields.timestamp(version, "stamp")?;
        let indom = InDom(fields.u32("indom")?);
        let count = fields.count(8, "count")?;
        let at_instances = fields;
        let instances = fields.take(4 * count, "ids")?;
        let at_offsets = fields;
        let offsets = fields.take(4 * count, "offsets")?;
        let names = fields.rest();
        let record = DomainRecord { stamp, indom, change, instances, offsets, names };
        if !record.is_tidy() {
            record.check(&at_instances, &at_offsets)?;
        }
        Ok(record)
    }

    /// Checks each instance and its name. The lists begin where these fields stand.
    fn check(&self, at_instances: &Fields<'_>, at_offsets: &Fields<'_>) -> Result<(), Damage> {
        let mut total = 0;
        for (id, name) in self.entries() {
            if id < 0 {
                return Err(at_instances.damage("ids", format_args!("{id} is negative")));
            }
            match self.name(name) {
                Some(name) => total += name.len(),
                None if name == REMOVED && self.change == Change::Difference => {}
                None => {
                    let problem = format_args!("no name begins at {name} for instance {id}");
                    return Err(at_offsets.damage("offsets", problem));
                }
            }
            if total > SHARED_NAMES * self.names.len() {
                return Err(at_offsets.damage("offsets", "too many instances share their names"));
            }
        }
        Ok(())
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.instances.len() / 4
    }

    /// True if no identifier is negative, and each name begins behind the end of an earlier
    /// one, as PCP writes them: then nothing is wrong with the lists. That is found out
    /// without a look at the letters of the names.
    fn is_tidy(&self) -> bool {
        let Some(last_end) = self.names.iter().rposition(|byte| *byte == 0) else {
            return self.instances.is_empty();
        };
        let mut least = 0;
        for (id, name) in self.entries() {
            if name == REMOVED && self.change == Change::Difference && id >= 0 {
                continue;
            }
            let Ok(begin) = usize::try_from(name) else { return false };
            let is_begin = begin == 0 || begin <= last_end && self.names[begin - 1] == 0;
            if id < 0 || begin < least || !is_begin {
                return false;
            }
            least = begin + 1;
        }
        true
    }

    /// The instances with the offsets of their names, in the order of the record.
    fn entries(&self) -> impl Iterator<Item = (InstId, i32)> + use<'a> {
        let ids = self.instances.as_chunks().0.iter();
        let names = self.offsets.as_chunks().0.iter();
        ids.zip(names).map(|(id, name)| (i32::from_be_bytes(*id), i32::from_be_bytes(*name)))
    }

    /// The name at an offset; `None` if no complete name begins there.
    fn name(&self, offset: i32) -> Option<&'a [u8]> {
        let rest = self.names.get(usize::try_from(offset).ok()?..)?;
        Some(CStr::from_bytes_until_nul(rest).ok()?.to_bytes())
    }

    /// The instances after this record, given those before it. Both lists are in
    /// ascending order; equal identifiers keep the order of the record.
    pub(super) fn list(&self, before: &[InstId]) -> Vec<(InstId, Name<'a>)> {
        let before = match self.change {
            Change::Whole => &[],
            Change::Difference => before,
        };
        let mut removed: Vec<InstId> = Vec::new();
        if !before.is_empty() {
            removed.extend(self.entries().filter(|(_, name)| *name == REMOVED).map(|(id, _)| id));
            removed.sort_unstable();
        }
        let stays = |id: &InstId| removed.binary_search(id).is_err();
        let kept = before.iter().enumerate().filter(|(_, id)| stays(id));
        let kept = kept.map(|(position, id)| (*id, Name::Kept(position)));
        // An instance that was there before keeps its old name.
        let new = self.entries().filter(|(id, _)| before.binary_search(id).is_err() || !stays(id));
        let new = new.filter_map(|(id, name)| Some((id, Name::New(self.name(name)?))));
        let mut list = Vec::with_capacity(before.len() + self.len());
        list.extend(kept.chain(new));
        // The sort is stable, so the first of equal identifiers stays first.
        list.sort_by_key(|(id, _)| *id);
        list
    }

    /// The domain after this record, given the one before it.
    pub(super) fn apply(&self, before: Option<&InstanceDomain>) -> InstanceDomain {
        let (ids, names): (Vec<InstId>, Vec<&str>) =
            before.into_iter().flat_map(InstanceDomain::instances).unzip();
        let mut in_bytes = Vec::new();
        let list = self.list(&ids).into_iter().map(|(id, name)| {
            let (name, is_in_bytes) = match name {
                Name::Kept(position) => {
                    let is_in_bytes = before.is_some_and(|before| before.is_named_in_bytes(id));
                    (names[position].into(), is_in_bytes)
                }
                Name::New(name) => text_of_name(name),
            };
            in_bytes.extend(is_in_bytes.then_some(id));
            (id, name)
        });
        InstanceDomain::new(list.collect()).with_names_in_bytes(in_bytes)
    }
}

/// The text of a name, and whether it has a character for each byte.
pub(super) fn text_of_name(name: &[u8]) -> (Box<str>, bool) {
    let text = text_of_bytes(name);
    // Bytes that are not UTF-8 become longer as characters.
    let is_in_bytes = text.len() != name.len();
    (text.into(), is_in_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tidy records pass the check that looks at every letter. Lists as PCP writes them
    /// are tidy.
    #[test]
    fn tidy_lists_are_right() {
        let mut state = 1_u64;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).expect("small")
        };
        let mut tidy = 0;
        for round in 0..20_000 {
            let count = random(5);
            let names: Vec<u8> = (0..random(9)).map(|_| b"ab\0"[random(3)]).collect();
            let words = |random: &mut dyn FnMut(usize) -> usize, most: usize| -> Vec<u8> {
                let words = (0..count).map(|_| i32::try_from(random(most + 2)).expect("small") - 1);
                words.flat_map(i32::to_be_bytes).collect()
            };
            let instances = words(&mut random, 30);
            let offsets = words(&mut random, names.len());
            let record = DomainRecord {
                stamp: Timestamp::default(),
                indom: InDom::new(1, 1),
                change: [Change::Whole, Change::Difference][round % 2],
                instances: &instances,
                offsets: &offsets,
                names: &names,
            };
            let fields = Fields::new("instances", &[], 0);
            let checked = record.check(&fields, &fields).map_err(|damage| damage.message);
            if record.is_tidy() {
                tidy += 1;
                assert_eq!(checked, Ok(()), "{record:?}");
            }
        }
        assert!(tidy > 2_000, "{tidy}");

        let record = DomainRecord {
            stamp: Timestamp::default(),
            indom: InDom::new(1, 1),
            change: Change::Difference,
            instances: &[0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 2],
            offsets: &[0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 4],
            names: b"sda\0sdb\0",
        };
        assert!(record.is_tidy());
        // No name begins within another one.
        assert!(
            !DomainRecord { offsets: &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4], ..record }.is_tidy()
        );
    }
}
