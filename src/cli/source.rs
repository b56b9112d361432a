//! The source that the arguments choose.

use std::path::{Path, PathBuf};

use pmderive_runtime::archive::{ArchiveContext, InterpolationRules, OpenOptions};
use pmderive_runtime::context::{ConnectOptions, Context, HostContext, HostSpec};
use pmderive_runtime::source::{MetadataSource, SourceError};

use super::archives::{expanded, joined};
use super::args::{ExpansionArguments, SourceArguments};
use super::messages::Messages;
use crate::dialect::Dialect;
use crate::metadata::RecordedMetadata;

impl SourceArguments {
    /// True if one was chosen.
    pub fn is_given(&self) -> bool {
        self.host.is_some() || !self.archive.is_empty() || self.local
    }

    /// The archives that were chosen, as one list with commas.
    pub fn archives(&self) -> Option<PathBuf> {
        joined(&self.archive)
    }

    /// Opens the source that was chosen, or else the pmcd of this machine, with
    /// the peculiarities that a dialect's definitions rely on.
    pub fn open(&self, dialect: Dialect, messages: &Messages) -> Result<Context, SourceError> {
        let mut context = self.open_untold(dialect, messages)?;
        tell_warnings(&mut context, messages);
        Ok(context)
    }

    /// Opens the source and says nothing of what is wrong with archives: an archive that
    /// is followed may be incomplete only while it is written.
    pub fn open_untold(
        &self,
        dialect: Dialect,
        messages: &Messages,
    ) -> Result<Context, SourceError> {
        if self.local {
            return Ok(Context::local());
        }
        if let Some(archives) = self.archives() {
            let mut context = self.expansion.open(&archives, dialect)?;
            follow(&mut context, dialect);
            if let Some(error) = InterpolationRules::mistake_in_environment()
                && !messages.are_of_tool()
            {
                let wrong = "PCP_IGNORE_MARK_RECORDS is not an interval, so every mark is a gap";
                messages.warning_lines(&[&wrong, &":\n", &error]);
            }
            return Ok(context);
        }
        let (mut options, warnings) = ConnectOptions::from_environment();
        if std::env::var_os("PMCD_RECONNECT_TIMEOUT").is_none() {
            // How long to pause is for whoever has patience with the source.
            options.reconnect_delays.clear();
        }
        let spec = self.host.clone().unwrap_or_else(HostSpec::local);
        // These come first: they may be why the connection fails.
        warnings.iter().for_each(|warning| messages.warning(warning));
        if dialect == Dialect::Fixed {
            spec.warnings.iter().for_each(|warning| messages.warning(warning));
        }
        Ok(Context::Host(Box::new(HostContext::open_with(&spec, options)?)))
    }
}

impl ExpansionArguments {
    /// Opens archives, given as one list with commas, as the version of PCP does
    /// whose answers are given.
    pub fn open(&self, archives: &Path, dialect: Dialect) -> Result<Context, SourceError> {
        let options = OpenOptions {
            max_expanded: self.max_expanded,
            as_version_6: dialect == Dialect::Pcp6_0,
        };
        let archive = ArchiveContext::open_with(&expanded(archives), options)?;
        Ok(Context::Archive(Box::new(archive)))
    }
}

/// Gives an archive the peculiarities that a dialect's definitions rely on.
fn follow(context: &mut Context, dialect: Dialect) {
    let Context::Archive(archive) = context else { return };
    if dialect != Dialect::Fixed {
        archive.look_up_instances_by_beginning();
        archive.take_untyped_numbers_as_native();
    }
    archive.set_interpolation_rules(dialect.interpolation(archive.interpolation_rules()));
}

/// Called at the end of a source: fails if it is an archive with damage that no
/// sample has passed.
///
/// # Errors
/// It has, and nobody was told of it.
pub fn check_rest(context: &mut Context) -> Result<(), SourceError> {
    match context {
        Context::Archive(archive) => archive.check_rest(),
        Context::Host(_) | Context::Local(_) => Ok(()),
    }
}

/// Tells what is wrong with a source's archives that are read all the same, and
/// gives the number of such places. PCP's tools do not notice.
pub fn tell_warnings(context: &mut Context, messages: &Messages) -> usize {
    let Context::Archive(archive) = context else { return 0 };
    let mut warnings = archive.take_warnings();
    if messages.are_of_tool() {
        warnings.clear();
    }
    warnings.iter().for_each(|error| messages.damage(error));
    warnings.len()
}

/// Opens the source of a command that looks at no values: the one that was
/// chosen, or metadata in a file; `None` if neither is given.
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
