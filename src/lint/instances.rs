//! Lints about selectors and patterns that no instance matches.

use std::sync::Arc;

use pmderive_runtime::model::{InDom, InstanceDomain};
use pmderive_runtime::pattern::Pattern;
use pmderive_runtime::source::{MetadataSource, SourceError};
use rustc_hash::FxHashMap;

use super::Subject;
use super::text::beyond_blank;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::engine::{Examination, Registered};
use crate::syntax::ast::{ExprId, NodeKind};
use crate::syntax::{choices, nearest};
use crate::text::SourceMap;

/// Most instances that a message lists.
const MAX_LISTED: usize = 5;

/// Asks the source for the instance domains that a selection selects from, and
/// warns of names and patterns that match no instance: of an archive at any
/// time, of a live source at present.
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
            let domain = match known.get(&indom) {
                Some(domain) => domain.clone(),
                None => {
                    let domain = source.known_instances(indom)?.ok();
                    known.insert(indom, domain.clone());
                    domain
                }
            };
            // Where nothing is there nothing can be said.
            let Some(domain) = domain.filter(|domain| !domain.is_empty()) else { continue };
            diagnostics.extend(missing(&node.kind, indom, &domain));
        }
        if one.is_named {
            diagnostics.name_metric(first, &one.name);
        }
    }
    Ok(())
}

/// The operand of a selector or `matchinst()`.
fn filtered(kind: &NodeKind) -> Option<ExprId> {
    match kind {
        NodeKind::Select { operand, .. } | NodeKind::Match { operand, .. } => Some(*operand),
        _ => None,
    }
}

fn missing(kind: &NodeKind, indom: InDom, domain: &InstanceDomain) -> Option<Diagnostic> {
    let names = || domain.instances().map(|(_, name)| name);
    let listed = || {
        let shown = choices(names().take(MAX_LISTED));
        match names().len() > MAX_LISTED {
            true => format!("{} instances, such as {shown}", names().len()),
            false => format!("the instances are {}", shown.replace(" or ", " and ")),
        }
    };
    match kind {
        NodeKind::Select { instance, .. } if domain.lookup(&instance.value).is_none() => {
            let (wanted, span) = (&*instance.value, instance.span);
            let message = format!("the instance domain {indom} has no instance `{wanted}`");
            let diagnostic = Diagnostic::warning(Code::NoSuchInstance, span, message)
                .label(span, "none of this name");
            Some(match nearest(wanted, names()) {
                // A name with a bracket or backslash would need escapes.
                Some(near) if !near.contains([']', '\\']) => diagnostic
                    .help(format!("did you mean `{near}`?"))
                    .fix(span, format!("[{near}]")),
                _ => diagnostic.help(listed()),
            })
        }
        NodeKind::Match { pattern, negated, .. } => {
            let compiled = Pattern::new(&pattern.value).ok()?;
            // Only the first word of a name is compared.
            let first_word = |name: &str| compiled.is_match(name.split(' ').next().unwrap_or(name));
            let span = pattern.span;
            if names().any(|name| first_word(name) != Ok(*negated)) {
                return None;
            }
            if let Some(cause) = beyond_blank(kind) {
                return Some(cause);
            }
            let message = match negated {
                false => format!("no instance of {indom} matches this pattern"),
                true => format!("all instances of {indom} match this pattern"),
            };
            Some(
                Diagnostic::warning(Code::NoSuchInstance, span, message)
                    .label(span, "so no values are left")
                    .help(listed()),
            )
        }
        _ => None,
    }
}
