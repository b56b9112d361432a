//! `pmderive.toml`: what belongs to a folder of definitions.
//!
//! The file stands beside the definitions or in a directory above them. It says
//! in which language they are, where metadata are that they are checked with, and
//! which warnings matter. Every mistake in it is reported where it stands.
//!
//! ```toml
//! compat = "off"            # or "6.0", "7.2"
//! extensions = false
//! metadata = "fleet.json"   # as `pmderive deps --format metadata` writes it
//!
//! [lints]
//! all = "warn"              # or "allow", "deny"
//! PMD0301 = "allow"
//! PMD0316 = "deny"
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::diag::{Code, Diagnostics, Severity};
use crate::dialect::Dialect;
use crate::document::{Document, Table, Value};
use crate::syntax::ast::Spanned;
use crate::syntax::{choices, nearest};
use crate::text::{SourceId, SourceMap, Span};

/// What the file is called.
pub const FILE_NAME: &str = "pmderive.toml";

/// Largest such file that is read, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;

/// What is to become of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It is not told.
    Allow,
    /// It is told.
    Warn,
    /// It is an error.
    Deny,
}

/// What a file says. What it does not say is for the command line, or usual.
#[derive(Clone, Debug, Default)]
pub struct Project {
    /// The dialect of the definitions.
    pub dialect: Option<Dialect>,
    /// Whether they may use extensions.
    pub extensions: Option<bool>,
    /// The file of metadata to check them with, and where it is named.
    pub metadata: Option<Spanned<PathBuf>>,
    /// What becomes of warnings; nothing if the file has no lints.
    pub lints: Option<Levels>,
}

/// What becomes of warnings.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    all: Option<Level>,
    of_code: BTreeMap<Code, Level>,
}

impl Levels {
    /// What becomes of warnings of a code.
    pub fn of(&self, code: Code) -> Level {
        self.of_code.get(&code).copied().or(self.all).unwrap_or(Level::Warn)
    }

    /// Takes out the warnings that are allowed, and makes errors of those that
    /// are denied.
    pub fn apply(&self, diagnostics: &mut Diagnostics) {
        diagnostics
            .retain(|one| one.severity == Severity::Error || self.of(one.code) != Level::Allow);
        for one in diagnostics.since_mut(0) {
            if self.of(one.code) == Level::Deny {
                one.severity = Severity::Error;
            }
        }
    }
}

/// The file that belongs to a definition file or directory: beside it, or in the
/// nearest directory above that has one.
pub fn find(path: &Path) -> Option<PathBuf> {
    // What is not there yet is going to be in its directory.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let start = match path.is_dir() {
        true => path,
        false => parent.unwrap_or(Path::new(".")),
    };
    let start = start.canonicalize().ok()?;
    let mut candidates = start.ancestors().map(|directory| directory.join(FILE_NAME));
    candidates.find(|candidate| candidate.is_file())
}

/// What becomes of warnings about a file, as its folder has it; mistakes there are
/// passed over.
pub fn levels_of(path: &Path) -> Levels {
    let Some(file) = find(path) else { return Levels::default() };
    let is_small = file.metadata().is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
    let Ok(text) = is_small.then(|| std::fs::read_to_string(&file)).transpose() else {
        return Levels::default();
    };
    let mut sources = SourceMap::default();
    let source = sources.add(FILE_NAME, text.unwrap_or_default());
    let project = read(source, Path::new(""), &sources, &mut Diagnostics::default());
    project.lints.unwrap_or_default()
}

/// Reads a text of the source map, shorter than 4 GiB, whose paths are relative
/// to `directory`. All that is right in it is used, whatever else is wrong.
pub fn read(
    source: SourceId,
    directory: &Path,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> Project {
    let text = sources.get(source).text.clone();
    let (mut document, table) = Document::parse(Code::BadConfigFile, source, &text, diagnostics);
    let Some(table) = table else { return Project::default() };
    document.only(&table, &["compat", "extensions", "metadata", "lints"]);
    let mut project = Project::default();
    if let Some(value) = table.get("compat") {
        let dialects =
            [("off", Dialect::Fixed), ("6.0", Dialect::Pcp6_0), ("7.2", Dialect::Pcp7_2)];
        project.dialect = word(&mut document, value, &dialects);
    }
    project.extensions = table.get("extensions").and_then(|value| document.boolean(value));
    if let Some((path, span)) = table.get("metadata").and_then(|value| document.string(value)) {
        project.metadata = Some(Spanned { value: directory.join(path), span });
    }
    if let Some(lints) = table.get("lints").and_then(|value| document.table(value)) {
        project.lints = Some(levels(&mut document, lints));
    }
    project
}

fn levels(document: &mut Document<'_>, table: &Table<'_>) -> Levels {
    let known = [("allow", Level::Allow), ("warn", Level::Warn), ("deny", Level::Deny)];
    let mut levels = Levels::default();
    for (key, value) in table {
        let Some(level) = word(document, value, &known) else { continue };
        let name = &**key.get_ref();
        if name == "all" {
            levels.all = Some(level);
            continue;
        }
        let span = document.span(key.span());
        match name.parse::<Code>() {
            Ok(code) if is_warning(code) => {
                levels.of_code.insert(code, level);
            }
            Ok(code) => {
                let message = format!("{code} is an error, and no lint");
                let help = "lints are PMD0300 and above, and a few warnings below";
                document.error_with_help(span, message, help);
            }
            Err(error) => {
                let help = "the keys are `all` and codes, which `pmderive explain --code` lists";
                document.error_with_help(span, error.to_string(), help);
            }
        }
    }
    levels
}

/// True for codes of which there are warnings.
fn is_warning(code: Code) -> bool {
    matches!(code, Code::HiddenByMetric | Code::NoSuchInstance)
        || (300..400).contains(&code.number())
}

/// One of a few words.
fn word<T: Copy>(document: &mut Document<'_>, value: &Value<'_>, known: &[(&str, T)]) -> Option<T> {
    let (text, span): (&str, Span) = document.string(value)?;
    let found = known.iter().find(|(word, _)| *word == text);
    if found.is_none() {
        let words = known.iter().map(|(word, _)| *word);
        let help = match nearest(text, words.clone()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("it is {}", choices(words)),
        };
        document.error_with_help(span, format!("`{text}` means nothing here"), help);
    }
    found.map(|(_, value)| *value)
}

/// For fuzzing: whatever is in the file, mistakes have places in it.
#[cfg(any(test, feature = "fuzz"))]
pub fn fuzz_project(data: &[u8]) {
    let mut sources = SourceMap::default();
    let source = sources.add(FILE_NAME, String::from_utf8_lossy(data));
    let mut diagnostics = Diagnostics::default();
    let project = read(source, Path::new(""), &sources, &mut diagnostics);
    for diagnostic in &diagnostics {
        _ = sources.slice(diagnostic.span);
    }
    let span = Span::new(source, 0, 0);
    diagnostics.push(crate::diag::Diagnostic::warning(Code::GaugeDelta, span, ""));
    project.lints.unwrap_or_default().apply(&mut diagnostics);
}

#[cfg(test)]
mod tests {
    use super::*;
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
                "1:10 `7` means nothing here",
                "6:1 `GaugeDelta` is no code of a diagnostic; codes are written as in PMD0203",
                "5:1 PMD0203 is an error, and no lint",
                "4:11 `forbid` means nothing here",
            ]
        );
        assert_eq!(read_text("compat = ").1.len(), 1);
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
