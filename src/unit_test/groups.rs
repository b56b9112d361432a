//! Names of groups of hosts, such as `{rack="a",dc="x"}`, read as labels.
//!
//! Users choose blanks and the order of labels.

use std::ops::Range;

/// The labels in the name of a group, by name.
pub(super) type GroupLabels = Vec<(String, String)>;

/// The mistake in a text that is no name of a group.
#[derive(Debug, PartialEq)]
pub(super) struct NoGroup {
    /// The bytes at fault.
    pub place: Range<usize>,
    /// The mistake.
    pub message: String,
}

/// Reads the name of a group.
pub(super) fn labels_of(name: &str) -> Result<GroupLabels, NoGroup> {
    let mut reader = Reader { text: name, at: 0 };
    let mut labels = reader.labels()?;
    labels.sort();
    Ok(labels)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn labels(&mut self) -> Result<GroupLabels, NoGroup> {
        let mut labels = GroupLabels::new();
        self.expect('{', "a group begins with `{`")?;
        if !self.takes('}') {
            loop {
                let (name, place) = self.name()?;
                if labels.iter().any(|(known, _)| *known == name) {
                    return Err(NoGroup { place, message: format!("the label `{name}` is twice") });
                }
                self.expect('=', "a label has `=` and its value behind its name")?;
                self.expect('"', "the value of a label stands in double quotes")?;
                labels.push((name.to_owned(), self.value()?));
                if self.takes('}') {
                    break;
                }
                self.expect(',', "`,` or `}` is due behind a label")?;
            }
        }
        self.skip_blanks();
        match self.rest().is_empty() {
            true => Ok(labels),
            false => Err(self.wrong("nothing can follow the `}` of a group")),
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips a character if it comes next, and blanks before it. Returns whether it did.
    fn takes(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, wanted: char, otherwise: &str) -> Result<(), NoGroup> {
        match self.takes(wanted) {
            true => Ok(()),
            false => Err(self.wrong(otherwise)),
        }
    }

    /// A mistake at the next character, or at the whole text if there is none.
    fn wrong(&self, message: &str) -> NoGroup {
        let length = self.rest().chars().next().map(char::len_utf8);
        let place = length.map_or(0..self.text.len(), |length| self.at..self.at + length);
        NoGroup { place, message: message.to_owned() }
    }

    fn name(&mut self) -> Result<(&'t str, Range<usize>), NoGroup> {
        self.skip_blanks();
        let rest = self.rest();
        let is_end = |c: char| c.is_whitespace() || matches!(c, '=' | ',' | '{' | '}' | '"');
        let length = rest.find(is_end).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.wrong("the name of a label is due here"));
        }
        let place = self.at..self.at + length;
        self.at = place.end;
        Ok((&rest[..length], place))
    }

    /// The value behind its opening quote, with the escapes of Prometheus' text format.
    fn value(&mut self) -> Result<String, NoGroup> {
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
        let message = "this value of a label has no end".to_owned();
        Err(NoGroup { place: start..self.text.len(), message })
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
