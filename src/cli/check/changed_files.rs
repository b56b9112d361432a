//! The files that have changed since a revision of git, and the definitions in other files that
//! depend on them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bind::references;
use crate::cli::stop::Stop;
use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::dialect::Language;
use crate::engine::Registry;
use crate::project;
use crate::syntax::{DefinitionItem, MAX_FILE_BYTES, parse_definitions};
use crate::text::paths::directory_of;
use crate::text::{SourceId, SourceMap, stray};

/// Files that differ from a revision, or that git does not know yet.
pub struct ChangedFiles {
    revision: String,
    top: PathBuf,
    /// Paths without symbolic links, deleted files included.
    files: HashSet<PathBuf>,
}

impl ChangedFiles {
    /// Asks git about the work tree that contains `file`.
    ///
    /// # Errors
    /// There is no git, no work tree, or no such revision.
    pub fn since(revision: &str, file: &Path) -> Result<ChangedFiles, Stop> {
        if revision.starts_with('-') || revision.is_empty() {
            return Err(Stop::Usage(format!("`{revision}` is no revision")));
        }
        let top = git(directory_of(file), &["rev-parse", "--show-toplevel"])?;
        let top = PathBuf::from(OsStr::from_bytes(top.strip_suffix(b"\n").unwrap_or(&top)));
        let top = top.canonicalize().unwrap_or(top);
        // A revision that is also the name of a file is the revision. A renamed file counts as
        // one deleted and one new.
        let diff = ["diff", "--name-only", "--no-renames", "-z", "--no-ext-diff", revision, "--"];
        let differing = git(&top, &diff)?;
        let unknown = git(&top, &["ls-files", "--others", "--exclude-standard", "-z"])?;
        let names = differing.split(|byte| *byte == 0).chain(unknown.split(|byte| *byte == 0));
        let paths =
            names.filter(|name| !name.is_empty()).map(|name| top.join(OsStr::from_bytes(name)));
        // A deleted file has no canonical path.
        let files = paths.map(|path| path.canonicalize().unwrap_or(path)).collect();
        Ok(ChangedFiles { revision: revision.to_owned(), top, files })
    }

    /// True for a text that has changed. A text that is no file, such as standard input, has
    /// always changed.
    fn has(&self, text: SourceId, sources: &SourceMap) -> bool {
        let path = Path::new(&*sources.get(text).name);
        !path.is_file() || path.canonicalize().is_ok_and(|path| self.files.contains(&path))
    }

    /// Drops the diagnostics of files that have not changed. Errors of definitions that depend
    /// on changed files stay, and so do all diagnostics of expressions.
    pub fn keep(
        &self,
        own: &[SourceId],
        registry: &Registry,
        sources: &SourceMap,
        diagnostics: &mut Diagnostics,
    ) {
        let old: HashSet<SourceId> =
            own.iter().copied().filter(|text| !self.has(*text, sources)).collect();
        let ruled = self.ruled_by_changed_settings(&old, sources);
        let mut names = self.names_before(&old, own, registry.language(), sources);
        let definitions = registry.definitions().iter();
        let is_new = |text: SourceId| !old.contains(&text);
        names.extend(
            definitions.filter(|one| is_new(one.name_span.source)).map(|one| one.name.to_string()),
        );
        let affected = depending(names, registry);
        let is_affected = |one: &Diagnostic| {
            let name = one.metric.as_deref();
            one.severity == Severity::Error && name.is_some_and(|name| affected.contains(name))
        };
        diagnostics.retain(|one| {
            let text = one.span.source;
            // An unreadable file may have changed, so its diagnostics stay.
            let is_unread = one.code == Code::UnreadableFile;
            is_new(text) || is_unread || ruled.contains(&text) || is_affected(one)
        });
    }

    /// The texts whose settings have changed.
    fn ruled_by_changed_settings(
        &self,
        texts: &HashSet<SourceId>,
        sources: &SourceMap,
    ) -> HashSet<SourceId> {
        let is_ruled = |text: &&SourceId| {
            let settings = project::find(Path::new(&*sources.get(**text).name));
            settings.is_some_and(|settings| self.files.contains(&settings))
        };
        texts.iter().filter(is_ruled).copied().collect()
    }

    /// The names that the changed files defined in the revision.
    fn names_before(
        &self,
        old: &HashSet<SourceId>,
        own: &[SourceId],
        language: Language,
        sources: &SourceMap,
    ) -> HashSet<String> {
        let path = |text: &SourceId| Path::new(&*sources.get(*text).name).canonicalize().ok();
        let paths: HashSet<PathBuf> = own.iter().filter_map(path).collect();
        let folders: HashSet<&Path> = paths.iter().filter_map(|path| path.parent()).collect();
        let endings: HashSet<Option<&OsStr>> = paths.iter().map(|path| path.extension()).collect();
        let mut names = HashSet::new();
        if old.is_empty() {
            return names;
        }
        for file in &self.files {
            // Deleted files are looked for in the folders that contain definitions.
            let is_near = || file.ancestors().skip(1).any(|above| folders.contains(above));
            let was_there = !file.exists() && endings.contains(&file.extension()) && is_near();
            if paths.contains(file) || was_there {
                names.extend(self.defined_before(file, language));
            }
        }
        names
    }

    /// The names that a file defined in the revision; empty if the revision lacks the file.
    fn defined_before(&self, file: &Path, language: Language) -> Vec<String> {
        let Ok(path) = file.strip_prefix(&self.top) else { return Vec::new() };
        let mut name = self.revision.clone().into_bytes();
        name.push(b':');
        name.extend_from_slice(path.as_os_str().as_bytes());
        let command = [OsStr::new("show"), OsStr::from_bytes(&name)];
        let Ok(bytes) = git(&self.top, &command) else { return Vec::new() };
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Vec::new();
        }
        let mut sources = SourceMap::default();
        let source = sources.add("", stray::decoded(&bytes));
        let items = parse_definitions(source, &sources, language, &mut Diagnostics::default());
        let name = |item| match item {
            DefinitionItem::Definition(definition) => Some(definition.name.value.to_string()),
            _ => None,
        };
        items.into_iter().filter_map(name).collect()
    }
}

/// Adds the names of all definitions that mention one of these names, directly or through
/// others.
fn depending(mut names: HashSet<String>, registry: &Registry) -> HashSet<String> {
    let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
    for one in registry.definitions() {
        for reference in references(&one.expr) {
            users.entry(reference.name).or_default().push(&one.name);
        }
    }
    let mut waiting: Vec<String> = names.iter().cloned().collect();
    while let Some(name) = waiting.pop() {
        for user in users.get(&*name).into_iter().flatten() {
            if names.insert((*user).to_owned()) {
                waiting.push((*user).to_owned());
            }
        }
    }
    names
}

/// Variables that tell a hook of git its repository.
const OF_HOOKS: [&str; 5] =
    ["GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE"];

/// Runs git in a directory and returns its output.
fn git(directory: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<Vec<u8>, Stop> {
    let mut command = Command::new("git");
    for name in OF_HOOKS {
        command.env_remove(name);
    }
    let output = command.arg("-C").arg(directory).args(arguments).output();
    let output = output.map_err(|error| Stop::Usage(format!("cannot run git: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
    Err(Stop::Usage(format!("git: {first}")))
}
