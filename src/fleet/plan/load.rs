//! Reads the files that a configuration names, and makes a plan of them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pmderive_runtime::context::{ConnectOptions, HostSpec, TlsSettings};

use super::exports::{Defined, check_series, check_sinks, exports, with_series};
use super::{Group, Plan, StageTwo};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::engine::{Registry, Selection};
use crate::escape;
use crate::fleet::aggregates::{Definitions, Schedule};
use crate::fleet::config::{self, Access, Config};
use crate::fleet::labels::Labels;
use crate::fleet::target::Target;
use crate::fleet::targets::{self, Targets};
use crate::syntax::ast::Spanned;
use crate::syntax::load_file;
use crate::text::{SourceId, SourceMap, Span};

/// Largest configuration that is read, in bytes.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

/// Where the configuration comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// The command line, as text in the form of the file; paths are relative to
    /// the current folder.
    Arguments(String),
}

/// What came of reading a configuration.
#[derive(Debug)]
pub struct Loaded {
    /// The plan, if nothing is wrong.
    pub plan: Option<Plan>,
    /// The texts that were read.
    pub sources: SourceMap,
    /// What is wrong with them.
    pub diagnostics: Diagnostics,
    /// What is wrong with files that could not be read at all, in words.
    pub problems: Vec<String>,
    /// The files that the plan is made of; when one changes, so may the plan.
    pub files: Vec<PathBuf>,
}

/// Reads a configuration and all that it names.
pub fn load(origin: &Origin) -> Loaded {
    let mut loaded = Loaded {
        plan: None,
        sources: SourceMap::default(),
        diagnostics: Diagnostics::default(),
        problems: Vec::new(),
        files: Vec::new(),
    };
    let config = match origin {
        Origin::Arguments(text) => {
            let source = loaded.sources.add("<arguments>", &**text);
            config::read(source, Path::new(""), &loaded.sources, &mut loaded.diagnostics)
        }
        Origin::File(path) => {
            loaded.files.push(path.clone());
            match bounded(path, MAX_CONFIG_BYTES) {
                Err(reason) => {
                    loaded.problems.push(format!("cannot read {}: {reason}", escape::path(path)));
                    None
                }
                Ok(text) => {
                    let source = loaded.sources.add(escape::path(path), text);
                    let directory = path.parent().unwrap_or(Path::new(""));
                    config::read(source, directory, &loaded.sources, &mut loaded.diagnostics)
                }
            }
        }
    };
    if let Some(config) = config {
        let plan = loaded.plan(config);
        let is_good = loaded.diagnostics.errors() == 0 && loaded.problems.is_empty();
        loaded.plan = Some(plan).filter(|_| is_good);
    }
    loaded
}

impl Loaded {
    fn plan(&mut self, config: Config) -> Plan {
        let mut targets = Targets::default();
        let mut defined = Vec::new();
        for (at, group) in config.groups.iter().enumerate() {
            let own = group.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
            let job = ("job".to_owned(), group.name.to_string());
            let labels: Labels = std::iter::once(job).chain(own).collect();
            for file in &group.targets {
                let Some(source) = self.read(file, targets::MAX_FILE_BYTES) else { continue };
                let limit = config.limits.targets;
                targets.read(source, at, &labels, limit, &self.sources, &mut self.diagnostics);
            }
            defined.push(self.definitions(&group.definitions, &config));
        }
        let names = defined.iter().flat_map(|(registry, _)| registry.names());
        let names: Vec<String> = names.map(str::to_owned).collect();
        let fleet = config.fleet.as_ref().map(|fleet| self.fleet(fleet, &names, &config));
        let of_fleet = fleet.as_ref().map(|fleet| fleet.definitions.operands());
        let of_fleet = of_fleet.unwrap_or_default();
        let groups: Vec<Arc<Group>> = config
            .groups
            .iter()
            .zip(&defined)
            .map(|(group, defined)| Arc::new(self.group(group, defined, of_fleet, &config)))
            .collect();
        let exported: Vec<(Arc<str>, Span, u64)> = groups
            .iter()
            .flat_map(|group| {
                let named: Vec<(&Arc<str>, Span)> = group.selection.named().collect();
                group.exports.iter().map(move |export| (named[export.metric], export.sinks))
            })
            .map(|((name, span), sinks)| (Arc::clone(name), span, sinks))
            .collect();
        let names = exported.iter().map(|(name, ..)| &**name);
        let across = fleet.iter().flat_map(|fleet| fleet.definitions.names());
        let names: Vec<&str> = names.chain(across).collect();
        check_sinks(&config.sinks, names.iter().copied(), &mut self.diagnostics);
        let with_series = with_series(&config.sinks);
        let series = exported.into_iter().filter(|(_, _, sinks)| sinks & with_series != 0);
        let series: Vec<_> = series.map(|(name, span, _)| (name, span)).collect();
        check_series(&series, &mut self.diagnostics);
        let all = targets.into_all();
        let all = all.into_iter().map(|target| with_user(target, &config)).collect();
        Plan { config, groups, fleet, targets: all }
    }

    /// The definitions of files, and the texts of each file.
    fn definitions(
        &mut self,
        paths: &[Spanned<PathBuf>],
        config: &Config,
    ) -> (Registry, Vec<Vec<SourceId>>) {
        let mut registry = Registry::new(config.language);
        let mut files = Vec::new();
        for file in paths {
            self.files.push(file.value.clone());
            let mut found = Diagnostics::default();
            let path = file.value.to_string_lossy();
            let texts = load_file(&path, &mut self.sources, &mut found);
            for text in &texts {
                registry.add_text(*text, &self.sources, &mut found);
            }
            self.diagnostics.extend(found);
            files.push(texts);
        }
        (registry, files)
    }

    /// The definitions over the fleet, whose hosts have metrics of these names.
    fn fleet(&mut self, fleet: &config::Fleet, names: &[String], config: &Config) -> StageTwo {
        let (registry, _) = self.definitions(&fleet.definitions, config);
        let names = names.iter().map(|name| &**name);
        let definitions = Definitions::new(&registry, names, &mut self.diagnostics);
        let deadlines = config.groups.iter().map(|group| group.deadline);
        let grace = fleet.grace.or(deadlines.max()).unwrap_or_default();
        let interval = config.groups.first().map_or(config::DEFAULT_INTERVAL, |one| one.interval);
        let wanted = |sink: &config::Sink| {
            let list = sink.export.as_ref()?.iter();
            Some(list.map(|entry| entry.value.clone()).collect())
        };
        StageTwo {
            definitions: Arc::new(definitions),
            schedule: Schedule { interval, grace },
            wanted: config.sinks.iter().map(wanted).collect(),
        }
    }

    fn group(
        &mut self,
        group: &config::Group,
        (registry, files): &(Registry, Vec<Vec<SourceId>>),
        of_fleet: &[Arc<str>],
        config: &Config,
    ) -> Group {
        let defined = Defined { registry, sources: &self.sources, files };
        let exports = exports(group, &config.sinks, &defined, of_fleet, &mut self.diagnostics);
        let options = match options(&group.access, group.deadline) {
            Ok(options) => options,
            Err(problem) => {
                self.problems.push(format!("group `{}`: {problem}", group.name));
                ConnectOptions::default()
            }
        };
        Group {
            name: group.name.clone(),
            interval: group.interval,
            deadline: group.deadline,
            options: Arc::new(options),
            selection: Arc::new(Selection::new(registry, &registry.all())),
            exports,
        }
    }

    /// Reads a file that the configuration names.
    fn read(&mut self, file: &Spanned<PathBuf>, limit: u64) -> Option<SourceId> {
        self.files.push(file.value.clone());
        match bounded(&file.value, limit) {
            Ok(text) => Some(self.sources.add(escape::path(&file.value), text)),
            Err(reason) => {
                let message = format!("cannot read {}: {reason}", escape::path(&file.value));
                self.diagnostics.push(Diagnostic::error(Code::BadServeFile, file.span, message));
                None
            }
        }
    }
}

/// How connections of a group are made: as its configuration says, and where that
/// says nothing as the environment does.
fn options(access: &Access, deadline: std::time::Duration) -> Result<ConnectOptions, String> {
    let (mut options, warnings) = ConnectOptions::from_environment();
    if let Some(warning) = warnings.into_iter().next() {
        return Err(warning);
    }
    // The deadline of the slot holds for all of them together.
    options.connect_timeout = Some(deadline);
    options.request_timeout = Some(deadline);
    if let Some(encryption) = access.encryption {
        options.encryption = encryption;
    }
    if let Some(path) = &access.tls {
        options.tls = TlsSettings::from_file(path.clone());
    }
    Ok(options)
}

/// The target with the user of its group.
fn with_user(target: Arc<Target>, config: &Config) -> Arc<Target> {
    let access = &config.groups[target.group].access;
    if access.user.is_none() && access.password_file.is_none() {
        return target;
    }
    let mut target = Arc::unwrap_or_clone(target);
    let spec: &mut HostSpec = &mut target.spec;
    let user = spec.user.get_or_insert_default();
    user.name = access.user.as_deref().map(str::to_owned);
    user.password_file.clone_from(&access.password_file);
    Arc::new(target)
}

/// The text of a file of so many bytes at most.
fn bounded(path: &Path, limit: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > limit {
        return Err(format!("it is larger than {limit} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| format!("it is no UTF-8: {}", error.utf8_error()))
}
