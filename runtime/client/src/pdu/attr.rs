//! An attribute of the connection, or one message of an authentication.
//!
//! | offset | size     | field  | meaning                                      |
//! |--------|----------|--------|----------------------------------------------|
//! | 0      | 12       | header | type ATTR                                    |
//! | 12     | 4        | key    | 0: SASL, 15: name of the container           |
//! | 16     | len - 16 | value  | bytes without terminator and without padding |
//!
//! Both sides send SASL messages, directly after the client's credentials. Then the
//! client may name the container to look into, once. There is no reply to that if it
//! succeeds.

use super::{DecodeError, Pdu, PduType, Reader, Writer};

/// Key of a SASL message.
pub const SASL_KEY: i32 = 0;

/// Maximum length of a SASL message in bytes.
pub const MAX_SASL_BYTES: usize = 2047;

/// Key of the container's name.
pub const CONTAINER_KEY: i32 = 15;

/// Maximum length in bytes of a container's name that agents accept.
pub const MAX_CONTAINER_NAME: usize = 4094;

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr<'a> {
    /// The kind of attribute, such as [`SASL_KEY`].
    pub key: i32,
    /// The value, in the form that its kind has.
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
