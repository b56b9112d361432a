//! Label matchers of PromQL, as text between braces, and the calls that choose
//! the same instances.

use super::MAX_REPEATED;
use crate::syntax::names::is_of_name;

/// `device=~"vd.*"`
#[derive(Debug, PartialEq)]
pub(super) struct Matcher<'t> {
    /// The label to compare.
    pub label: &'t str,
    /// The operator: `=` or the like.
    pub op: &'t str,
    /// The value to compare with.
    pub value: &'t str,
}

impl Matcher<'_> {
    /// The call that chooses its instances. PromQL compares whole values.
    pub fn call(&self, metric: &str) -> Option<String> {
        if self.value.contains(['/', '\\']) {
            return None;
        }
        let plain = |value: &str| value.chars().all(|c| c.is_alphanumeric() || "_-: ".contains(c));
        let (mark, pattern) = match self.op {
            "=~" => ("", format!("^({})$", self.value)),
            "!~" => ("!", format!("^({})$", self.value)),
            "!=" if plain(self.value) => ("!", format!("^{}$", self.value)),
            _ => return None,
        };
        let pattern = match pattern.strip_prefix("^(").and_then(|rest| rest.strip_suffix(".*)$")) {
            Some(start) if plain(start) => format!("^{start}"),
            _ => pattern,
        };
        let call = format!("matchinst({mark}/{pattern}/, {metric})");
        (call.len() <= MAX_REPEATED).then_some(call)
    }
}

/// The matchers between braces, if the braces contain nothing else.
pub(super) fn matchers(inside: &str) -> Option<Vec<Matcher<'_>>> {
    let mut found = Vec::new();
    let mut rest = inside.trim();
    while !rest.is_empty() {
        let label = rest.len() - rest.trim_start_matches(is_of_name).len();
        let (label, after) = rest.split_at(label);
        let after = after.trim_start();
        let op = ["=~", "!~", "!=", "==", "="].into_iter().find(|op| after.starts_with(op))?;
        let value = after[op.len()..].trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, end) = value[1..].split_once(quote)?;
        if label.is_empty() {
            return None;
        }
        found.push(Matcher { label, op: if op == "==" { "=" } else { op }, value });
        rest = end.trim_start();
        rest = match rest.strip_prefix(',') {
            Some(rest) => rest.trim_start(),
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    Some(found)
}

/// The pattern for an operand of SQL's `LIKE`.
pub(super) fn like(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-%".contains(c);
    if text.is_empty() || !text.chars().all(is_plain) {
        return None;
    }
    let (start, text) = match text.strip_prefix('%') {
        Some(rest) => ("", rest),
        None => ("^", text),
    };
    let (text, end) = match text.strip_suffix('%') {
        Some(rest) => (rest, ""),
        None => (text, "$"),
    };
    let inside = text.replace('%', ".*").replace('_', ".");
    (!inside.is_empty()).then(|| format!("{start}{inside}{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_of_sql() {
        for (text, pattern) in [
            ("vd%", Some("^vd")),
            ("%a", Some("a$")),
            ("%a_b%", Some("a.b")),
            ("v.d", None),
            ("%", None),
        ] {
            assert_eq!(like(text).as_deref(), pattern, "{text}");
        }
    }

    #[test]
    fn matchers_are_read_and_written_as_calls() {
        let calls = |inside| {
            let found = matchers(inside)?;
            Some(found.iter().map(|one| one.call("m")).collect::<Vec<_>>())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(matchers(""), Some(vec![]));
        assert_eq!(calls("a=~\"vd.*\""), Some(vec![some("matchinst(/^vd/, m)")]));
        assert_eq!(calls("a =~ 'x|y', "), Some(vec![some("matchinst(/^(x|y)$/, m)")]));
        assert_eq!(calls("a!=\"vda\""), Some(vec![some("matchinst(!/^vda$/, m)")]));
        assert_eq!(calls("a!~\"v/a\""), Some(vec![None]));
        for other in ["a + b", "a=b", "=\"x\"", "a=\"x\" b=\"y\""] {
            assert_eq!(matchers(other), None, "{other}");
        }
    }
}
