//! Reads the files that a configuration names, and makes a plan.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pmderive_runtime::context::{ConnectOptions, HostSpec, TlsSettings};
use pmderive_runtime::position::Per;
use rustc_hash::FxHashSet;

use super::exports::{
    DefinitionFiles, Export, check_series, check_sinks, exports, fleet_exports, with_series,
};
use super::{FleetPlan, Plan, PlannedGroup, Schedule};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::engine::{Registered, Registry, Selection};
use crate::escape;
use crate::fleet::aggregates::{FleetDefinitions, HostMetrics, Operand, OperandId, unknown_labels};
use crate::fleet::config::{self, Access, Config, is_same_file};
use crate::fleet::labels::Labels;
use crate::fleet::sinks::sink_set::{SinkPlace, SinkSet};
use crate::fleet::stages::different_groups;
use crate::fleet::targets::target::{GroupId, Target};
use crate::fleet::targets::{self, Targets};
use crate::stamps::Stamps;
use crate::syntax::ast::Spanned;
use crate::syntax::{definition_files, load_file, read_text_file};
use crate::text::paths::directory_of;
use crate::text::{SourceId, SourceMap};

/// Largest configuration that is read, in bytes.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

/// Origin of the configuration.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// The command line.
    Arguments {
        /// The command line as diagnostics show it. Places of values point into it.
        text: String,
        /// The configuration that it stands for; paths are relative to the current folder.
        config: Box<Config>,
    },
}

impl Origin {
    /// The text of a command line. It is always the first text.
    pub const ARGUMENTS: SourceId = SourceId(0);
}

/// Result of reading a configuration.
#[derive(Debug)]
pub struct LoadedPlan {
    /// The plan, if there is no mistake.
    pub plan: Option<Plan>,
    /// The texts that were read.
    pub sources: SourceMap,
    /// Mistakes in these texts.
    pub diagnostics: Diagnostics,
    /// Errors of files that could not be read, in words.
    pub problems: Vec<String>,
    /// The files behind the plan, with stamps from before they were read. A change of one may
    /// change the plan.
    pub files: Stamps,
    /// The texts of each file of definitions. Groups may have files in common.
    texts: HashMap<PathBuf, Vec<SourceId>>,
}

/// Reads a configuration and all files that it names.
pub fn load(origin: &Origin) -> LoadedPlan {
    let mut loaded = load_anyway(origin);
    if let Some(Plan { config, fleet: Some(fleet), .. }) = &loaded.plan {
        loaded.diagnostics.extend(different_groups(&fleet.definitions, config.language));
    }
    let is_good = loaded.diagnostics.errors() == 0 && loaded.problems.is_empty();
    loaded.plan = loaded.plan.filter(|_| is_good);
    loaded
}

/// Reads a configuration and makes a plan of the correct parts. Such a plan may be carried out
/// only without mistakes.
pub fn load_anyway(origin: &Origin) -> LoadedPlan {
    let mut loaded = LoadedPlan {
        plan: None,
        sources: SourceMap::default(),
        diagnostics: Diagnostics::default(),
        problems: Vec::new(),
        files: Stamps::default(),
        texts: HashMap::new(),
    };
    let config = match origin {
        Origin::Arguments { text, config } => {
            loaded.sources.add("<arguments>", &**text);
            Some((**config).clone())
        }
        Origin::File(path) => {
            loaded.files.add(path.clone());
            match read_text_file(path, MAX_CONFIG_BYTES) {
                Err(reason) => {
                    loaded.problems.push(format!("cannot read {}: {reason}", escape::path(path)));
                    None
                }
                Ok(text) => {
                    let source = loaded.sources.add(escape::path(path), text);
                    let directory = path.parent().unwrap_or(Path::new(""));
                    config::read(source, directory, &mut loaded.sources, &mut loaded.diagnostics)
                }
            }
        }
    };
    loaded.plan = config.map(|config| loaded.plan(config, origin));
    // A mistake in a file counts for each group.
    let mut told = FxHashSet::default();
    loaded.diagnostics.retain(|one| told.insert(one.clone()));
    // No option allows extensions here.
    loaded.diagnostics.change_each(Diagnostic::name_key);
    loaded
}

/// Definitions, and the texts of each file.
type ReadDefinitions = (Registry, Vec<Vec<SourceId>>);

impl LoadedPlan {
    fn plan(&mut self, mut config: Config, origin: &Origin) -> Plan {
        for sink in &mut config.sinks {
            if let config::SinkKind::RemoteWrite(remote) = &mut sink.kind {
                remote.authorities_then = remote.authorities.iter().cloned().collect();
                self.files.extend(&remote.authorities_then);
            }
        }
        let web = &config.web;
        let identity = web.identity.iter().flat_map(|one| [&one.certificate, &one.key]);
        // The listener reads its files when the plan takes effect.
        identity.chain(&web.token_file).for_each(|path| self.files.add(path.clone()));
        // After a mistake in the configuration a group may lack its definitions.
        let is_whole = self.diagnostics.errors() == 0;
        let mut targets = Targets::default();
        let mut defined = Vec::new();
        for (at, group) in (0..).map(GroupId).zip(&config.groups) {
            let own = group.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
            let job = ("job".to_owned(), group.name.to_string());
            let labels: Labels = std::iter::once(job).chain(own).collect();
            for file in &group.targets {
                if let Some(warning) = targets.named_before(file) {
                    self.diagnostics.push(warning);
                    continue;
                }
                let Some(source) = self.read(file, targets::MAX_FILE_BYTES) else { continue };
                let limit = config.limits.targets;
                targets.read(source, at, &labels, limit, &mut self.sources, &mut self.diagnostics);
            }
            defined.push(self.definitions(&group.definitions, &config));
        }
        let of_fleet =
            config.fleet.as_ref().map(|fleet| self.definitions(&fleet.definitions, &config));
        let texts = self.texts_of_definitions();
        let are_unread = defined.iter().chain(&of_fleet).any(|(_, files)| {
            // A file has at least one text.
            files.iter().any(Vec::is_empty) && self.diagnostics.errors() > 0
        });
        let read = self.diagnostics.len();
        let mut fleet = config.fleet.as_ref().zip(of_fleet).map(|(fleet, of_fleet)| {
            let hosts = HostMetrics::of_groups(defined.iter().map(|(registry, _)| registry));
            let hosts = if is_whole { hosts } else { hosts.and_others() };
            self.fleet(fleet, &of_fleet, Arc::clone(&texts), &hosts, &config)
        });
        let over_fleet = fleet.as_ref().map(|fleet| &*fleet.definitions);
        let group = |(group, defined): (&config::Group, &ReadDefinitions)| {
            let texts = Arc::clone(&texts);
            Arc::new(self.group(group, defined, texts, over_fleet, &config))
        };
        let groups: Per<GroupId, Arc<PlannedGroup>> =
            config.groups.iter().zip(&defined).map(group).collect();
        if let Some(fleet) = &mut fleet {
            fleet.operands = groups.iter().map(|group| had(group, &fleet.definitions)).collect();
        }
        self.check_paths(&config.sinks);
        check_exports(&config.sinks, &groups, fleet.as_ref(), &mut self.diagnostics);
        if are_unread {
            // What is missing may be defined in a file that was not read.
            self.diagnostics.truncate(read);
        }
        let all = targets.into_all();
        // The mistake may be the reason that nothing is exported.
        if self.diagnostics.errors() == 0 {
            idle(&config, origin, &groups, &all, fleet.as_ref(), &mut self.diagnostics);
        }
        if let Some(fleet) = &fleet {
            unknown_labels(&fleet.definitions, &all, &mut self.diagnostics);
        }
        let all = all.into_iter().map(|target| with_user(target, &config)).collect();
        Plan { config, groups, fleet, targets: all }
    }

    /// The definitions of files, and the texts of each file.
    fn definitions(&mut self, paths: &[Spanned<PathBuf>], config: &Config) -> ReadDefinitions {
        let mut registry = Registry::new(config.language);
        let mut files = Vec::new();
        for file in paths {
            let mut found = Diagnostics::default();
            let texts = self.texts.entry(file.value.clone()).or_insert_with_key(|path| {
                self.files.add(path.clone());
                if path.is_dir() {
                    for below in definition_files(path, false) {
                        let below = below.unwrap_or_else(|unreadable| unreadable.path);
                        self.files.add(directory_of(&below).to_owned());
                        self.files.add(below);
                    }
                }
                load_file(&path.to_string_lossy(), &mut self.sources, &mut found)
            });
            let texts = texts.clone();
            for text in &texts {
                registry.add_text(*text, &self.sources, &mut found);
            }
            self.diagnostics.extend(found);
            files.push(texts);
        }
        (registry, files)
    }

    /// The texts for later diagnostics.
    fn texts_of_definitions(&self) -> Arc<SourceMap> {
        let mut texts = SourceMap::default();
        for text in self.texts.values().flatten() {
            texts.insert(*text, self.sources.get(*text).clone());
        }
        Arc::new(texts)
    }

    /// The definitions over the fleet, whose hosts have these metrics.
    fn fleet(
        &mut self,
        fleet: &config::Fleet,
        (registry, files): &ReadDefinitions,
        texts: Arc<SourceMap>,
        hosts: &HostMetrics<'_>,
        config: &Config,
    ) -> FleetPlan {
        let definitions = FleetDefinitions::read(registry, &[], hosts, &mut self.diagnostics);
        let defined = DefinitionFiles { registry, sources: &self.sources, files };
        let exports = fleet_exports(fleet, &config.sinks, &defined, &mut self.diagnostics);
        let deadlines = config.groups.iter().map(|group| group.deadline);
        let grace = fleet.grace.or(deadlines.max()).unwrap_or_default();
        let interval = config.groups.first().map_or(config::DEFAULT_INTERVAL, |one| one.interval);
        FleetPlan {
            definitions: Arc::new(definitions),
            texts,
            operands: Per::default(),
            schedule: Schedule { interval, grace },
            exports,
        }
    }

    fn group(
        &mut self,
        group: &config::Group,
        (registry, files): &ReadDefinitions,
        texts: Arc<SourceMap>,
        over_fleet: Option<&FleetDefinitions>,
        config: &Config,
    ) -> PlannedGroup {
        let defined = DefinitionFiles { registry, sources: &self.sources, files };
        let operands: Vec<&Operand> =
            over_fleet.iter().flat_map(|definitions| &definitions.operands).collect();
        let exports = exports(group, &config.sinks, &defined, &operands, &mut self.diagnostics);
        // A definition that no sink gets is evaluated only as an operand of another.
        let (mut chosen, mut exports): (Vec<&Registered>, Vec<Export>) =
            exports.into_iter().unzip();
        for one in over_fleet.iter().flat_map(|one| one.computed_by(registry, false)) {
            chosen.push(one);
            exports.push(Export { sinks: SinkSet::FLEET, is_chosen: false, help: None });
        }
        let options = match connect_options(&group.access, group.deadline) {
            Ok(options) => {
                check_login(group, &options, &mut self.diagnostics);
                options
            }
            Err(problem) => {
                // The environment is the same for all groups.
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
                ConnectOptions::default()
            }
        };
        let certificates: Stamps = options.tls.files().into_iter().collect();
        self.files.extend(&certificates);
        PlannedGroup {
            certificates,
            name: group.name.clone(),
            interval: group.interval,
            deadline: group.deadline,
            options: Arc::new(options),
            selection: Arc::new(Selection::new(registry, &chosen)),
            defined: registry.all().len(),
            texts,
            exports: exports.into(),
            told: Default::default(),
        }
    }

    /// Reports sinks that would write to a file that was read.
    fn check_paths(&mut self, sinks: &[config::Sink]) {
        for sink in sinks {
            let config::SinkKind::JsonLines(Some(path)) = &sink.kind else { continue };
            let Some(read) = self.files.paths().find(|read| is_same_file(read, path)) else {
                continue;
            };
            let read = escape::path(read);
            let message = format!("sink `{}` writes to {read}, which is read here", sink.name);
            let diagnostic = Diagnostic::error(Code::BadServeFile, sink.span, message);
            self.diagnostics.push(diagnostic.help("give its lines a file of their own"));
        }
    }

    /// Reads a file that the configuration names.
    fn read(&mut self, file: &Spanned<PathBuf>, limit: u64) -> Option<SourceId> {
        self.files.add(file.value.clone());
        match read_text_file(&file.value, limit) {
            Ok(text) => Some(self.sources.add(escape::path(&file.value), text)),
            Err(reason) => {
                let message = format!("cannot read {}: {reason}", escape::path(&file.value));
                self.diagnostics.push(Diagnostic::error(Code::BadServeFile, file.span, message));
                None
            }
        }
    }
}

/// The operands of definitions over the fleet that the hosts of a group have.
fn had(group: &PlannedGroup, definitions: &FleetDefinitions) -> Per<OperandId, bool> {
    let all = group.selection.chosen().zip(&*group.exports);
    let taken = all.filter(|(_, export)| export.sinks.overlaps(SinkSet::FLEET));
    let names: HashSet<&str> = taken.map(|(one, _)| &*one.name).collect();
    definitions.operands.iter().map(|operand| names.contains(&*operand.name)).collect()
}

/// Reports exports that match nothing, and metrics that share a series in Prometheus.
fn check_exports(
    sinks: &[config::Sink],
    groups: &Per<GroupId, Arc<PlannedGroup>>,
    fleet: Option<&FleetPlan>,
    diagnostics: &mut Diagnostics,
) {
    let all = groups.iter().flat_map(|group| group.selection.chosen().zip(&*group.exports));
    let chosen = all.filter(|(_, export)| export.is_chosen);
    let of_hosts: Vec<(&Registered, SinkSet)> =
        chosen.map(|(one, export)| (one, export.sinks)).collect();
    let of_fleet = fleet.iter().flat_map(|fleet| fleet.exports.keys().map(|name| &**name));
    let names = of_hosts.iter().map(|(one, _)| &*one.name).chain(of_fleet);
    check_sinks(sinks, names, diagnostics);
    let with_series = with_series(sinks);
    let of_fleet = fleet.iter().flat_map(|fleet| {
        let all = fleet.exports.iter();
        all.filter_map(|(name, sinks)| Some((&**fleet.definitions.named(name)?, *sinks)))
    });
    let exported = of_hosts.into_iter().chain(of_fleet);
    let series = exported.filter(|(_, sinks)| sinks.overlaps(with_series));
    let series: Vec<_> = series.map(|(one, _)| (Arc::clone(&one.name), one.name_span)).collect();
    check_series(&series, diagnostics);
}

/// Warns of groups without hosts, of groups without exports, and of sinks without metrics.
fn idle(
    config: &Config,
    origin: &Origin,
    groups: &Per<GroupId, Arc<PlannedGroup>>,
    targets: &[Arc<Target>],
    fleet: Option<&FleetPlan>,
    diagnostics: &mut Diagnostics,
) {
    let mut warn = |span, message: String, help: &str| {
        diagnostics.push(Diagnostic::warning(Code::BadServeFile, span, message).help(help));
    };
    let marks = "write `# pmderive: export` above definitions";
    if let (Origin::Arguments { .. }, Some(group)) = (origin, config.groups.first()) {
        if groups.iter().any(|all| all.exports.is_empty() && all.defined > 0) {
            let help = format!("name metrics by `--export`, or {marks}");
            warn(group.span, "no metric is exported".to_owned(), &help);
        }
        return;
    }
    for (at, group) in (0..).map(GroupId).zip(&config.groups) {
        if targets.iter().all(|target| target.group != at) {
            let help = "its `targets` list none, or only hosts of groups before it";
            warn(group.span, format!("group `{}` has no hosts", group.name), help);
        }
    }
    for (group, planned) in
        config.groups.iter().zip(groups).filter(|(_, all)| all.exports.is_empty())
    {
        let message = format!("nothing of group `{}` is exported", group.name);
        if planned.defined > 0 {
            warn(group.span, message, &format!("name metrics in its `export`, or {marks}"));
        }
    }
    let of_groups = groups.iter().flat_map(|group| &*group.exports).map(|export| export.sinks);
    let of_fleet = fleet.iter().flat_map(|fleet| fleet.exports.values().copied());
    let served = of_groups.chain(of_fleet).fold(SinkSet::NONE, SinkSet::union);
    for (place, sink) in (0..).map(SinkPlace).zip(&config.sinks) {
        if !served.contains(place) {
            let message = format!("sink `{}` gets no metric", sink.name);
            let help = "see `export` of the sink, of the groups and of `[fleet]`";
            warn(sink.span, message, help);
        }
    }
}

/// Options of a group's connections, from its configuration and else from the environment.
///
/// # Errors
/// The environment has a mistake; the text says which.
pub fn connect_options(
    access: &Access,
    deadline: std::time::Duration,
) -> Result<ConnectOptions, String> {
    let (mut options, warnings) = ConnectOptions::from_environment();
    if let Some(warning) = warnings.into_iter().next() {
        return Err(warning);
    }
    // The deadline of the slot covers all steps together.
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

/// Reports a user of a group without a password, and a password without a user.
fn check_login(group: &config::Group, options: &ConnectOptions, diagnostics: &mut Diagnostics) {
    let Access { user, password_file, .. } = &group.access;
    // The environment may have a password for all users.
    let has_password = password_file.is_some() || options.password.is_some();
    if user.is_some() == has_password || user.is_none() && password_file.is_none() {
        return;
    }
    let message = "`user` and `password-file` need each other";
    diagnostics.push(Diagnostic::error(Code::BadServeFile, group.span, message));
}

/// The target with the user of its group.
fn with_user(target: Arc<Target>, config: &Config) -> Arc<Target> {
    let access = &config.groups[target.group.index()].access;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_definitions_changes_with_the_files_below() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("all/web")).expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("a file");
        };
        let definition = "a.b = hinv.ncpu\n";
        write("hosts.json", "[{\"targets\": [\"web1\"]}]");
        write("all/web/a.conf", definition);
        write(
            "serve.toml",
            "listen = '127.0.0.1:0'\n\
             [[group]]\nname = 'g'\ntargets = ['hosts.json']\ndefinitions = ['all']\n\
             export = ['a.*']\n",
        );
        for (name, text) in [("a.conf", "a.b = hinv.ndisk\n"), ("b.conf", definition)] {
            let loaded = load(&Origin::File(folder.path().join("serve.toml")));
            assert!(!loaded.files.have_changed());
            write(&format!("all/web/{name}"), text);
            assert!(loaded.files.have_changed(), "{name}");
        }
    }

    /// Connections are made with files that are read once.
    #[test]
    fn a_group_whose_certificates_change_is_another_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("a file");
        };
        let authority = folder.path().join("ca.pem");
        write("tls.conf", &format!("tls-ca-cert-file = {}\n", authority.display()));
        write("hosts.json", "[{\"targets\": [\"web1\"]}]");
        write("a.conf", "a.b = hinv.ncpu\n");
        write(
            "serve.toml",
            "listen = '127.0.0.1:0'\n\
             [[group]]\nname = 'g'\ntargets = ['hosts.json']\ndefinitions = ['a.conf']\n\
             export = ['a.*']\ntls = 'tls.conf'\nsecure = 'required'\n\
             [[sink]]\nkind = 'remote-write'\nurl = 'https://web1/w'\nauthorities = 'ca.pem'\n",
        );
        let loaded = || {
            let mut loaded = load(&Origin::File(folder.path().join("serve.toml")));
            assert!(loaded.plan.is_some(), "{}", loaded.report());
            loaded
        };
        let same = |one: &LoadedPlan, other: &LoadedPlan| {
            let plans = [one, other].map(|loaded| loaded.plan.as_ref().expect("a plan"));
            let [one, other] = plans.map(|plan| &plan.groups[GroupId(0)]);
            let [first, second] = plans.map(|plan| match &plan.config.sinks[0].kind {
                config::SinkKind::RemoteWrite(remote) => remote.authorities_then.clone(),
                _ => panic!("another sink"),
            });
            (one.is_same(other), first == second)
        };
        let before = loaded();
        assert!(!before.files.have_changed());
        assert_eq!(same(&before, &loaded()), (true, true));
        write("ca.pem", "-----");
        assert!(before.files.have_changed());
        assert_eq!(same(&before, &loaded()), (false, false));
    }
}
