//! Instance domains: what was written of each last, and the record that
//! brings it up to date (layout: see `archive::domains`).
//!
//! Input: the instances of a domain. Output: a record with all of them, or in
//! version 3 one with those that came and went, whichever is shorter; none
//! when nothing changed. Time and files are not known here.

use pmderive_core::model::{InDom, InstId, InstanceDomain, Timestamp};

use crate::archive::domain_record::REMOVED;
use crate::archive::layout;
use crate::archive::record::Version;
use crate::archive_writer::WriteError;
use crate::archive_writer::encode::{record, stamp, word};

/// A whole list follows once the differences since the last one take this
/// many times its size: a reader that looks for one time applies them all.
const DIFFERENCES: u64 = 4;

/// Instances with the bytes of their names, ascending, each once.
type Instances = Vec<(InstId, Box<[u8]>)>;

/// A domain as a reader of what was written so far knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenDomain {
    instances: Instances,
    /// Size of the last whole list in bytes, 0 before there is one, and of the
    /// differences since.
    whole: u64,
    differences: u64,
    /// Parallel to `instances`: the value set that had the instance last.
    met: Vec<u64>,
}

/// How to bring a domain up to date.
#[derive(Debug)]
pub(super) struct Update {
    instances: Instances,
    /// What came and went: without a name what went. `None` for a whole list.
    difference: Option<Vec<(InstId, Option<usize>)>>,
}

impl WrittenDomain {
    /// Takes note that a value set has a value of an instance, which is looked
    /// for at the position `hint` first. False when the set had one before,
    /// `None` for an instance that the domain does not have.
    pub(super) fn meet(&mut self, instance: InstId, hint: usize, set: u64) -> Option<bool> {
        let position = match self.instances.get(hint) {
            Some((id, _)) if *id == instance => hint,
            _ => self.instances.binary_search_by_key(&instance, |(id, _)| *id).ok()?,
        };
        Some(std::mem::replace(self.met.get_mut(position)?, set) != set)
    }

    /// What has to be written to make it `new`; `None` for nothing.
    pub(super) fn update(
        &self,
        version: Version,
        indom: InDom,
        new: &InstanceDomain,
    ) -> Result<Option<Update>, WriteError> {
        let old = self.instances.iter().map(|(id, name)| (*id, &**name));
        let now = new.instances().map(|(id, name)| (id, name.as_bytes()));
        if self.whole > 0 && new.len() == self.instances.len() && now.eq(old) {
            return Ok(None);
        }
        let instances = in_order(indom, new)?;
        // A list without instances is no list to readers: before the first one
        // it says nothing, after that the instances must go one by one.
        if instances == self.instances {
            return Ok(None);
        }
        let is_chain_short = self.differences < DIFFERENCES * self.whole;
        let difference = match version {
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

    /// Takes note that an update was written, in so many bytes.
    pub(super) fn written(&mut self, update: Update, size: usize) {
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
    /// Makes `out` the record.
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
        // Offsets beyond this would be in a record that is too long anyway.
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

/// Bytes that a whole list takes, without what all records have.
fn whole_size(instances: &Instances) -> usize {
    instances.iter().map(|(_, name)| 8 + name.len() + 1).sum()
}

/// The instances in order, those with an identifier that was there before left out.
fn in_order(indom: InDom, domain: &InstanceDomain) -> Result<Instances, WriteError> {
    let mut instances: Instances = Vec::with_capacity(domain.len());
    for (instance, name) in domain.instances() {
        if instance < 0 {
            return Err(WriteError::NegativeInstance { indom, instance });
        }
        if name.contains('\0') {
            let what = format!("the name of instance {instance} of domain {indom}");
            let problem = "contains a NUL, which ends names";
            return Err(WriteError::Text { what, text: name.to_owned(), problem });
        }
        let bytes = domain.name_in_bytes(instance).unwrap_or_default();
        instances.push((instance, bytes.into()));
    }
    // Stable, because the first of equal identifiers is the one that counts.
    instances.sort_by_key(|(id, _)| *id);
    instances.dedup_by_key(|(id, _)| *id);
    Ok(instances)
}

/// What came and went, in order. `None` where an instance has another name
/// now: to readers an instance that is there keeps the name that it has.
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
