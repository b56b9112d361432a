//! Checks the array of event records that an EVENT or HIGHRES_EVENT block holds.
//!
//! The block's data, after its type and length:
//!
//! | offset | size | field    | meaning                                  |
//! |--------|------|----------|------------------------------------------|
//! | 0      | 4    | nrecords | number of records                        |
//! | 4      | ...  | records  | see below                                |
//!
//! A record; seconds and fractions have 4 bytes each in EVENT (microseconds)
//! and 8 bytes each in HIGHRES_EVENT (nanoseconds):
//!
//! | offset  | size  | field   | meaning                                          |
//! |---------|-------|---------|--------------------------------------------------|
//! | 0       | 8, 16 | stamp   | when it happened                                 |
//! | 8, 16   | 4     | flags   | most significant bit: records were missed        |
//! | 12, 20  | 4     | nparams | parameters that follow; if missed, records lost  |
//!
//! A parameter:
//!
//! | offset | size        | field | meaning                              |
//! |--------|-------------|-------|--------------------------------------|
//! | 0      | 4           | pmid  | metric                               |
//! | 4      | 1           | type  | type code of the value               |
//! | 5      | 3           | len   | 4 + number of data bytes             |
//! | 8      | len-4, padded | data | the value                           |
//!
//! Nothing is decoded here. The check ensures that a decoder will find every record and
//! parameter within the block.

use super::block::read_block_head;
use super::reader::{DecodeError, Reader};

/// Flag of a record that stands for lost records.
const MISSED: u32 = 0x8000_0000;

/// Size in bytes of a parameter without data.
const PARAMETER_BYTES: usize = 8;

/// Checks an array that takes the bytes of `pdu` from `offset` to the end. Time stamps
/// have `stamp_bytes` bytes.
pub(super) fn check(pdu: &[u8], offset: usize, stamp_bytes: usize) -> Result<(), DecodeError> {
    let mut reader = Reader::starting_at(pdu, offset, "event_array");
    let records = reader.count(stamp_bytes + 8, "nrecords")?;
    for _ in 0..records {
        reader.bytes(stamp_bytes, "stamp")?;
        if reader.u32("flags")? & MISSED != 0 {
            reader.u32("nparams")?;
            continue;
        }
        for _ in 0..reader.count(PARAMETER_BYTES, "nparams")? {
            reader.u32("pmid")?;
            let (_, len) = read_block_head(&mut reader, "len")?;
            reader.padded(len, "data")?;
        }
    }
    reader.finish()
}
