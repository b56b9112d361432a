//! A line of columns that are equally wide, with a blank behind each.
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

impl<'o> Row<'o> {
    /// Appends a line to `out`.
    pub fn begin(out: &'o mut Vec<u8>, width: usize, columns: usize) -> Row<'o> {
        let at = out.len();
        let mut row = Row { out, at, width, left: columns };
        row.make_blank();
        row
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

    /// Ends the line behind its last column.
    pub fn end(self) {
        self.out.push(b'\n');
    }

    /// Ends the line in the place of the last blank.
    pub fn end_close(self) {
        if let Some(last) = self.out.last_mut() {
            *last = b'\n';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_moves_the_columns_behind_it() {
        for (width, expected) in [
            (3, "of   a 12345     long |\n"),
            (1, "of a 12345   long |\n"),
            (0, "of a 12345  long |\n"),
        ] {
            let mut out = b"of ".to_vec();
            let mut row = Row::begin(&mut out, width, 5);
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
            row.end();
            assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
        }
        let mut out = Vec::new();
        let mut row = Row::begin(&mut out, 3, 1);
        row.text(b"1");
        row.end_close();
        assert_eq!(out, b"  1\n");
    }
}
