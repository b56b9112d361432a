//! The client's introduction: its first PDU. There is no reply to it if it succeeds.
//!
//! | offset | size  | field       | meaning                                        |
//! |--------|-------|-------------|------------------------------------------------|
//! | 0      | 12    | header      | type CREDS                                     |
//! | 12     | 4     | numcreds    | number of credentials                          |
//! | 16     | 4 * n | credentials | kind (8 bits), version (8 bits), flags (16 bits) |

use super::{DecodeError, Features, Pdu, PduType, Reader, Writer};

/// The credentials of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creds {
    /// Usually one credential, made by [`Credential::version_2`].
    pub credentials: Vec<Credential>,
}

/// One credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The kind of credential; 1 is the protocol version.
    pub kind: u8,
    /// The client's version of the protocol.
    pub version: u8,
    /// The features that the client asks for.
    pub flags: Features,
}

impl Credential {
    /// Protocol version 2 with the features that the client asks for.
    pub const fn version_2(flags: Features) -> Credential {
        Credential { kind: 1, version: 2, flags }
    }
}

impl<'a> Pdu<'a> for Creds {
    const NAME: &'static str = "creds";
    const TYPES: &'static [PduType] = &[PduType::Creds];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.count(4, "numcreds")?;
        let mut credentials = Vec::with_capacity(count);
        for _ in 0..count {
            let [kind, version, high, low] = reader.u32("credential")?.to_be_bytes();
            let flags = Features(u16::from_be_bytes([high, low]));
            credentials.push(Credential { kind, version, flags });
        }
        Ok(Creds { credentials })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.count(self.credentials.len());
        for credential in &self.credentials {
            let [high, low] = credential.flags.0.to_be_bytes();
            writer.u32(u32::from_be_bytes([credential.kind, credential.version, high, low]));
        }
    }
}
