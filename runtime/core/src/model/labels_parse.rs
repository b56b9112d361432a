//! Reads labels from a text without a table of places, such as the files in
//! `/etc/pcp/labels` (`pmParseLabelSet(3)`).
//!
//! Input: one JSON object. Objects inside it become labels with compound names.
//! Output: a [`LabelSet`], or the problem and its place. The whole text is
//! checked, and its nesting is limited.

use super::labels_merge::{LabelMap, compact};
use super::{LabelFlags, LabelSet};

/// Longest text in bytes, before and after compound names are written out.
const MAX_TEXT: usize = 65_535;

/// Longest name in bytes.
const MAX_NAME: usize = 255;

/// Deepest nesting of objects and arrays.
const MAX_DEPTH: usize = 32;

/// A text that is not a set of labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {problem}")]
pub struct LabelTextError {
    /// Offset of the problem in the text, in bytes.
    pub offset: usize,
    /// The problem there.
    pub problem: &'static str,
}

impl LabelSet {
    /// Reads a JSON object. A blank text is a set without labels. All labels
    /// get `flags`; labels from nested objects get [`LabelFlags::COMPOUND`]
    /// too.
    ///
    /// # Errors
    /// The text is not JSON, not an object, longer than 65,535 bytes or nested
    /// deeper than 32 levels. Or a name occurs twice, is longer than 255 bytes,
    /// or has characters other than letters, digits, `_` and `.`.
    pub fn parse(text: &str, flags: LabelFlags) -> Result<LabelSet, LabelTextError> {
        let mut parser = Parser { text, at: 0, flags, labels: LabelMap::new(), written: 2 };
        if text.len() > MAX_TEXT {
            return Err(LabelTextError { offset: MAX_TEXT, problem: "the text is too long" });
        }
        parser.skip_blanks();
        if parser.at < text.len() {
            parser.expect(b'{', "expected an object")?;
            parser.members("", 1)?;
            parser.skip_blanks();
        }
        if parser.at < text.len() {
            return parser.error("nothing may follow the object");
        }
        Ok(LabelSet::from_map(-1, &parser.labels))
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    flags: LabelFlags,
    labels: LabelMap,
    /// Bytes of the labels that were read so far.
    written: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Consumes `byte` if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), LabelTextError> {
        if self.take(byte) { Ok(()) } else { self.error(problem) }
    }

    fn error<T>(&self, problem: &'static str) -> Result<T, LabelTextError> {
        Err(LabelTextError { offset: self.at, problem })
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Consumes the bytes that `wanted` accepts, and returns their number.
    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        self.at - start
    }

    /// Consumes the members of an object and its closing brace. `prefix` goes
    /// before the members' names.
    fn members(&mut self, prefix: &str, depth: usize) -> Result<(), LabelTextError> {
        self.skip_blanks();
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.skip_blanks();
            let start = self.at;
            let name = format!("{prefix}{}", self.name()?);
            if name.len() > MAX_NAME {
                return self.error("the name is longer than 255 bytes");
            }
            self.skip_blanks();
            self.expect(b':', "expected a colon")?;
            self.skip_blanks();
            if self.peek() == Some(b'{') && depth < MAX_DEPTH && !self.at_empty_object() {
                self.at += 1;
                self.members(&format!("{name}."), depth + 1)?;
            } else {
                let value = self.at;
                self.value(depth)?;
                let value = compact(&self.text[value..self.at]);
                let nested = if prefix.is_empty() { 0 } else { LabelFlags::COMPOUND.0 };
                let flags = LabelFlags(self.flags.0 | nested);
                self.written += name.len() + value.len() + 4;
                if self.written > MAX_TEXT {
                    return self.error("compound names make the text too long");
                }
                if self.labels.insert(name.into(), (value, flags)).is_some() {
                    let problem = "this name occurs twice";
                    return Err(LabelTextError { offset: start, problem });
                }
            }
            self.skip_blanks();
            if self.take(b'}') {
                return Ok(());
            }
            self.expect(b',', "expected a comma or closing brace")?;
        }
    }

    fn at_empty_object(&self) -> bool {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        rest.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('}')
    }

    fn name(&mut self) -> Result<String, LabelTextError> {
        self.expect(b'"', "expected a name in quotes")?;
        let start = self.at;
        let len = self.skip_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.'));
        let name = self.text[start..self.at].to_owned();
        self.expect(b'"', "a name has letters, digits, '_' and '.'")?;
        if len == 0 { self.error("a name may not be empty") } else { Ok(name) }
    }

    /// Consumes any value.
    fn value(&mut self, depth: usize) -> Result<(), LabelTextError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'[') if depth < MAX_DEPTH => self.list(b']', |parser| parser.value(depth + 1)),
            Some(b'{') if depth < MAX_DEPTH => self.list(b'}', |parser| {
                parser.string()?;
                parser.skip_blanks();
                parser.expect(b':', "expected a colon")?;
                parser.skip_blanks();
                parser.value(depth + 1)
            }),
            Some(b'[' | b'{') => self.error("the text is nested too deeply"),
            _ => {
                let rest = &self.text[self.at..];
                let word = ["true", "false", "null"].into_iter().find(|w| rest.starts_with(w));
                let Some(word) = word else { return self.error("expected a value") };
                self.at += word.len();
                Ok(())
            }
        }
    }

    /// Consumes elements separated by commas, and the closing bracket.
    fn list(
        &mut self,
        close: u8,
        mut element: impl FnMut(&mut Self) -> Result<(), LabelTextError>,
    ) -> Result<(), LabelTextError> {
        self.at += 1;
        self.skip_blanks();
        if self.take(close) {
            return Ok(());
        }
        loop {
            self.skip_blanks();
            element(self)?;
            self.skip_blanks();
            if self.take(close) {
                return Ok(());
            }
            self.expect(b',', "expected a comma or closing bracket")?;
        }
    }

    fn string(&mut self) -> Result<(), LabelTextError> {
        self.expect(b'"', "expected a string")?;
        loop {
            self.skip_while(|c| c >= b' ' && c != b'"' && c != b'\\');
            if self.take(b'"') {
                return Ok(());
            }
            self.expect(b'\\', "expected the end of the string")?;
            let escape = self.peek();
            self.at += 1;
            match escape {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                Some(b'u') => {
                    let start = self.at;
                    if self.skip_while(|c| c.is_ascii_hexdigit()) < 4 {
                        return self.error("expected four hexadecimal digits");
                    }
                    self.at = start + 4;
                }
                _ => {
                    self.at -= 1;
                    return self.error("this cannot be escaped");
                }
            }
        }
    }

    fn number(&mut self) -> Result<(), LabelTextError> {
        self.take(b'-');
        let digits = |parser: &mut Self| match parser.skip_while(|c| c.is_ascii_digit()) {
            0 => parser.error("expected a digit"),
            _ => Ok(()),
        };
        // No digit may follow a leading zero.
        if !self.take(b'0') {
            digits(self)?;
        }
        if self.take(b'.') {
            digits(self)?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            digits(self)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fuzz_labels;

    #[test]
    fn mistakes_are_told_with_their_place() {
        let cases = [
            ("not json", 0, "expected an object"),
            ("[1,2]", 0, "expected an object"),
            ("{\"a\":1", 6, "expected a comma or closing brace"),
            ("{\"a\":1}}", 7, "nothing may follow the object"),
            ("{\"a\":1,\"a\":2}", 7, "this name occurs twice"),
            ("{\"a\":{\"b\":1},\"a.b\":2}", 13, "this name occurs twice"),
            ("{\"a-b\":1}", 3, "a name has letters, digits, '_' and '.'"),
            ("{\"\":1}", 3, "a name may not be empty"),
            ("{a:1}", 1, "expected a name in quotes"),
            ("{\"a\" 1}", 5, "expected a colon"),
            ("{\"a\":01}", 6, "expected a comma or closing brace"),
            ("{\"a\":-}", 6, "expected a digit"),
            ("{\"a\":1.}", 7, "expected a digit"),
            ("{\"a\":nul}", 5, "expected a value"),
            ("{\"a\":\"x", 7, "expected the end of the string"),
            ("{\"a\":\"\\x\"}", 7, "this cannot be escaped"),
            ("{\"a\":\"\\u12\"}", 10, "expected four hexadecimal digits"),
            ("{\"a\":[1 2]}", 8, "expected a comma or closing bracket"),
            ("{\"a\":[{1:2}]}", 7, "expected a string"),
        ];
        for (text, offset, problem) in cases {
            let error = LabelSet::parse(text, LabelFlags(1)).expect_err(text);
            assert_eq!((error.offset, error.problem), (offset, problem), "{text}");
        }
        for text in ["{\"a\":".repeat(40), format!("{{\"a\":{}", "[".repeat(40))] {
            let error = LabelSet::parse(&text, LabelFlags(1)).expect_err("too deep");
            assert_eq!(error.problem, "the text is nested too deeply");
        }
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_TEXT));
        assert!(LabelSet::parse(&long, LabelFlags(1)).is_err());
        let members: Vec<String> = (0..1000).map(|n| format!("\"{n}\":{n}")).collect();
        let expanding = format!("{{\"{}\":{{{}}}}}", "x".repeat(200), members.join(","));
        let error = LabelSet::parse(&expanding, LabelFlags(1)).expect_err("a lot of names");
        assert_eq!(error.problem, "compound names make the text too long");
    }

    #[test]
    fn damaged_texts_are_refused_or_mean_something() {
        let seed = r#"{"a":{"b":[1, -2.5e+3, {"c": null}], "d":"x\"\u00e9"}, "_e" : true}"#;
        fuzz_labels(seed.as_bytes());
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for len in 0..seed.len() {
            fuzz_labels(&seed.as_bytes()[..len]);
            for _ in 0..100 {
                let mut damaged = seed.as_bytes().to_vec();
                for _ in 0..2 {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let at = usize::try_from(random >> 32).expect("32 bits") % damaged.len();
                    damaged[at] =
                        b"{}[]\":,. \\ueb10a"[usize::try_from(random & 15).expect("4 bits")];
                }
                fuzz_labels(&damaged);
            }
        }
    }
}
