//! Canonical form of definition files.
//!
//! Input: the text of a file. Output: a text with the same items in the same
//! order. Comments, control lines, help texts and the spelling of every token
//! stay. Blanks and line breaks become the usual ones. Lines with mistakes stay
//! byte for byte. The command reads and writes files.
//!
//! * `name = expression` and `name(oneline) = text` have one blank around the
//!   first `=`, and begin in the first column.
//! * An expression has one blank around infix operators and after commas, and
//!   none within parentheses; the author's parentheses stay.
//! * A line has at most 100 columns if that is possible: a longer expression
//!   goes on in lines that begin with an operator, four columns further to the
//!   right for each level. Version 6 knows no such lines, and before CR LF
//!   libpcp does not see the mark of continuation, so none are made there.
//! * Several empty lines become one; none stay at the beginning and at the end.
//!   Blanks at the ends of lines go, except those of a help text.
//! * The last line has a line end; libpcp passes over a definition without one.

#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod joining;
mod layout;

use std::borrow::Cow;

use crate::dialect::Language;
use crate::syntax::{
    LineForm, OutlinedLine, ParsedBefore, TextKind, is_space, outline_again, outline_each, tokens,
};
use crate::text::cache::Remembered;

#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_format;
pub use joining::joined;
use layout::{LineBreaks, write_expression};

/// A text in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formatted {
    /// The text.
    pub text: String,
    /// Number of logical lines that have a mistake and were left as they are.
    pub mistakes: usize,
}

/// Brings the text of a definition file, shorter than 4 GiB, into canonical form.
pub fn format_definitions(text: &str, language: impl Into<Language>) -> Formatted {
    let language = language.into();
    let mut formatter = Formatter::new(text, language, None);
    outline_each(text, language, |line| formatter.line(&line));
    formatter.end()
}

/// A cache of formatted lines, for a text that changes.
#[derive(Clone, Debug, Default)]
pub struct FormatCache {
    /// Formatted definitions by the text of their lines; `None` for unchanged
    /// ones.
    definitions: Remembered<Option<String>>,
}

impl FormatCache {
    /// Number of definitions formatted so far, for tests.
    pub fn count(&self) -> usize {
        self.definitions.computed()
    }
}

/// Brings a text into canonical form as [`format_definitions`] does. It parses and
/// formats only lines that earlier states of the text did not have. The language
/// is that of the parsed expressions in the cache.
pub fn format_again(text: &str, parsed: &mut ParsedBefore, before: &mut FormatCache) -> Formatted {
    let mut formatter = Formatter::new(text, parsed.language(), Some(before));
    outline_again(text, parsed, |line| formatter.line(&line));
    let formatted = formatter.end();
    before.definitions.end_reading();
    formatted
}

struct Formatter<'t, 'b> {
    language: Language,
    text: &'t str,
    out: String,
    mistakes: usize,
    /// The line end of an empty line. It is written only if something follows.
    blank: Option<&'t str>,
    /// True after a text without its end: the rest of the file is written already.
    is_over: bool,
    /// The cache of formatted lines.
    before: Option<&'b mut FormatCache>,
}

impl<'t, 'b> Formatter<'t, 'b> {
    fn new(
        text: &'t str,
        language: Language,
        before: Option<&'b mut FormatCache>,
    ) -> Formatter<'t, 'b> {
        Formatter {
            language,
            text,
            out: String::with_capacity(text.len() + text.len() / 8),
            mistakes: 0,
            blank: None,
            is_over: false,
            before,
        }
    }

    fn end(self) -> Formatted {
        Formatted { text: self.out, mistakes: self.mistakes }
    }

    fn line(&mut self, outlined: &OutlinedLine<'t>) {
        if self.is_over {
            return;
        }
        if outlined.form == LineForm::Unterminated {
            return self.unterminated(outlined.range.start);
        }
        let raw = &self.text[outlined.range.clone()];
        let given = line_end(raw);
        let body = &raw[..raw.len() - given.len()];
        let end = if given.is_empty() { "\n" } else { given };
        if outlined.form == LineForm::Blank {
            self.blank = self.blank.or(Some(end));
            return;
        }
        self.write_blank_line();
        let logical = &*outlined.line.text;
        match &outlined.form {
            LineForm::Definition { name, expression } => {
                let (name, expression) = (&logical[name.clone()], &logical[expression.clone()]);
                let compute = || definition(name, expression, end, self.language);
                let new;
                let formatted = match &mut self.before {
                    // The bytes of a line determine its meaning.
                    Some(before) => before.definitions.get(raw, |_| true, compute),
                    None => {
                        new = compute();
                        &new
                    }
                };
                self.out.push_str(formatted.as_deref().unwrap_or(body));
            }
            LineForm::Text { name, kind, value, is_quoted } => {
                let kind = match kind {
                    TextKind::OneLine => "oneline",
                    TextKind::Help => "helptext",
                };
                self.out.extend([&logical[name.clone()], "(", kind, ") = "]);
                let value = &self.text[*value..outlined.range.start + body.len()];
                self.out.push_str(if *is_quoted {
                    value.trim_end_matches(is_space)
                } else {
                    value
                });
            }
            LineForm::Comment => self.out.push_str(comment(body, logical)),
            LineForm::Mistake | LineForm::Blank | LineForm::Unterminated => {
                self.mistakes += 1;
                self.out.push_str(raw);
                return;
            }
        }
        // A line end behind the last backslash would continue the line and change its
        // meaning.
        if !given.is_empty() || !self.out.ends_with('\\') {
            self.out.push_str(end);
        }
    }

    /// A text without its end: nothing from there on changes.
    fn unterminated(&mut self, start: usize) {
        self.write_blank_line();
        self.mistakes += 1;
        self.is_over = true;
        self.out.push_str(&self.text[start..]);
    }

    fn write_blank_line(&mut self) {
        if let Some(end) = self.blank.take()
            && !self.out.is_empty()
        {
            self.out.push_str(end);
        }
    }
}

/// A definition before the end of its line; `None` if it must not change.
fn definition(name: &str, expression: &str, end: &str, language: Language) -> Option<String> {
    let found = tokens(expression, language);
    let breaks = match language.dialect.is_version_7() && end == "\n" {
        true => LineBreaks::Allowed,
        false => LineBreaks::Forbidden,
    };
    let mut out = format!("{name} = ");
    let start = out.len();
    write_expression(expression, &found, start, breaks, &mut out);
    // This is written to files, so it is checked again.
    let written: Cow<'_, str> = match out[start..].contains('\n') {
        true => out[start..].replace("\\\n", "").into(),
        false => out[start..].into(),
    };
    let again = tokens(&written, language);
    let same = found.iter().map(|at| at.token).eq(again.iter().map(|at| at.token));
    debug_assert!(same, "{expression:?} became {written:?}");
    same.then_some(out)
}

/// A comment without blanks at its end. It keeps them if it continues in the
/// next line, is a control line, or would seem to continue without them.
fn comment<'t>(body: &'t str, logical: &str) -> &'t str {
    let trimmed = body.trim_end_matches(is_space);
    let is_control =
        body.get(.."#control".len()).is_some_and(|start| start.eq_ignore_ascii_case("#control"));
    let is_joined = body.len() > logical.len();
    if is_control || is_joined || trimmed.ends_with('\\') { body } else { trimmed }
}

/// The end of a line: LF, CR LF or, in a file's last line, nothing.
fn line_end(line: &str) -> &str {
    match line.strip_suffix('\n') {
        Some(rest) if rest.ends_with('\r') => &line[rest.len() - 1..],
        Some(rest) => &line[rest.len()..],
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    #[test]
    fn lines_in_canonical_form() {
        for (text, formatted) in [
            ("  a.b\t=c+d", "a.b = c + d\n"),
            ("a=b\r\n\r\n \r\n\r\nc=d\r\n\r\n", "a = b\r\n\r\nc = d\r\n"),
            ("\n\n# x  \na=1\n\n \n\t\nb=2\n\n", "# x\na = 1\n\nb = 2\n"),
            ("a=b\\\n+ c", "a = b + c\n"),
            ("a (  oneline )=  as it is  \n", "a(oneline) = as it is  \n"),
            ("a(helptext)='two\n  lines'  \n", "a(helptext) = 'two\n  lines'\n"),
            ("a(helptext)= \\\n'\\\nx'\n", "a(helptext) = '\\\nx'\n"),
            ("# one \\\n  two  \n#control  g=5  ", "# one \\\n  two  \n#control  g=5  \n"),
            ("# no mark \\  \na=1\n", "# no mark \\  \na = 1\n"),
            ("# the end \\", "# the end \\"),
            (" b  =  =\n  c=d\n b", " b  =  =\nc = d\n b"),
            ("a=1\nb(helptext)='\n\n\n c=2\n", "a = 1\nb(helptext)='\n\n\n c=2\n"),
            ("", ""),
            (" \n\n", ""),
        ] {
            assert_eq!(format_definitions(text, Dialect::Fixed).text, formatted, "{text:?}");
        }
        // To libpcp a NUL ends the line.
        assert_eq!(format_definitions("a=b\0 \\", Dialect::Pcp7_2).text, "a = b\n");
    }

    #[test]
    fn blanks_between_tokens() {
        for (text, formatted) in [
            ("((a))+(b*c)", "((a)) + (b * c)"),
            ("-a- -b--c", "-a - -b - -c"),
            ("! ( a&&!b )||-  5.<.5", "!(a && !b) || -5. < .5"),
            ("a [ x y] * (b) [z]", "a[ x y] * (b)[z]"),
            ("a?b:c==d?e:novalue( type = u64 )", "a ? b : c == d ? e : novalue(type=u64)"),
            ("matchinst( ! /a\\/ b/ ,c/d)", "matchinst(!/a\\/ b/, c / d)"),
            (
                "mkconst(007,type=\"U64\",units = kbyte,indom=1.2)",
                "mkconst(007, type=\"U64\", units=kbyte, indom=1.2)",
            ),
            ("rescale(rate(a)\t,\"Mbyte /  sec\")", "rescale(rate(a), \"Mbyte /  sec\")"),
            ("a>=b!=c<=d", "a >= b != c <= d"),
        ] {
            let formatted_line = format_definitions(&format!("x={text}"), Dialect::Fixed);
            assert_eq!(formatted_line.text, format!("x = {formatted}\n"), "{text}");
        }
    }

    #[test]
    fn extensions_look_like_the_rest() {
        let language = Language { dialect: Dialect::Fixed, extensions: true };
        for (text, formatted) in [
            ("( topk( 3 ,rate(a)) ) [ x]", "(topk(3, rate(a)))[ x]"),
            ("clamp(a,-1,1.5e+3)", "clamp(a, -1, 1.5e+3)"),
            ("a==\"up\"||\"down\"!= a", "a == \"up\" || \"down\" != a"),
            ("avg_over(a ,\"5  min\")/max(a+b)", "avg_over(a, \"5  min\") / max(a + b)"),
            ("matchvalue(! /^x/ , a)", "matchvalue(!/^x/, a)"),
            ("1-sum( a )by(rack ,dc)* -b", "1 - sum(a) by (rack, dc) * -b"),
        ] {
            let whole = format_definitions(&format!("x={text}"), language);
            let expected = Formatted { text: format!("x = {formatted}\n"), mistakes: 0 };
            assert_eq!(whole, expected, "{text}");
        }
    }

    #[test]
    fn version_6_has_one_line_for_each_definition() {
        let text = format!("x = {}\n", ["some.metric"; 20].join("+"));
        let formatted = format_definitions(&text, Dialect::Pcp6_0);
        assert_eq!(formatted.text, text.replace('+', " + "));
        let formatted = format_definitions(&text, Dialect::Pcp7_2);
        assert_eq!(formatted.text, text.replace('+', " \\\n    + "));
        let formatted = format_definitions(&text.replace('\n', "\r\n"), Dialect::Fixed);
        assert_eq!(formatted.text, text.replace('+', " + ").replace('\n', "\r\n"));
    }

    #[test]
    fn long_and_deep_expressions() {
        let sum = format!("x = {}\n", vec!["a"; 1 << 16].join("+"));
        let deep = format!("x = {}a{}\n", "1+(".repeat(4000), ")".repeat(4000));
        for text in [sum, deep] {
            let formatted = format_definitions(&text, Dialect::Fixed).text;
            assert!(formatted.lines().count() > 100);
            assert_eq!(format_definitions(&formatted, Dialect::Fixed).text, formatted);
        }
    }
}
