//! An attribute of the connection; without a reply on success.
//!
//! | offset | size     | field  | meaning                                      |
//! |--------|----------|--------|----------------------------------------------|
//! | 0      | 12       | header | type ATTR                                    |
//! | 12     | 4        | key    | 15: name of the container to look into       |
//! | 16     | len - 16 | value  | bytes without terminator and without padding |
//!
//! A client sends the container's name once, straight after its credentials.

use super::{DecodeError, Pdu, PduType, Reader, Writer};

/// Key of the container's name.
pub const CONTAINER_KEY: i32 = 15;

/// Longest name of a container that agents can take.
pub const MAX_CONTAINER_NAME: usize = 4094;

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr<'a> {
    /// Which one it is.
    pub key: i32,
    /// Its value.
    pub value: &'a [u8],
}

impl<'a> Pdu<'a> for Attr<'a> {
    const NAME: &'static str = "attr";
    const TYPES: &'static [PduType] = &[PduType::Attr];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let key = reader.i32("key")?;
        Ok(Attr { key, value: reader.bytes(reader.remaining(), "value")? })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.i32(self.key);
        writer.bytes(self.value);
    }
}
