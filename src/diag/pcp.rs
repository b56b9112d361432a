//! libpcp's own forms of messages, for tools that match on them.
//!
//! The stage that finds a mistake knows libpcp's words for it. This module puts
//! them into the frames in which `pmLoadDerivedConfig(3)`,
//! `pmRegisterDerivedMetric(3)` and the binding of a metric print them.
//! [`Diagnostic::pcp`] carries the result; it is empty where libpcp does not
//! complain.
//!
//! An end of line in the name of a file is escaped, and so is one in an
//! expression outside of files. Otherwise the complaint would seem to end
//! there.

use std::borrow::Cow;
use std::fmt;

use pmderive_runtime::model::PmStatus;

use crate::escape::{escaped, joined};
use crate::text::stray::encoded;

use super::{Code, Diagnostic};

/// A line of a definition file, as libpcp's messages name it.
#[derive(Clone, Copy, Debug)]
pub struct FileLine<'l> {
    /// Name of the file.
    pub file: &'l str,
    /// Number of the line as libpcp counts.
    pub number: u32,
    /// The line, continuation lines joined.
    pub line: &'l str,
}

impl FileLine<'_> {
    fn place(&self) -> String {
        format!("[{}:{}]", joined(self.file), self.number)
    }

    /// A complaint about the line.
    pub fn error(&self, text: fmt::Arguments<'_>) -> String {
        format!("{} Error: pmLoadDerivedConfig: {text}", self.place())
    }

    /// A complaint that repeats the line.
    pub fn error_with_line(&self, text: fmt::Arguments<'_>) -> String {
        format!("{}\n{}", self.error(text), self.line)
    }

    /// Text behind an attribute's value.
    pub fn extra_text(&self, extra: &str) -> String {
        format!(
            "{} Warning: pmLoadDerivedConfig: extra text ({extra}) after attribute value \
             will be ignored",
            self.place()
        )
    }

    /// A mistake of a `#control` line.
    pub fn control(&self, text: &str) -> String {
        let severity = if text.starts_with("missing '='") { "Error" } else { "Warning" };
        format!("{} {severity}: {text}", self.place())
    }

    /// A refused expression. `text` is the part after the `=`, and `offset` the
    /// place in it.
    pub fn syntax_error(
        &self,
        name: &str,
        text: &str,
        offset: usize,
        message: Option<&str>,
    ) -> String {
        let blank = |byte: &u8| match *byte {
            byte if byte.is_ascii_whitespace() || byte == 0x0b => char::from(byte),
            _ => ' ',
        };
        // Columns are bytes of the file.
        let at = encoded(&text[..text.floor_char_boundary(offset)]).len();
        let mut caret: Vec<char> = encoded(text).iter().map(blank).collect();
        if let Some(at) = caret.get_mut(at) {
            *at = '^';
        }
        let caret: String = caret.into_iter().collect();
        let message = message.map(|message| format!("\n{message}")).unwrap_or_default();
        format!(
            "{} Error: pmRegisterDerived({name}, ...) syntax error\n{text}\n{caret}{message}",
            self.place()
        )
    }
}

/// A mistake in the options of the environment.
pub fn control_of_environment(text: &str) -> String {
    format!("Warning: $PCP_DERIVED_CONTROL: {text}")
}

/// A refused expression outside of files (`pmRegisterDerivedMetric(3)`).
pub fn syntax_error(name: &str, text: &str, offset: i64, message: Option<&str>) -> String {
    let head = "Error: pmRegisterDerivedMetric";
    refused_text(head, name, text, offset, message)
}

/// Why `pmAddDerivedMetric(3)` refuses a definition.
#[derive(Clone, Copy, Debug)]
pub enum RefusedAddition<'m> {
    /// The name is taken, or a limit is reached.
    Room(Option<&'m str>),
    /// The text is wrong at this place.
    Syntax(i64, Option<&'m str>),
    /// The metric cannot be bound. The words are those that the binding of a metric prints.
    Semantic(&'m str),
}

/// A definition that `pmAddDerivedMetric(3)` refuses.
pub fn refused_addition(name: &str, text: &str, refused: RefusedAddition<'_>) -> String {
    match refused {
        RefusedAddition::Room(message) => {
            let (name, code) = (on_one_line(name), PmStatus::BADDERIVE.0);
            let message = message.map(|message| format!("\n{message}")).unwrap_or_default();
            format!("Error: pmAddDerivedMetric(\"{name}\", ...): returns {code}{message}")
        }
        RefusedAddition::Syntax(offset, message) => {
            refused_text("Syntax Error: pmAddDerivedMetric", name, text, offset, message)
        }
        RefusedAddition::Semantic(words) => {
            // It does not name the node.
            let message = words.rsplit_once(": ").map_or(words, |(_, message)| message);
            refused_text("Semantic Error: pmAddDerivedMetric", name, text, 0, Some(message))
        }
    }
}

fn refused_text(head: &str, name: &str, text: &str, offset: i64, message: Option<&str>) -> String {
    // libpcp prints the position before an empty text like the one after.
    let offset = usize::try_from(offset.unsigned_abs()).unwrap_or(0).min(text.len().max(1));
    let before = &text.as_bytes()[..offset.min(text.len())];
    let padding = " ".repeat(offset + before.iter().filter(|byte| **byte == b'\n').count() * 3);
    let (name, text) = (on_one_line(name), on_one_line(text));
    let message = message.map(|message| format!("\n{message}")).unwrap_or_default();
    format!("{head}(\"{name}\", ...)\n{text}\n{padding}^{message}")
}

/// A text whose ends of lines are escaped, each as four characters.
fn on_one_line(text: &str) -> Cow<'_, str> {
    escaped(text.as_bytes(), |character| character == '\n')
}

/// libpcp's output for a diagnostic, with line ends. `None` where it prints
/// nothing: it leaves a file that cannot be read to its caller. Stray bytes are
/// still characters (see `stray.rs`).
pub fn render(diagnostic: &Diagnostic) -> Option<String> {
    let text = diagnostic.pcp.as_deref().filter(|_| diagnostic.code != Code::UnreadableFile)?;
    Some(match is_semantic(diagnostic.code) {
        false => format!("{text}\n"),
        true => {
            let name = diagnostic.metric.as_deref().unwrap_or(super::EXPRESSION);
            format!("Semantic error: derived metric {}: {text}\n", on_one_line(name))
        }
    })
}

/// True for mistakes that binding a metric finds.
fn is_semantic(code: Code) -> bool {
    code.number() >= 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets_stand_where_libpcp_puts_them() {
        let line = FileLine { file: "f", number: 3, line: "" };
        let said = line.syntax_error("a", "\tx[\u{e9}]\t@ 3", 7, Some("Illegal character"));
        let (head, lines) = said.split_once('\n').expect("more than one line");
        assert_eq!(head, "[f:3] Error: pmRegisterDerived(a, ...) syntax error");
        assert_eq!(lines, "\tx[\u{e9}]\t@ 3\n\t     \t^  \nIllegal character");
        let alone = |text, offset| syntax_error("n", text, offset, None);
        assert_eq!(alone("", -1), "Error: pmRegisterDerivedMetric(\"n\", ...)\n\n ^");
        assert_eq!(alone("[x]", 0), "Error: pmRegisterDerivedMetric(\"n\", ...)\n[x]\n^");
        assert_eq!(alone("a\n*", 2), "Error: pmRegisterDerivedMetric(\"n\", ...)\na\\x0a*\n     ^");
        assert_eq!(alone("*a", 1), "Error: pmRegisterDerivedMetric(\"n\", ...)\n*a\n ^");
    }

    /// As pmAddDerivedMetric(3) of 6.0.3 answers.
    #[test]
    fn additions_are_refused_in_three_forms() {
        use RefusedAddition::{Room, Semantic, Syntax};
        let words = |text, refused| refused_addition("n", text, refused);
        assert_eq!(
            words("1", Room(Some("Duplicate per-context derived metric name"))),
            "Error: pmAddDerivedMetric(\"n\", ...): returns -12409\n\
             Duplicate per-context derived metric name"
        );
        assert_eq!(
            words("a+", Syntax(1, Some("Illegal character"))),
            "Syntax Error: pmAddDerivedMetric(\"n\", ...)\na+\n ^\nIllegal character"
        );
        assert_eq!(
            words("", Syntax(-1, None)),
            "Syntax Error: pmAddDerivedMetric(\"n\", ...)\n\n ^"
        );
        assert_eq!(
            words("a+b", Semantic("a + b: Dimensions are not the same")),
            "Semantic Error: pmAddDerivedMetric(\"n\", ...)\na+b\n^\n\
             Dimensions are not the same"
        );
    }
}
