//! Descriptors of one metric or of several.
//!
//! | offset | size   | field  | DESC_REQ          | DESC            |
//! |--------|--------|--------|-------------------|-----------------|
//! | 0      | 12     | header | type DESC_REQ     | type DESC       |
//! | 12     | 4 / 20 |        | pmid              | one descriptor  |
//!
//! | offset | size   | field  | DESC_IDS          | DESCS           |
//! |--------|--------|--------|-------------------|-----------------|
//! | 0      | 12     | header | type DESC_IDS     | type DESCS      |
//! | 12     | 4      |        | -1                | numdescs        |
//! | 16     | 4      |        | numids            | descriptors ... |
//! | 20     | 4 * n  |        | pmids             |                 |
//!
//! A descriptor:
//!
//! | offset | size | field | meaning                                       |
//! |--------|------|-------|-----------------------------------------------|
//! | 0      | 4    | pmid  | metric; all ones for one that was not found   |
//! | 4      | 4    | type  | [`ValueType`]                                 |
//! | 8      | 4    | indom | instance domain; all ones for none            |
//! | 12     | 4    | sem   | [`Semantics`]                                 |
//! | 16     | 4    | units | [`Units`]                                     |
//!
//! If a request for several has only one metric and fails, the answer is an error.

use std::borrow::Cow;

use pmderive_core::model::{InDom, MetricDesc, Pmid, Semantics, Units, ValueType};

use super::{DecodeError, Pdu, PduType, Problem, Reader, Writer};

/// Size of a descriptor in bytes.
const DESC_BYTES: usize = 20;

fn read_desc(reader: &mut Reader<'_>) -> Result<MetricDesc, DecodeError> {
    Ok(MetricDesc {
        pmid: Pmid(reader.u32("pmid")?),
        value_type: ValueType::from_code(reader.i32("type")?),
        indom: InDom::from_wire(reader.u32("indom")?),
        semantics: Semantics::from_code(reader.i32("sem")?),
        units: Units::from_wire(reader.u32("units")?),
    })
}

fn write_desc(writer: &mut Writer<'_>, desc: &MetricDesc) {
    writer.u32(desc.pmid.0);
    writer.i32(desc.value_type.code());
    writer.u32(InDom::to_wire(desc.indom));
    writer.i32(desc.semantics.code());
    writer.u32(desc.units.to_wire());
}

/// Request for one descriptor (`pmLookupDesc(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescRequest {
    /// The metric.
    pub pmid: Pmid,
}

impl<'a> Pdu<'a> for DescRequest {
    const NAME: &'static str = "desc_req";
    const TYPES: &'static [PduType] = &[PduType::DescRequest];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(DescRequest { pmid: Pmid(reader.u32("pmid")?) })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.pmid.0);
    }
}

/// One descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desc {
    /// The descriptor.
    pub desc: MetricDesc,
}

impl<'a> Pdu<'a> for Desc {
    const NAME: &'static str = "desc";
    const TYPES: &'static [PduType] = &[PduType::Desc];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Desc { desc: read_desc(reader)? })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        write_desc(writer, &self.desc);
    }
}

/// Request for several descriptors (`pmLookupDescs(3)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescIds<'a> {
    /// The metrics.
    pub pmids: Cow<'a, [Pmid]>,
}

impl<'a> Pdu<'a> for DescIds<'a> {
    const NAME: &'static str = "desc_ids";
    const TYPES: &'static [PduType] = &[PduType::DescIds];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let offset = reader.offset();
        let mark = reader.i32("mark")?;
        if mark != -1 {
            return Err(reader.error_at(offset, "mark", Problem::mismatch(mark, -1)));
        }
        Ok(DescIds { pmids: reader.pmids("numids")?.into() })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.i32(-1);
        writer.pmids(&self.pmids);
    }
}

/// Several descriptors, in the order of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descs {
    /// The descriptors; `None` for a metric that was not found.
    pub descs: Vec<Option<MetricDesc>>,
}

impl<'a> Pdu<'a> for Descs {
    const NAME: &'static str = "descs";
    const TYPES: &'static [PduType] = &[PduType::Descs];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.count(DESC_BYTES, "numdescs")?;
        let mut descs = Vec::with_capacity(count);
        for _ in 0..count {
            let desc = read_desc(reader)?;
            descs.push((desc.pmid != Pmid::NULL).then_some(desc));
        }
        Ok(Descs { descs })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.count(self.descs.len());
        for desc in &self.descs {
            match desc {
                Some(desc) => write_desc(writer, desc),
                None => {
                    writer.u32(Pmid::NULL.0);
                    writer.bytes(&[0; DESC_BYTES - 4]);
                }
            }
        }
    }
}
