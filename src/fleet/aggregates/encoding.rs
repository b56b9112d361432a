//! Partial aggregates of a shard as bytes, for processes that share a fleet. Merging the shards
//! of several processes gives the same bits as one process.
//!
//! `serve` does not share a fleet between processes yet: only tests use these bytes. They
//! connect the [`Collector`](super::Collector) of each process with the single
//! [`Merged`](super::Merged).
//!
//! ```text
//! "pmsp" version shard fingerprint                     4 + 1 + 1 + 8 bytes
//! for each grouping: groups:u32, each: 0 | 1 and for each label a text
//! for each aggregate, for each group of its grouping:
//!     count:u64 members:u128 expected present failed missed no_value left_out:u32
//!     nothing | sum:i128 | sum:f64 | 0 or 1 and bits:u64
//!             | ranked:u32, each: key:u64 bits:u64 host instance | values:u32, each f64
//! text = bytes:u16 UTF-8
//! ```
//!
//! Numbers are little-endian. The fingerprint covers the aggregates and the metadata of their
//! operands, so bytes of others are refused. A value has a single encoding: decoding and
//! encoding again gives the same bytes.

#[cfg(any(test, feature = "fuzz"))]
pub(super) mod fuzz;

use std::collections::HashSet;
use std::sync::Arc;

use pmderive_runtime::position::Per;

use super::aggregate::{AggregateId, Function, GroupingId};
use super::definitions::FleetDefinitions;
use super::groups::GroupKey;
use super::operand::{Kind, References, kind_of};
use super::partial::{Hosts, MAX_QUANTILE_VALUES, Partial, Ranked, Values};
use super::shard::ShardPartials;
use crate::fleet::slot::hash_of;

/// The first bytes.
const MAGIC: &[u8; 4] = b"pmsp";
/// The version of the format.
const VERSION: u8 = 1;
/// Largest encoding of one shard, in bytes.
pub const MAX_ENCODED_BYTES: usize = 64 << 20;
/// Most hosts of one group in one shard, and most values of these. Both are enough for any
/// fleet, and low enough that no sum of shards overflows.
const MAX_HOSTS: u32 = 1 << 20;
const MAX_VALUES: u64 = 1 << 48;

/// Error in the bytes of partial aggregates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// The first bytes are different.
    #[error("these are no partial aggregates")]
    NotPartials,
    /// The version is another one.
    #[error("version {0} of partial aggregates; this program knows {VERSION}")]
    Version(u8),
    /// They belong to other definitions, or to hosts with other metadata.
    #[error("partial aggregates of other definitions or other metadata")]
    Definitions,
    /// The byte at this offset is wrong.
    #[error("partial aggregates are damaged at byte {0}")]
    Damaged(usize),
    /// They are too long.
    #[error("partial aggregates of more than {MAX_ENCODED_BYTES} bytes")]
    TooLarge,
}

/// Properties on which both sides must agree.
struct Terms {
    kinds: Per<AggregateId, Kind>,
    fingerprint: u64,
}

impl Terms {
    fn new(definitions: &FleetDefinitions, references: &References) -> Terms {
        let mut text = String::new();
        let mut kinds = Per::default();
        for aggregate in &definitions.aggregates {
            let reference = references.get(aggregate.operand).copied().flatten();
            text.push_str(&format!("{}\n{reference:?}\n", aggregate.text));
            kinds.push(kind_of(references, aggregate.operand));
        }
        Terms { kinds, fingerprint: hash_of(&text) }
    }
}

impl ShardPartials {
    /// Encodes partial aggregates. `references` are the metadata that all processes use
    /// ([`Collector::references`](super::Collector::references)).
    ///
    /// # Errors
    /// The encoding would be too long, or a text is longer than 64 KiB.
    pub fn encode(
        &self,
        definitions: &FleetDefinitions,
        references: &References,
    ) -> Result<Vec<u8>, EncodingError> {
        let terms = Terms::new(definitions, references);
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, self.shard]);
        out.extend_from_slice(&terms.fingerprint.to_le_bytes());
        for groups in &self.groups {
            put_count(&mut out, groups.len())?;
            for key in groups {
                out.push(u8::from(key.is_some()));
                for value in key.iter().flat_map(|key| key.iter()) {
                    put_text(&mut out, value)?;
                }
            }
        }
        for partial in self.partials.iter().flatten() {
            put_partial(&mut out, partial)?;
        }
        match out.len() > MAX_ENCODED_BYTES {
            true => Err(EncodingError::TooLarge),
            false => Ok(out),
        }
    }

    /// Decodes partial aggregates.
    ///
    /// # Errors
    /// The bytes are wrong, or belong to other definitions.
    pub fn decode(
        bytes: &[u8],
        definitions: &FleetDefinitions,
        references: &References,
    ) -> Result<ShardPartials, EncodingError> {
        if bytes.len() > MAX_ENCODED_BYTES {
            return Err(EncodingError::TooLarge);
        }
        let terms = Terms::new(definitions, references);
        let mut reader = Reader { bytes, at: 0 };
        let magic: [u8; 4] = reader.array().map_err(|_| EncodingError::NotPartials)?;
        if magic != *MAGIC {
            return Err(EncodingError::NotPartials);
        }
        let [version, shard] = reader.array()?;
        if version != VERSION {
            return Err(EncodingError::Version(version));
        }
        if u64::from_le_bytes(reader.array()?) != terms.fingerprint {
            return Err(EncodingError::Definitions);
        }
        let mut groups: Per<GroupingId, Vec<Option<GroupKey>>> = Per::default();
        for labels in &definitions.groupings {
            groups.push(reader.groups(labels.len())?);
        }
        let mut partials: Per<AggregateId, Vec<Partial>> = Per::default();
        for (aggregate, kind) in definitions.aggregates.iter().zip(&terms.kinds) {
            let count = groups[aggregate.grouping].len();
            let partial = |_| reader.partial(aggregate.function, *kind);
            partials.push((0..count).map(partial).collect::<Result<Vec<_>, _>>()?);
        }
        match reader.at == bytes.len() {
            true => Ok(ShardPartials { shard, groups, partials }),
            false => Err(reader.damaged()),
        }
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) -> Result<(), EncodingError> {
    let count = u32::try_from(count).map_err(|_| EncodingError::TooLarge)?;
    out.extend_from_slice(&count.to_le_bytes());
    Ok(())
}

fn put_text(out: &mut Vec<u8>, text: &str) -> Result<(), EncodingError> {
    let length = u16::try_from(text.len()).map_err(|_| EncodingError::TooLarge)?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn put_partial(out: &mut Vec<u8>, partial: &Partial) -> Result<(), EncodingError> {
    let Partial { count, members, hosts, values } = partial;
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&members.to_le_bytes());
    let Hosts { expected, present, failed, missed, no_value, left_out } = hosts;
    for number in [expected, present, failed, missed, no_value, left_out] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    match values {
        Values::Count => {}
        Values::Integer(sum) => out.extend_from_slice(&sum.to_le_bytes()),
        Values::Float(sum) => out.extend_from_slice(&sum.to_bits().to_le_bytes()),
        Values::Extreme(best) => {
            out.push(u8::from(best.is_some()));
            best.iter().for_each(|bits| out.extend_from_slice(&bits.to_le_bytes()));
        }
        Values::Ranked(ranked) => {
            put_count(out, ranked.len())?;
            for Ranked { key, bits, host, instance } in ranked {
                out.extend_from_slice(&key.to_le_bytes());
                out.extend_from_slice(&bits.to_le_bytes());
                put_text(out, host)?;
                put_text(out, instance)?;
            }
        }
        Values::All(all) => {
            put_count(out, all.len())?;
            all.iter().for_each(|value| out.extend_from_slice(&value.to_bits().to_le_bytes()));
        }
    }
    Ok(())
}

/// Reads bytes from left to right.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn damaged(&self) -> EncodingError {
        EncodingError::Damaged(self.at)
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8], EncodingError> {
        let end = self.at.checked_add(count).ok_or(self.damaged())?;
        let taken = self.bytes.get(self.at..end).ok_or(self.damaged())?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], EncodingError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, EncodingError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, EncodingError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn flag(&mut self) -> Result<bool, EncodingError> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(self.damaged()),
        }
    }

    fn text(&mut self) -> Result<&'b str, EncodingError> {
        let length = u16::from_le_bytes(self.array()?);
        let bytes = self.take(usize::from(length))?;
        std::str::from_utf8(bytes).map_err(|_| self.damaged())
    }

    /// Reads a count of things with at least `least` bytes each. These bytes must be there.
    fn count(&mut self, least: usize) -> Result<usize, EncodingError> {
        let count = usize::try_from(self.u32()?).map_err(|_| self.damaged())?;
        match count <= (self.bytes.len() - self.at) / least {
            true => Ok(count),
            false => Err(self.damaged()),
        }
    }

    fn groups(&mut self, labels: usize) -> Result<Vec<Option<GroupKey>>, EncodingError> {
        let count = self.count(1)?;
        let mut groups: Vec<Option<GroupKey>> = Vec::with_capacity(count);
        let mut known: HashSet<Option<GroupKey>> = HashSet::with_capacity(count);
        for _ in 0..count {
            let key = match self.flag()? {
                false => None,
                true => {
                    let values = (0..labels).map(|_| self.text().map(Box::from));
                    Some(Arc::from(values.collect::<Result<Vec<Box<str>>, _>>()?))
                }
            };
            if !known.insert(key.clone()) {
                return Err(self.damaged());
            }
            groups.push(key);
        }
        Ok(groups)
    }

    fn partial(&mut self, function: Function, kind: Kind) -> Result<Partial, EncodingError> {
        let (count, members) = (self.u64()?, u128::from_le_bytes(self.array()?));
        let hosts = self.hosts()?;
        let mut partial = Partial { count, members, hosts, ..Partial::new(function, kind) };
        match &mut partial.values {
            Values::Count => {}
            Values::Integer(sum) => {
                *sum = i128::from_le_bytes(self.array()?);
                if sum.unsigned_abs() > u128::from(count) * u128::from(u64::MAX) {
                    return Err(self.damaged());
                }
            }
            Values::Float(sum) => *sum = f64::from_bits(self.u64()?),
            Values::Extreme(best) => {
                *best = if self.flag()? { Some(self.u64()?) } else { None };
                if best.is_some() != (count > 0) {
                    return Err(self.damaged());
                }
            }
            Values::Ranked(ranked) => {
                let Function::Ranked { k, .. } = function else { return Err(self.damaged()) };
                let length = self.count(20)?;
                if length as u64 > u64::from(k) {
                    return Err(self.damaged());
                }
                for _ in 0..length {
                    let (key, bits) = (self.u64()?, self.u64()?);
                    let (host, instance) = (Arc::from(self.text()?), Arc::from(self.text()?));
                    ranked.push(Ranked { key, bits, host, instance });
                }
            }
            Values::All(all) => {
                let length = self.count(8)?;
                let is_whole = length as u64 == count;
                if length > MAX_QUANTILE_VALUES || !is_whole && count <= MAX_QUANTILE_VALUES as u64
                {
                    return Err(self.damaged());
                }
                for _ in 0..length {
                    all.push(f64::from_bits(self.u64()?));
                }
            }
        }
        match count > MAX_VALUES {
            true => Err(self.damaged()),
            false => Ok(partial),
        }
    }

    fn hosts(&mut self) -> Result<Hosts, EncodingError> {
        let mut numbers = [0; 6];
        for number in &mut numbers {
            *number = self.u32()?;
        }
        let [expected, present, failed, missed, no_value, left_out] = numbers;
        let sum: u64 = numbers[1..].iter().map(|number| u64::from(*number)).sum();
        if expected > MAX_HOSTS || sum != u64::from(expected) {
            return Err(self.damaged());
        }
        Ok(Hosts { expected, present, failed, missed, no_value, left_out })
    }
}

#[cfg(test)]
mod tests {
    use super::fuzz::{example, fuzz_partials};
    use super::*;
    use crate::syntax::tests::{Generator, mutations};

    const SEED: &[u8] = include_bytes!("../../../fuzz/seeds/partials/all");

    #[test]
    fn what_is_damaged_is_refused_at_its_place() {
        let (definitions, references) = example();
        let fingerprint = Terms::new(&definitions, &references).fingerprint.to_le_bytes();
        let mut good = SEED.to_vec();
        good[6..14].copy_from_slice(&fingerprint);
        let decode = |bytes: &[u8]| ShardPartials::decode(bytes, &definitions, &references);
        let shard = decode(&good).expect("the seed");
        assert_eq!((shard.shard, shard.partials.len()), (7, 6));
        for end in 0..good.len() {
            let error = decode(&good[..end]).expect_err("not all of it");
            let is_told = match error {
                EncodingError::NotPartials => end < 4,
                EncodingError::Damaged(at) => at <= end,
                _ => false,
            };
            assert!(is_told, "{end}: {error}");
        }
        assert_eq!(decode(&[&*good, &[0]].concat()), Err(EncodingError::Damaged(good.len())));
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            decode(&bytes)
        };
        assert_eq!(with(0, b'P'), Err(EncodingError::NotPartials));
        assert_eq!(with(4, 2), Err(EncodingError::Version(2)));
        assert_eq!(with(6, good[6] ^ 1), Err(EncodingError::Definitions));
        // The count of groups is larger than the bytes that follow.
        assert_eq!(with(17, 0x7f), Err(EncodingError::Damaged(18)));
        let large = vec![0; MAX_ENCODED_BYTES + 1];
        assert_eq!(decode(&large), Err(EncodingError::TooLarge));
    }

    #[test]
    fn any_bytes_are_refused_or_read_as_they_are() {
        let mut generator = Generator::new(12);
        mutations(SEED, &mut generator, fuzz_partials);
    }
}
