//! Expands files of `zstd`: frames, one after the other. Most have a checksum.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::input::Input;
use super::output::Output;

/// Magic number of a frame.
const FRAME: u32 = 0xfd2f_b528;

/// Magic number of a frame without contents. Its low four bits may have any value.
const SKIPPABLE: u32 = 0x184d_2a50;

/// The frames of a file.
pub(super) struct Units;

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// The decoder's error, or [`io::ErrorKind::UnexpectedEof`] at the end of the file. The
/// decoder reports the end in many ways.
fn cut_or(input: &mut Input, error: FrameDecoderError) -> io::Error {
    match input.fill_buf() {
        Ok([]) => io::ErrorKind::UnexpectedEof.into(),
        _ => invalid(error),
    }
}

impl super::units::Units for Units {
    fn next(&mut self, input: &mut Input, output: &mut Output<'_>) -> io::Result<bool> {
        let decoder = loop {
            if input.position() > 0 && input.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let begins_frame = |first: u8| {
                u32::from(first) == FRAME & 0xff || u32::from(first & !15) == SKIPPABLE & 0xff
            };
            if input.position() > 0 && !input.peek()?.is_some_and(|[first]| begins_frame(first)) {
                return Err(invalid("bytes that are not a frame follow the end of the data"));
            }
            let Some(magic) = input.peek()?.map(u32::from_le_bytes) else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            if magic != FRAME && magic & !15 != SKIPPABLE {
                return Err(invalid("this is not zstd data"));
            }
            // A new decoder allocates memory for data as they come, not for the size
            // that a frame announces.
            let mut decoder = FrameDecoder::new();
            match decoder.init(&mut *input) {
                Ok(()) => break decoder,
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut Read::take(&mut *input, length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(e) => return Err(cut_or(input, e)),
            }
        };
        let mut frame = Frame { input, decoder };
        output.take_all(&mut frame, |_| {})?;
        match frame.decoder.get_checksum_from_data() {
            Some(stored) if frame.decoder.get_calculated_checksum() != Some(stored) => {
                Err(invalid("the checksum of a frame differs"))
            }
            _ => Ok(true),
        }
    }
}

/// The contents of one frame.
struct Frame<'a> {
    input: &'a mut Input,
    decoder: FrameDecoder,
}

impl Read for Frame<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let blocks = BlockDecodingStrategy::UptoBlocks(1);
            let decoded = self.decoder.decode_blocks(&mut *self.input, blocks);
            decoded.map_err(|e| cut_or(self.input, e))?;
        }
        self.decoder.read(buffer)
    }
}
