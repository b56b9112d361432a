//! Standard output of commands that come to their end by themselves.
//!
//! Such a command goes on when nobody reads its output any more, as behind
//! `| head`: its exit status is still wanted. Commands that might go on for
//! ever write by themselves and stop with [`Stop::OutputClosed`].

use std::io::{self, BufWriter, ErrorKind, Write};

use super::Stop;

/// Prints a text.
///
/// # Errors
/// It cannot be written, for another reason than that nobody reads it.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Stop> {
    write(|out| out.write_all(text.as_ref()))
}

/// Prints what a function writes, in large pieces.
///
/// # Errors
/// As those of [`print`].
pub fn write(writes: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Stop> {
    let mut out = BufWriter::new(io::stdout().lock());
    match writes(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            // Nothing is left to be written when it is dropped.
            let _ = out.into_parts();
            Ok(())
        }
        done => Ok(done?),
    }
}
