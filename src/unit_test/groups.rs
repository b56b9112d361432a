//! Names of groups of hosts, such as `{rack="a",dc="x"}`, read as labels.
//!
//! Users choose blanks and the order of labels.

use std::ops::Range;

use super::cursor::{Cursor, TextError};

/// The labels in the name of a group, by name.
pub(super) type GroupLabels = Vec<(String, String)>;

/// Reads the name of a group.
pub(super) fn labels_of(name: &str) -> Result<GroupLabels, TextError> {
    let mut labels = Cursor::new(name).labels()?;
    labels.sort();
    Ok(labels)
}

/// The notation of groups.
impl<'t> Cursor<'t> {
    fn labels(&mut self) -> Result<GroupLabels, TextError> {
        let mut labels = GroupLabels::new();
        self.expect("{", "a group begins with `{`")?;
        if !self.takes("}") {
            loop {
                let (name, place) = self.name()?;
                if labels.iter().any(|(known, _)| *known == name) {
                    return Err(TextError::new(place, format!("the label `{name}` is twice")));
                }
                self.expect("=", "a label has `=` and its value behind its name")?;
                self.expect("\"", "the value of a label stands in double quotes")?;
                labels.push((name.to_owned(), self.value()?));
                if self.takes("}") {
                    break;
                }
                self.expect(",", "`,` or `}` is due behind a label")?;
            }
        }
        self.skip_blanks();
        match self.rest().is_empty() {
            true => Ok(labels),
            false => Err(self.wrong("nothing can follow the `}` of a group")),
        }
    }

    /// Skips blanks, and these characters if they come next. Returns whether they did.
    fn takes(&mut self, wanted: &str) -> bool {
        self.skip_blanks();
        self.take(wanted)
    }

    fn expect(&mut self, wanted: &str, otherwise: &str) -> Result<(), TextError> {
        match self.takes(wanted) {
            true => Ok(()),
            false => Err(self.wrong(otherwise)),
        }
    }

    /// A mistake at the next character, or at the whole text if there is none.
    fn wrong(&self, message: &str) -> TextError {
        let length = self.peek().map(char::len_utf8);
        let place = length.map_or(0..self.text.len(), |length| self.at..self.at + length);
        TextError::new(place, message)
    }

    fn name(&mut self) -> Result<(&'t str, Range<usize>), TextError> {
        self.skip_blanks();
        let start = self.at;
        let is_end = |c: char| c.is_whitespace() || matches!(c, '=' | ',' | '{' | '}' | '"');
        let name = self.take_while(|character| !is_end(character));
        match name {
            "" => Err(self.wrong("the name of a label is due here")),
            name => Ok((name, start..self.at)),
        }
    }

    /// The value behind its opening quote, with the escapes of Prometheus' text format.
    fn value(&mut self) -> Result<String, TextError> {
        let start = self.at - 1;
        let mut value = String::new();
        let mut characters = self.rest().chars();
        while let Some(character) = characters.next() {
            match character {
                '"' => {
                    self.at = self.text.len() - characters.as_str().len();
                    return Ok(value);
                }
                '\\' => match characters.next() {
                    Some('n') => value.push('\n'),
                    Some(escaped @ ('\\' | '"')) => value.push(escaped),
                    Some(other) => value.extend(['\\', other]),
                    None => break,
                },
                _ => value.push(character),
            }
        }
        Err(TextError::new(start..self.text.len(), "this value of a label has no end"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_count_and_not_their_text() {
        let same =
            |one: &str, other: &str| labels_of(one).expect(one) == labels_of(other).expect(other);
        assert!(same(r#"{rack="a",dc="x"}"#, " { dc = \"x\" , rack=\"a\" } "));
        assert!(same("{}", "{ }"));
        assert!(same(r#"{a="\"\\\n"}"#, r#"{ a = "\"\\\n" }"#));
        assert!(!same(r#"{rack="a"}"#, r#"{rack="a "}"#));
        assert!(!same(r#"{rack="a"}"#, r#"{rack="a",dc=""}"#));
    }

    #[test]
    fn what_is_no_group_has_its_place() {
        for (text, place, message) in [
            ("", 0..0, "a group begins"),
            ("rack=a", 0..1, "a group begins"),
            ("{rack=a}", 6..7, "the value of a label stands"),
            ("{rack \"a\"}", 6..7, "a label has `=`"),
            ("{rack=\"a}", 6..9, "this value"),
            ("{rack=\"a\" dc=\"x\"}", 10..11, "`,` or `}` is due"),
            ("{rack=\"a\",}", 10..11, "the name of a label"),
            ("{rack=\"a\",rack=\"b\"}", 10..14, "the label `rack` is twice"),
            ("{rack=\"a\"} x", 11..12, "nothing can follow"),
            ("{rack=\"a\"", 0..9, "`,` or `}` is due"),
        ] {
            let error = labels_of(text).expect_err(text);
            assert_eq!(error.place, place, "{text}: {error:?}");
            assert!(error.message.starts_with(message), "{text}: {error:?}");
        }
    }
}
