//! Reports mistakes in definitions for the commands named after PCP's tools. They report at the
//! same times as libpcp, and with `--compat` in its words.
//!
//! libpcp reports mistakes at two times: when it reads a text, and when a metric is first used
//! in a context. The default dialect reports the same mistakes in pmderive's words; one in a
//! file that the user names sets the exit status. Other modules find the mistakes.

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

/// Reaction of a tool to unreadable definition files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableFiles {
    /// It reports them and goes on, as pminfo does.
    Told,
    /// It ends.
    Fatal,
}

/// The definitions of a run, and the mistakes found so far.
pub struct Mistakes {
    dialect: Dialect,
    definitions: CommandDefinitions,
    /// True if a file that the arguments name has a mistake.
    has_own: bool,
}

impl Mistakes {
    /// Reads the definitions, and reports the mistakes that libpcp reports before there is a
    /// context.
    ///
    /// # Errors
    /// A file cannot be read, and this tool then ends.
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
        // In this version, loading definitions first loads the system's.
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
            // An empty path at the end of a list is only a warning.
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

    /// Reports the mistakes of the system's definitions. libpcp reads these when it opens a
    /// context, unless it read them before.
    pub fn tell_of_system(&mut self, messages: &mut Messages) {
        if self.dialect == Dialect::Fixed {
            self.definitions.warn_of_unreadable_files_of_system(messages);
        }
        let mut found = std::mem::take(&mut self.definitions.system_diagnostics);
        let definitions = &self.definitions;
        if self.dialect == Dialect::Fixed {
            // Replacing a definition or a text by one's own is no mistake.
            let is_replaced = |one: &Diagnostic| {
                matches!(one.code, Code::DuplicateName | Code::BadAttribute)
                    && definitions.defines(definitions.sources.slice(one.span))
            };
            found.retain(|one| one.code != Code::UnreadableFile && !is_replaced(one));
        }
        messages.diagnostics(found, &definitions.sources);
    }

    /// The definitions, and the texts for their places.
    pub fn registry(&self) -> (Registry, SourceMap) {
        (self.definitions.registry.clone(), self.definitions.sources.clone())
    }

    /// Notes the mistakes of metrics on their first use. Returns the diagnostics to print;
    /// `asked` are the names that the user gave.
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

    /// True if a diagnostic is printed. The system's definitions are for machines of many
    /// kinds. Missing operands, or a metric of the same name in the source, matter only if the
    /// user names the metric.
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

    /// Reports the mistakes of an expression among the arguments.
    pub fn refuse(&mut self, refused: Refused, messages: &mut Messages) {
        self.has_own = true;
        messages.diagnostics(refused.diagnostics, &refused.sources);
    }

    /// The exit status that the reported mistakes cause. To PCP's tools they are no failure.
    pub fn outcome(&self) -> ExitStatus {
        match self.has_own && self.dialect == Dialect::Fixed {
            true => ExitStatus::Failed,
            false => ExitStatus::Good,
        }
    }
}
