//! Lints about selectors and patterns that no instance matches.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use pmderive_runtime::model::{InDom, InstanceDomain};
use pmderive_runtime::pattern::Pattern;
use pmderive_runtime::source::{MetadataSource, SourceError};
use rustc_hash::FxHashMap;

use super::elsewhere::Selector;
use super::subject::Subject;
use super::text::{SELECT_INSTEAD, beyond_blank};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::engine::{Examination, Registered};
use crate::syntax::ast::{Expr, ExprId, Node, NodeKind};
use crate::syntax::{choices, nearest};
use crate::text::{SourceMap, Span};

/// Largest number of instances that a message lists.
const MAX_LISTED: usize = 5;

/// Asks the source for the instance domains that a selection selects from, and
/// warns of names and patterns that match no instance. In an archive it
/// considers all times, in a live source only the present.
///
/// # Errors
/// The source failed.
pub fn missing_instances(
    selection: &[&Registered],
    examination: &Examination,
    sources: &SourceMap,
    source: &mut dyn MetadataSource,
    diagnostics: &mut Diagnostics,
) -> Result<(), SourceError> {
    let mut known: FxHashMap<InDom, Option<Arc<InstanceDomain>>> = FxHashMap::default();
    for (one, examined) in selection.iter().zip(&examination.expressions) {
        let subject = Subject::new(&one.expr, Some(examined), sources);
        let first = diagnostics.len();
        for (_, node) in subject.nodes() {
            let Some(operand) = filtered(&node.kind) else { continue };
            let Some(indom) = subject.desc(operand).and_then(|desc| desc.indom) else { continue };
            let domain = match known.entry(indom) {
                Entry::Occupied(domain) => domain.get().clone(),
                Entry::Vacant(place) => place.insert(source.known_instances(indom)?.ok()).clone(),
            };
            // An empty domain allows no conclusion.
            let Some(domain) = domain.filter(|domain| !domain.is_empty()) else { continue };
            let selected =
                InstanceSelection { subject: &subject, node, operand, indom, domain: &domain };
            diagnostics.extend(selected.missing());
        }
        if one.is_named {
            diagnostics.name_metric(first, &one.name);
        }
    }
    Ok(())
}

/// True for an expression that selects instances by their names.
pub fn selects_instances(expr: &Expr) -> bool {
    expr.nodes().any(|(_, node)| filtered(&node.kind).is_some())
}

/// The operand of a selector or `matchinst()`.
fn filtered(kind: &NodeKind) -> Option<ExprId> {
    match kind {
        NodeKind::Select { operand, .. } | NodeKind::Match { operand, .. } => Some(*operand),
        _ => None,
    }
}

/// A selection from an instance domain.
struct InstanceSelection<'s> {
    subject: &'s Subject<'s>,
    node: &'s Node,
    operand: ExprId,
    indom: InDom,
    domain: &'s InstanceDomain,
}

impl<'s> InstanceSelection<'s> {
    fn names(&self) -> impl ExactSizeIterator<Item = &'s str> {
        self.domain.instances().map(|(_, name)| name)
    }

    fn listed(&self) -> String {
        let shown = choices(self.names().take(MAX_LISTED));
        match self.names().len() > MAX_LISTED {
            true => format!("{} instances, such as {shown}", self.names().len()),
            false => format!("the instances are {}", shown.replace(" or ", " and ")),
        }
    }

    /// The warning if no instance is selected.
    fn missing(&self) -> Option<Diagnostic> {
        match &self.node.kind {
            NodeKind::Select { instance, .. } if self.domain.lookup(&instance.value).is_none() => {
                Some(self.no_instance(&instance.value, instance.span))
            }
            NodeKind::Match { pattern, negated, .. } => {
                self.no_match(&pattern.value, *negated, pattern.span)
            }
            _ => None,
        }
    }

    fn no_instance(&self, wanted: &str, span: Span) -> Diagnostic {
        let message = format!("the instance domain {} has no instance `{wanted}`", self.indom);
        let diagnostic = Diagnostic::warning(Code::NoSuchInstance, span, message)
            .label(span, "no instance has this name");
        let selector = Selector {
            wanted,
            span,
            whole: self.node.span,
            metric: self.subject.text(self.operand),
            is_instance: &|name| self.domain.lookup(name).is_some(),
            otherwise: &self.listed(),
        };
        if let Some(told) = selector.advice(&diagnostic) {
            return told;
        }
        if let Some(name) = wanted.strip_prefix(['!', '^', '-'])
            && self.domain.lookup(name).is_some()
            && name.chars().all(|one| one.is_alphanumeric() || one == '_')
        {
            let meant = format!("matchinst(!/^{name}$/, {})", self.subject.text(self.operand));
            let help = "matchinst() leaves instances out, by a pattern";
            return diagnostic.help(help).guess(self.node.span, meant);
        }
        match nearest(wanted, self.names()) {
            // A name with a bracket or backslash would need escapes.
            Some(near) if !near.contains([']', '\\']) => {
                diagnostic.help(format!("did you mean `{near}`?")).guess(span, format!("[{near}]"))
            }
            _ => diagnostic.help(self.listed()),
        }
    }

    fn no_match(&self, pattern: &str, negated: bool, span: Span) -> Option<Diagnostic> {
        let compiled = Pattern::new(pattern).ok()?;
        // Only the first word of a name counts.
        let is_kept = |compiled: &Pattern, name: &str| {
            compiled.is_match(name.split(' ').next().unwrap_or(name)) != Ok(negated)
        };
        if self.names().any(|name| is_kept(&compiled, name)) {
            return None;
        }
        if let Some(cause) = beyond_blank(&self.node.kind) {
            return Some(cause);
        }
        let indom = self.indom;
        let message = match negated {
            false => format!("no instance of {indom} matches this pattern"),
            true => format!("all instances of {indom} match this pattern"),
        };
        let diagnostic = Diagnostic::warning(Code::NoSuchInstance, span, message);
        let written = self.subject.sources.slice(span);
        if let Some(classes) = without_backslashes(written) {
            return Some(
                diagnostic
                    .label(span, format!("is `/{pattern}/`: a backslash goes away"))
                    .help(match written.contains("\\b") {
                        true => {
                            "classes are written in brackets, and nothing is the edge of a word"
                        }
                        false => "classes are written in brackets",
                    })
                    .guess(span, classes),
            );
        }
        if self.names().any(|name| compiled.is_match(name) != Ok(negated)) {
            return Some(
                diagnostic.label(span, "is compared with the first word only").help(SELECT_INSTEAD),
            );
        }
        Some(diagnostic.label(span, "so no values are left").help(self.listed()))
    }
}

/// A pattern as written, with brackets in place of Perl's classes. `None` if it
/// has none.
fn without_backslashes(written: &str) -> Option<String> {
    let mut out = written.to_owned();
    for (perl, posix) in [
        ("\\d", "[0-9]"),
        ("\\w", "[[:alnum:]_]"),
        ("\\s", "[[:space:]]"),
        ("\\D", "[^0-9]"),
        ("\\W", "[^[:alnum:]_]"),
        ("\\S", "[^[:space:]]"),
    ] {
        out = out.replace(perl, posix);
    }
    (out != written && !written.contains("\\\\")).then(|| out.replace("\\b", ""))
}
