//! Warns of names and instances that are probably notation of other languages:
//! `disk.dev.read[5m]`, `true`. With a source, other checks find them.

use std::cell::OnceCell;

use super::subject::Subject;
use crate::check::names::value_elsewhere;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::Dialect;
use crate::engine::Registered;
use crate::syntax::ast::NodeKind;
use crate::syntax::{WINDOWS, window};
use crate::text::{SourceMap, Span};

/// Longest call to suggest, in bytes.
const MAX_REPEATED: usize = 160;

/// Examines each expression of a selection without a source.
pub fn notation_of_others(
    selection: &[&Registered],
    dialect: Dialect,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) {
    for one in selection {
        let first = diagnostics.len();
        let subject = OnceCell::new();
        for (_, node) in one.expr.nodes() {
            let found = match &node.kind {
                NodeKind::Metric(name) => value_elsewhere(
                    name,
                    &one.expr,
                    node.span,
                    dialect,
                    Diagnostic::warning(
                        Code::UnknownMetric,
                        node.span,
                        format!("`{name}` would be the name of a metric"),
                    ),
                ),
                NodeKind::Select { instance, operand } => {
                    let subject = subject.get_or_init(|| Subject::new(&one.expr, None, sources));
                    let message = format!("`{}` would be the name of an instance", instance.value);
                    Selector {
                        wanted: &instance.value,
                        span: instance.span,
                        whole: node.span,
                        metric: subject.text(*operand),
                        is_instance: &|_| true,
                        otherwise: "`matchinst()` selects several instances",
                    }
                    .advice(&Diagnostic::warning(
                        Code::NoSuchInstance,
                        instance.span,
                        message,
                    ))
                }
                _ => None,
            };
            diagnostics.extend(found);
        }
        if one.is_named {
            diagnostics.name_metric(first, &one.name);
        }
    }
}

/// The contents of brackets behind a metric.
pub(super) struct Selector<'s> {
    pub wanted: &'s str,
    /// The place of the brackets.
    pub span: Span,
    /// The place of the metric with its brackets.
    pub whole: Span,
    pub metric: &'s str,
    /// True for a possible name of an instance.
    pub is_instance: &'s dyn Fn(&str) -> bool,
    /// Advice where there is no replacement.
    pub otherwise: &'s str,
}

impl Selector<'_> {
    /// The diagnostic with advice for contents other than a name.
    pub fn advice(&self, diagnostic: &Diagnostic) -> Option<Diagnostic> {
        let Selector { wanted, span, whole, metric, .. } = *self;
        let because =
            |fact: &str| Diagnostic { labels: Vec::new(), ..diagnostic.clone() }.label(span, fact);
        let quoted = ['"', '\'']
            .into_iter()
            .find_map(|quote| wanted.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)));
        if let Some(inside) = quoted.filter(|inside| (self.is_instance)(inside)) {
            let told = because("the quotes would belong to the name");
            return Some(
                told.help("names stand in brackets as they are").fix(span, format!("[{inside}]")),
            );
        }
        if wanted.starts_with('$') && window(wanted).is_none() {
            return Some(because("definitions have no variables").help(self.otherwise));
        }
        if window(wanted).is_some() {
            let told = because("a range of time in PromQL; here the name of an instance");
            return Some(told.help(WINDOWS).guess(span, ""));
        }
        let between = wanted.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        if let Some(inside) = between.filter(|inside| !inside.contains('/')) {
            let told = because("a pattern would be the name of an instance");
            let call = format!("matchinst(/{inside}/, {metric})");
            return Some(told.help("a pattern chooses in `matchinst()`").guess(whole, call));
        }
        let all: Vec<&str> = wanted.split(',').map(str::trim).collect();
        let is_list = all.len() > 1 && all.iter().all(|name| (self.is_instance)(name));
        let told = because("brackets choose one instance by its whole name");
        // `.*` is a regular expression, `*` alone a pattern of file names, as is all with `?`.
        let files = match wanted.contains('?') {
            true => wanted.to_owned(),
            false => wanted.replace(".*", "*"),
        };
        if files == "*" {
            return Some(told.help("a metric without brackets has all of them").guess(span, ""));
        }
        let pattern = match (is_list, wanted.contains(['*', '?'])) {
            (true, _) => {
                let words = all.iter().map(|name| escaped(name.split(' ').next().unwrap_or(name)));
                format!("^({})$", words.collect::<Vec<String>>().join("|"))
            }
            (_, true) => {
                format!("^{}$", escaped(&files).replace("\\\\*", ".*").replace("\\\\?", "."))
            }
            _ => return None,
        };
        let pattern = pattern.strip_suffix(".*$").unwrap_or(&pattern);
        let call = format!("matchinst(/{pattern}/, {metric})");
        if call.len() > MAX_REPEATED || wanted.contains('/') {
            return Some(told.help("several are chosen with `matchinst()`"));
        }
        Some(told.help(format!("did you mean `{call}`?")).guess(whole, call))
    }
}

/// A text as a pattern that matches it, as it is written between slashes.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        // Reading the pattern removes one backslash.
        if !character.is_alphanumeric() && !"-_:@%, ".contains(character) {
            out.push_str("\\\\");
        }
        out.push(character);
    }
    out
}
