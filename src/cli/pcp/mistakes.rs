//! How the commands called after PCP's tools report mistakes in definitions: at the
//! same times as libpcp, and with `--compat` in its words.
//!
//! libpcp reports mistakes at two times: when it reads a text, and when a metric is
//! first used in a context. Our own dialect reports the same in our words, and a
//! mistake in a file that the user has named sets the exit status. This module does
//! not decide what is a mistake.

use crate::cli::args::DefinitionArguments;
use crate::cli::definitions::CommandDefinitions;
use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::stop::Stop;
use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::dialect::{Dialect, Language};
use crate::engine::{Refused, Registry};
use crate::escape::Foreign;
use crate::text::SourceMap;

/// What a tool does about definition files that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableFiles {
    /// It says so and goes on, as pminfo does.
    Told,
    /// It ends.
    Fatal,
}

/// The definitions of a run, and what was wrong with them so far.
pub struct Mistakes {
    dialect: Dialect,
    definitions: CommandDefinitions,
    /// Something is wrong in a file that the arguments name.
    has_own: bool,
}

impl Mistakes {
    /// Reads the definitions and tells what libpcp tells before there is a
    /// context.
    ///
    /// # Errors
    /// A file cannot be read, and that is fatal.
    pub fn read(
        arguments: &DefinitionArguments,
        unreadable: UnreadableFiles,
        messages: &mut Messages,
    ) -> Result<Mistakes, Stop> {
        let dialect = arguments.language().dialect;
        if dialect != Dialect::Fixed {
            messages.speak_as_libpcp();
        }
        let definitions = CommandDefinitions::read(arguments);
        let mut mistakes = Mistakes { dialect, definitions, has_own: false };
        // In that version, whoever loads definitions loads the system's first.
        if dialect == Dialect::Pcp6_0 && !arguments.configs.is_empty() {
            mistakes.tell_of_system(messages);
        }
        let found = std::mem::take(&mut mistakes.definitions.diagnostics);
        mistakes.has_own = found.errors() > 0;
        if dialect == Dialect::Fixed {
            messages.diagnostics(found, &mistakes.definitions.sources);
            return Ok(mistakes);
        }
        for diagnostic in found {
            // An empty path at the end of a list is a warning.
            let is_fatal = diagnostic.severity == Severity::Error;
            if diagnostic.code == Code::UnreadableFile && is_fatal {
                let reason = diagnostic.pcp.as_deref().unwrap_or_default();
                if unreadable == UnreadableFiles::Fatal {
                    messages.error_lines(&[&"pmLoadDerivedConfig failed: ", &Foreign(reason)]);
                    return Err(messages.usage());
                }
                messages.error(&format_args!("derived configuration(s) error: {reason}"));
            }
            let mut one = Diagnostics::default();
            one.push(diagnostic);
            messages.diagnostics(one, &mistakes.definitions.sources);
        }
        Ok(mistakes)
    }

    /// Tells what is wrong with the system's definitions, which libpcp reads
    /// when a context is opened, if it has not done so.
    pub fn tell_of_system(&mut self, messages: &mut Messages) {
        if self.dialect == Dialect::Fixed {
            self.definitions.warn_of_unreadable_files_of_system(messages);
        }
        let mut found = std::mem::take(&mut self.definitions.system_diagnostics);
        let definitions = &self.definitions;
        if self.dialect == Dialect::Fixed {
            // To have a definition or text of one's own instead is no mistake.
            let is_replaced = |one: &Diagnostic| {
                matches!(one.code, Code::DuplicateName | Code::BadAttribute)
                    && definitions.defines(definitions.sources.slice(one.span))
            };
            found.retain(|one| one.code != Code::UnreadableFile && !is_replaced(one));
        }
        messages.diagnostics(found, &definitions.sources);
    }

    /// The definitions, with the texts that their places are in.
    pub fn registry(&self) -> (Registry, SourceMap) {
        (self.definitions.registry.clone(), self.definitions.sources.clone())
    }

    /// Takes note of what was found wrong with metrics when they were touched, and gives
    /// what is to be told; `asked` are the names that the user has given.
    pub fn worth_saying(&mut self, mut found: Diagnostics, asked: &[String]) -> Diagnostics {
        if self.dialect != Dialect::Fixed {
            return found;
        }
        found.retain(|diagnostic| self.is_worth_saying(diagnostic, asked));
        let definitions = &self.definitions;
        self.has_own |= found.iter().any(|diagnostic| {
            diagnostic.severity == Severity::Error && definitions.is_own(diagnostic.span.source)
        });
        found
    }

    /// The system's definitions are for machines of many kinds. If operands of
    /// one are missing here, or the source has such a metric by itself, that is
    /// news only to someone who asks for this very metric.
    fn is_worth_saying(&self, diagnostic: &Diagnostic, asked: &[String]) -> bool {
        let is_asked = || {
            let metric = diagnostic.metric.as_deref();
            metric.is_some_and(|metric| asked.iter().any(|name| name == metric))
        };
        match diagnostic.code {
            _ if self.definitions.is_own(diagnostic.span.source) => true,
            Code::HiddenByMetric => false,
            Code::UnknownMetric | Code::NoDescriptor => is_asked(),
            _ => true,
        }
    }

    /// The language of the definitions.
    pub fn language(&self) -> Language {
        self.definitions.registry.language()
    }

    /// Tells what is wrong with an expression among the arguments.
    pub fn refuse(&mut self, refused: Refused, messages: &mut Messages) {
        self.has_own = true;
        messages.diagnostics(refused.diagnostics, &refused.sources);
    }

    /// What the mistakes that were told mean for the outcome of the run. To
    /// PCP's tools they are no failure.
    pub fn outcome(&self) -> ExitStatus {
        match self.has_own && self.dialect == Dialect::Fixed {
            true => ExitStatus::Failed,
            false => ExitStatus::Good,
        }
    }
}
