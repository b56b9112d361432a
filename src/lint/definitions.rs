//! Lints about definitions beside each other: unused ones, equal ones under two
//! names, and names that hide others.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::bind::references;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::engine::{Registered, Registry, needed};
use crate::syntax::ast::{Expr, NodeKind};
use crate::syntax::{FUNCTION_NAMES, print_expr};

/// Examines `definitions` of a registry; other definitions of the registry are
/// not the user's. `wanted` are the requested definitions and expressions. If
/// they include or mention definitions, those that none of them needs, directly
/// or through others, are reported.
pub(crate) fn lint_definitions(
    registry: &Registry,
    definitions: &[&Registered],
    wanted: &[&Registered],
    diagnostics: &mut Diagnostics,
) {
    let named = || definitions.iter().copied().filter(|one| one.is_named);
    same(named(), diagnostics);
    shadowing(named(), diagnostics);
    unused(registry, named(), wanted, diagnostics);
}

fn same<'d>(definitions: impl Iterator<Item = &'d Registered>, diagnostics: &mut Diagnostics) {
    // Equal numbers may well be two limits.
    let definitions = definitions.filter(|one| names_in(&one.expr).next().is_some());
    let formed: Vec<(u64, &Registered)> = definitions.map(|one| (form(&one.expr), one)).collect();
    let mut times: FxHashMap<u64, u32> = FxHashMap::default();
    for (form, _) in &formed {
        *times.entry(*form).or_default() += 1;
    }
    let mut seen: HashMap<String, &Registered> = HashMap::new();
    for (_, one) in formed.into_iter().filter(|(form, _)| times[form] > 1) {
        let text = print_expr(&one.expr);
        let Some(earlier) = seen.get(&text) else {
            seen.insert(text, one);
            continue;
        };
        let message = format!("`{}` is the same as `{}`", one.name, earlier.name);
        diagnostics.push(
            Diagnostic::warning(Code::SameExpression, one.name_span, message)
                .label(one.name_span, "the same expression")
                .label(earlier.name_span, "as this one")
                .help("if both names are wanted, this costs nothing: it is computed once")
                .of_metric(&one.name),
        );
    }
}

/// A hash of an expression: equal for expressions that print alike, and mostly different
/// for others. It is cheaper than printing, which is slow for very many expressions.
fn form(expr: &Expr) -> u64 {
    let mut hasher = FxHasher::default();
    for (_, node) in expr.nodes() {
        std::mem::discriminant(&node.kind).hash(&mut hasher);
        if let NodeKind::Number(number) = &node.kind {
            let value = number.value.as_f64();
            value.to_bits().hash(&mut hasher);
        }
    }
    names_in(expr).for_each(|name| name.hash(&mut hasher));
    hasher.finish()
}

/// Names that are also groups of others, or words of the language.
fn shadowing<'d>(definitions: impl Iterator<Item = &'d Registered>, diagnostics: &mut Diagnostics) {
    let named: Vec<&Registered> = definitions.collect();
    let mut sorted = in_question(&named);
    sorted.sort_by(|one, other| one.name.cmp(&other.name));
    for (index, one) in sorted.iter().enumerate() {
        let warning = |message: String| {
            Diagnostic::warning(Code::ShadowingName, one.name_span, message).of_metric(&one.name)
        };
        if is_word(&one.name) {
            diagnostics.push(
                warning(format!("`{}` is a word of the language", one.name))
                    .label(one.name_span, "is read as that where a parenthesis follows")
                    .help("give it a name with a dot in it, as metrics have"),
            );
        }
        let group = format!("{}.", one.name);
        // Between the two there may be names such as `a-b`, which sort before the point.
        let mut below =
            sorted[index + 1..].iter().take_while(|other| other.name.starts_with(&*one.name));
        if let Some(below) = below.find(|other| other.name.starts_with(&group)) {
            diagnostics.push(
                warning(format!("`{}` is a metric and a group of metrics", one.name))
                    .label(
                        one.name_span,
                        "tools that list the group show this metric, and none below it",
                    )
                    .label(below.name_span, "is below it")
                    .help(format!("give it a name in the group, such as `{}.all`", one.name)),
            );
        }
    }
}

/// Definitions whose names are keywords, groups of others, or members of such a group.
/// Usually there are none, and no sorting is needed.
fn in_question<'d>(named: &[&'d Registered]) -> Vec<&'d Registered> {
    let names: FxHashSet<&str> = named.iter().map(|one| &*one.name).collect();
    let lengths: FxHashSet<usize> = names.iter().map(|name| name.len()).collect();
    let mut found: FxHashSet<&str> = FxHashSet::default();
    for name in named.iter().map(|one| &*one.name) {
        for group in groups(name, &lengths).filter(|group| names.contains(group)) {
            found.extend([group, name]);
        }
        if is_word(name) {
            found.insert(name);
        }
    }
    named.iter().copied().filter(|one| found.contains(&*one.name)).collect()
}

/// The groups that a name is in, as far as a name has their length. So a name of very many
/// parts is not hashed once for each part.
fn groups<'n>(name: &'n str, lengths: &FxHashSet<usize>) -> impl Iterator<Item = &'n str> {
    let points = name.match_indices('.').map(|(point, _)| point);
    points.filter(|point| lengths.contains(point)).map(|point| &name[..point])
}

/// True for words that begin calls and keywords.
fn is_word(name: &str) -> bool {
    FUNCTION_NAMES.contains(&name)
        || ["type", "semantics", "units", "indom", "meta"].contains(&name)
}

fn unused<'d>(
    registry: &Registry,
    definitions: impl Iterator<Item = &'d Registered>,
    wanted: &[&Registered],
    diagnostics: &mut Diagnostics,
) {
    let needed = needed(registry, wanted);
    let needed: HashSet<&str> =
        needed.iter().filter(|one| one.is_named).map(|one| &*one.name).collect();
    // If none of them is a name, the user has not said which definitions
    // matter.
    if needed.is_empty() {
        return;
    }
    for one in definitions.filter(|one| !needed.contains(&*one.name)) {
        let message = format!("nothing that was asked for uses `{}`", one.name);
        let warning = Diagnostic::warning(Code::UnusedDefinition, one.name_span, message)
            .label(one.name_span, "not needed")
            .help("remove it, or ask for it by its name");
        diagnostics.push(warning.of_metric(&one.name));
    }
}

/// The names of metrics in an expression, those of `defined()` included.
fn names_in(expr: &Expr) -> impl Iterator<Item = &str> {
    references(expr).map(|reference| reference.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_many_parts_is_looked_up_for_few_of_them() {
        let name = format!("a.b{}", ".c".repeat(80_000));
        let of = |lengths: &[usize]| {
            let lengths = lengths.iter().copied().collect();
            groups(&name, &lengths).map(str::len).collect::<Vec<_>>()
        };
        assert_eq!(of(&[name.len()]), [0; 0]);
        // A length at which the name has no point is that of no group.
        assert_eq!(of(&[1, 2, 3, 4, 1001, name.len()]), [1, 3, 1001]);
    }
}
