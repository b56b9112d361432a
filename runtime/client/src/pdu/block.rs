//! The word before the data of a value: of a block in a result, and of a parameter in an
//! array of event records.
//!
//! | offset | size | field | meaning                    |
//! |--------|------|-------|----------------------------|
//! | 0      | 1    | type  | type code of the value     |
//! | 1      | 3    | len   | 4 + number of data bytes   |

use super::{DecodeError, Problem, Reader};

/// Type codes of event arrays.
pub(super) const EVENT: u8 = 9;
pub(super) const HIGHRES_EVENT: u8 = 10;

/// Reads the type code and the number of data bytes. Errors contain the name `field`.
pub(super) fn read_block_head(
    reader: &mut Reader<'_>,
    field: &'static str,
) -> Result<(u8, usize), DecodeError> {
    let offset = reader.offset();
    let [kind, a, b, c] = reader.u32(field)?.to_be_bytes();
    let found = u32::from_be_bytes([0, a, b, c]);
    let least = 4 + least_data_bytes(kind);
    if found < least {
        let problem =
            Problem::OutOfRange { found: found.into(), low: least.into(), high: 0xff_ffff };
        return Err(reader.error_at(offset, field, problem));
    }
    Ok((kind, usize::try_from(found - 4).unwrap_or(usize::MAX)))
}

/// Minimum number of data bytes of a value with a type code.
const fn least_data_bytes(kind: u8) -> u32 {
    match kind {
        // 32, U32, FLOAT, and event arrays, which begin with their number of records.
        0 | 1 | 4 | EVENT | HIGHRES_EVENT => 4,
        // 64, U64 and DOUBLE.
        2 | 3 | 5 => 8,
        _ => 0,
    }
}
