//! Instance domains of an archive over time.
//!
//! Input: the places of their records in the metadata. Output: the domain in force at a
//! time, decoded on demand.

use std::collections::HashMap;
use std::sync::Arc;

use pmderive_core::model::{InstId, InstanceDomain, Timestamp};

use crate::archive::domain_record::Change;
use crate::archive::observations::{Observation, Observations};

/// All names that the instances of a domain ever have, and the time from which
/// each holds.
#[derive(Clone, Debug, Default)]
pub(super) struct NamesOverTime {
    /// Names of each instance in order of time. A name is listed once until it changes.
    names: HashMap<InstId, Vec<(Timestamp, Box<str>)>>,
}

impl NamesOverTime {
    /// The last name of an instance up to `time`; if there is none, its first name.
    pub(super) fn near(&self, instance: InstId, time: Timestamp) -> Option<&str> {
        let names = self.names.get(&instance)?;
        let until = names.partition_point(|(since, _)| *since <= time);
        names.get(until.saturating_sub(1)).map(|(_, name)| &**name)
    }
}

/// The state of a domain at one time. A caller that asks for domains keeps one.
#[derive(Clone, Debug)]
pub(super) struct DomainVersion {
    /// Number of observations applied, and the revision of the history that they are
    /// from.
    used: usize,
    revision: u32,
    pub(super) domain: Arc<InstanceDomain>,
}

impl Observations {
    /// The domain in force at `time`, after all observations up to then. `None` before
    /// the first one.
    ///
    /// `current` is the version of the last call, if any; it is replaced by the new
    /// one. `read` gets an observation with its number and the domain before it, and
    /// returns the domain after it.
    ///
    /// The same `Arc` is returned as long as the instances stay the same, even if the
    /// archive repeats them.
    pub(super) fn at<E>(
        &self,
        time: Timestamp,
        current: &mut Option<DomainVersion>,
        mut read: impl FnMut(
            (usize, &Observation),
            Option<&InstanceDomain>,
        ) -> Result<Arc<InstanceDomain>, E>,
    ) -> Result<Option<Arc<InstanceDomain>>, E> {
        current.take_if(|current| current.revision != self.revision);
        let wanted = match current {
            Some(current) if self.covers(current.used, time) => {
                return Ok(Some(Arc::clone(&current.domain)));
            }
            _ => self.list.partition_point(|o| o.stamp <= time),
        };
        let Some(whole) = self.list[..wanted]
            .iter()
            .rposition(|o| o.change == Change::Whole)
            .or((wanted > 0).then_some(0))
        else {
            return Ok(None);
        };
        let former = current.take();
        let (mut next, mut domain) = match &former {
            Some(former) if (whole + 1..=wanted).contains(&former.used) => {
                (former.used, Some(Arc::clone(&former.domain)))
            }
            _ => (whole, None),
        };
        while next < wanted {
            domain = Some(read((next, &self.list[next]), domain.as_deref())?);
            next += 1;
        }
        let Some(mut domain) = domain else { return Ok(None) };
        if let Some(former) = former
            && *former.domain == *domain
        {
            domain = former.domain;
        }
        let revision = self.revision;
        *current = Some(DomainVersion { used: wanted, revision, domain: Arc::clone(&domain) });
        Ok(Some(domain))
    }

    /// All names of all instances, and the time from which each holds.
    pub(super) fn names<E>(
        &self,
        mut read: impl FnMut(&Observation, Option<&InstanceDomain>) -> Result<InstanceDomain, E>,
    ) -> Result<NamesOverTime, E> {
        let mut over_time = NamesOverTime::default();
        let mut before: Option<InstanceDomain> = None;
        for observation in &self.list {
            let next = read(observation, before.as_ref())?;
            for (id, name) in next.instances() {
                let names = over_time.names.entry(id).or_default();
                // The first of equal identifiers in a list counts.
                let counts = next.name(id) == Some(name);
                if counts && names.last().is_none_or(|(_, last)| **last != *name) {
                    names.push((observation.stamp, name.into()));
                }
            }
            before = Some(next);
        }
        Ok(over_time)
    }

    /// True if the first `used` observations are exactly those up to `time`.
    fn covers(&self, used: usize, time: Timestamp) -> bool {
        let last = used.checked_sub(1).and_then(|last| self.list.get(last));
        last.is_some_and(|o| o.stamp <= time) && self.list.get(used).is_none_or(|o| o.stamp > time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::domain_record::DomainRecord;
    use crate::archive::framing::{Damage, Version};
    use crate::archive::layout::{INSTANCES, INSTANCES_DELTA, INSTANCES_V2};
    use crate::archive::lives::{Life, LivesBuilder};
    use crate::archive::meta_files::RecordPlace;
    use crate::archive::positions::MetadataFileId;

    /// Encodes a record. `None` as a name removes the instance.
    fn encode(kind: u32, sec: u32, entries: &[(i32, Option<&str>)]) -> Vec<u8> {
        let version = if kind == INSTANCES_V2 { Version::V2 } else { Version::V3 };
        let mut bytes = [[0; 4], kind.to_be_bytes()].concat();
        bytes.extend_from_slice(&sec.to_be_bytes());
        bytes.resize(8 + version.stamp_size(), 0);
        bytes.extend_from_slice(&0x0740_000cu32.to_be_bytes());
        bytes.extend_from_slice(&u32::try_from(entries.len()).expect("few").to_be_bytes());
        for (id, _) in entries {
            bytes.extend_from_slice(&id.to_be_bytes());
        }
        let mut names = Vec::new();
        for (_, name) in entries {
            let offset = name.map_or(-1, |_| i32::try_from(names.len()).expect("small"));
            bytes.extend_from_slice(&offset.to_be_bytes());
            if let Some(name) = name {
                names.extend_from_slice(name.as_bytes());
                names.push(0);
            }
        }
        bytes.extend_from_slice(&names);
        bytes.extend_from_slice(&[0; 4]);
        bytes
    }

    fn list(domain: &InstanceDomain) -> Vec<(i32, String)> {
        domain.instances().map(|(id, name)| (id, name.to_string())).collect()
    }

    #[test]
    fn whole_lists_and_differences_make_versions() {
        use Change::{Difference, Whole};
        let kind = |change| if change == Whole { INSTANCES } else { INSTANCES_DELTA };
        let records: Vec<(Change, u32, Vec<u8>)> = [
            (Whole, 10, &[(3, Some("c")), (1, Some("a"))][..]),
            (Difference, 20, &[(2, Some("b")), (3, None), (9, None), (1, Some("new name"))]),
            (Whole, 30, &[(1, Some("a")), (2, Some("b"))]),
            (Whole, 40, &[(7, Some("z"))]),
        ]
        .into_iter()
        .map(|(change, sec, entries)| (change, sec, encode(kind(change), sec, entries)))
        .collect();
        let mut history = Observations::default();
        for (offset, (change, sec, bytes)) in (0u64..).zip(&records) {
            history.add(Observation {
                stamp: Timestamp::new(i64::from(*sec), 0),
                place: RecordPlace { file: MetadataFileId::default(), offset, length: bytes.len() },
                change: *change,
            });
        }
        history.settle();
        let mut current = None;
        let mut at = |sec: i64| {
            history
                .at(Timestamp::new(sec, 0), &mut current, |(_, o), before| {
                    let bytes = &records[usize::try_from(o.place.offset).expect("small")].2;
                    let record = DomainRecord::decode(bytes, 0)?;
                    Ok(Arc::new(record.apply(before)))
                })
                .map_err(|damage: Damage| damage.message)
        };
        assert_eq!(at(9), Ok(None));
        let first = at(10).expect("good").expect("known");
        assert_eq!(list(&first), [(1, "a".to_string()), (3, "c".to_string())]);
        assert!(Arc::ptr_eq(&first, &at(19).expect("good").expect("known")));
        let second = at(25).expect("good").expect("known");
        assert_eq!(list(&second), [(1, "a".to_string()), (2, "b".to_string())]);
        let repeated = at(30).expect("good").expect("known");
        assert!(Arc::ptr_eq(&second, &repeated), "the same instances, so the same version");
        assert_eq!(list(&at(50).expect("good").expect("known")), [(7, "z".to_string())]);
        assert_eq!(list(&at(20).expect("good").expect("known")), list(&second));
        assert_eq!(at(9), Ok(None));
        let mut ever = LivesBuilder::default();
        for (observation, (.., bytes)) in history.list.iter().zip(&records) {
            let record = DomainRecord::decode(bytes, 0);
            ever.take(
                observation.stamp,
                &record.unwrap_or_else(|damage| panic!("{}", damage.message)),
            );
        }
        let (union, lives) = ever.finish();
        // The instances of the newest observation come first, then those that only
        // older ones have.
        let expected = [(7, "z"), (1, "a"), (2, "b"), (3, "c")];
        assert_eq!(list(&union), expected.map(|(id, name)| (id, name.to_string())));
        let times = |life: &Life| (life.instance, life.birth.sec, life.death.map(|time| time.sec));
        let expected = [(7, 40, None), (1, 10, Some(40)), (2, 20, Some(40)), (3, 10, Some(20))];
        assert_eq!(lives.instances.iter().map(times).collect::<Vec<_>>(), expected);
        assert_eq!(lives.largest, 2);
    }

    #[test]
    fn names_that_are_not_utf_8_keep_their_bytes() {
        // The byte that replaces `#` is not valid in UTF-8.
        let record = |kind, entries: &[(i32, Option<&str>)]| {
            let mut bytes = encode(kind, 1, entries);
            bytes.iter_mut().filter(|byte| **byte == b'#').for_each(|byte| *byte = 0xfc);
            bytes
        };
        let whole = record(INSTANCES, &[(1, Some("gr#n")), (2, Some("#")), (3, Some("gr\u{fc}n"))]);
        let difference = record(INSTANCES_DELTA, &[(2, None), (4, Some("b#"))]);
        let decode = |bytes| {
            DomainRecord::decode(bytes, 0).unwrap_or_else(|damage| panic!("{}", damage.message))
        };
        let first = decode(&whole).apply(None);
        let second = decode(&difference).apply(Some(&first));
        let names = |domain: &InstanceDomain| -> Vec<Vec<u8>> {
            let names = domain.instances().map(|(id, _)| domain.name_in_bytes(id));
            names.map(|name| name.expect("it is there").into_owned()).collect()
        };
        let green = "gr\u{fc}n".as_bytes();
        assert_eq!(names(&first), [&b"gr\xfcn"[..], b"\xfc", green]);
        assert_eq!(names(&second), [&b"gr\xfcn"[..], green, b"b\xfc"]);
        let mut ever = LivesBuilder::default();
        for bytes in [&whole, &difference] {
            let record = decode(bytes);
            ever.take(record.stamp, &record);
        }
        let (union, _) = ever.finish();
        assert_eq!(names(&union), [&b"gr\xfcn"[..], green, b"b\xfc", b"\xfc"]);
    }

    #[test]
    fn bad_records_are_refused() {
        let decode = |bytes: &[u8]| {
            DomainRecord::decode(bytes, 1000)
                .map(|record| record.len())
                .map_err(|damage| (damage.offset, damage.message))
        };
        let entries = [(1, Some("a")), (2, None)];
        let good = encode(INSTANCES_DELTA, 1, &entries);
        assert_eq!(decode(&good), Ok(2));
        let whole = encode(INSTANCES_V2, 1, &entries);
        let (offset, message) = decode(&whole).expect_err("it has no name");
        assert_eq!(
            (offset, &*message),
            (1032, "instances.offsets: no name begins at -1 for instance 2")
        );
        let negative = encode(INSTANCES_V2, 1, &[(-5, Some("a"))]);
        assert_eq!(decode(&negative), Err((1024, "instances.ids: -5 is negative".to_string())));
        for length in 0..good.len() - 1 {
            assert!(decode(&good[..length]).is_err(), "{length}");
        }
    }
}
