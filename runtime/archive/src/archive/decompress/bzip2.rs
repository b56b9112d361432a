//! Expands files of `bzip2`: streams, one after the other, each with a checksum.

use std::io::{self, BufRead, Write};

use bzip2::{Decompress, Status};

use super::input::Input;
use super::output::{CHUNK, Output};

/// The streams of a file.
pub(super) struct Units;

impl super::units::Units for Units {
    fn next(&mut self, input: &mut Input, output: &mut Output<'_>) -> io::Result<bool> {
        if input.position() > 0 && input.peek::<1>()?.is_none() {
            return Ok(false);
        }
        // The crate's own reader reports lack of memory as bad data.
        let mut stream = Decompress::new(false);
        let mut chunk = vec![0; CHUNK];
        loop {
            let (read, written) = (stream.total_in(), stream.total_out());
            let bytes = input.fill_buf()?;
            let is_over = bytes.is_empty();
            let status = stream.decompress(bytes, &mut chunk);
            // Neither number exceeds a chunk, so both fit into `usize`.
            let (read, written) = (stream.total_in() - read, stream.total_out() - written);
            input.consume(read as usize);
            let bad = |error| io::Error::new(io::ErrorKind::InvalidData, error);
            let status = status.map_err(bad)?;
            output.write_all(&chunk[..written as usize])?;
            match status {
                Status::StreamEnd => return Ok(true),
                Status::MemNeeded => {
                    return Err(io::Error::other("there is too little memory for bzip2"));
                }
                _ if is_over && written == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        }
    }
}
