//! The interface of a decoder: it expands a whole file, unit by unit.

use std::io;

use super::input::Input;
use super::output::Output;

/// A decoder that goes through a file unit by unit. A unit is the smallest part whose
/// contents can be checked once all of it was expanded.
pub(super) trait Units: Send {
    /// Expands the next unit. False at the end of the file. The first unit is the one
    /// at the start of the input.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if, and only if, the file ends within a unit.
    /// The expanded part of that unit is used although no checksum confirms it.
    fn next(&mut self, input: &mut Input, output: &mut Output<'_>) -> io::Result<bool>;
}
