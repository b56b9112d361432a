//! Lines of other languages in place of definitions: comments, assignments and
//! settings of another form.
//!
//! This module looks only at refused lines, and says what to write instead.

use std::ops::Range;

use crate::diag::{Code, Diagnostic};
use crate::dialect::Language;
use crate::syntax::mistakes::edit::Edit;
use crate::syntax::mistakes::habits::{has_matchers, is_understood};
use crate::syntax::names::{is_space, name_mistake};
use crate::syntax::origin::{Origin, span};

use super::config_names::{RULE_KEYS, colon_for_assign};

/// Longest line to examine, in bytes.
const MAX_LINE: usize = 400;

const FORM: &str = "a definition is written `name = expression`";

/// Marks that begin and end a comment in other languages.
const COMMENTS: [(&str, &str); 5] =
    [("//", ""), ("--", ""), ("/*", "*/"), (";", ""), ("<!--", "-->")];

/// The meaning of a line in another language.
pub(super) struct LineHabit {
    code: Code,
    place: Range<usize>,
    message: String,
    help: String,
    edit: Option<Edit>,
}

impl LineHabit {
    /// Replaces the report on the line; libpcp's words stay.
    pub fn tell(self, diagnostic: &mut Diagnostic, origin: &Origin) {
        let LineHabit { code, place, message, help, edit } = self;
        let fix = edit.map(|edit| edit.placed(origin));
        let told = Diagnostic::error(code, span(origin, &place), message).help(help);
        let (metric, pcp) = (diagnostic.metric.take(), diagnostic.pcp.take());
        *diagnostic = Diagnostic { metric, pcp, fix, ..told };
    }
}

/// The habit behind a line that is not a definition.
pub(super) fn find(text: &str, language: Language) -> Option<LineHabit> {
    if text.len() > MAX_LINE {
        return None;
    }
    let looked = LineView { text, language };
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
    language: Language,
}

impl LineView<'_> {
    /// The line without blanks at its ends, and the offset where it begins.
    fn content(&self) -> (&str, usize) {
        let start = self.text.len() - self.text.trim_start_matches(is_space).len();
        (self.text.trim_matches(is_space), start)
    }

    fn habit(&self, place: Range<usize>, message: impl Into<String>, help: &str) -> LineHabit {
        let (message, help) = (message.into(), help.to_owned());
        LineHabit { code: Code::BadDefinitionLine, place, message, help, edit: None }
    }

    /// The whole line as a definition.
    fn definition(
        &self,
        name: &str,
        expression: &str,
        message: &str,
        is_certain: bool,
    ) -> Option<LineHabit> {
        let expression = expression.trim_matches(is_space);
        if name_mistake(name).is_some() || !is_understood(expression, self.language) {
            return None;
        }
        let (content, start) = self.content();
        let whole = start..start + content.len();
        let habit = self.habit(whole.clone(), message, FORM);
        let text = format!("{name} = {expression}");
        Some(LineHabit { edit: Some(Edit { at: whole, text, is_certain }), ..habit })
    }

    /// `// text`
    fn comment(&self) -> Option<LineHabit> {
        let (content, start) = self.content();
        let (mark, end) = COMMENTS.into_iter().find(|(mark, _)| content.starts_with(mark))?;
        let place = start..start + mark.len();
        let habit =
            self.habit(place, format!("`{mark}` begins no comment"), "comments begin with `#`");
        let inside = content[mark.len()..].strip_suffix(end);
        let is_whole = inside.is_some_and(|inside| end.is_empty() || !inside.contains(end));
        let inside = inside.map_or(&content[mark.len()..], str::trim_end);
        let at = 0..start + content.len();
        let edit = Edit { at, text: format!("#{inside}"), is_certain: is_whole };
        Some(LineHabit { edit: Some(edit), ..habit })
    }

    /// `expr: rate(x[5m])`
    fn rule(&self) -> Option<LineHabit> {
        let (content, start) = self.content();
        let (key, _) = content.split_once(':')?;
        let bare = key.trim_start_matches('-').trim();
        let message = format!("`{bare}:` belongs to a file of Prometheus rules");
        let help = format!("{FORM}; see `pmderive help promql`");
        let habit = || self.habit(start..start + key.len() + 1, message, &help);
        RULE_KEYS.contains(&bare).then(habit)
    }

    /// `x: rate(m{mode="idle"}[5m])`, where the first `=` is that of a label
    fn matchers(&self) -> Option<LineHabit> {
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
        let colon = colon_for_assign(before).map(|colon| start + colon);
        let edit = colon.map(|colon| Edit::guess(colon..colon + 1, " ="));
        Some(LineHabit { edit, ..habit })
    }

    /// `x == 0`, `sum(x) >= 5`
    fn comparison(&self) -> Option<LineHabit> {
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
        let place = start + sign.start..start + sign.end;
        let is_equality = &content[sign] == "==" && name_mistake(left).is_none();
        let edit = is_equality.then(|| Edit::guess(place.clone(), "="));
        let habit = self.habit(place, "this line compares, and defines nothing", FORM);
        Some(LineHabit { edit, ..habit })
    }

    /// `def x(): return a`
    fn function(&self) -> Option<LineHabit> {
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
    fn arrow(&self) -> Option<LineHabit> {
        let (name, expression) = self.content().0.split_once("<-")?;
        let message = "a definition has `=` behind its name";
        // `x <-5` may be a comparison.
        let is_certain = expression.starts_with(is_space);
        self.definition(name.trim_matches(is_space), expression, message, is_certain)
    }

    /// `{"x": "a"}`
    fn object(&self) -> Option<LineHabit> {
        let inside = self.content().0.strip_prefix('{')?;
        let inside = inside.trim_end_matches(',').strip_suffix('}')?;
        let (name, expression) = inside.split_once(':')?;
        let bare = |text: &'_ str| text.trim_matches(|c: char| is_space(c) || c == '"').to_owned();
        self.definition(&bare(name), &bare(expression), "definitions are no JSON", true)
    }

    /// `- x = a`
    fn list(&self) -> Option<LineHabit> {
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
        Some(LineHabit { edit: Some(Edit::certain(start..end, "")), ..habit })
    }

    /// `delta = 5 sec;` of pmie
    fn interval(&self) -> Option<LineHabit> {
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
        let whole = start..start + content.len();
        let habit = self.habit(
            whole.clone(),
            "`delta` as an interval is pmie's",
            "a tool has its own interval, as in `-t 5sec`; leave the line out",
        );
        Some(LineHabit { code: Code::UnexpectedToken, edit: Some(Edit::guess(whole, "")), ..habit })
    }

    /// `x rate(m)`
    fn no_assignment(&self) -> Option<LineHabit> {
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
        let (text, is_certain) = (" =".to_owned(), name.contains('.'));
        Some(LineHabit { edit: Some(Edit { at: end..end, text, is_certain }), ..habit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

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
            let found = find(line, Dialect::Fixed.into())
                .map(|habit| habit.edit.expect("an edit").applied(line));
            assert_eq!(found.as_deref(), edited, "{line}");
        }
    }
}
