//! The profile: the instances that later fetches return. There is no reply to it if it
//! succeeds.
//!
//! | offset | size         | field   | meaning                                    |
//! |--------|--------------|---------|--------------------------------------------|
//! | 0      | 12           | header  | type PROFILE                               |
//! | 12     | 4            | ctxnum  | number of the context on this connection   |
//! | 16     | 4            | state   | of domains without an entry: 0 include, 1 exclude |
//! | 20     | 4            | numprof | number of entries                          |
//! | 24     | 4            | pad     | 0                                          |
//! | 28     | 16 * numprof | entries | see below                                  |
//! | ...    | 4 * n        | insts   | the instances of the first entry, of the second, ... |
//!
//! An entry:
//!
//! | offset | size | field   | meaning                                              |
//! |--------|------|---------|------------------------------------------------------|
//! | 0      | 4    | indom   | instance domain                                      |
//! | 4      | 4    | state   | 0: all instances but those listed; 1: only those listed |
//! | 8      | 4    | numinst | number of instances listed                           |
//! | 12     | 4    | pad     | 0                                                    |
//!
//! pmcd has no profile of its own, so a context must send one before it can fetch.

use pmderive_core::model::{InstId, InstanceProfile, Selection};

use super::{DecodeError, MAX_REQUEST_BYTES, Pdu, PduType, Problem, Reader, Writer};

/// The instances that fetches of one context return (`pmAddProfile(3)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Number of the context on its connection.
    pub context: i32,
    /// The state of domains without an entry.
    pub state: Selection,
    /// The entries for single domains.
    pub entries: Vec<ProfileEntry>,
}

/// A profile's entry for one instance domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileEntry {
    /// The domain as a number on the wire.
    pub indom: u32,
    /// The state of instances that are not listed. The listed ones have the other
    /// state.
    pub state: Selection,
    /// The listed instances.
    pub instances: Vec<InstId>,
}

impl Profile {
    /// The profile that includes all instances of all domains.
    pub const fn include_all(context: i32) -> Profile {
        Profile { context, state: Selection::Include, entries: Vec::new() }
    }

    /// The PDU of a profile for one context of a connection.
    pub fn of(context: i32, profile: &InstanceProfile) -> Profile {
        let entries = profile.domains().map(|(indom, domain)| ProfileEntry {
            indom: indom.0,
            state: domain.others,
            instances: domain.exceptions.iter().copied().collect(),
        });
        Profile { context, state: profile.others(), entries: entries.collect() }
    }

    /// True if pmcd accepts the profile in one request.
    pub fn fits(profile: &InstanceProfile) -> bool {
        let entry = |domain: &pmderive_core::model::DomainProfile| {
            ENTRY_BYTES.saturating_add(domain.exceptions.len().saturating_mul(4))
        };
        let sizes = profile.domains().map(|(_, domain)| entry(domain));
        sizes.fold(FIXED_BYTES, usize::saturating_add) <= MAX_REQUEST_BYTES
    }
}

/// Size in bytes before the entries.
const FIXED_BYTES: usize = 28;

/// Size in bytes of an entry.
const ENTRY_BYTES: usize = 16;

fn read_state(reader: &mut Reader<'_>) -> Result<Selection, DecodeError> {
    let offset = reader.offset();
    match reader.i32("state")? {
        0 => Ok(Selection::Include),
        1 => Ok(Selection::Exclude),
        found => {
            let problem = Problem::OutOfRange { found: i64::from(found), low: 0, high: 1 };
            Err(reader.error_at(offset, "state", problem))
        }
    }
}

fn write_state(writer: &mut Writer<'_>, state: Selection) {
    writer.u32(u32::from(state == Selection::Exclude));
}

impl<'a> Pdu<'a> for Profile {
    const NAME: &'static str = "profile";
    const TYPES: &'static [PduType] = &[PduType::Profile];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let context = reader.i32("ctxnum")?;
        let state = read_state(reader)?;
        let count = reader.count(ENTRY_BYTES, "numprof")?;
        reader.u32("pad")?;
        let mut entries = Vec::with_capacity(count);
        let mut sizes = Vec::with_capacity(count);
        for _ in 0..count {
            let indom = reader.u32("indom")?;
            let state = read_state(reader)?;
            sizes.push(reader.count(4, "numinst")?);
            reader.u32("pad")?;
            entries.push(ProfileEntry { indom, state, instances: Vec::new() });
        }
        for (entry, size) in entries.iter_mut().zip(sizes) {
            for _ in 0..size {
                entry.instances.push(reader.i32("insts")?);
            }
        }
        Ok(Profile { context, state, entries })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.i32(self.context);
        write_state(writer, self.state);
        writer.count(self.entries.len());
        writer.u32(0);
        for entry in &self.entries {
            writer.u32(entry.indom);
            write_state(writer, entry.state);
            writer.count(entry.instances.len());
            writer.u32(0);
        }
        for instance in self.entries.iter().flat_map(|entry| &entry.instances) {
            writer.i32(*instance);
        }
    }
}
