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

use pmderive_core::model::{InDom, Pmid, TextKind, TextSubject};

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
        let (subject, kind) = match reader.u32("type")? {
            5 => (TextSubject::Metric(Pmid(ident)), TextKind::OneLine),
            6 => (TextSubject::Metric(Pmid(ident)), TextKind::Help),
            9 => (TextSubject::Domain(InDom(ident)), TextKind::OneLine),
            10 => (TextSubject::Domain(InDom(ident)), TextKind::Help),
            found => {
                let problem = Problem::OutOfRange { found: i64::from(found), low: 5, high: 10 };
                return Err(reader.error_at(offset, "type", problem));
            }
        };
        Ok(TextRequest { subject, kind })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let (ident, subject) = match self.subject {
            TextSubject::Metric(pmid) => (pmid.0, 4),
            TextSubject::Domain(indom) => (indom.0, 8),
        };
        let kind = match self.kind {
            TextKind::OneLine => 1,
            TextKind::Help => 2,
        };
        writer.u32(ident);
        writer.u32(subject | kind);
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
