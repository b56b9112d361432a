//! Instances of a domain.
//!
//! The request:
//!
//! | offset | size   | field   | meaning                                  |
//! |--------|--------|---------|------------------------------------------|
//! | 0      | 12     | header  | type INSTANCE_REQ                        |
//! | 12     | 4      | indom   | the domain                               |
//! | 16     | 8      | unused  | 0                                        |
//! | 24     | 4      | inst    | instance whose name is wanted, or -1      |
//! | 28     | 4      | namelen | 0, or bytes of the name                  |
//! | 32     | padded | name    | instance whose identifier is wanted      |
//!
//! Without instance and name, the request is for all instances. The answer:
//!
//! | offset | size | field   | meaning                                            |
//! |--------|------|---------|----------------------------------------------------|
//! | 0      | 12   | header  | type INSTANCE                                      |
//! | 12     | 4    | indom   | the domain                                         |
//! | 16     | 4    | numinst | number of instances                                |
//! | 20     | ...  | entries | inst, namelen, padded name; what was asked by is left out |

use pmderive_core::model::{InDom, InstId};

use super::{DecodeError, Pdu, PduType, Reader, Writer};

/// Request for instances (`pmGetInDom(3)`, `pmNameInDom(3)`, `pmLookupInDom(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceRequest<'a> {
    /// The domain.
    pub indom: InDom,
    /// The instance whose name is requested, or -1.
    pub instance: InstId,
    /// The name of the requested instance, or empty.
    pub name: &'a [u8],
}

impl<'a> InstanceRequest<'a> {
    /// A request for all instances of a domain.
    pub const fn all(indom: InDom) -> InstanceRequest<'a> {
        InstanceRequest { indom, instance: -1, name: &[] }
    }
}

impl<'a> Pdu<'a> for InstanceRequest<'a> {
    const NAME: &'static str = "instance_req";
    const TYPES: &'static [PduType] = &[PduType::InstanceRequest];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let indom = InDom(reader.u32("indom")?);
        reader.i64("unused")?;
        Ok(InstanceRequest { indom, instance: reader.i32("inst")?, name: reader.text("name")? })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.indom.0);
        writer.i64(0);
        writer.i32(self.instance);
        writer.text(self.name);
    }
}

/// Instances, still in their encoded form.
#[derive(Clone, Debug)]
pub struct Instances<'a> {
    /// The domain.
    pub indom: InDom,
    count: usize,
    /// At the first entry. All entries have been read once without error.
    entries: Reader<'a>,
}

fn read_entry<'a>(reader: &mut Reader<'a>) -> Result<(InstId, &'a [u8]), DecodeError> {
    Ok((reader.i32("inst")?, reader.text("name")?))
}

impl<'a> Instances<'a> {
    /// Number of instances.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there are no instances.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The instances with their names, in the order of the PDU.
    pub fn iter(&self) -> impl Iterator<Item = (InstId, &'a [u8])> + use<'a> {
        let mut entries = self.entries.clone();
        (0..self.count).map_while(move |_| read_entry(&mut entries).ok())
    }

    /// Encodes an answer. The fake pmcd of the tests uses this.
    pub fn encode_list(indom: InDom, instances: &[(InstId, &[u8])], out: &mut Vec<u8>) {
        let mut writer = Writer::begin(out, PduType::Instances);
        writer.u32(indom.0);
        writer.count(instances.len());
        for (instance, name) in instances {
            writer.i32(*instance);
            writer.text(name);
        }
        writer.finish();
    }
}

/// Compares instances and names, but not padding.
impl PartialEq for Instances<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.indom == other.indom && self.iter().eq(other.iter())
    }
}

impl<'a> Pdu<'a> for Instances<'a> {
    const NAME: &'static str = "instance";
    const TYPES: &'static [PduType] = &[PduType::Instances];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let indom = InDom(reader.u32("indom")?);
        let count = reader.count(8, "numinst")?;
        let entries = reader.clone();
        for _ in 0..count {
            read_entry(reader)?;
        }
        Ok(Instances { indom, count, entries })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.indom.0);
        writer.count(self.count);
        for (instance, name) in self.iter() {
            writer.i32(instance);
            writer.text(name);
        }
    }
}
