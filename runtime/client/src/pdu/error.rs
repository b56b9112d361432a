//! A status, and the greeting, which pmcd sends to every new connection in the same
//! form.
//!
//! | offset | size | field  | meaning                                                     |
//! |--------|------|--------|-------------------------------------------------------------|
//! | 0      | 12   | header | type ERROR                                                  |
//! | 12     | 4    | status | negative: failed; 0: done; positive: what changed (a fetch) |
//! | 16     | 4    | info   | only in the greeting, see below                              |
//!
//! The word `info` of the greeting, from the most significant bit:
//!
//! | bits | field    | meaning                             |
//! |------|----------|-------------------------------------|
//! | 1    | -        | zero                                |
//! | 7    | version  | of the protocol: 2                  |
//! | 8    | licensed | without consequence: 1              |
//! | 16   | features | what pmcd can do, see [`Features`]  |
//!
//! In a greeting, PMAPI codes are those of protocol version 1: codes at or below -1000
//! are 11345 above today's codes.

use pmderive_core::model::PmStatus;

use super::{DecodeError, HEADER_BYTES, Pdu, PduType, Problem, Reader, Writer};

/// A status in answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorPdu {
    /// Negative: the request failed with this PMAPI code. Positive, before the result
    /// of a fetch: bits that tell what changed.
    pub status: i32,
}

impl<'a> Pdu<'a> for ErrorPdu {
    const NAME: &'static str = "error";
    const TYPES: &'static [PduType] = &[PduType::Error];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let status = reader.i32("status")?;
        if reader.remaining() == 4 {
            reader.u32("info")?;
        }
        Ok(ErrorPdu { status })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.i32(self.status);
    }
}

impl ErrorPdu {
    /// Maximum size of the PDU in bytes.
    const MAX_BYTES: usize = HEADER_BYTES + 8;

    /// Checks the length that a header announces.
    pub(crate) fn check_length(len: usize) -> Result<(), DecodeError> {
        match len.checked_sub(ErrorPdu::MAX_BYTES) {
            None | Some(0) => Ok(()),
            Some(bytes) => Err(DecodeError {
                structure: ErrorPdu::NAME,
                field: "end",
                offset: ErrorPdu::MAX_BYTES,
                problem: Problem::Trailing { bytes },
            }),
        }
    }
}

/// Features that a pmcd offers, or that a client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(pub u16);

impl Features {
    /// TLS is configured.
    pub const SECURE: Features = Features(0x0001);
    /// Users can authenticate themselves with SASL.
    pub const AUTH: Features = Features(0x0004);
    /// User credentials are mandatory.
    pub const CREDS_REQUIRED: Features = Features(0x0008);
    /// pmcd acknowledges the switch to TLS.
    pub const SECURE_ACK: Features = Features(0x0010);
    /// pmcd can deliver the metrics of one container.
    pub const CONTAINER: Features = Features(0x0040);
    /// Clients on other hosts need a certificate.
    pub const CERT_REQUIRED: Features = Features(0x0080);
    /// pmcd can deliver labels.
    pub const LABELS: Features = Features(0x0200);
    /// pmcd knows fetches with nanosecond stamps.
    pub const HIGHRES: Features = Features(0x0400);
    /// pmcd knows requests for several descriptors.
    pub const DESCS: Features = Features(0x0800);

    /// True if every bit of `other` is set.
    pub const fn has(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }
}

/// The greeting of pmcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The reason if pmcd refuses the connection.
    pub refusal: Option<PmStatus>,
    /// Version of the protocol.
    pub version: u8,
    /// The features that pmcd offers.
    pub features: Features,
}

/// Largest code of protocol version 1 that is not a system error.
const FIRST_OLD_CODE: i32 = -1000;

/// Difference between the codes of protocol version 1 and those of today.
const OLD_CODE_SHIFT: i32 = 11_345;

impl<'a> Pdu<'a> for Hello {
    const NAME: &'static str = "hello";
    const TYPES: &'static [PduType] = &[PduType::Error];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let offset = reader.offset();
        let status = reader.i32("status")?;
        let info = reader.u32("info")?;
        let code =
            if status > FIRST_OLD_CODE { Some(status) } else { status.checked_sub(OLD_CODE_SHIFT) };
        let Some(code) = code.filter(|code| *code <= 0) else {
            let problem = Problem::OutOfRange {
                found: i64::from(status),
                low: i64::from(i32::MIN) + i64::from(OLD_CODE_SHIFT),
                high: 0,
            };
            return Err(reader.error_at(offset, "status", problem));
        };
        let [version, _, high, low] = info.to_be_bytes();
        Ok(Hello {
            refusal: (code != 0).then_some(PmStatus(code)),
            version: version & 0x7f,
            features: Features(u16::from_be_bytes([high, low])),
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let code = self.refusal.map_or(0, |status| status.0);
        let old = code.saturating_add(OLD_CODE_SHIFT);
        writer.i32(if old <= FIRST_OLD_CODE { old } else { code });
        let [high, low] = self.features.0.to_be_bytes();
        let licensed = u8::from(self.refusal.is_none());
        writer.u32(u32::from_be_bytes([self.version, licensed, high, low]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(status: i32) -> Result<Hello, DecodeError> {
        let mut pdu = Vec::new();
        let mut writer = Writer::begin(&mut pdu, PduType::Error);
        writer.i32(status);
        writer.u32(0x0201_0e44);
        writer.finish();
        Hello::decode(&pdu)
    }

    #[test]
    fn refusals_are_shifted_from_the_old_codes_and_nothing_overflows() {
        let refusal = |status| hello(status).map(|hello| hello.refusal);
        assert_eq!(refusal(0), Ok(None));
        assert_eq!(refusal(-1042), Ok(Some(PmStatus::PERMISSION)));
        assert_eq!(refusal(-1043), Ok(Some(PmStatus::CONNLIMIT)));
        assert_eq!(refusal(-13), Ok(Some(PmStatus(-13))));
        assert!(refusal(5).is_err());
        assert!(refusal(i32::MIN).is_err());
    }
}
