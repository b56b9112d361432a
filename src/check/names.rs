//! Resolves names in expressions to metrics, and reports unknown names.

use pmderive_runtime::model::{PmStatus, ValueType};
use rustc_hash::FxHashMap;

use super::typed::{TypedId, TypedKind};
use super::{Checked, Checker, Reported, Suggest, constant_desc};
use crate::bind::{Name, Names};
use crate::diag::{Code, Diagnostic};
use crate::dialect::{Dialect, Language};
use crate::functions;
use crate::syntax::ast::{BinaryOp, Expr, ExprId, NodeKind};
use crate::syntax::keywords::meant;
use crate::syntax::{FUNCTION_NAMES, Group, function_elsewhere, has_same_words, name_mistake};
use crate::text::Span;

/// Words that are values in other languages, in small letters, with their
/// replacements.
const VALUES: [(&str, &str); 5] = [
    ("novalue|null|none|nil|nan|na", "novalue()"),
    ("inf|infinity", ""),
    ("true|yes", "1"),
    ("false|no", "0"),
    ("pi", "3.141592653589793"),
];

/// Advice about a derived metric as an operand, which needs the extensions.
const NO_OPERAND: &str = "write its expression here instead, or use extensions";

/// The report on a word of an expression that is a value in other languages, if it is one.
pub(crate) fn value_elsewhere(
    name: &str,
    expr: &Expr,
    span: Span,
    dialect: Dialect,
    diagnostic: Diagnostic,
) -> Option<Diagnostic> {
    let is_here = |id: ExprId| expr.node(id).span == span;
    let is_branch = || {
        expr.nodes().len() <= MAX_LOOKED_AT
            && expr.nodes().any(|(_, node)| match node.kind {
                NodeKind::Ternary { yes, no, .. } => is_here(yes) || is_here(no),
                _ => false,
            })
    };
    let meant = meant(name, &VALUES)?;
    let diagnostic = diagnostic.label(span, "not a value; values are numbers");
    Some(match meant {
        "" => diagnostic.help("there is no infinity; name a number"),
        "novalue()" if !dialect.is_version_7() => {
            diagnostic.help("before PCP 7 nothing stands for no value")
        }
        "novalue()" if is_branch() => {
            diagnostic.help("did you mean `novalue()`?").guess(span, "novalue()")
        }
        "novalue()" => {
            diagnostic.help("no value is a branch of `?:`, as in `defined(a) ? a : novalue()`")
        }
        _ => diagnostic.help("values are numbers").guess(span, meant),
    })
}

/// Expressions of more nodes are machine-made.
const MAX_LOOKED_AT: usize = 1_000;

/// A difference that is a metric's name with a hyphen in it: `mem.util-free`.
pub(super) struct Hyphenated {
    /// The place of the whole name.
    span: Span,
    /// The intended name.
    meant: String,
    written: String,
}

/// The names with hyphens in an expression, by the first unknown one of their
/// two parts. If the other part is unknown too, it has an entry without a name.
pub(super) fn hyphenated(
    expr: &Expr,
    names: &Names,
    suggest: &dyn Suggest,
) -> FxHashMap<ExprId, Option<Hyphenated>> {
    let mut found = FxHashMap::default();
    let unknown =
        |name: &str| matches!(names.get(name), Name::Unknown(_)) && !names.is_novalue(name);
    for (_, node) in expr.nodes() {
        let NodeKind::Binary { op: BinaryOp::Sub, op_span, left, right } = &node.kind else {
            continue;
        };
        let (NodeKind::Metric(first), NodeKind::Metric(second)) =
            (&expr.node(*left).kind, &expr.node(*right).kind)
        else {
            continue;
        };
        let (start, end) = (expr.node(*left).span, expr.node(*right).span);
        let touch = start.end == op_span.start && op_span.end == end.start;
        if !touch || !unknown(first) && !unknown(second) {
            continue;
        }
        let written = format!("{first}-{second}");
        let Some(meant) =
            suggest.nearest(&written, true).filter(|meant| has_same_words(meant, &written))
        else {
            continue;
        };
        let name = Hyphenated { span: start.to(end), meant, written };
        let (told, silent) = if unknown(first) { (*left, *right) } else { (*right, *left) };
        found.insert(told, Some(name));
        if unknown(first) && unknown(second) {
            found.insert(silent, None);
        }
    }
    found
}

impl Checker<'_> {
    /// Reports a name with a hyphen, if a node is part of one.
    pub(super) fn hyphen(&mut self, id: ExprId) -> Checked<()> {
        if self.hyphenated.is_empty() {
            return Ok(());
        }
        match self.hyphenated.remove(&id) {
            None => Ok(()),
            Some(None) => Err(Reported),
            Some(Some(Hyphenated { span, meant, written })) => {
                let (left, right) = written.split_once('-').unwrap_or_default();
                let message = format!("`{written}` is read as `{left} - {right}`");
                self.report(
                    Diagnostic::error(Code::UnknownMetric, span, message)
                        .label(span, "names of metrics have no hyphens")
                        .meant(span, Some(&meant), ""),
                )
            }
        }
    }

    pub(super) fn metric(&mut self, name: &str, span: Span) -> Checked<TypedId> {
        match self.names.get(name) {
            Name::Metric(desc) => Ok(self.push(TypedKind::Metric(desc.pmid), desc.into())),
            Name::Unknown(_) if self.names.is_novalue(name) => {
                Ok(self.push(TypedKind::NoValue, constant_desc(ValueType::I32)))
            }
            Name::Unknown(status) => self.unknown(name, status, span),
            Name::NoDescriptor(status) => {
                let message = format!("no metadata for metric `{name}`");
                let diagnostic = Diagnostic::error(Code::NoDescriptor, span, message);
                self.report(diagnostic.label(span, status.to_string().to_lowercase()))
            }
            Name::Derived(desc) => {
                if let Some(desc) = desc.filter(|_| self.takes_derived()) {
                    return Ok(self.push(TypedKind::Metric(desc.pmid), desc.into()));
                }
                if self.takes_derived() && !self.dialect.is_version_7() {
                    return self.unusable(name, span);
                }
                let message = format!("`{name}` is a derived metric");
                self.report(
                    Diagnostic::error(Code::NestedDerived, span, message)
                        .label(span, "derived metrics cannot be operands of others")
                        .help(NO_OPERAND),
                )
            }
            Name::Nested { desc, definition } => {
                Ok(self.push(TypedKind::Derived(definition), desc))
            }
            Name::Unusable => self.unusable(name, span),
        }
    }

    /// Reports a derived metric that cannot be used, once.
    fn unusable<T>(&mut self, name: &str, span: Span) -> Checked<T> {
        if !self.blamed.insert(name.into()) {
            return Err(Reported);
        }
        let message = format!("`{name}` cannot be used here");
        self.report(
            Diagnostic::error(Code::UnusableOperand, span, message)
                .label(span, "there are mistakes in its definition"),
        )
    }

    /// The name that an expression consists of.
    pub(super) fn metric_name(&self, id: ExprId) -> Option<&str> {
        match &self.expr.node(id).kind {
            NodeKind::Metric(name) => Some(name),
            _ => None,
        }
    }

    /// True for a place that is compared with a metric whose values are texts. Such
    /// a comparison needs the extensions.
    fn is_beside_text(&self, span: Span) -> bool {
        let is_text = |id: ExprId| match self.metric_name(id).map(|name| self.names.get(name)) {
            Some(Name::Metric(desc)) => desc.value_type == ValueType::String,
            _ => false,
        };
        let is_here = |id: ExprId| self.expr.node(id).span == span;
        self.extensions
            && self.expr.nodes().len() <= MAX_LOOKED_AT
            && self.expr.nodes().any(|(_, node)| match node.kind {
                NodeKind::Binary { op: BinaryOp::Eq | BinaryOp::Ne, left, right, .. } => {
                    is_here(left) && is_text(right) || is_here(right) && is_text(left)
                }
                _ => false,
            })
    }

    /// The report on a metric's name with a suffix, as in `disk.dev.read.sda`.
    fn part_of_metric(&self, name: &str, span: Span, found: &Diagnostic) -> Option<Diagnostic> {
        let (metric, rest) = name.rsplit_once('.').filter(|(_, rest)| !rest.is_empty())?;
        self.suggest.nearest(metric, false).filter(|near| near == metric)?;
        let help = match FUNCTION_NAMES.contains(&rest) || functions::named(rest).is_some() {
            true => format!("`{rest}` is a function; a call has parentheses: `{rest}(...)`"),
            false => {
                format!("if `{rest}` is an instance, it stands in brackets: `{metric}[{rest}]`")
            }
        };
        Some(found.clone().label(span, format!("`{metric}` is a metric")).help(help))
    }

    fn unknown(&mut self, name: &str, status: PmStatus, span: Span) -> Checked<TypedId> {
        // After a point at the end, the rest of the name is missing.
        if status == PmStatus::NONLEAF || name.ends_with('.') {
            let group = self.suggest.below(name);
            if status == PmStatus::NONLEAF || group.count > 0 {
                return self.report(of_group(name, span, &group));
            }
        }
        let message = format!("unknown metric `{name}`");
        let diagnostic = Diagnostic::error(Code::UnknownMetric, span, message);
        if self.names.is_refused(name) {
            let told = diagnostic.label(span, "there are mistakes in its definition");
            return self.report(match self.dialect {
                _ if self.expr.len() == 1 => told.help("`pmderive check` shows them"),
                Dialect::Pcp6_0 => told,
                Dialect::Pcp7_2 | Dialect::Fixed => told.help(NO_OPERAND),
            });
        }
        let language = Language { dialect: self.dialect, extensions: self.extensions };
        if FUNCTION_NAMES.contains(&name) || functions::named(name).is_some() {
            let help = format!("`{name}` is a function; a call has parentheses: `{name}(...)`");
            let told = value_elsewhere(name, self.expr, span, self.dialect, diagnostic.clone());
            return self.report(told.unwrap_or_else(|| {
                diagnostic.label(span, "taken for the name of a metric").help(help)
            }));
        }
        // Nearly every short name is near to one or two letters.
        let with_derived = self.extensions || self.expr.len() == 1 && self.suggest.is_unnamed();
        let near = self.suggest.nearest(name, with_derived).filter(|_| name.len() > 2);
        if near.is_none() {
            if self.is_beside_text(span) {
                return self.report(
                    diagnostic
                        .label(span, "is compared with a text")
                        .help("texts stand in double quotes")
                        .guess(span, format!("\"{name}\"")),
                );
            }
            let value = value_elsewhere(name, self.expr, span, self.dialect, diagnostic.clone());
            if let Some(told) = value.or_else(|| self.part_of_metric(name, span, &diagnostic)) {
                return self.report(told);
            }
            if let Some(help) = function_elsewhere(name, language) {
                let told = diagnostic.label(span, "taken for the name of a metric");
                return self.report(told.help(help));
            }
        }
        let mistake = name_mistake(name);
        let fact = match (&near, &mistake) {
            (Some(near), _) if near.eq_ignore_ascii_case(name) => {
                "the case of letters counts in names".to_owned()
            }
            (_, Some(mistake)) => mistake.rule.to_owned(),
            (_, None) => status.to_string().to_lowercase(),
        };
        let otherwise = match mistake {
            Some(_) => "no metric can have such a name".to_owned(),
            // Before version 7 a guard is no help: the whole expression has no value.
            None if self.dialect == Dialect::Pcp6_0 => "no name is like it".to_owned(),
            None => {
                let fact = if self.suggest.compares_all() { "no name is like it; " } else { "" };
                format!(
                    "{fact}where a metric may rightly be missing, write \
                     `defined({name}) ? {name} : novalue()`"
                )
            }
        };
        self.report(diagnostic.label(span, fact).meant(span, near.as_deref(), otherwise))
    }
}

/// The mistake of a group of metrics in the place of a metric.
fn of_group(name: &str, span: Span, group: &Group) -> Diagnostic {
    let message = format!("`{name}` is a group of metrics, not a metric");
    let diagnostic = Diagnostic::error(Code::UnknownMetric, span, message)
        .label(span, "a group: the rest of the name is missing");
    let name = name.strip_suffix('.').unwrap_or(name);
    let named: Vec<String> = group.nearest.iter().map(|name| format!("`{name}`")).collect();
    let (count, names) = (group.count, named.join(", "));
    match count.checked_sub(named.len()) {
        _ if count == 0 => {
            diagnostic.help(format!("name a metric below `{name}`; `pmderive info` lists them"))
        }
        _ if count == 1 => diagnostic.meant(span, group.nearest.first().map(String::as_str), ""),
        Some(0) => diagnostic.help(format!("{count} metrics are below `{name}`: {names}")),
        _ => diagnostic.help(format!("{count} metrics are below `{name}`, such as {names}")),
    }
}
