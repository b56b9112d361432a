//! The request to change values.
//!
//! It has the form of a fetch's result: values of metrics of type 32 and U32 are in
//! place, all others in blocks.

use pmderive_core::model::{PmStatus, RawValue, Timestamp};
use pmderive_core::result::{MetricValues, ResultPart, ResultWriter};

use crate::pdu::{MAX_REQUEST_BYTES, Resolution, encode_result};

/// An encoded request to change values (`pmStore(3)`).
#[derive(Debug)]
pub struct StoreRequest {
    pdu: Vec<u8>,
}

impl StoreRequest {
    /// Encodes the request. The values of a metric are either all in place or all in
    /// blocks.
    ///
    /// # Errors
    /// `PM_ERR_TOOSMALL` if there is no metric; `PM_ERR_BADSTORE` for a metric that has
    /// failed, has no values, or has values of both kinds; `PM_ERR_TOOBIG` if pmcd does
    /// not accept that much in one request.
    pub fn new(values: &[MetricValues]) -> Result<StoreRequest, PmStatus> {
        if values.is_empty() {
            return Err(PmStatus::TOOSMALL);
        }
        let mut part = ResultPart::default();
        let mut writer = ResultWriter::new(&mut part, Timestamp::default());
        let mut bytes = 0usize;
        for set in values {
            let values = set.outcome.as_ref().map_err(|_| PmStatus::BADSTORE)?;
            let in_place = |value: &RawValue| matches!(value, RawValue::InPlace(_));
            let Some(first) = values.first() else { return Err(PmStatus::BADSTORE) };
            writer.set(set.pmid);
            for one in values {
                if in_place(&one.value) != in_place(&first.value) {
                    return Err(PmStatus::BADSTORE);
                }
                match &one.value {
                    RawValue::InPlace(word) => writer.in_place(one.instance, *word),
                    RawValue::Block { code, bytes: data } => {
                        bytes = bytes.saturating_add(data.len());
                        // This also ensures that no value is too long for the length
                        // field of its block.
                        if bytes > MAX_REQUEST_BYTES {
                            return Err(PmStatus::TOOBIG);
                        }
                        writer.encoded_block(one.instance, *code, data);
                    }
                }
            }
        }
        let mut pdu = Vec::new();
        encode_result(&part, Resolution::Micro, &mut pdu);
        if pdu.len() > MAX_REQUEST_BYTES {
            return Err(PmStatus::TOOBIG);
        }
        Ok(StoreRequest { pdu })
    }

    /// The encoded PDU.
    pub(super) fn pdu(&self) -> &[u8] {
        &self.pdu
    }
}
