//! Standard output and standard error of the commands. This module escapes text that would
//! control a terminal (see [`escape`]).
//!
//! ```text
//!                     Escaping: text of others, on one line
//!                         │
//! a command's lines ──► Output: whatever is left but ends of lines ──► standard output
//!             errors ──► Messages ───────────────────────────────────► standard error
//! ```
//!
//! Foreign text is: names and values of a source, names of files, texts of definitions. The
//! code that puts such a text into a line escapes it with [`Escaping`]. Later an end of line in
//! it looks like the end of the line. [`Output`] escapes everything else, so that no command
//! can forget it. The commands write to these streams only through this module. Diagnostics are
//! escaped before they are coloured.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::appearance;
use super::stop::Stop;
use crate::escape;
use crate::text::Escaping;

/// Purpose of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For programs as well: a pipe gets every byte unchanged.
    Exact,
    /// For programs as well, with fields in quotes (RFC 4180), which may contain ends of lines.
    Csv,
    /// For people.
    Text,
}

impl Purpose {
    /// Whether foreign text is escaped, on a terminal or elsewhere.
    pub fn escaping(self, is_terminal: bool, is_raw: bool) -> Escaping {
        match (self, is_terminal) {
            _ if is_raw => Escaping::Off,
            (_, true) | (Purpose::Text, _) => Escaping::On,
            (Purpose::Exact | Purpose::Csv, false) => Escaping::Off,
        }
    }
}

/// True if standard output is a terminal.
pub fn shows_output() -> bool {
    io::stdout().is_terminal()
}

/// True if standard output has no reader any more, as behind `| head`.
pub fn is_output_closed() -> bool {
    is_closed(&io::stdout())
}

/// True if a pipe has no reader any more.
pub fn is_closed(output: &impl AsFd) -> bool {
    let mut output = [PollFd::new(output, PollFlags::empty())];
    poll(&mut output, Some(&Timespec::default())).is_ok()
        && output[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Columns of the terminal on standard output; 80 without one.
pub fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { 80 } else { columns }
}

/// True if standard error is a terminal.
pub fn shows_errors() -> bool {
    io::stderr().is_terminal()
}

/// Writes to standard error.
///
/// # Errors
/// It is closed.
pub fn write_error(text: &[u8]) -> io::Result<()> {
    io::stderr().lock().write_all(text)
}

/// Bytes that are buffered before an early write.
const FULL: usize = 1 << 18;

/// Standard output, buffered until the next flush.
///
/// It is a vector of the buffered bytes, for the program's own numbers and words. Foreign text
/// goes through [`Output::text`].
pub struct Output {
    sink: Box<dyn Write + Send>,
    bytes: Vec<u8>,
    purpose: Purpose,
    escaping: Escaping,
    is_terminal: bool,
    /// True within a field in quotes.
    is_quoted: bool,
}

impl Output {
    /// Standard output for text with this purpose.
    pub fn standard(purpose: Purpose, is_raw: bool) -> Output {
        Output::to(Box::new(io::stdout()), shows_output(), purpose, is_raw)
    }

    /// Output to a terminal that the user named as a file.
    pub fn terminal(file: File, purpose: Purpose, is_raw: bool) -> Output {
        Output::to(Box::new(file), true, purpose, is_raw)
    }

    fn to(
        sink: Box<dyn Write + Send>,
        is_terminal: bool,
        purpose: Purpose,
        is_raw: bool,
    ) -> Output {
        let escaping = purpose.escaping(is_terminal, is_raw);
        Output { sink, bytes: Vec::new(), purpose, escaping, is_terminal, is_quoted: false }
    }

    /// Whether foreign text is escaped, for lines that are made elsewhere.
    pub fn escaping(&self) -> Escaping {
        self.escaping
    }

    /// Appends foreign text to a line.
    pub fn text(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(&self.escaping.bytes(text));
    }

    /// Prints a text of a command that ends by itself. Such a command goes on without a reader,
    /// as behind `| head`: its exit status still matters. Commands that may run for ever write
    /// on their own, and stop with [`Stop::OutputClosed`].
    ///
    /// # Errors
    /// The write fails, except if the output has no reader any more.
    pub fn print(&mut self, text: impl AsRef<[u8]>) -> Result<(), Stop> {
        let written = self.write_all(text.as_ref());
        self.end(written)
    }

    /// As [`Output::print`], for a text that was written piece by piece.
    ///
    /// # Errors
    /// As those of [`Output::print`].
    pub fn end(&mut self, written: io::Result<()>) -> Result<(), Stop> {
        match written.and_then(|()| self.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            done => Ok(done?),
        }
    }

    /// Writes bytes unbuffered.
    fn emit(&mut self, bytes: &[u8]) -> io::Result<()> {
        let shown: Cow<'_, [u8]> = match (self.escaping, self.purpose) {
            (Escaping::Off, _) => bytes.into(),
            (Escaping::On, Purpose::Csv) => table(bytes, &mut self.is_quoted).into_bytes().into(),
            (Escaping::On, Purpose::Exact | Purpose::Text) => match escape::lines(bytes) {
                Cow::Borrowed(text) => text.as_bytes().into(),
                Cow::Owned(text) => text.into_bytes().into(),
            },
        };
        let drawn = self.is_terminal && self.purpose == Purpose::Text;
        let shown = appearance::on(drawn, &shown);
        self.sink.write_all(&shown).and_then(|()| self.sink.flush())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        // A character is never cut in two at the end of a line.
        if self.bytes.len() + bytes.len() >= FULL
            && let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n')
        {
            let lines;
            (lines, rest) = bytes.split_at(end + 1);
            match self.bytes.is_empty() {
                true => self.emit(lines)?,
                false => {
                    self.bytes.extend_from_slice(lines);
                    self.flush()?;
                }
            }
        }
        self.bytes.extend_from_slice(rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.bytes);
        let written = self.emit(&bytes);
        // No byte is written twice, not even after a write that failed.
        bytes.clear();
        self.bytes = bytes;
        written
    }
}

impl Deref for Output {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Output {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// Escapes lines of a table, in which text between quotes is a field.
fn table(text: &[u8], is_quoted: &mut bool) -> String {
    let mut out = String::new();
    for (at, part) in text.split(|byte| *byte == b'"').enumerate() {
        if at > 0 {
            out.push('"');
            *is_quoted = !*is_quoted;
        }
        let is_own = |character| character == '\n' && !*is_quoted;
        let is_escaped = |character| !is_own(character) && escape::is_unshown(character);
        out.push_str(&escape::escaped(part, is_escaped));
    }
    out
}

/// Standard output for messages of a protocol, which no terminal shows.
#[cfg(feature = "lsp")]
pub fn protocol_output() -> impl Write + Send + 'static {
    io::stdout()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gets_what_it_is_for() {
        use Escaping::{Off, On};
        for (purpose, in_a_pipe) in
            [(Purpose::Exact, Off), (Purpose::Csv, Off), (Purpose::Text, On)]
        {
            assert_eq!(purpose.escaping(false, false), in_a_pipe);
            assert_eq!(purpose.escaping(true, false), On);
            assert_eq!(purpose.escaping(false, true), Off);
            assert_eq!(purpose.escaping(true, true), Off);
        }
        assert_eq!(*Off.bytes(b"a\n\xff"), b"a\n\xff"[..]);
        assert_eq!(*On.bytes(b"a\n\xff"), b"a\\x0a\\xff"[..]);
        assert_eq!(Off.text("a\n"), "a\n");
        assert_eq!(On.text("a\n"), "a\\x0a");
    }

    #[test]
    fn ends_of_lines_within_fields_are_not_those_of_the_table() {
        let mut is_quoted = false;
        let shown = table(b"a,\"b\nc \"\"d\n\"\"\",\te\nf,\"\x1b\n", &mut is_quoted);
        assert_eq!(shown, "a,\"b\\x0ac \"\"d\\x0a\"\"\",\\x09e\nf,\"\\x1b\\x0a");
        assert_eq!(table(b"\n\"\n", &mut is_quoted), "\\x0a\"\n");
    }
}
