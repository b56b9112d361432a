//! Framing: the length and type of a PDU.
//!
//! | offset | size | field | meaning                                          |
//! |--------|------|-------|--------------------------------------------------|
//! | 0      | 4    | len   | bytes of the whole PDU, these 12 included         |
//! | 4      | 4    | type  | [`PduType`]                                      |
//! | 8      | 4    | from  | sender's process or context: without consequence |
//!
//! PDUs follow each other without gaps. A length need not be a multiple of four.

use super::PduType;
use super::reader::{DecodeError, Problem, Reader, as_i64};

/// Size of a PDU's header in bytes.
pub const HEADER_BYTES: usize = 12;

/// The header of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size of the whole PDU in bytes, at least [`HEADER_BYTES`].
    pub len: usize,
    /// Number of the type. It may be one that this client does not know.
    pub code: u32,
}

impl Header {
    /// Reads the header of the PDU at the start of `bytes`. `None` if there are fewer
    /// than [`HEADER_BYTES`].
    ///
    /// # Errors
    /// The length is smaller than a header or exceeds `limit`. Four bytes suffice to
    /// find that, so no caller waits for the rest.
    pub fn peek(bytes: &[u8], limit: usize) -> Result<Option<Header>, DecodeError> {
        let Some(&[a, b, c, d]) = bytes.get(..4) else { return Ok(None) };
        let found = i64::from(i32::from_be_bytes([a, b, c, d]));
        let len = usize::try_from(found).ok().filter(|len| (HEADER_BYTES..=limit).contains(len));
        let Some(len) = len else {
            let problem =
                Problem::OutOfRange { found, low: as_i64(HEADER_BYTES), high: as_i64(limit) };
            return Err(DecodeError { structure: "pdu", field: "len", offset: 0, problem });
        };
        let Some(&[a, b, c, d]) = bytes.get(4..8) else { return Ok(None) };
        Ok(Some(Header { len, code: u32::from_be_bytes([a, b, c, d]) }))
    }

    /// Reads the header of a complete PDU and checks that its length is that of the
    /// bytes.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Header, DecodeError> {
        let total = reader.remaining();
        let found = reader.i32("len")?;
        let code = reader.u32("type")?;
        reader.u32("from")?;
        if usize::try_from(found) != Ok(total) {
            return Err(reader.error_at(0, "len", Problem::mismatch(found, total)));
        }
        Ok(Header { len: total, code })
    }

    /// The type, if it is one of `types`.
    pub(super) fn expect(
        self,
        structure: &'static str,
        types: &[PduType],
    ) -> Result<PduType, DecodeError> {
        let found = types.iter().find(|kind| kind.code() == self.code);
        found.copied().ok_or(DecodeError {
            structure,
            field: "type",
            offset: 4,
            problem: Problem::Type { found: self.code },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_judged_before_anything_else_arrives() {
        for bad in [0u32, 11, 0x8000_0000, 0x7fff_ffff, 65_537] {
            let error = Header::peek(&bad.to_be_bytes(), 65_536).expect_err("absurd length");
            assert_eq!(error.offset, 0, "{error}");
        }
        assert_eq!(Header::peek(&[0, 0, 0], 100), Ok(None));
        assert_eq!(Header::peek(&[0, 0, 0, 12, 0, 0, 0x70], 100), Ok(None));
        let whole = [0, 0, 0, 16, 0, 0, 0x70, 0x05];
        assert_eq!(Header::peek(&whole, 100), Ok(Some(Header { len: 16, code: 0x7005 })));
    }
}
