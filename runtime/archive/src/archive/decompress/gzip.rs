//! Expands files of `gzip`. The first two bytes of the file decide about its format, not its
//! suffix: members of gzip, each with a checksum, or one file of `compress` or `pack`, which have
//! no checksum.

use std::io;

use flate2::bufread::GzDecoder;

use super::input::Input;
use super::output::Output;
use super::{lzw, pack};

fn bad(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// The members of a file.
pub(super) struct Units;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const COMPRESS: [u8; 2] = [0x1f, 0x9d];
const PACK: [u8; 2] = [0x1f, 0x1e];

impl super::units::Units for Units {
    fn next(&mut self, input: &mut Input, output: &mut Output<'_>) -> io::Result<bool> {
        let is_first = input.position() == 0;
        // Tape drives have filled the rest of a block with zeros.
        if !is_first && input.skip_zeros()? {
            return Ok(false);
        }
        match input.peek()? {
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
            // A member that ends early may be damaged, not just cut. Then its expanded
            // part is wrong and must not be used.
            Some(GZIP) => output.take_all(&mut GzDecoder::new(input), |_| {}).map_err(|e| {
                let is_cut = e.kind() == io::ErrorKind::UnexpectedEof;
                if is_cut { bad("a member ends too early") } else { e }
            })?,
            Some(COMPRESS) if is_first => lzw::expand(input, output)?,
            Some(PACK) if is_first => pack::expand(input, output)?,
            Some(_) => {
                let message = match is_first {
                    true => "this is not gzip, compress or pack data",
                    false => "the data after a gzip member are not another member",
                };
                return Err(bad(message));
            }
        }
        Ok(true)
    }
}
