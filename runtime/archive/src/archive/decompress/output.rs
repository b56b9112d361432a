//! The destination of expanded bytes.

use std::io::{self, Read, Write};

/// Number of bytes expanded at a time.
pub(super) const CHUNK: usize = 128 * 1024;

/// The contents of one unit. Bytes beyond the limit are refused.
pub(super) struct Output<'a> {
    sink: &'a mut dyn Write,
    written: u64,
    /// Number of bytes in all earlier units.
    before: u64,
    /// Maximum number of bytes in all units together.
    limit: u64,
}

impl<'a> Output<'a> {
    /// Accepts up to `limit` bytes.
    pub(super) fn new(sink: &'a mut dyn Write, limit: u64) -> Output<'a> {
        Output::after(0, sink, limit)
    }

    /// Accepts bytes that follow `before` earlier ones, up to `limit` bytes together.
    pub(super) fn after(before: u64, sink: &'a mut dyn Write, limit: u64) -> Output<'a> {
        Output { sink, written: 0, before, limit }
    }

    /// Number of bytes written here.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Writes everything that a decoder gives, and passes each piece to `visit` as
    /// well.
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
