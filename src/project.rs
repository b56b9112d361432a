//! `pmderive.toml`: the settings of a folder of definitions.
//!
//! The file stands beside the definitions or in a directory above them. It names the language
//! of the definitions, the metadata to check them with, and the levels of warnings. Every
//! mistake in it is reported at its place. [`Folders`] has the files of several folders, each
//! read once.
//!
//! ```toml
//! compat = "off"            # or "6.0", "7.2"
//! extensions = false
//! metadata = "fleet.json"   # as `pmderive deps --format metadata` writes it
//! fleet = ["racks.conf"]    # files of definitions over the fleet
//!
//! [lints]
//! all = "warn"              # or "allow", "deny"
//! PMD0301 = "allow"
//! PMD0316 = "deny"
//! ```

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::Dialect;
use crate::escape;
use crate::syntax::ast::Spanned;
use crate::syntax::read_bounded;
use crate::text::document::{Document, Table};
use crate::text::paths::directory_of;
use crate::text::{SourceId, SourceMap, Span, stray};

/// Name of the file.
pub const FILE_NAME: &str = "pmderive.toml";

/// Largest such file, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;

/// Level of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The warning is not reported.
    Allow,
    /// The warning is reported.
    Warn,
    /// The warning is an error.
    Deny,
}

/// The settings of a file. For missing ones the command line decides, or the default.
#[derive(Clone, Debug, Default)]
pub struct Project {
    /// The dialect of the definitions.
    pub dialect: Option<Dialect>,
    /// Whether they may use extensions.
    pub extensions: Option<bool>,
    /// File of metadata to check them with, with the place that names it.
    pub metadata: Option<Spanned<PathBuf>>,
    /// Files whose definitions are over the fleet, each with the place that names it.
    pub fleet: Vec<Spanned<PathBuf>>,
    /// Levels of warnings; `None` if the file has no lints.
    pub lints: Option<Levels>,
}

/// Levels of warnings, by code.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    all: Option<Level>,
    of_code: BTreeMap<Code, Level>,
}

#[cfg(any(feature = "cli", feature = "lsp", feature = "fuzz", test))]
impl Levels {
    /// The level of warnings with a code.
    pub fn of(&self, code: Code) -> Level {
        self.of_code.get(&code).copied().or(self.all).unwrap_or(Level::Warn)
    }
}

/// Removes allowed warnings, and makes errors of denied ones. `level` maps the text and the
/// code of a warning to its level.
#[cfg(any(feature = "cli", feature = "lsp", feature = "fuzz", test))]
pub fn apply_levels(level: impl Fn(SourceId, Code) -> Level, diagnostics: &mut Diagnostics) {
    use crate::diag::Severity;

    let of = |one: &Diagnostic| level(one.span.source, one.code);
    diagnostics.retain(|one| one.severity == Severity::Error || of(one) != Level::Allow);
    for one in diagnostics.since_mut(0) {
        if of(one) == Level::Deny {
            one.severity = Severity::Error;
        }
    }
}

/// The file of settings for a definition file or directory: beside it, or in the nearest
/// directory above.
pub fn find(path: &Path) -> Option<PathBuf> {
    let start = directory_of(path).canonicalize().ok()?;
    let mut candidates = start.ancestors().map(|directory| directory.join(FILE_NAME));
    // One that cannot be read is a mistake of its own: nobody wants its settings lost.
    candidates.find(|candidate| candidate.symlink_metadata().is_ok())
}

impl Project {
    /// True if definitions may use extensions. The hosts of a fleet may, unless the settings say
    /// otherwise, as in `serve`.
    pub fn has_extensions(&self) -> bool {
        self.extensions.unwrap_or(!self.fleet.is_empty())
    }
}

#[cfg(any(feature = "cli", feature = "lsp", feature = "fuzz", test))]
impl Project {
    /// The language of the definitions. `options` take precedence.
    pub fn language(&self, options: crate::Language) -> crate::Language {
        let dialect = match options.dialect {
            Dialect::Fixed => self.dialect.unwrap_or_default(),
            other => other,
        };
        crate::Language { dialect, extensions: options.extensions || self.has_extensions() }
    }

    /// True for a file whose definitions are over the fleet.
    pub fn is_over_fleet(&self, file: &Path) -> bool {
        !self.fleet.is_empty()
            && file.canonicalize().is_ok_and(|file| {
                self.fleet.iter().any(|one| one.value.canonicalize().is_ok_and(|one| one == file))
            })
    }
}

/// The settings of several folders, each read once.
#[derive(Clone, Debug, Default)]
pub struct Folders {
    /// Settings by the path of their file.
    files: BTreeMap<PathBuf, Arc<Project>>,
    /// Path of the file of settings for each directory of definitions.
    directories: HashMap<PathBuf, Option<PathBuf>>,
    /// Their texts.
    pub sources: SourceMap,
    /// Their mistakes.
    pub diagnostics: Diagnostics,
}

impl Folders {
    /// Reads the settings for a definition file or a directory.
    pub fn read(&mut self, path: &Path) -> Option<Arc<Project>> {
        let directory = directory_of(path);
        let found = match self.directories.get(directory) {
            Some(found) => found.clone(),
            None => {
                let found = find(directory);
                self.directories.insert(directory.to_owned(), found.clone());
                found
            }
        };
        let file = found?;
        if !self.files.contains_key(&file) {
            let project = self.read_file(&file);
            self.files.insert(file.clone(), Arc::new(project));
        }
        self.files.get(&file).cloned()
    }

    /// The settings for a definition file, if they were read.
    pub fn of(&self, path: &Path) -> Option<&Arc<Project>> {
        self.files.get(self.directories.get(directory_of(path))?.as_ref()?)
    }

    /// The files of settings, in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &Project)> {
        self.files.iter().map(|(path, project)| (&**path, &**project))
    }

    /// The dialect of all these folders; `None` if no file names one.
    ///
    /// # Errors
    /// Two files differ; the text names them.
    pub fn dialect(&self) -> Result<Option<Dialect>, String> {
        let mut files = self.files().map(|(path, one)| (path, one.dialect.unwrap_or_default()));
        let Some((first, dialect)) = files.next() else { return Ok(None) };
        match files.find(|(_, other)| *other != dialect) {
            None => Ok(Some(dialect)),
            Some((other, _)) => Err(format!(
                "{} and {} differ in `compat`",
                escape::path(first),
                escape::path(other)
            )),
        }
    }

    /// True if one of the files allows extensions.
    pub fn are_extended(&self) -> bool {
        self.files().any(|(_, project)| project.has_extensions())
    }

    fn read_file(&mut self, path: &Path) -> Project {
        let name = escape::path(path).into_owned();
        let text = text_of(path);
        let source = self.sources.add(&*name, text.as_deref().unwrap_or_default());
        let directory = path.parent().unwrap_or(Path::new(""));
        if let Err(reason) = text {
            let message = format!("cannot read {name}: {reason}");
            let place = Span::new(source, 0, 0);
            self.diagnostics.push(Diagnostic::error(Code::BadConfigFile, place, message));
        }
        read(source, directory, &self.sources, &mut self.diagnostics)
    }
}

/// The text of a file, or the reason that it cannot be read.
fn text_of(path: &Path) -> Result<String, String> {
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("not a regular file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    Ok(stray::decoded(&read_bounded(file, MAX_BYTES)?).into_owned())
}

/// Reads a text of the source map, shorter than 4 GiB, whose paths are relative to `directory`.
/// Its correct parts are used, whatever its mistakes.
pub fn read(
    source: SourceId,
    directory: &Path,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> Project {
    let text = sources.get(source).text.clone();
    let (mut document, table) = Document::parse(Code::BadConfigFile, source, &text, diagnostics);
    let Some(table) = table else { return Project::default() };
    document.only(&table, &["compat", "extensions", "metadata", "fleet", "lints"]);
    let mut project = Project::default();
    if let Some(value) = table.get("compat") {
        project.dialect = document.word(value, &Dialect::NAMED);
    }
    project.extensions = table.get("extensions").and_then(|value| document.boolean(value));
    project.metadata = table.get("metadata").and_then(|value| document.path(value, directory));
    // A FIFO could block for ever, and the standard input has the messages of an editor.
    let is_other = |path: &PathBuf| path.exists() && !path.is_file();
    if let Some(path) = project.metadata.take_if(|path| is_other(&path.value)) {
        let message = format!("{} is no regular file", escape::path(&path.value));
        let help = "such as a file that `pmderive deps --format metadata` writes";
        document.error_with_help(path.span, message, help);
    }
    let fleet = table.get("fleet").map(|value| document.paths(value, directory));
    project.fleet.extend(fleet.into_iter().flatten());
    for path in project.fleet.iter().filter(|path| !path.value.is_file()) {
        let message = format!("there is no file {}", escape::path(&path.value));
        document.error_with_help(path.span, message, "its definitions would be over the fleet");
    }
    if let Some(lints) = document.section(&table, "lints") {
        project.lints = Some(levels(&mut document, lints));
    }
    project
}

fn levels(document: &mut Document<'_>, table: &Table<'_>) -> Levels {
    let known = [("allow", Level::Allow), ("warn", Level::Warn), ("deny", Level::Deny)];
    let mut levels = Levels::default();
    for (key, value) in table {
        let Some(level) = document.word(value, &known) else { continue };
        let name = &**key.get_ref();
        if name == "all" {
            levels.all = Some(level);
            continue;
        }
        match name.parse::<Code>() {
            Ok(code) if is_warning(code) => {
                levels.of_code.insert(code, level);
            }
            Ok(code) => {
                let message = format!("{code} is an error, and no lint");
                let help = "lints are PMD0300 and above, and a few warnings below";
                document.error_with_help(key, message, help);
            }
            Err(error) => {
                let help = "the keys are `all` and codes, which `pmderive explain --code` lists";
                document.error_with_help(key, error.to_string(), help);
            }
        }
    }
    levels
}

/// True for a code that warnings have.
pub(crate) fn is_warning(code: Code) -> bool {
    matches!(code, Code::HiddenByMetric | Code::NoSuchInstance)
        || (300..400).contains(&code.number())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::fuzz_project;
    use crate::syntax::tests::{Generator, mutations};

    const EXAMPLE: &str = "compat = \"7.2\"\nextensions = true\nmetadata = \"m.json\"\n\
                           [lints]\nall = \"deny\"\nPMD0301 = \"allow\"\n316 = \"warn\"\n";

    fn read_text(text: &str) -> (Project, Vec<String>) {
        let mut sources = SourceMap::default();
        let source = sources.add(FILE_NAME, text);
        let mut diagnostics = Diagnostics::default();
        let project = read(source, Path::new("/etc"), &sources, &mut diagnostics);
        let told = |one: &crate::diag::Diagnostic| {
            let (line, column) = sources.line_column(source, one.span.start);
            format!("{line}:{column} {}", one.message)
        };
        (project, diagnostics.iter().map(told).collect())
    }

    #[test]
    fn what_a_file_says() {
        let (project, mistakes) = read_text(EXAMPLE);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        assert_eq!(project.dialect, Some(Dialect::Pcp7_2));
        assert_eq!(project.extensions, Some(true));
        assert_eq!(project.metadata.expect("a file").value, Path::new("/etc/m.json"));
        let levels = project.lints.expect("lints");
        assert_eq!(levels.of(Code::GaugeDelta), Level::Allow);
        assert_eq!(levels.of(Code::CounterCompared), Level::Warn);
        assert_eq!(levels.of(Code::ZeroDivisor), Level::Deny);
    }

    #[test]
    fn mistakes_have_places() {
        let text = "compat = \"7\"\nextension = true\n[lints]\nPMD0301 = \"forbid\"\n\
                    PMD0203 = \"allow\"\nGaugeDelta = \"deny\"\n";
        let (_, mistakes) = read_text(text);
        assert_eq!(
            mistakes,
            [
                "2:1 there is no key `extension` here",
                "1:10 this should be `6.0`, `7.2` or `off`",
                "6:1 `GaugeDelta` is no code of a diagnostic; codes are written as in PMD0203",
                "5:1 PMD0203 is an error, and no lint",
                "4:11 this should be `allow`, `warn` or `deny`",
            ]
        );
        assert_eq!(read_text("compat = ").1.len(), 1);
    }

    #[test]
    fn metadata_are_in_a_regular_file() {
        for path in ["/dev/null", "/proc/self/fd", "../dev/null"] {
            let (project, mistakes) = read_text(&format!("metadata = \"{path}\""));
            assert_eq!(project.metadata.map(|path| path.value), None);
            assert!(mistakes[0].ends_with("is no regular file"), "{mistakes:?}");
        }
    }

    #[test]
    fn the_nearest_file_above_counts() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let below = root.path().join("a/b");
        std::fs::create_dir_all(&below)?;
        std::fs::write(below.join("x.conf"), "")?;
        let above = root.path().canonicalize()?.join(FILE_NAME);
        std::fs::write(&above, "")?;
        assert_eq!(find(&below.join("x.conf")).as_ref(), Some(&above));
        let beside = below.canonicalize()?.join(FILE_NAME);
        std::fs::write(&beside, "")?;
        assert_eq!(find(&below.join("x.conf")), Some(beside));
        assert_eq!(find(&root.path().join("a")), Some(above));
        Ok(())
    }

    #[test]
    fn damaged_files_have_mistakes_in_them() {
        mutations(EXAMPLE.as_bytes(), &mut Generator::new(18), fuzz_project);
    }
}
