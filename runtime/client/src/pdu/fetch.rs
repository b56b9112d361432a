//! Request for the values of metrics.
//!
//! | offset | size  | field   | meaning                                      |
//! |--------|-------|---------|----------------------------------------------|
//! | 0      | 12    | header  | type FETCH or HIGHRES_FETCH                  |
//! | 12     | 4     | ctxnum  | context whose profile applies                |
//! | 16     | 8     | unused  | 0                                            |
//! | 24     | 4     | numpmid | number of metrics                            |
//! | 28     | 4 * n | pmids   | the metrics; each is answered, also a repeated one |
//!
//! The answer is a RESULT or a HIGHRES_RESULT, see [`super::ResultFrame`].

use std::borrow::Cow;

use pmderive_core::model::Pmid;

use super::{DecodeError, Pdu, PduType, Reader, Writer};

/// Precision of a result's time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// 32-bit seconds and microseconds.
    Micro,
    /// 64-bit seconds and nanoseconds.
    Nano,
}

/// A request for values (`pmFetch(3)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch<'a> {
    /// Microsecond or nanosecond stamps; this decides the PDU type.
    pub resolution: Resolution,
    /// Number of the context on its connection.
    pub context: i32,
    /// The metrics.
    pub pmids: Cow<'a, [Pmid]>,
}

impl Fetch<'_> {
    /// Size in bytes of the request before its metrics.
    pub const FIXED_BYTES: usize = 28;
}

impl<'a> Pdu<'a> for Fetch<'a> {
    const NAME: &'static str = "fetch";
    const TYPES: &'static [PduType] = &[PduType::Fetch, PduType::HighresFetch];

    fn pdu_type(&self) -> PduType {
        match self.resolution {
            Resolution::Micro => PduType::Fetch,
            Resolution::Nano => PduType::HighresFetch,
        }
    }

    fn read(kind: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let resolution = match kind {
            PduType::HighresFetch => Resolution::Nano,
            _ => Resolution::Micro,
        };
        let context = reader.i32("ctxnum")?;
        reader.i64("unused")?;
        Ok(Fetch { resolution, context, pmids: reader.pmids("numpmid")?.into() })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.i32(self.context);
        writer.i64(0);
        writer.pmids(&self.pmids);
    }
}
