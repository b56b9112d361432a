//! The columns of a line. All have the same width, and a blank follows each.

/// A line that is being written.
pub struct Row<'o> {
    out: &'o mut Vec<u8>,
    width: usize,
}

impl Row<'_> {
    /// A line whose columns are appended to `out`.
    pub fn new(out: &mut Vec<u8>, width: usize) -> Row<'_> {
        Row { out, width }
    }

    /// Writes a column. `short` fills its blanks. If it returns false, `long` writes behind the
    /// columns before, in any width.
    #[inline]
    pub fn column(
        &mut self,
        short: impl FnOnce(&mut [u8]) -> bool,
        long: impl FnOnce(&mut Vec<u8>),
    ) {
        let at = self.out.len();
        self.out.resize(at + self.width, b' ');
        if !short(&mut self.out[at..]) {
            self.out.truncate(at);
            long(self.out);
        }
        self.out.push(b' ');
    }

    /// Writes a column with a single character, on the right.
    pub fn character(&mut self, character: u8) {
        self.text(&[character]);
    }

    /// Writes a column with text, on the right.
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
            let mut row = Row::new(&mut out, width);
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
            assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
        }
    }
}
