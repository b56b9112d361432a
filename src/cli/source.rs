//! The source that the arguments choose.

use std::path::{Path, PathBuf};

use pmderive_runtime::archive::{ArchiveContext, InterpolationRules, OpenOptions};
use pmderive_runtime::context::{ConnectOptions, Context, HostContext, HostSpec, remedies};
use pmderive_runtime::source::{MetadataSource, SourceError};

use super::archives::{expanded, joined};
use super::args::{ExpansionArguments, SourceArguments};
use super::messages::Messages;
use crate::dialect::Dialect;
use crate::metadata::RecordedMetadata;

impl SourceArguments {
    /// True if the arguments choose a source.
    pub fn is_given(&self) -> bool {
        self.host.is_some() || !self.archive.is_empty() || self.local
    }

    /// The chosen archives, as one list with commas.
    pub fn archives(&self) -> Option<PathBuf> {
        joined(&self.archive)
    }

    /// Opens the chosen source, or else the pmcd of this machine. It gets the peculiarities
    /// that a dialect's definitions rely on.
    pub fn open(&self, dialect: Dialect, messages: &Messages) -> Result<Context, SourceError> {
        let mut context = self.open_untold(dialect, messages)?;
        tell_warnings(&mut context, messages);
        Ok(context)
    }

    /// Opens the source without a report of damage: an archive that is followed may be
    /// incomplete only while it is written.
    pub fn open_untold(
        &self,
        dialect: Dialect,
        messages: &Messages,
    ) -> Result<Context, SourceError> {
        if self.local {
            return Ok(Context::local());
        }
        if let Some(archives) = self.archives() {
            let mut archive = self.expansion.open(&archives, dialect)?;
            dialect.apply_to(&mut archive);
            if dialect != Dialect::Pcp6_0 {
                archive.pass_over_damage();
            }
            if let Some(error) = InterpolationRules::mistake_in_environment()
                && !messages.are_of_tool()
            {
                let wrong = "PCP_IGNORE_MARK_RECORDS is not an interval, so every mark is a gap";
                messages.warning_lines(&[&wrong, &":\n", &error]);
            }
            return Ok(Context::Archive(Box::new(archive)));
        }
        let (mut options, warnings) = ConnectOptions::from_environment();
        if std::env::var_os("PMCD_RECONNECT_TIMEOUT").is_none() {
            // The caller that retries pauses between attempts.
            options.reconnect_delays.clear();
        }
        let spec = self.host.clone().unwrap_or_else(HostSpec::local);
        // Warnings come first: they may tell why the connection fails.
        if !messages.are_of_tool() {
            warnings.iter().for_each(|warning| messages.warning(warning));
        }
        if dialect == Dialect::Fixed {
            spec.warnings.iter().for_each(|warning| messages.warning(warning));
        }
        let host = HostContext::open_with(&spec, options).map_err(with_option)?;
        Ok(Context::Host(Box::new(host)))
    }
}

/// Adds the option that needs no pmcd to the advice of an error.
fn with_option(error: SourceError) -> SourceError {
    match error {
        SourceError::Connect { target, help: remedies::START_PMCD, source } => {
            let help = "is pmcd running? `--local` gives metrics of this machine without PCP";
            SourceError::Connect { target, help, source }
        }
        other => other,
    }
}

impl ExpansionArguments {
    /// Opens archives, given as one list with commas, as the chosen version of PCP does.
    pub fn open(&self, archives: &Path, dialect: Dialect) -> Result<ArchiveContext, SourceError> {
        let options = OpenOptions {
            max_expanded: self.max_expanded,
            as_version_6: dialect == Dialect::Pcp6_0,
        };
        ArchiveContext::open_with(expanded(archives), options)
    }
}

/// At the end of a source, fails if it is an archive with damage that no sample has passed.
///
/// # Errors
/// The archive has such damage, and it was not yet reported.
pub fn check_rest(context: &mut Context) -> Result<(), SourceError> {
    match context {
        Context::Archive(archive) => archive.check_rest(),
        _ => Ok(()),
    }
}

/// Reports damage of a source's archives that can still be read, and returns the number of
/// places. The tools of PCP 6 do not notice it.
pub fn tell_warnings(context: &mut Context, messages: &Messages) -> usize {
    match context {
        Context::Archive(archive) => tell_damage(archive, messages),
        _ => 0,
    }
}

/// The same of an archive.
pub fn tell_damage(archive: &mut ArchiveContext, messages: &Messages) -> usize {
    let mut warnings = archive.take_warnings();
    if messages.are_of_version_6() {
        warnings.clear();
    }
    warnings.iter().for_each(|error| messages.damage(error));
    warnings.len()
}

/// Opens the source of a command that reads no values: the chosen one, or metadata in a file.
/// `None` if the arguments name neither.
pub fn open_metadata(
    arguments: &SourceArguments,
    metadata: Option<&Path>,
    dialect: Dialect,
    messages: &Messages,
) -> Result<Option<Box<dyn MetadataSource>>, SourceError> {
    Ok(match metadata {
        Some(file) => Some(Box::new(RecordedMetadata::open(file)?)),
        None if arguments.is_given() => Some(Box::new(arguments.open(dialect, messages)?)),
        None => None,
    })
}
