//! The request to change values.
//!
//! It is a result as a fetch delivers it, sent the other way: values of
//! metrics of type 32 and U32 in place, all others in blocks.

use pmderive_core::model::{PmStatus, RawValue, Timestamp};
use pmderive_core::result::{MetricValues, ResultPart, ResultWriter};

use crate::pdu::{MAX_REQUEST_BYTES, Resolution, encode_result};

/// A request to change values (pmStore(3)), encoded.
#[derive(Debug)]
pub struct StoreRequest {
    pdu: Vec<u8>,
}

impl StoreRequest {
    /// Encodes the request. All values of a metric are either in place or in
    /// blocks.
    ///
    /// # Errors
    /// `PM_ERR_TOOSMALL` without any metric; `PM_ERR_BADSTORE` for a metric
    /// that failed, has no values, or values of both kinds; `PM_ERR_TOOBIG`
    /// for what pmcd does not take in one request.
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
                        // No value longer than a request gets as far as its block's length.
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

    /// The request's PDU.
    pub(super) fn pdu(&self) -> &[u8] {
        &self.pdu
    }
}
