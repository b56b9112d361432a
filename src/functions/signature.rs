//! All functions as editors and the manual show them: the form of a call and its
//! result. This file describes libpcp's own; the others describe themselves.

use std::fmt::Write as _;

use super::{Example, Function, ResultRule, functions};

/// A function in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its name.
    pub name: &'static str,
    /// The call with its arguments by name.
    pub usage: &'static str,
    /// The result in words.
    pub words: &'static str,
    /// The details of a function that needs extensions; `None` for those of libpcp.
    pub extension: Option<&'static Function>,
}

const fn of_libpcp(name: &'static str, usage: &'static str, words: &'static str) -> Signature {
    Signature { name, usage, words, extension: None }
}

/// The functions of libpcp (pmRegisterDerived(3)).
const LIBPCP: [Signature; 15] = [
    of_libpcp("anon", "anon(type)", "An operand of a type that never has a value."),
    of_libpcp("avg", "avg(metric)", "The mean over all instances, a FLOAT."),
    of_libpcp("count", "count(metric)", "The number of instances, or of values."),
    of_libpcp("defined", "defined(metric)", "1 if the source has the metric, else 0."),
    of_libpcp("delta", "delta(x)", "The difference from the previous sample."),
    of_libpcp("instant", "instant(x)", "The same values, as instantaneous ones."),
    of_libpcp("matchinst", "matchinst(/pattern/, x)", "Instances whose names match a pattern."),
    of_libpcp("max", "max(metric)", "The greatest value of all instances."),
    of_libpcp("min", "min(metric)", "The smallest value of all instances."),
    of_libpcp(
        "mkconst",
        "mkconst(number, type=TYPE, semantics=SEM, units=\"UNITS\", indom=INDOM, meta=METRIC)",
        "A constant with metadata.",
    ),
    of_libpcp(
        "novalue",
        "novalue(type=TYPE, semantics=SEM, units=\"UNITS\", indom=INDOM, meta=METRIC)",
        "No value, with metadata.",
    ),
    of_libpcp("rate", "rate(x)", "The difference from the previous sample, for each second."),
    of_libpcp("rescale", "rescale(x, \"units\")", "The same values in other units."),
    of_libpcp("scalar", "scalar(x)", "The only value of x, without an instance domain."),
    of_libpcp("sum", "sum(metric)", "The sum over all instances."),
];

/// All functions, those of libpcp first.
pub fn all() -> impl Iterator<Item = Signature> {
    let others = functions().map(|function| Signature {
        name: function.name,
        usage: function.usage,
        words: function.values,
        extension: Some(function),
    });
    LIBPCP.into_iter().chain(others)
}

/// The function with a name.
pub fn named(name: &str) -> Option<Signature> {
    all().find(|function| function.name == name)
}

impl Signature {
    /// The arguments, as parts of the usage.
    #[cfg(any(test, feature = "lsp"))]
    pub fn arguments(&self) -> Vec<&'static str> {
        let inside = self.usage.split_once('(').map_or("", |(_, rest)| rest);
        inside.trim_end_matches(')').split(", ").filter(|one| !one.is_empty()).collect()
    }

    /// A page of the manual about it.
    pub fn page(&self) -> String {
        let mut page = format!("# {}\n\n{}\n", self.usage, self.words);
        if let Some(function) = self.extension {
            let ResultRule { value_type, semantics, units, instances } = &function.result;
            let Example { call, gives } = &function.example;
            let _ = write!(
                page,
                "\nlibpcp does not have this function: it needs `--extensions`.\n\n\
                 - type: {value_type}\n- semantics: {semantics}\n- units: {units}\n\
                 - instances: {instances}\n\n\
                 For example, `{call}` gives {gives}.\n"
            );
        }
        page + "\n`pmderive help functions` has all functions with their values, and \
                `pmderive help language` how they are put together.\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{Dialect, Language};
    use crate::syntax::{Token, tokens};

    #[test]
    fn every_function_is_one_to_the_lexer() {
        let language = Language { dialect: Dialect::Fixed, extensions: true };
        for Signature { name, usage, .. } in all() {
            assert!(usage.starts_with(&format!("{name}(")), "{usage}");
            let text = format!("{name}(x)");
            let first = tokens(&text, language).first().map(|one| one.token);
            assert!(!matches!(first, None | Some(Token::Name(_) | Token::Invalid(_))), "{name}");
        }
    }

    #[test]
    fn the_grammar_of_editors_knows_the_same_functions() {
        let grammar = include_str!("../lsp/editors/vscode/syntaxes/pmderive.tmLanguage.json");
        let (_, names) = grammar.split_once("\\b(?:abs|").expect("the list of functions");
        let (names, _) = names.split_once(')').expect("its end");
        let mut listed: Vec<&str> = names.split('|').chain(["abs"]).collect();
        let mut known: Vec<&str> = all().map(|one| one.name).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn arguments_are_parts_of_the_usage() {
        let arguments = |name| named(name).expect("it is one").arguments();
        assert_eq!(arguments("rate"), ["x"]);
        assert_eq!(arguments("rescale"), ["x", "\"units\""]);
        assert_eq!(arguments("novalue").len(), 5);
        assert_eq!(arguments("topk"), ["k", "x"]);
    }
}
