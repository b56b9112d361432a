//! The options that the commands named after PCP's tools share, see pmGetOptions(3). This
//! module opens their source; errors are in the words of those tools.
//!
//! Options of a single tool are in its file. This module prints mistakes and warnings.
//! [`ToolSource`] prints the notes about the source.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pmderive_runtime::context::{Context, HostSpec, SASL_ENCRYPTION_NEEDED};
use pmderive_runtime::model::PmStatus;
use pmderive_runtime::name_space::{LoadOptions, LocalNameSpace, WithNameSpace};
use pmderive_runtime::pcp_conf::PcpConf;
use pmderive_runtime::source::{MetadataSource, SourceError};
use pmderive_runtime::time::TimeZone;

use super::mistakes::{Mistakes, UnreadableFiles};
use super::source::ToolSource;
use crate::cli::args::{DefinitionArguments, SourceArguments};
use crate::cli::lines::Lines;
use crate::cli::messages::Messages;
use crate::cli::positional::refuse_files;
use crate::cli::samples::Sampler;
use crate::cli::samples::patience::{Patience, Retry, RetryArgument};
use crate::cli::samples::window::{WindowOptions, ZoneOptions};
use crate::cli::stop::Stop;
use crate::dialect::Dialect;
use crate::engine::{Backend, Definitions, Engine, Session};
use crate::escape;
use crate::escape::Foreign;

/// Options of `info`, `probe` and `val`.
#[derive(Clone, Debug, Args)]
pub struct PcpOptions {
    /// Where metrics come from.
    #[command(flatten)]
    pub source: SourceArguments,
    /// Take the metrics of this container of the host.
    #[arg(long, value_name = "NAME")]
    pub container: Option<String>,
    /// Take names of metrics from this file instead of the source.
    #[arg(short, long, value_name = "FILE")]
    pub namespace: Vec<PathBuf>,
    /// As -n, but no metric may have two names.
    #[arg(short = 'N', long, value_name = "FILE")]
    pub uniqnames: Vec<PathBuf>,
    /// The zone of times.
    #[command(flatten)]
    pub zone: ZoneOptions,
    /// Definitions of derived metrics, besides those of the system.
    #[command(flatten)]
    pub definitions: DefinitionArguments,
    /// What to do when a live source fails.
    #[command(flatten)]
    pub retry: RetryArgument,
    /// Accepted only to explain why it does not help here.
    #[arg(short = 'K', long = "spec-local", value_name = "SPEC", hide = true)]
    pub spec_local: Vec<String>,
    /// The archive is followed: its damage is reported later.
    #[arg(skip)]
    pub is_followed: bool,
}

/// The error for a zone of the source without a source.
pub const NO_ZONE: &str = "use of timezone from metric source requires a source";

impl PcpOptions {
    /// Opens the source, with the derived metrics of the system and of the options, which
    /// `backend` evaluates. Mistakes in definitions are printed. `names` are those of the
    /// command's arguments.
    ///
    /// # Errors
    /// The source cannot be opened, or the options do not fit it; a definition file cannot be
    /// read, and that is fatal; an argument is a definition file, which PCP's own tools would
    /// read as a name.
    pub fn open(
        &self,
        names: &[String],
        backend: Backend,
        unreadable: UnreadableFiles,
        messages: &mut Messages,
    ) -> Result<ToolSource, Stop> {
        let wrong = |what: &str| Err(Stop::tool(&[&what]));
        if !self.spec_local.is_empty() {
            return wrong(
                "-K names agents that are shared libraries of PCP; pmderive has its own metrics \
                 for -L, and loads none",
            );
        }
        if self.zone.hostzone && self.source.host.is_none() && self.source.archive.is_empty() {
            return Err(messages.misuse(&NO_ZONE));
        }
        let dialect = self.definitions.language().dialect;
        let mut mistakes = Mistakes::read(&self.definitions, unreadable, messages)?;
        let (registry, sources) = mistakes.registry();
        if dialect == Dialect::Fixed {
            refuse_files(names, &registry)?;
        }
        let own_names = self.load_names(dialect, messages)?;
        let source = self.open_source(dialect, messages)?;
        mistakes.tell_of_system(messages);
        let engine = Engine::of_this_machine(self.definitions.language(), backend);
        let shared = Definitions::with(registry, sources);
        let source = match own_names {
            Some(names) => {
                let is_archive = matches!(source, Context::Archive(_));
                let named = WithNameSpace::new(names.into(), source);
                match is_archive && dialect == Dialect::Pcp6_0 {
                    true => named.without_subtrees(),
                    false => named,
                }
            }
            None => WithNameSpace::own(source),
        };
        if dialect != Dialect::Pcp6_0 {
            messages.warnings_of(&engine);
        }
        let context = Session::new(engine, shared, source).expect("one language");
        let mut source = ToolSource {
            context,
            dialect,
            mistakes,
            origin: None,
            zone: TimeZone::system(),
            zone_note: None,
            sampler: Sampler::new(self.patience(dialect)),
            damage: Default::default(),
        };
        self.zone.warn_of_unknown(messages);
        if let Some(zone) = &self.zone.timezone {
            source.zone = TimeZone::parse(zone);
            source.zone_note = Some(format!("Note: timezone set to \"TZ={zone}\""));
        } else if self.zone.hostzone {
            source.zone = TimeZone::of_source(&mut source.context)?;
            let (host, from) = (source.context.host_name()?, source.is_archive());
            let from = if from { " from archive" } else { "" };
            source.zone_note =
                Some(format!("Note: timezone set to local timezone of host \"{host}\"{from}"));
        }
        Ok(source)
    }

    /// The patience with a source that fails. PCP's tools have none without an option for it.
    fn patience(&self, dialect: Dialect) -> Patience {
        match (self.retry.retry, dialect) {
            (None, Dialect::Pcp6_0 | Dialect::Pcp7_2) => Patience::new(Retry::For(Duration::ZERO)),
            _ => self.retry.patience(),
        }
    }

    /// The same options, completed by a source: with an origin but no source, it is the
    /// archives that pmlogger(1) keeps of this host.
    ///
    /// # Errors
    /// This host has no name.
    pub fn with_source_of(&self, time: &WindowOptions) -> Result<PcpOptions, Stop> {
        let mut options = self.clone();
        if time.origin.is_some() && !self.source.is_given() {
            options.source.archive = vec![archives_of_this_host()?];
        }
        Ok(options)
    }

    fn load_names(
        &self,
        dialect: Dialect,
        messages: &Messages,
    ) -> Result<Option<LocalNameSpace>, Stop> {
        let mut loaded = None;
        let mut has_failed = false;
        let files = self.namespace.iter().map(|file| (file, true));
        for (file, duplicates) in files.chain(self.uniqnames.iter().map(|file| (file, false))) {
            let options = LoadOptions { duplicates, ..LoadOptions::default() };
            let status = match LocalNameSpace::load(Some(file), &options) {
                _ if loaded.is_some() => PmStatus::DUPPMNS,
                Ok(names) => {
                    loaded = Some(names);
                    continue;
                }
                Err(error) => {
                    messages.lines(&[&error]);
                    error.status()
                }
            };
            let (file, status) = (escape::path(&file), dialect.text(status));
            messages.error(&format_args!("Cannot load namespace from \"{file}\": {status}"));
            has_failed = true;
        }
        if has_failed { Err(Stop::Reported) } else { Ok(loaded) }
    }

    fn open_source(&self, dialect: Dialect, messages: &Messages) -> Result<Context, Stop> {
        let host = self.source.host.clone();
        let is_host = self.source.archive.is_empty() && !self.source.local;
        let opened = match &self.container {
            Some(container) if is_host => {
                let mut spec = host.clone().unwrap_or_else(HostSpec::local);
                spec.container.get_or_insert_with(|| container.clone());
                SourceArguments { host: Some(spec), ..SourceArguments::default() }
                    .open(dialect, messages)
            }
            _ if self.is_followed => self.source.open_untold(dialect, messages),
            _ => self.source.open(dialect, messages),
        };
        opened.map_err(|error| {
            let status = dialect.text(error.status());
            let mut said = match self.source.archives() {
                Some(archive) => Lines::of(&[
                    &"Cannot open archive \"",
                    &Foreign(&escape::path(&archive)),
                    &"\": ",
                    &status,
                ]),
                None => {
                    let spec = host.unwrap_or_else(HostSpec::local).to_string();
                    let host: &dyn Display = &Foreign(&spec);
                    Lines::of(&[&"Cannot connect to PMCD on host \"", host, &"\": ", &status])
                }
            };
            let help = match error {
                _ if messages.are_of_tool() && !is_our_rule(&error) => None,
                SourceError::Connect { help, .. } => Some(help.to_string()),
                // The message was printed already.
                SourceError::Io { .. }
                | SourceError::Timeout { .. }
                | SourceError::Status { .. } => None,
                _ => Some(error.to_string()),
            };
            if let Some(help) = help {
                said.push(&[&"\n", &Foreign(&help)]);
            }
            Stop::Tool(said)
        })
    }
}

/// True if libpcp would probably go on here, so that no text of libpcp says what to do. libpcp
/// checks no certificate, and sends passwords in the clear.
fn is_our_rule(error: &SourceError) -> bool {
    let status = match error {
        SourceError::Handshake { status, .. } => *status,
        SourceError::Specification { .. } => return true,
        _ => return false,
    };
    [PmStatus::TLS, SASL_ENCRYPTION_NEEDED].contains(&status)
}

/// The folder in which pmlogger keeps its archives of this host.
///
/// # Errors
/// This host has no name.
pub fn archives_of_this_host() -> Result<PathBuf, Stop> {
    let conf = PcpConf::load();
    let folder = conf.get("PCP_ARCHIVE_DIR").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(conf.get("PCP_LOG_DIR")?).join("pmlogger")));
    Ok(folder.unwrap_or_default().join(Context::local().host_name()?))
}
