//! Help text of a metric or of an instance domain.
//!
//! | offset | size   | field  | TEXT_REQ                                   | TEXT                |
//! |--------|--------|--------|--------------------------------------------|---------------------|
//! | 0      | 12     | header | type TEXT_REQ                              | type TEXT           |
//! | 12     | 4      | ident  | metric or instance domain                  | without meaning     |
//! | 16     | 4      |        | type: 1 one line, 2 full; 4 metric, 8 domain | buflen            |
//! | 20     | padded |        |                                            | text                |
//!
//! Servers on little-endian machines return `ident` with swapped bytes.

use pmderive_core::model::{TextKind, TextSubject};

use super::{DecodeError, Pdu, PduType, Problem, Reader, Writer};

/// Request for help text (`pmLookupText(3)`, `pmLookupInDomText(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRequest {
    /// The metric or instance domain.
    pub subject: TextSubject,
    /// One line, or the long text.
    pub kind: TextKind,
}

impl<'a> Pdu<'a> for TextRequest {
    const NAME: &'static str = "text_req";
    const TYPES: &'static [PduType] = &[PduType::TextRequest];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let ident = reader.u32("ident")?;
        let offset = reader.offset();
        let found = reader.u32("type")?;
        let (subject, kind) = TextSubject::from_wire(found, ident).ok_or_else(|| {
            let problem = Problem::OutOfRange { found: i64::from(found), low: 5, high: 10 };
            reader.error_at(offset, "type", problem)
        })?;
        Ok(TextRequest { subject, kind })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let (text_type, ident) = self.subject.to_wire(self.kind);
        writer.u32(ident);
        writer.u32(text_type);
    }
}

/// Help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// As received; do not rely on it.
    pub ident: u32,
    /// Usually UTF-8, possibly with newlines or empty.
    pub text: &'a [u8],
}

impl<'a> Pdu<'a> for Text<'a> {
    const NAME: &'static str = "text";
    const TYPES: &'static [PduType] = &[PduType::Text];

    fn read(_: PduType, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let ident = reader.u32("ident")?;
        let len = reader.count(1, "buflen")?;
        let text = reader.bytes(len, "text")?;
        // Servers send different numbers of bytes after the text.
        reader.bytes(reader.remaining(), "padding")?;
        Ok(Text { ident, text })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.ident);
        writer.text(self.text);
    }
}
