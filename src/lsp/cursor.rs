//! The unfinished definition before the cursor. This module looks at characters only, since
//! half of an expression has no tree.

use std::str::CharIndices;

use crate::syntax::{is_of_name, is_space, name_mistake};

/// Kind of the place of the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within<'t> {
    /// In the place of a metric, a function or a keyword; the word so far.
    Word(&'t str),
    /// In `[`: the text before it, which has the instances, and the typed part of a name.
    Instance {
        /// The text before the bracket.
        operand: &'t str,
        /// The name so far.
        typed: &'t str,
    },
    /// In quotes.
    Quotes {
        /// The keyword before them, as in `type="`.
        key: Option<&'t str>,
        /// The text so far.
        typed: &'t str,
    },
    /// Behind a keyword and `=`, as in `type=`.
    Value {
        /// The keyword.
        key: &'t str,
        /// The word so far.
        typed: &'t str,
    },
    /// In the parentheses behind `by`; the name of a label so far.
    Label(&'t str),
    /// In `name(`, where a help text begins; the word so far.
    Attribute(&'t str),
    /// In a comment that allows warnings; the code so far.
    Code(&'t str),
    /// Anywhere else: in a name that is defined, a comment, a pattern.
    Elsewhere,
}

impl<'t> Within<'t> {
    /// The typed text that completion replaces: the end of the text before the cursor.
    pub fn typed(&self) -> &'t str {
        match self {
            Within::Word(typed) | Within::Label(typed) => typed,
            Within::Attribute(typed) | Within::Code(typed) => typed,
            Within::Instance { typed, .. } => typed,
            Within::Quotes { typed, .. } | Within::Value { typed, .. } => typed,
            Within::Elsewhere => "",
        }
    }
}

/// A call around the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'t> {
    /// The function's name.
    pub name: &'t str,
    /// Arguments before the one with the cursor.
    pub argument: usize,
}

/// The text before a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor<'t> {
    /// The place of the cursor.
    pub within: Within<'t>,
    /// The innermost call.
    pub call: Option<Call<'t>>,
}

/// Finds the place before an offset, which must be on a character boundary.
pub fn cursor(text: &str, offset: usize) -> Cursor<'_> {
    let before = &text[..offset];
    let start = start_of_definition(before);
    let line = &before[start..];
    let elsewhere = Cursor { within: Within::Elsewhere, call: None };
    if is_in_help_text(text, start) {
        return elsewhere;
    }
    if line.starts_with('#') {
        let code = code_in(line).map_or(Within::Elsewhere, Within::Code);
        return Cursor { within: code, call: None };
    }
    let Some((name, expression)) = line.split_once('=') else {
        let attribute = line.split_once('(').map(|(_, typed)| typed.trim_start());
        let attribute = attribute.filter(|typed| typed.chars().all(is_of_name));
        // An indented line continues an expression, so it is no help text.
        let attribute = attribute.filter(|_| !line.starts_with(is_space));
        let within = attribute.map_or(Within::Elsewhere, Within::Attribute);
        return Cursor { within, call: None };
    };
    // A help text is no expression.
    if name.contains('(') || line.trim_start().starts_with('#') {
        return elsewhere;
    }
    let mut open: Vec<Call<'_>> = Vec::new();
    let mut characters = expression.char_indices();
    while let Some((at, one)) = characters.next() {
        match one {
            '(' => open.push(Call { name: word_before(expression[..at].trim_end()), argument: 0 }),
            ')' => drop(open.pop()),
            ',' => {
                if let Some(call) = open.last_mut() {
                    call.argument += 1;
                }
            }
            '"' | '[' => {
                let end = if one == '"' { '"' } else { ']' };
                let inside = &expression[at + 1..];
                if !skip_past(end, &mut characters) {
                    let call = open.last().copied();
                    let within = match one {
                        '"' => {
                            Within::Quotes { key: keyword_before(&expression[..at]), typed: inside }
                        }
                        _ => {
                            Within::Instance { operand: operand(&expression[..at]), typed: inside }
                        }
                    };
                    return Cursor { within, call };
                }
            }
            // These functions have a pattern as their first argument.
            '/' if open
                .last()
                .is_some_and(|call| call.argument == 0 && takes_pattern(call.name))
                && expression[..at].trim_end().ends_with(['(', '!']) =>
            {
                let is_closed = skip_past('/', &mut characters);
                if !is_closed {
                    return Cursor { within: Within::Elsewhere, call: open.last().copied() };
                }
            }
            _ => {}
        }
    }
    let word = word_before(expression);
    if open.last().is_some_and(|call| call.name == "by") {
        return Cursor { within: Within::Label(word), call: None };
    }
    if let Some(key) = keyword_before(&expression[..expression.len() - word.len()]) {
        let within = Within::Value { key, typed: word };
        return Cursor { within, call: open.last().copied() };
    }
    let call = open.iter().rev().find(|call| !call.name.is_empty()).copied();
    // A number does not begin a name.
    let within = match word.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        true => Within::Elsewhere,
        false => Within::Word(word),
    };
    Cursor { within, call }
}

/// Advances past the next `end` without a backslash before it. Returns false if there is none.
fn skip_past(end: char, characters: &mut CharIndices<'_>) -> bool {
    let mut is_escaped = false;
    characters.any(|(_, next)| {
        let is_end = next == end && !is_escaped;
        is_escaped = next == '\\' && !is_escaped;
        is_end
    })
}

/// The keyword of a text that ends in a keyword and `=`.
fn keyword_before(text: &str) -> Option<&str> {
    let before = text.trim_end().strip_suffix('=')?.trim_end();
    // `meta=` is absent here: its value is a metric, as in other places.
    Some(word_before(before)).filter(|word| ["type", "semantics", "units", "indom"].contains(word))
}

/// The typed part of a code in a comment such as `# pmderive: allow PMD0301`.
fn code_in(line: &str) -> Option<&str> {
    let words = line.trim_start_matches('#').trim_start().strip_prefix("pmderive:")?;
    let codes = words.trim_start().strip_prefix("allow")?;
    let is_apart = codes.starts_with([' ', ',']);
    let last = codes.rsplit([',', ' ']).next().unwrap_or_default();
    is_apart.then_some(last)
}

/// True if a line that starts at an offset continues a help text in quotes.
fn is_in_help_text(text: &str, offset: usize) -> bool {
    let mut start = 0;
    while start < offset {
        let rest = &text[start..];
        let line = rest.split('\n').next().unwrap_or_default();
        let mut next = start + line.len() + 1;
        if let Some(quote) = quote_of_help_text(line) {
            let inside = start + quote + 1;
            let mut characters = text[inside..].char_indices();
            match skip_past(char::from(text.as_bytes()[inside - 1]), &mut characters) {
                true => {
                    let end = inside + characters.offset();
                    if offset < end {
                        return true;
                    }
                    next = end + text[end..].find('\n').map_or(text.len() - end, |at| at + 1);
                }
                // The user is typing it: it goes on to the next definition.
                false => {
                    let mut at = next;
                    let lines = text.get(next..).unwrap_or_default().split_inclusive('\n');
                    let mut lines = lines.take_while(|line| {
                        at += line.len();
                        at - line.len() <= offset
                    });
                    if !lines.any(is_definition) {
                        return true;
                    }
                }
            }
        }
        start = next;
    }
    false
}

/// True for a line that begins with a name and `=`, or is a comment.
fn is_definition(line: &str) -> bool {
    let name = line.split(['=', '(']).next().unwrap_or_default().trim_end();
    line.starts_with('#') || name.len() < line.trim_end().len() && name_mistake(name).is_none()
}

/// The position of the opening quote in a line such as `name(helptext) = "text`.
fn quote_of_help_text(line: &str) -> Option<usize> {
    let (name, value) = line.split_once('=')?;
    let is_attribute = name.contains('(') && !line.starts_with('#');
    let quote = line.len() - value.trim_start().len();
    (is_attribute && line[quote..].starts_with(['"', '\''])).then_some(quote)
}

fn takes_pattern(function: &str) -> bool {
    matches!(function, "matchinst" | "matchvalue")
}

/// The start of the definition at the end of a text: after the last line end without a
/// backslash.
fn start_of_definition(before: &str) -> usize {
    let mut end = before.len();
    while let Some(at) = before[..end].rfind('\n') {
        if !before[..at].ends_with('\\') {
            return at + 1;
        }
        end = at;
    }
    0
}

/// The word at the end of a text, before any blanks.
fn word_before(text: &str) -> &str {
    let text = match text.ends_with(is_of_name) {
        true => text,
        // Only a call may have blanks between its name and its parenthesis.
        false => return "",
    };
    &text[text.trim_end_matches(is_of_name).len()..]
}

/// The operand at the end of a text: a word, or a call with its arguments.
fn operand(text: &str) -> &str {
    let text = text.trim_end();
    if !text.ends_with(')') {
        return &text[text.trim_end_matches(is_of_name).len()..];
    }
    let mut depth = 0usize;
    for (at, one) in text.char_indices().rev() {
        match one {
            ')' => depth += 1,
            '(' => {
                depth -= 1;
                if depth == 0 {
                    return &text[text[..at].trim_end_matches(is_of_name).len()..];
                }
            }
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place found in a definition, with `|` as the cursor.
    fn at(text: &str) -> String {
        let offset = text.find('|').expect("a cursor");
        let text = text.replace('|', "");
        let Cursor { within, call } = cursor(&text, offset);
        match call {
            Some(Call { name, argument }) => format!("{within:?} in {name} {argument}"),
            None => format!("{within:?}"),
        }
    }

    #[test]
    fn what_is_typed_is_known() {
        for (text, expected) in [
            ("a.b|", "Elsewhere"),
            ("# a = b|", "Elsewhere"),
            ("a = |", "Word(\"\")"),
            ("a = disk.d|", "Word(\"disk.d\")"),
            ("x = y\na = disk.d| + 1\nb = c", "Word(\"disk.d\")"),
            ("a = b + \\\n  ra|", "Word(\"ra\")"),
            ("a = rate(disk|", "Word(\"disk\") in rate 0"),
            ("a = rate((disk|", "Word(\"disk\") in rate 0"),
            ("a = topk(3, rate(x), |", "Word(\"\") in topk 2"),
            ("a = rate(x) + |", "Word(\"\")"),
            ("a = rescale(x, \"by|", "Quotes { key: None, typed: \"by\" } in rescale 1"),
            ("a = mkconst(1, type=\"|", "Quotes { key: Some(\"type\"), typed: \"\" } in mkconst 1"),
            ("a = mkconst(1, units=|", "Value { key: \"units\", typed: \"\" } in mkconst 1"),
            ("a = novalue(meta=di|", "Word(\"di\") in novalue 0"),
            ("a = 1\na(helptext) = \"x\n  rate(|", "Elsewhere"),
            ("a(helptext) = \"x\n  rate(|\nb\"\n", "Elsewhere"),
            ("a(helptext) = \"x\n  \\\"\n b = rate(|\"\n", "Elsewhere"),
            ("a(helptext) = \"x\n  y\" z\nb = rate(|", "Word(\"\") in rate 0"),
            ("a(helptext) = \"x\n  y\nb = rate(|", "Word(\"\") in rate 0"),
            ("a(helptext) = \"x\"\na(|", "Attribute(\"\")"),
            ("a(helptext) = x\n  rate(|", "Elsewhere"),
            ("a = rescale(x, \"byte\")|", "Word(\"\")"),
            ("a = x[sd|", "Instance { operand: \"x\", typed: \"sd\" }"),
            ("a = b + rate(x.y)[|", "Instance { operand: \"rate(x.y)\", typed: \"\" }"),
            ("a = matchinst(/^s(d|", "Elsewhere in matchinst 0"),
            ("a = matchinst(/^s(d/, |", "Word(\"\") in matchinst 1"),
            ("a = x / (y|", "Word(\"y\")"),
            ("a = 12|", "Elsewhere"),
            ("a = mkconst(1, type=do|", "Value { key: \"type\", typed: \"do\" } in mkconst 1"),
            ("a = novalue(semantics = |", "Value { key: \"semantics\", typed: \"\" } in novalue 0"),
            ("a = sum(x) by (ra|", "Label(\"ra\")"),
            ("a = sum(x) by (rack, |", "Label(\"\")"),
            ("a.x(one|", "Attribute(\"one\")"),
            ("a.x(oneline) = ra|", "Elsewhere"),
            ("# pmderive: allow PMD0301, PMD|", "Code(\"PMD\")"),
            ("# pmderive: allow |", "Code(\"\")"),
            ("# pmderive: export|", "Elsewhere"),
        ] {
            assert_eq!(at(text), expected, "{text}");
        }
    }
}
