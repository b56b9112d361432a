//! Definitions whose operands the source lacks.
//!
//! A missing operand is a mistake in the user's own definitions, but not in those that come
//! with PCP. These are for every machine, and few machines have all the agents that they need.
//! Such definitions are left out, and one line gives their number.

use std::collections::BTreeMap;

use clap::ValueEnum;

use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::syntax::counted;
use crate::text::SourceMap;

use super::messages::Messages;

/// How to report an operand that the source lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Missing {
    /// Report a mistake of the definition.
    Error,
    /// Report a warning.
    Warn,
    /// Leave the definition out and count it.
    Ignore,
}

/// Map from each definition that is left out to its missing operand.
#[derive(Debug, Default)]
pub struct LeftOutDefinitions {
    found: BTreeMap<Box<str>, Vec<String>>,
}

impl LeftOutDefinitions {
    /// Removes missing operands from diagnostics, or makes them warnings. `meaning` decides for
    /// each definition.
    pub fn take(
        diagnostics: &mut Diagnostics,
        sources: &SourceMap,
        meaning: impl Fn(&Diagnostic) -> Missing,
    ) -> LeftOutDefinitions {
        let mut left_out = LeftOutDefinitions::default();
        loop {
            let before = left_out.found.len();
            let found = std::mem::take(diagnostics);
            diagnostics.extend(found.into_iter().filter_map(|one| {
                if !left_out.is_of_missing(&one, sources) {
                    return Some(one);
                }
                match (meaning(&one), &one.metric) {
                    (Missing::Error, _) => Some(one),
                    (Missing::Ignore, Some(name)) => {
                        left_out.found.entry(name.clone()).or_default().push(one.message);
                        None
                    }
                    (Missing::Warn | Missing::Ignore, _) => {
                        Some(Diagnostic { severity: Severity::Warning, ..one })
                    }
                }
            }));
            // A definition that is left out may be an operand of others.
            if left_out.found.len() == before {
                return left_out;
            }
        }
    }

    /// True if the operand at fault is missing, or left out itself.
    fn is_of_missing(&self, diagnostic: &Diagnostic, sources: &SourceMap) -> bool {
        match diagnostic.code {
            Code::UnknownMetric | Code::NoDescriptor => true,
            Code::UnusableOperand => self.has(sources.slice(diagnostic.span)),
            _ => false,
        }
    }

    /// True for a definition that is left out.
    pub fn has(&self, name: &str) -> bool {
        self.found.contains_key(name)
    }

    /// The number of definitions left out.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Prints the number of definitions left out, or with `verbose` one line for each.
    pub fn tell(&self, verbose: bool, messages: &Messages) {
        if verbose {
            for (name, missing) in &self.found {
                let missing = missing.join(", ");
                messages.note(&format_args!("left out: {name}: {missing}"));
            }
        } else {
            self.tell_number(" (-v lists them)", messages);
        }
    }

    /// Prints the number of definitions left out, if any, followed by a `hint`.
    pub fn tell_number(&self, hint: &str, messages: &Messages) {
        if !self.found.is_empty() {
            let count = counted(self.len(), "definition");
            let what = "whose operands this source does not have";
            messages.note(&format_args!("left out: {count} {what}{hint}"));
        }
    }
}
