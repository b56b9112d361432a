//! Remembers which instances of each domain were written last, and makes the record
//! that brings a domain up to date (`archive::domains` has the layout).
//!
//! Input: the instances of a domain. Output: a record, or none if nothing changed. The
//! record lists all instances, or in version 3 only those that came and went if that is
//! shorter.

use pmderive_core::model::{InDom, InstId, InstanceDomain, PmStatus, Timestamp};

use crate::archive::domain_record::REMOVED;
use crate::archive::framing::Version;
use crate::archive::layout;
use crate::archive_writer::WriteError;
use crate::archive_writer::encode::{record, stamp, word};

/// A whole list is written once the differences since the last one are this many times
/// its size. A reader that searches one time has to apply all of them.
const DIFFERENCES: u64 = 4;

/// Instances with the bytes of their names, in ascending order, each once.
type Instances = Vec<(InstId, Box<[u8]>)>;

/// A domain as readers know it from the records written so far.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenDomain {
    instances: Instances,
    /// Size in bytes of the last whole list (0 before the first one), and of all
    /// differences since then.
    whole: u64,
    differences: u64,
    /// Time of the last record, and whether it had only differences.
    last: Option<(Timestamp, bool)>,
    /// Parallel to `instances`: number of the last value set that had the instance.
    met: Vec<u64>,
}

/// The change that brings a domain up to date.
#[derive(Debug)]
pub(super) struct Update {
    instances: Instances,
    /// The instances that came, with their positions in `instances`, and those that
    /// went, without one. `None` if a whole list is written.
    difference: Option<Vec<(InstId, Option<usize>)>>,
}

impl WrittenDomain {
    /// Records that a value set has a value of an instance. The search begins at
    /// position `hint`. Returns false if the set already has that instance, and `None`
    /// if the domain does not have it.
    pub(super) fn meet(&mut self, instance: InstId, hint: usize, set: u64) -> Option<bool> {
        let position = match self.instances.get(hint) {
            Some((id, _)) if *id == instance => hint,
            _ => self.instances.binary_search_by_key(&instance, |(id, _)| *id).ok()?,
        };
        Some(std::mem::replace(self.met.get_mut(position)?, set) != set)
    }

    /// The update that turns the domain into `new`; `None` if nothing changes.
    pub(super) fn update(
        &self,
        version: Version,
        time: Timestamp,
        indom: InDom,
        new: &InstanceDomain,
    ) -> Result<Option<Update>, WriteError> {
        let old = self.instances.iter().map(|(id, name)| (*id, &**name));
        let now = new.instances().map(|(id, name)| (id, name.as_bytes()));
        if self.whole > 0 && new.len() == self.instances.len() && now.eq(old) {
            return Ok(None);
        }
        let instances = in_order(indom, new)?;
        // Readers ignore a list without instances. Before the first list there is
        // nothing to empty; later, the instances must be removed one by one.
        if instances == self.instances {
            return Ok(None);
        }
        let is_chain_short = self.differences < DIFFERENCES * self.whole;
        // libpcp needs whole lists where there are two of one time.
        let is_again = match self.last.filter(|(last, _)| *last == time) {
            Some((_, was_difference)) => {
                // A whole list without instances counts for nothing.
                if version == Version::V3 && (was_difference || instances.is_empty()) {
                    return Err(WriteError::ChangedTwice { indom, time });
                }
                true
            }
            None => false,
        };
        let difference = match version {
            Version::V3 if is_again => None,
            Version::V3 if self.whole > 0 && (is_chain_short || instances.is_empty()) => {
                difference(&self.instances, &instances)
            }
            _ => None,
        };
        let difference = difference.filter(|difference| {
            let named = difference.iter().filter_map(|(_, at)| *at);
            let size =
                8 * difference.len() + named.map(|at| instances[at].1.len() + 1).sum::<usize>();
            instances.is_empty() || size < whole_size(&instances)
        });
        Ok(Some(Update { instances, difference }))
    }

    /// Notes that an update was written as a record of `size` bytes.
    pub(super) fn written(&mut self, update: Update, time: Timestamp, size: usize) {
        self.last = Some((time, update.difference.is_some()));
        match update.difference {
            Some(_) => self.differences += size as u64,
            None => (self.whole, self.differences) = (size as u64, 0),
        }
        self.instances = update.instances;
        self.met.clear();
        self.met.resize(self.instances.len(), 0);
    }
}

impl Update {
    /// Encodes the update into `out` as one record.
    pub(super) fn encode(
        &self,
        out: &mut Vec<u8>,
        version: Version,
        time: Timestamp,
        indom: InDom,
    ) -> Result<(), usize> {
        let whole = || (0..self.instances.len()).map(|at| (self.instances[at].0, Some(at)));
        let (code, entries) = match (&self.difference, version) {
            (Some(difference), _) => (layout::INSTANCES_DELTA, difference.clone()),
            (None, Version::V2) => (layout::INSTANCES_V2, whole().collect()),
            (None, Version::V3) => (layout::INSTANCES, whole().collect()),
        };
        let names = || entries.iter().map(|(_, at)| at.map(|at| &*self.instances[at].1));
        // A larger offset would be in a record that is too long anyway.
        let size = names().flatten().map(|name| name.len() + 1).sum::<usize>();
        i32::try_from(size).map_err(|_| size)?;
        record(out, |out| {
            word(out, code);
            stamp(out, version, time);
            word(out, indom.0);
            word(out, entries.len() as u32);
            for (instance, _) in &entries {
                word(out, instance.cast_unsigned());
            }
            let mut offset = 0;
            for name in names() {
                match name {
                    Some(name) => {
                        word(out, offset);
                        offset += name.len() as u32 + 1;
                    }
                    None => word(out, REMOVED.cast_unsigned()),
                }
            }
            for name in names().flatten() {
                out.extend_from_slice(name);
                out.push(0);
            }
        })
    }
}

/// Bytes of a whole list, without the words that every record has.
fn whole_size(instances: &Instances) -> usize {
    instances.iter().map(|(_, name)| 8 + name.len() + 1).sum()
}

/// The instances in ascending order. Of several with one identifier, the first is kept.
fn in_order(indom: InDom, domain: &InstanceDomain) -> Result<Instances, WriteError> {
    let mut instances: Instances = Vec::with_capacity(domain.len());
    for (instance, name) in domain.instances() {
        if instance < 0 {
            let problem = format!(
                "instance domain {indom}: {instance} cannot be an instance: it is negative"
            );
            return Err(WriteError::misuse(PmStatus::INST, problem));
        }
        if name.contains('\0') {
            let what = format!("the name of instance {instance} of domain {indom}");
            return Err(WriteError::text(&what, name, "contains a NUL, which ends names"));
        }
        let bytes = domain.name_in_bytes(instance).unwrap_or_default();
        instances.push((instance, bytes.into()));
    }
    // The sort is stable, so the first of equal identifiers stays first.
    instances.sort_by_key(|(id, _)| *id);
    instances.dedup_by_key(|(id, _)| *id);
    Ok(instances)
}

/// The instances that came and went, in ascending order. `None` if an instance has
/// another name now: readers keep the first name of an instance that stays.
fn difference(old: &Instances, new: &Instances) -> Option<Vec<(InstId, Option<usize>)>> {
    let mut entries = Vec::new();
    let mut before = old.iter().peekable();
    for (at, (id, name)) in new.iter().enumerate() {
        while let Some((gone, _)) = before.next_if(|(other, _)| other < id) {
            entries.push((*gone, None));
        }
        match before.next_if(|(other, _)| other == id) {
            Some((_, known)) if known != name => return None,
            Some(_) => {}
            None => entries.push((*id, Some(at))),
        }
    }
    entries.extend(before.map(|(gone, _)| (*gone, None)));
    Some(entries)
}
