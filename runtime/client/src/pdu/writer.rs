//! Appends one PDU to a buffer.
//!
//! The length in the header is written last. The values come from this process, so
//! nothing here fails: a count or length beyond 31 bits is written as the largest
//! number, which every peer refuses.

use pmderive_core::model::Pmid;

use super::PduType;

/// A PDU that is being written at the end of a buffer.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
}

impl<'o> Writer<'o> {
    /// Begins a PDU of a type.
    pub fn begin(out: &'o mut Vec<u8>, kind: PduType) -> Writer<'o> {
        let start = out.len();
        let mut writer = Writer { out, start };
        writer.u32(0);
        writer.u32(kind.code());
        writer.u32(0);
        writer
    }

    /// Completes the PDU by writing its length.
    pub fn finish(self) {
        let total = wire_count(self.written());
        self.out[self.start..self.start + 4].copy_from_slice(&total.to_be_bytes());
    }

    /// An unsigned word.
    pub fn u32(&mut self, word: u32) {
        self.out.extend_from_slice(&word.to_be_bytes());
    }

    /// A signed word.
    pub fn i32(&mut self, word: i32) {
        self.out.extend_from_slice(&word.to_be_bytes());
    }

    /// A signed double word.
    pub fn i64(&mut self, word: i64) {
        self.out.extend_from_slice(&word.to_be_bytes());
    }

    /// A number of entries or bytes. Numbers beyond 31 bits become the largest one.
    pub fn count(&mut self, count: usize) {
        self.i32(wire_count(count));
    }

    /// The number of metrics, and the metrics.
    pub fn pmids(&mut self, pmids: &[Pmid]) {
        self.count(pmids.len());
        for pmid in pmids {
            self.u32(pmid.0);
        }
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Number of bytes of the PDU so far.
    pub fn written(&self) -> usize {
        self.out.len() - self.start
    }

    /// The bytes, and padding to a multiple of four.
    pub fn padded(&mut self, bytes: &[u8]) {
        self.bytes(bytes);
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        self.bytes(&b"~~~"[..padding]);
    }

    /// The length, the bytes, and padding to a multiple of four.
    pub fn text(&mut self, text: &[u8]) {
        self.count(text.len());
        self.padded(text);
    }
}

fn wire_count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
