//! The name space: names, identifiers, children of a node, and traversal.
//!
//! Names. This is a request for identifiers, or the answer to the three other requests:
//!
//! | offset | size | field     | meaning                                             |
//! |--------|------|-----------|-----------------------------------------------------|
//! | 0      | 12   | header    | type PMNS_NAMES                                     |
//! | 12     | 4    | nstrbytes | sum of (length + 1) over the names                  |
//! | 16     | 4    | numstatus | 0, or numnames                                      |
//! | 20     | 4    | numnames  | number of names, or the status of an agent          |
//! | 24     | ...  | entries   | status if numstatus is not 0, namelen, padded name  |
//!
//! Identifiers. This is a request for the names of one metric, or the answer to names:
//!
//! | offset | size  | field  | meaning                                            |
//! |--------|-------|--------|----------------------------------------------------|
//! | 0      | 12    | header | type PMNS_IDS                                      |
//! | 12     | 4     | status | in an answer, number of names found                |
//! | 16     | 4     | numids | number of identifiers                              |
//! | 20     | 4 * n | pmids  | in the order of the names; all ones for one not found |
//!
//! Children of a node and metrics below a node:
//!
//! | offset | size   | field   | meaning                                          |
//! |--------|--------|---------|--------------------------------------------------|
//! | 0      | 12     | header  | type PMNS_CHILD or PMNS_TRAVERSE                 |
//! | 12     | 4      | subtype | 1: children with their status; else 0            |
//! | 16     | 4      | namelen | bytes of the name, 0 for the root                |
//! | 20     | padded | name    | the node                                         |
//!
//! A child's status is 0 for a leaf and 1 for a node that has children itself.

use std::borrow::Cow;

use pmderive_core::model::{PmStatus, Pmid};

use super::{DecodeError, Pdu, PduType, Problem, Reader, Writer};

/// A list of names, still encoded.
#[derive(Clone, Debug)]
pub struct PmnsNames<'a> {
    count: usize,
    with_status: bool,
    /// At the first entry. All entries have been read once without error.
    entries: Reader<'a>,
}

/// A name, with a status if the list has statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmnsName<'a> {
    /// 0 for a leaf, 1 for a node with children. `None` in a list without statuses.
    pub status: Option<i32>,
    /// A full name, or one component in a list of children.
    pub name: &'a [u8],
}

fn read_name<'a>(reader: &mut Reader<'a>, with_status: bool) -> Result<PmnsName<'a>, DecodeError> {
    let status = if with_status { Some(reader.i32("status")?) } else { None };
    Ok(PmnsName { status, name: reader.text("name")? })
}

/// Writes names that all have a status, or all have none.
fn write_names(writer: &mut Writer<'_>, names: &[PmnsName<'_>]) {
    writer.count(names.iter().map(|name| name.name.len() + 1).sum());
    writer.count(names.iter().filter(|name| name.status.is_some()).count());
    writer.count(names.len());
    for PmnsName { status, name } in names {
        if let Some(status) = status {
            writer.i32(*status);
        }
        writer.text(name);
    }
}

impl<'a> PmnsNames<'a> {
    /// Size in bytes of the PDU before its names.
    pub const FIXED_BYTES: usize = 24;

    /// Size in bytes of a name without status.
    pub const fn name_bytes(name: &str) -> usize {
        4 + name.len().next_multiple_of(4)
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there are no names.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if every name has a status.
    pub fn has_statuses(&self) -> bool {
        self.with_status
    }

    /// The names, in the order of the PDU.
    pub fn iter(&self) -> impl Iterator<Item = PmnsName<'a>> + use<'a> {
        let (mut entries, with_status) = (self.entries.clone(), self.with_status);
        (0..self.count).map_while(move |_| read_name(&mut entries, with_status).ok())
    }

    /// The status of an agent that has no names for a node: pmcd sends it as a negative
    /// number of names. `None` for a list.
    pub fn failure(pdu: &[u8]) -> Option<PmStatus> {
        let count = pdu.get(20..Self::FIXED_BYTES)?.try_into().ok().map(i32::from_be_bytes)?;
        (count < 0 && pdu.len() == Self::FIXED_BYTES).then_some(PmStatus(count))
    }

    /// Encodes a list of names without statuses.
    pub fn encode_names(names: &[&str], out: &mut Vec<u8>) {
        let names = names.iter().map(|name| PmnsName { status: None, name: name.as_bytes() });
        PmnsNames::encode_list(&names.collect::<Vec<_>>(), out);
    }

    /// Encodes a list of names that all have a status, or all have none.
    pub fn encode_list(names: &[PmnsName<'_>], out: &mut Vec<u8>) {
        let mut writer = Writer::begin(out, PduType::PmnsNames);
        write_names(&mut writer, names);
        writer.finish();
    }
}

/// Compares names and statuses, but not padding.
impl PartialEq for PmnsNames<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.with_status == other.with_status && self.iter().eq(other.iter())
    }
}

impl<'a> Pdu<'a> for PmnsNames<'a> {
    const NAME: &'static str = "pmns_names";
    const TYPES: &'static [PduType] = &[PduType::PmnsNames];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = reader.offset();
        let announced = reader.i32("nstrbytes")?;
        let statuses = reader.i32("numstatus")?;
        let count = reader.count(4, "numnames")?;
        let with_status = statuses != 0;
        if with_status && usize::try_from(statuses) != Ok(count) {
            let problem = Problem::mismatch(statuses, count);
            return Err(reader.error_at(start + 4, "numstatus", problem));
        }
        let entries = reader.clone();
        let mut string_bytes = 0;
        for _ in 0..count {
            string_bytes += read_name(reader, with_status)?.name.len() + 1;
        }
        if usize::try_from(announced) != Ok(string_bytes) {
            let problem = Problem::mismatch(announced, string_bytes);
            return Err(reader.error_at(start, "nstrbytes", problem));
        }
        Ok(PmnsNames { count, with_status, entries })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        write_names(writer, &self.iter().collect::<Vec<_>>());
    }
}

/// A list of identifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PmnsIds<'a> {
    /// In an answer, the number of names found. Do not rely on it: count the
    /// identifiers.
    pub status: i32,
    /// The identifiers. [`Pmid::NULL`] stands for a name that was not found.
    pub pmids: Cow<'a, [Pmid]>,
}

impl<'a> Pdu<'a> for PmnsIds<'a> {
    const NAME: &'static str = "pmns_ids";
    const TYPES: &'static [PduType] = &[PduType::PmnsIds];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(PmnsIds { status: reader.i32("status")?, pmids: reader.pmids("numids")?.into() })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.i32(self.status);
        writer.pmids(&self.pmids);
    }
}

/// Request for the children of a node (`pmGetChildren(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmnsChild<'a> {
    /// The node; empty for the root.
    pub name: &'a [u8],
    /// 1 to request the statuses of the children, otherwise 0.
    pub subtype: i32,
}

impl<'a> Pdu<'a> for PmnsChild<'a> {
    const NAME: &'static str = "pmns_child";
    const TYPES: &'static [PduType] = &[PduType::PmnsChild];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(PmnsChild { subtype: reader.i32("subtype")?, name: reader.text("name")? })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.i32(self.subtype);
        writer.text(self.name);
    }
}

/// Request for all metric names at or below a node (`pmTraversePMNS(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmnsTraverse<'a> {
    /// The node; empty for the root.
    pub name: &'a [u8],
}

impl<'a> Pdu<'a> for PmnsTraverse<'a> {
    const NAME: &'static str = "pmns_traverse";
    const TYPES: &'static [PduType] = &[PduType::PmnsTraverse];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.i32("subtype")?;
        Ok(PmnsTraverse { name: reader.text("name")? })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.i32(0);
        writer.text(self.name);
    }
}
