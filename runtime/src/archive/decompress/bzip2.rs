//! What `bzip2` expands: streams, one after the other, with a checksum each.

use std::io;

use bzip2::bufread::BzDecoder;

use super::expansion;
use super::input::Input;
use super::output::Output;

/// The streams of a file.
#[derive(Default)]
pub(super) struct Units {
    is_begun: bool,
}

impl expansion::Units for Units {
    fn next(&mut self, input: &mut Input, output: &mut Output<'_>) -> io::Result<bool> {
        if std::mem::replace(&mut self.is_begun, true) && input.peek::<1>()?.is_none() {
            return Ok(false);
        }
        output.take_all(&mut BzDecoder::new(input), |_| {})?;
        Ok(true)
    }
}
