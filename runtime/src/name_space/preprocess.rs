//! The preprocessor of name spaces, see pmcpp(1): comments, `#include`,
//! `#define`, `#undef`, `#ifdef`, `#ifndef`, `#else` and `#endif`.
//!
//! It returns lines with their places, and `parse` interprets them. It refuses
//! commands of a shell (`#shell`).

use std::collections::HashMap;
use std::rc::Rc;

use super::error::NameSpaceError;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub file: Rc<str>,
    /// Counted from 1.
    pub number: u32,
    pub text: String,
}

/// Largest depth of includes, without the first file.
const MAX_DEPTH: usize = 5;

/// Largest number of bytes of all lines and all included files together. The
/// whole name space of a host has 60,000.
const MAX_BYTES: usize = 1 << 24;

const TOO_LARGE: &str = "The name space is too large";

/// Finds an included file by the name in the line. Returns the file's path and
/// text.
pub(super) type Include<'i> = &'i dyn Fn(&str) -> Option<(String, String)>;

struct Preprocessor<'i> {
    include: Include<'i>,
    macros: HashMap<String, String>,
    lines: Vec<Line>,
    bytes: usize,
    /// Line of the open condition, and whether the lines below it count.
    condition: Option<(u32, bool)>,
    /// Line in which the open comment begins.
    comment: Option<u32>,
}

/// The lines of a text, whose file is called `name`.
///
/// # Errors
/// A control line is invalid, or a comment or condition is open at the end.
pub(super) fn preprocess(
    text: &str,
    name: &str,
    include: Include<'_>,
) -> Result<Vec<Line>, NameSpaceError> {
    let mut preprocessor = Preprocessor {
        include,
        macros: HashMap::new(),
        lines: Vec::new(),
        bytes: 0,
        condition: None,
        comment: None,
    };
    preprocessor.file(text, name, 0)?;
    let open = |problem| {
        Err(NameSpaceError::Control {
            place: (name.to_owned(), None),
            text: String::new(),
            problem,
        })
    };
    match (preprocessor.comment, preprocessor.condition) {
        (Some(line), _) => {
            open(format!("Comment at line {line} not terminated before end of file"))
        }
        (None, Some((line, _))) => open(format!(
            "End of input and no matching #endif for #ifdef or #ifndef at line {line}"
        )),
        (None, None) => Ok(preprocessor.lines),
    }
}

impl Preprocessor<'_> {
    fn file(&mut self, text: &str, name: &str, depth: usize) -> Result<(), NameSpaceError> {
        let name: Rc<str> = name.into();
        for (number, line) in (1..).zip(text.lines()) {
            let problem = |problem: &str| NameSpaceError::Control {
                place: (name.to_string(), Some(number)),
                text: line.to_owned(),
                problem: problem.to_owned(),
            };
            let text = self.without_comments(line, number);
            let is_control = text.strip_prefix('#').and_then(|control| {
                let length = control.bytes().take_while(u8::is_ascii_alphabetic).count();
                Some(control.split_at(length)).filter(|(word, _)| CONTROLS.contains(word))
            });
            let is_left_out = matches!(self.condition, Some((_, false)));
            match is_control {
                Some(("include", file)) if !is_left_out => {
                    let file = included(file).map_err(problem)?;
                    if depth == MAX_DEPTH {
                        return Err(problem("#include and/or #shell nesting too deep"));
                    }
                    let found = (self.include)(file);
                    let (file, text) =
                        found.ok_or_else(|| problem("Cannot open file for #include"))?;
                    // Including many files many times reads all these bytes
                    // too.
                    self.bytes += text.len() + 1;
                    if self.bytes > MAX_BYTES {
                        return Err(problem(TOO_LARGE));
                    }
                    self.file(&text, &file, depth + 1)?;
                }
                Some(("shell", _)) if !is_left_out => {
                    return Err(problem("#shell is not supported, because it runs commands"));
                }
                Some((word, rest)) => {
                    self.control(word, rest, number, is_left_out).map_err(problem)?;
                }
                None if is_left_out => {}
                None => {
                    let left = MAX_BYTES.saturating_sub(self.bytes);
                    let text = self.with_macros(&text, left);
                    let text = text.ok_or_else(|| problem(TOO_LARGE))?;
                    self.bytes += text.len();
                    self.lines.push(Line { file: name.clone(), number, text });
                }
            }
        }
        Ok(())
    }

    fn control(
        &mut self,
        word: &str,
        rest: &str,
        line: u32,
        is_left_out: bool,
    ) -> Result<(), &'static str> {
        match word {
            "ifdef" | "ifndef" => {
                if self.condition.is_some() {
                    return Err("Nested #ifdef or #ifndef");
                }
                let name = macro_name(rest)?;
                let is_defined = self.macros.contains_key(name);
                self.condition = Some((line, is_defined == (word == "ifdef")));
            }
            "else" => {
                let (_, counts) =
                    self.condition.as_mut().ok_or("No matching #ifdef or #ifndef for #else")?;
                *counts = !*counts;
            }
            "endif" => {
                self.condition.take().ok_or("No matching #ifdef or #ifndef for #endif")?;
            }
            _ if is_left_out => {}
            "define" => {
                let name = macro_name(rest)?;
                let value = macro_value(&rest.trim_start()[name.len()..])?;
                if self.macros.insert(name.to_owned(), value.to_owned()).is_some() {
                    return Err("Macro redefinition");
                }
            }
            _ => {
                self.macros.remove(macro_name(rest)?);
            }
        }
        Ok(())
    }

    /// The line with blanks in place of comments, of the same length.
    fn without_comments(&mut self, line: &str, number: u32) -> String {
        let mut text = String::with_capacity(line.len());
        let mut rest = line;
        loop {
            let mark = if self.comment.is_some() { "*/" } else { "/*" };
            let (part, after) = match rest.split_once(mark) {
                Some((part, after)) => (part, Some(after)),
                None => (rest, None),
            };
            if self.comment.is_some() {
                text.extend(part.chars().map(|_| ' '));
            } else {
                text.push_str(part);
            }
            let Some(after) = after else { return text };
            text.push_str("  ");
            self.comment = if self.comment.is_some() { None } else { Some(number) };
            rest = after;
        }
    }

    /// The line with macros replaced by their values, once. `None` if it
    /// becomes longer than `limit`.
    fn with_macros(&self, line: &str, limit: usize) -> Option<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut text = String::with_capacity(line.len());
        let mut rest = line;
        while !rest.is_empty() {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            text.push_str(self.macros.get(word).map_or(word, String::as_str));
            let end = after.find(is_part).unwrap_or(after.len());
            text.push_str(&after[..end]);
            rest = &after[end..];
            if text.len() > limit {
                return None;
            }
        }
        Some(text)
    }
}

const CONTROLS: &[&str] =
    &["include", "define", "undef", "ifdef", "ifndef", "else", "endif", "shell"];

/// Reads the name in `"name"` or `<name>`.
fn included(text: &str) -> Result<&str, &'static str> {
    let text = text.trim();
    let (close, rest) = match text.chars().next() {
        Some('"') => ('"', &text[1..]),
        Some('<') => ('>', &text[1..]),
        _ => return Err("Expected \" or < after #include"),
    };
    match rest.split_once(close) {
        None => Err("Unterminated name after #include"),
        Some((_, extra)) if !extra.trim().is_empty() => {
            Err("Unexpected extra text in a control line")
        }
        Some((name, _)) => Ok(name),
    }
}

fn macro_name(text: &str) -> Result<&str, &'static str> {
    let text = text.trim_start();
    let name = &text[..text.find(char::is_whitespace).unwrap_or(text.len())];
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.chars().next() {
        None => Err("Missing macro name"),
        Some(first) if first.is_ascii_digit() || !name.chars().all(is_part) => {
            Err("Illegal character in macro name")
        }
        Some(_) => Ok(name),
    }
}

/// Reads one word or any text in quotes. An empty value is allowed.
fn macro_value(text: &str) -> Result<&str, &'static str> {
    let text = text.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| Some((text.strip_prefix(quote)?, quote)));
    match quoted {
        Some((rest, quote)) => match rest.split_once(quote) {
            None => Err("Unterminated value in a control line"),
            Some((_, extra)) if !extra.trim().is_empty() => {
                Err("Unexpected extra text in a control line")
            }
            Some((value, _)) => Ok(value),
        },
        None if text.contains(char::is_whitespace) => {
            Err("Unexpected extra text in a control line")
        }
        None => Ok(text),
    }
}
