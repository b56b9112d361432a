//! The compressed bytes of a file, and the position of the next one to read.

use std::io::{self, BufRead, Read};

use crate::archive::bytes::Bytes;

/// Number of bytes read at a time.
const CHUNK: usize = 64 * 1024;

/// Reads a file from front to back, and from any offset after a jump.
pub(super) struct Input {
    bytes: Box<dyn Bytes>,
    buffer: Vec<u8>,
    /// Offset in the file of the first byte in the buffer.
    start: u64,
    /// Number of bytes in the buffer that were handed out.
    used: usize,
}

impl Input {
    pub(super) fn new(bytes: Box<dyn Bytes>) -> Input {
        Input { bytes, buffer: Vec::new(), start: 0, used: 0 }
    }

    /// Offset in the file of the next byte to read.
    pub(super) fn position(&self) -> u64 {
        self.start.saturating_add(self.used as u64)
    }

    /// Continues at `offset`.
    pub(super) fn seek(&mut self, offset: u64) {
        match offset.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok()) {
            Some(skip) if skip <= self.buffer.len() => self.used = skip,
            _ => {
                self.buffer.clear();
                (self.start, self.used) = (offset, 0);
            }
        }
    }

    /// Size of the file in bytes.
    pub(super) fn size(&mut self) -> io::Result<u64> {
        self.bytes.size()
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut array = [0; N];
        self.read_exact(&mut array)?;
        Ok(array)
    }

    /// The next `N` bytes, which stay unread. `None` if there are fewer.
    pub(super) fn peek<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        let position = self.position();
        let mut array = [0; N];
        let mut filled = 0;
        while filled < N {
            match self.read(&mut array[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        self.seek(position);
        Ok((filled == N).then_some(array))
    }

    /// Skips bytes that are zero. True at the end of the file.
    pub(super) fn skip_zeros(&mut self) -> io::Result<bool> {
        loop {
            let buffer = self.fill_buf()?;
            if buffer.is_empty() {
                return Ok(true);
            }
            let zeros = buffer.iter().take_while(|byte| **byte == 0).count();
            let is_over = zeros < buffer.len();
            self.consume(zeros);
            if is_over {
                return Ok(false);
            }
        }
    }
}

impl Read for Input {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let buffer = self.fill_buf()?;
        let count = buffer.len().min(target.len());
        target[..count].copy_from_slice(&buffer[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.buffer.len() {
            self.start = self.position();
            self.used = 0;
            self.buffer.resize(CHUNK, 0);
            let count = self.bytes.read_at(self.start, &mut self.buffer);
            self.buffer.truncate(*count.as_ref().unwrap_or(&0));
            count?;
        }
        Ok(&self.buffer[self.used..])
    }

    fn consume(&mut self, count: usize) {
        self.used = (self.used + count).min(self.buffer.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn positions_are_kept_through_jumps_and_buffers() {
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        let mut input = Input::new(Box::new(Arc::<[u8]>::from(bytes.as_slice())));
        for offset in [0, 65_530, 10, 199_990, 131_070] {
            input.seek(offset as u64);
            assert_eq!(input.peek::<10>().expect("memory"), bytes[offset..].first_chunk().copied());
            assert_eq!(input.array::<10>().expect("memory"), bytes[offset..][..10]);
            assert_eq!(input.position(), offset as u64 + 10);
        }
        input.seek(199_995);
        assert_eq!(input.peek::<10>().expect("memory"), None);
        assert_eq!(input.position(), 199_995);
        assert!(input.array::<10>().is_err());
    }

    #[test]
    fn zeros_are_passed() {
        let mut bytes = vec![0; 100_000];
        let input = |bytes: &[u8]| Input::new(Box::new(Arc::<[u8]>::from(bytes)));
        assert!(input(&bytes).skip_zeros().expect("memory"));
        bytes[90_000] = 1;
        let mut input = input(&bytes);
        assert!(!input.skip_zeros().expect("memory"));
        assert_eq!(input.position(), 90_000);
    }
}
