//! Where decoders put what they expand.

use std::io::{self, Read, Write};

/// Expanded at a time.
pub(super) const CHUNK: usize = 128 * 1024;

/// The contents of one unit, of which no more is taken than is allowed.
pub(super) struct Output<'a> {
    sink: &'a mut dyn Write,
    written: u64,
    /// Bytes of the units before.
    before: u64,
    /// Most that all of them together may be.
    limit: u64,
}

impl<'a> Output<'a> {
    /// Takes up to `limit` bytes.
    pub(super) fn new(sink: &'a mut dyn Write, limit: u64) -> Output<'a> {
        Output::behind(0, sink, limit)
    }

    /// Takes what follows `before` bytes, up to `limit` bytes together.
    pub(super) fn behind(before: u64, sink: &'a mut dyn Write, limit: u64) -> Output<'a> {
        Output { sink, written: 0, before, limit }
    }

    /// Bytes that were put here.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Puts all that a decoder gives here, and hands it to `visit` as well.
    pub(super) fn take_all(
        &mut self,
        decoder: &mut dyn Read,
        mut visit: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            match decoder.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    visit(&chunk[..count]);
                    self.write_all(&chunk[..count])?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written += bytes.len() as u64;
        if self.before.saturating_add(self.written) > self.limit {
            let message = format!("it expands to more than the {} bytes allowed", self.limit);
            return Err(io::Error::other(message));
        }
        self.sink.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
