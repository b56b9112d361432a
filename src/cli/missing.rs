//! Definitions whose operands the source does not have.
//!
//! In the user's own definitions this is a mistake. In those that come with PCP it is
//! none: they are for every machine, and few machines have all the agents that they
//! need. Such definitions are left out, and one line says how many.

use std::collections::BTreeMap;

use clap::ValueEnum;

use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::syntax::counted;
use crate::text::SourceMap;

use super::messages::Messages;

/// How to report an operand that the source lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Missing {
    /// The definition is wrong.
    Error,
    /// It is worth knowing.
    Warn,
    /// The definition is left out, and counted.
    Ignore,
}

/// Definitions that are left out, by name, with what is missing.
#[derive(Debug, Default)]
pub struct LeftOutDefinitions {
    found: BTreeMap<Box<str>, Vec<String>>,
}

impl LeftOutDefinitions {
    /// Takes missing operands out of diagnostics, or makes them warnings, as
    /// `meaning` has it for each definition.
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
            // One that is left out may be an operand of others.
            if left_out.found.len() == before {
                return left_out;
            }
        }
    }

    /// True if the operand that is at fault is missing, or left out itself.
    fn is_of_missing(&self, diagnostic: &Diagnostic, sources: &SourceMap) -> bool {
        match diagnostic.code {
            Code::UnknownMetric | Code::NoDescriptor => true,
            Code::UnusableOperand => self.has(sources.slice(diagnostic.span)),
            _ => false,
        }
    }

    /// True for the name of a definition that is left out.
    pub fn has(&self, name: &str) -> bool {
        self.found.contains_key(name)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Says in one line how many there are, if any, or in one each which.
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

    /// Says in one line how many there are, if any, and a `hint` behind it.
    pub fn tell_number(&self, hint: &str, messages: &Messages) {
        if !self.found.is_empty() {
            let count = counted(self.len(), "definition");
            let what = "whose operands this source does not have";
            messages.note(&format_args!("left out: {count} {what}{hint}"));
        }
    }
}
