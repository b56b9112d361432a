//! Lines of other languages in place of definitions: comments, assignments and
//! settings of another form.
//!
//! This module looks only at refused lines, and says what to write instead.

use std::ops::Range;

use crate::diag::{Code, Diagnostic, Fix};
use crate::dialect::Language;
use crate::syntax::mistakes::habits::{has_matchers, is_understood};
use crate::syntax::names::{is_space, name_mistake};
use crate::syntax::origin::{Origin, span};
use crate::text::Span;

use super::config_names::{RULE_KEYS, colon_for_assign};

/// Longest line to examine, in bytes.
const MAX_LINE: usize = 400;

const FORM: &str = "a definition is written `name = expression`";

/// Marks that begin and end a comment in other languages.
const COMMENTS: [(&str, &str); 5] =
    [("//", ""), ("--", ""), ("/*", "*/"), (";", ""), ("<!--", "-->")];

/// The report on a line that is not a definition, if a habit is behind it.
pub(super) fn find(text: &str, origin: &Origin, language: Language) -> Option<Diagnostic> {
    if text.len() > MAX_LINE {
        return None;
    }
    let looked = LineView { text, origin, language };
    looked
        .comment()
        .or_else(|| looked.rule())
        .or_else(|| looked.matchers())
        .or_else(|| looked.comparison())
        .or_else(|| looked.function())
        .or_else(|| looked.arrow())
        .or_else(|| looked.object())
        .or_else(|| looked.list())
        .or_else(|| looked.interval())
        .or_else(|| looked.no_assignment())
}

struct LineView<'l> {
    text: &'l str,
    origin: &'l Origin,
    language: Language,
}

impl LineView<'_> {
    /// The line without blanks at its ends, and the offset where it begins.
    fn content(&self) -> (&str, usize) {
        let start = self.text.len() - self.text.trim_start_matches(is_space).len();
        (self.text.trim_matches(is_space), start)
    }

    fn place(&self, range: Range<usize>) -> Span {
        span(self.origin, &range)
    }

    fn habit(&self, range: Range<usize>, message: impl Into<String>, help: &str) -> Diagnostic {
        Diagnostic::error(Code::BadDefinitionLine, self.place(range), message).help(help)
    }

    /// The whole line as a definition.
    fn definition(
        &self,
        name: &str,
        expression: &str,
        message: &str,
        is_certain: bool,
    ) -> Option<Diagnostic> {
        let expression = expression.trim_matches(is_space);
        if name_mistake(name).is_some() || !is_understood(expression, self.language) {
            return None;
        }
        let (content, start) = self.content();
        let habit = self.habit(start..start + content.len(), message, FORM);
        let text = format!("{name} = {expression}");
        let fix = Fix { span: habit.span, text, is_certain };
        Some(habit.edit(fix))
    }

    /// `// text`
    fn comment(&self) -> Option<Diagnostic> {
        let (content, start) = self.content();
        let (mark, end) = COMMENTS.into_iter().find(|(mark, _)| content.starts_with(mark))?;
        let place = start..start + mark.len();
        let habit =
            self.habit(place, format!("`{mark}` begins no comment"), "comments begin with `#`");
        let inside = content[mark.len()..].strip_suffix(end);
        let is_whole = inside.is_some_and(|inside| end.is_empty() || !inside.contains(end));
        let inside = inside.map_or(&content[mark.len()..], str::trim_end);
        let (span, text) = (self.place(0..start + content.len()), format!("#{inside}"));
        Some(habit.edit(Fix { span, text, is_certain: is_whole }))
    }

    /// `expr: rate(x[5m])`
    fn rule(&self) -> Option<Diagnostic> {
        let (content, start) = self.content();
        let (key, _) = content.split_once(':')?;
        let bare = key.trim_start_matches('-').trim();
        let message = format!("`{bare}:` belongs to a file of Prometheus rules");
        let help = format!("{FORM}; see `pmderive help promql`");
        let habit = || self.habit(start..start + key.len() + 1, message, &help);
        RULE_KEYS.contains(&bare).then(habit)
    }

    /// `x: rate(m{mode="idle"}[5m])`, where the first `=` is that of a label
    fn matchers(&self) -> Option<Diagnostic> {
        let (content, start) = self.content();
        let open = content.find('{')?;
        let before = content[..open].trim_end();
        let close = open + content[open..].find('}')?;
        if before.contains('=') || !has_matchers(&content[open + 1..close]) {
            return None;
        }
        let message = "label matchers are PromQL's, and this line defines nothing";
        let help = "a definition is written `name = expression`, and an instance chosen by its name \
                    alone: `disk.dev.read[sda]`; see `pmderive help promql`";
        let habit = self.habit(start + open..start + close + 1, message, help);
        Some(match colon_for_assign(before).map(|colon| start + colon) {
            Some(colon) => habit.guess(self.place(colon..colon + 1), " ="),
            None => habit,
        })
    }

    /// `x == 0`, `sum(x) >= 5`
    fn comparison(&self) -> Option<Diagnostic> {
        let (content, start) = self.content();
        let at = content.find('=')?;
        let sign = match (content[..at].chars().next_back()?, content[at + 1..].chars().next()) {
            ('<' | '>' | '!', _) => at - 1..at + 1,
            (_, Some('=')) => at..at + 2,
            _ => return None,
        };
        let (left, right) = (content[..sign.start].trim_end(), content[sign.end..].trim_start());
        if !is_understood(left, self.language) || !is_understood(right, self.language) {
            return None;
        }
        let range = start + sign.start..start + sign.end;
        let habit = self.habit(range, "this line compares, and defines nothing", FORM);
        let place = habit.span;
        Some(match &content[sign] == "==" && name_mistake(left).is_none() {
            true => habit.guess(place, "="),
            false => habit,
        })
    }

    /// `def x(): return a`
    fn function(&self) -> Option<Diagnostic> {
        let (content, _) = self.content();
        let rest =
            ["def ", "function ", "fn "].into_iter().find_map(|word| content.strip_prefix(word))?;
        let (name, rest) = rest.split_once('(')?;
        let (parameters, body) = rest.split_once(')')?;
        let body = body.trim_matches(|c: char| is_space(c) || ":{};".contains(c));
        let body = body.strip_prefix("return").unwrap_or(body);
        let (name, message) = (name.trim_matches(is_space), "definitions are no functions");
        self.definition(name, body, message, parameters.trim().is_empty())
    }

    /// `x <- a`
    fn arrow(&self) -> Option<Diagnostic> {
        let (name, expression) = self.content().0.split_once("<-")?;
        let message = "a definition has `=` behind its name";
        // `x <-5` may be a comparison.
        let is_certain = expression.starts_with(is_space);
        self.definition(name.trim_matches(is_space), expression, message, is_certain)
    }

    /// `{"x": "a"}`
    fn object(&self) -> Option<Diagnostic> {
        let inside = self.content().0.strip_prefix('{')?;
        let inside = inside.trim_end_matches(',').strip_suffix('}')?;
        let (name, expression) = inside.split_once(':')?;
        let bare = |text: &'_ str| text.trim_matches(|c: char| is_space(c) || c == '"').to_owned();
        self.definition(&bare(name), &bare(expression), "definitions are no JSON", true)
    }

    /// `- x = a`
    fn list(&self) -> Option<Diagnostic> {
        let (content, start) = self.content();
        let rest = content.strip_prefix(['-', '*'])?;
        let (name, expression) = rest.split_once('=')?;
        let end = start + 1 + (rest.len() - rest.trim_start_matches(is_space).len());
        if name_mistake(name.trim_matches(is_space)).is_some()
            || !is_understood(expression, self.language)
        {
            return None;
        }
        let habit =
            self.habit(start..start + 1, "a definition begins with its name", "leave the mark out");
        Some(habit.fix(self.place(start..end), ""))
    }

    /// `delta = 5 sec;` of pmie
    fn interval(&self) -> Option<Diagnostic> {
        let (content, start) = self.content();
        let (name, value) = content.split_once('=')?;
        let value = value.trim_matches(|c: char| is_space(c) || c == ';');
        let (number, unit) = value.split_once(is_space)?;
        let is_interval = name.trim_matches(is_space) == "delta"
            && number.parse::<f64>().is_ok()
            && unit.chars().all(|c| c.is_ascii_alphabetic());
        if !is_interval {
            return None;
        }
        let whole = self.place(start..start + content.len());
        Some(
            Diagnostic::error(Code::UnexpectedToken, whole, "`delta` as an interval is pmie's")
                .help("a tool has its own interval, as in `-t 5sec`; leave the line out")
                .guess(whole, ""),
        )
    }

    /// `x rate(m)`
    fn no_assignment(&self) -> Option<Diagnostic> {
        let (content, start) = self.content();
        if content.contains('=') {
            return None;
        }
        let (name, expression) = content.split_once(is_space)?;
        let expression = expression.trim_start_matches(is_space);
        let is_call =
            expression.contains('(') && expression.starts_with(|c: char| c.is_ascii_alphabetic());
        if name_mistake(name).is_some() || !is_call || !is_understood(expression, self.language) {
            return None;
        }
        let end = start + name.len();
        let habit = self.habit(
            end..end + 1,
            "there is no `=` in this line",
            "it stands behind the definition's name",
        );
        // Other words may be operators or functions elsewhere, as in `not defined(x)`.
        let (span, text, is_certain) = (self.place(end..end), " =".to_owned(), name.contains('.'));
        Some(habit.edit(Fix { span, text, is_certain }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::text::SourceId;

    #[test]
    fn lines_of_other_languages() {
        for (line, edited) in [
            ("// text", Some("# text")),
            ("  -- x = a", Some("# x = a")),
            ("/* note */", Some("# note")),
            ("<!-- note -->", Some("# note")),
            ("def x(): return a + 1", Some("x = a + 1")),
            ("function x(m) { return a; }", Some("x = a")),
            ("{\"x\": \"a\"}", Some("x = a")),
            ("- x = a", Some("x = a")),
            ("x <- a", Some("x = a")),
            ("delta = 5 sec;", Some("")),
            ("x rate(m)", Some("x = rate(m)")),
            ("x: rate(m{mode=\"idle\"}[5m]) * 100", Some("x = rate(m{mode=\"idle\"}[5m]) * 100")),
            ("up == 0", Some("up = 0")),
            ("no definition at all", None),
            ("two words", None),
            ("x = a b", None),
        ] {
            let found = find(line, &Origin::new(SourceId(0), 0), Dialect::Fixed.into());
            let found = found.map(|habit| {
                let Fix { span, text, .. } = habit.fix.expect("an edit");
                format!("{}{text}{}", &line[..span.start as usize], &line[span.end as usize..])
            });
            assert_eq!(found.as_deref(), edited, "{line}");
        }
    }
}
