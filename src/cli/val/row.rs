//! The columns of a line, which are equally wide, with a blank behind each.
//!
//! Knows where columns are, not what is in them.

/// A line that is being written.
pub struct Row<'o> {
    out: &'o mut Vec<u8>,
    /// Where the next column begins. From there on there are blanks.
    at: usize,
    width: usize,
    /// Columns that are not written yet.
    left: usize,
}

impl Row<'_> {
    /// Appends the columns of a line to `out`, as many as `columns`, which
    /// `write` writes in turn. Where it fails the line ends behind what it has
    /// written.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write<E>(
        out: &mut Vec<u8>,
        width: usize,
        columns: usize,
        write: impl FnOnce(&mut Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let at = out.len();
        let mut row = Row { out, at, width, left: columns };
        row.make_blank();
        let written = write(&mut row);
        if written.is_err() {
            row.out.truncate(row.at);
        }
        written
    }

    fn make_blank(&mut self) {
        let rest = self.left.saturating_mul(self.width.saturating_add(1));
        self.out.resize(self.at + rest, b' ');
    }

    /// Writes a column: `short` into its blanks, or if that gives false `long`
    /// behind the columns before, in as much space as it takes.
    #[inline]
    pub fn column(
        &mut self,
        short: impl FnOnce(&mut [u8]) -> bool,
        long: impl FnOnce(&mut Vec<u8>),
    ) {
        self.left -= 1;
        let end = self.at + self.width;
        if short(&mut self.out[self.at..end]) {
            self.at = end + 1;
            return;
        }
        self.out.truncate(self.at);
        long(self.out);
        self.out.push(b' ');
        self.at = self.out.len();
        self.make_blank();
    }

    /// Writes a column of a single character, on the right.
    pub fn character(&mut self, character: u8) {
        let short = |blanks: &mut [u8]| match blanks.last_mut() {
            Some(last) => {
                *last = character;
                true
            }
            None => false,
        };
        self.column(short, |out| out.push(character));
    }

    /// Writes a column of text, on the right.
    pub fn text(&mut self, text: &[u8]) {
        let short = |blanks: &mut [u8]| match blanks.len().checked_sub(text.len()) {
            Some(first) => {
                blanks[first..].copy_from_slice(text);
                true
            }
            None => false,
        };
        self.column(short, |out| out.extend_from_slice(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_moves_the_columns_behind_it() {
        for (width, expected) in [
            (3, "of   a 12345     long | "),
            (1, "of a 12345   long | "),
            (0, "of a 12345  long | "),
        ] {
            let mut out = b"of ".to_vec();
            let written: Result<(), ()> = Row::write(&mut out, width, 5, |row| {
                row.character(b'a');
                row.text(b"12345");
                row.text(b"");
                row.column(
                    |blanks| {
                        blanks.fill(b'x');
                        false
                    },
                    |out| out.extend_from_slice(b"long"),
                );
                row.column(|_| false, |out| out.push(b'|'));
                Ok(())
            });
            assert_eq!(written, Ok(()));
            assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
        }
        let mut out = b"of ".to_vec();
        let written = Row::write(&mut out, 3, 2, |row| {
            row.text(b"2");
            Err("no more")
        });
        assert_eq!((written, &out[..]), (Err("no more"), &b"of   2 "[..]));
    }
}
