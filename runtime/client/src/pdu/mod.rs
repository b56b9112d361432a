//! The messages (PDUs) that a PMAPI client and pmcd exchange, and their encoding.
//!
//! Input: the bytes of one complete PDU. Output: plain values that borrow from them;
//! and the other way round. Every PDU begins with a [`Header`]. One file per exchange
//! has the layout of the rest. This module does no IO and does not know the order of
//! messages; [`crate::proto`] does.
//!
//! All integers are big-endian. Texts follow their length and are padded to a multiple
//! of four bytes. Padding is written as `~`; its contents are ignored when read.

mod attr;
mod block;
mod creds;
mod desc;
mod error;
mod event_array;
mod fetch;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod header;
mod instance;
mod label;
mod pmns;
mod profile;
mod reader;
mod result;
mod text;
mod writer;

pub use attr::{Attr, CONTAINER_KEY, MAX_CONTAINER_NAME, MAX_SASL_BYTES, SASL_KEY};
pub use creds::{Credential, Creds};
pub use desc::{Desc, DescIds, DescRequest, Descs};
pub use error::{ErrorPdu, Features, Hello};
pub use fetch::{Fetch, Resolution};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_pdu;
pub use header::{HEADER_BYTES, Header};
pub use instance::{InstanceRequest, Instances};
pub use label::{LabelRequest, Labels};
pub use pmns::{PmnsChild, PmnsIds, PmnsName, PmnsNames, PmnsTraverse};
pub use profile::{Profile, ProfileEntry};
pub use reader::{DecodeError, Problem, Reader};
pub use result::{ResultFrame, encode_result};
pub use text::{Text, TextRequest};
pub use writer::Writer;

/// Size of the largest PDU that pmcd accepts from a client by default (`-L` of
/// pmcd(1)).
pub const MAX_REQUEST_BYTES: usize = 65_536;

macro_rules! types {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal,)*) => {
        /// The type of a PDU, with its number on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum PduType {
            $($(#[doc = $doc])* $name = $code,)*
        }

        impl PduType {
            /// The number on the wire.
            pub const fn code(self) -> u32 {
                self as u32
            }

            /// The type with a number on the wire; `None` if this client does not know
            /// it.
            pub const fn from_code(code: u32) -> Option<PduType> {
                match code {
                    $($code => Some(PduType::$name),)*
                    _ => None,
                }
            }
        }
    };
}

types! {
    /// A status; also pmcd's greeting.
    Error = 0x7000,
    /// Values with microsecond stamps.
    Result = 0x7001,
    /// The instances that later fetches return.
    Profile = 0x7002,
    /// Request for values with microsecond stamps.
    Fetch = 0x7003,
    /// Request for one descriptor.
    DescRequest = 0x7004,
    /// One descriptor.
    Desc = 0x7005,
    /// Request for instances.
    InstanceRequest = 0x7006,
    /// Instances.
    Instances = 0x7007,
    /// Request for help text.
    TextRequest = 0x7008,
    /// Help text.
    Text = 0x7009,
    /// The client introduces itself.
    Creds = 0x700c,
    /// Metric identifiers.
    PmnsIds = 0x700d,
    /// Metric names.
    PmnsNames = 0x700e,
    /// Request for the children of a name-space node.
    PmnsChild = 0x700f,
    /// Request for all metric names below a node.
    PmnsTraverse = 0x7010,
    /// An attribute of the connection.
    Attr = 0x7011,
    /// Request for labels.
    LabelRequest = 0x7012,
    /// Labels.
    Labels = 0x7013,
    /// Request for values with nanosecond stamps.
    HighresFetch = 0x7014,
    /// Values with nanosecond stamps.
    HighresResult = 0x7015,
    /// Request for several descriptors.
    DescIds = 0x7016,
    /// Several descriptors.
    Descs = 0x7017,
}

/// A kind of message.
pub trait Pdu<'a>: Sized {
    /// Name of the structure in the messages of [`DecodeError`].
    const NAME: &'static str;

    /// The PDU types that carry this message.
    const TYPES: &'static [PduType];

    /// The PDU type of this value, one of [`Pdu::TYPES`].
    fn pdu_type(&self) -> PduType {
        Self::TYPES[0]
    }

    /// Decodes everything after the header.
    fn read(kind: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Encodes everything after the header.
    fn write(&self, writer: &mut Writer<'_>);

    /// Decodes one whole PDU. Its length must be the length of `pdu`.
    fn decode(pdu: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(pdu, Self::NAME);
        let header = Header::read(&mut reader)?;
        let kind = header.expect(Self::NAME, Self::TYPES)?;
        let value = Self::read(kind, &mut reader)?;
        reader.finish()?;
        Ok(value)
    }

    /// Appends one whole PDU to `out`.
    fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::begin(out, self.pdu_type());
        self.write(&mut writer);
        writer.finish();
    }
}

#[cfg(test)]
mod tests;
