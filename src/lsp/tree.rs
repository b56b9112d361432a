//! The definition files that belong together with one that is open: all with the
//! same ending in its project, each read once for each state.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::files::{ENDINGS, OpenTexts, below};
use super::positions::{Encoding, LineIndex};
use super::settings::Settings;
use super::unregistered::{Unregistered, unregistered};
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::engine::Registry;
use crate::syntax::ParsedBefore;
use crate::text::{SourceId, SourceMap, SourceText};

/// Identifiers of files begin here, so that they are not those of a text that is
/// open and of parts of it.
const FIRST: u32 = 1 << 20;

/// A definition file as it was read.
#[derive(Debug)]
pub struct Parsed {
    /// The text, whose spans have this identifier.
    pub id: SourceId,
    /// The text with its name.
    pub text: SourceText,
    /// Its lines.
    pub lines: LineIndex,
    /// Its definitions.
    pub registry: Registry,
    /// The names in lines that the registry has nothing of.
    pub unregistered: Vec<Unregistered>,
    language: Language,
}

/// A file of the project.
#[derive(Clone, Debug)]
pub struct Other {
    /// The file.
    pub path: PathBuf,
    /// What it says.
    pub parsed: Arc<Parsed>,
    /// True if its definitions are over the fleet.
    pub is_over_fleet: bool,
}

/// Files that were read, with what tells whether they changed.
#[derive(Debug, Default)]
pub struct Tree {
    files: HashMap<PathBuf, (State, Arc<Parsed>)>,
    /// What earlier states of the files said that are open, since these change.
    before: HashMap<PathBuf, ParsedBefore>,
    last: u32,
    /// How many files were read in all, for tests.
    pub reads: usize,
}

/// What changes when a file does.
#[derive(Clone, Debug)]
enum State {
    Open(Arc<str>),
    OnDisk(Option<SystemTime>, u64),
}

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        match (self, other) {
            (State::Open(one), State::Open(other)) => Arc::ptr_eq(one, other),
            (State::OnDisk(time, size), State::OnDisk(other, other_size)) => {
                time.is_some() && time == other && size == other_size
            }
            _ => false,
        }
    }
}

impl Tree {
    /// The other definition files of a file's project, in the order of their names.
    /// The project is the folder of its settings, or else the one that the editor
    /// has open, or else its own.
    pub fn others(
        &mut self,
        path: &Path,
        folders: &[PathBuf],
        settings: &Settings,
        open: &OpenTexts,
        encoding: Encoding,
    ) -> Vec<Other> {
        let endings: Vec<&OsStr> = path.extension().into_iter().collect();
        let mut files = below(root_of(path, folders, settings), &endings);
        files.retain(|file| file != path);
        self.read_all(files, settings, open, encoding)
    }

    /// All files of definitions below a folder that the editor has open.
    pub fn all_of(
        &mut self,
        folder: &Path,
        settings: &Settings,
        open: &OpenTexts,
        encoding: Encoding,
    ) -> Vec<Other> {
        let files = below(folder, &ENDINGS.map(OsStr::new));
        self.read_all(files, settings, open, encoding)
    }

    fn read_all(
        &mut self,
        files: Vec<PathBuf>,
        settings: &Settings,
        open: &OpenTexts,
        encoding: Encoding,
    ) -> Vec<Other> {
        let read = |file: PathBuf| {
            let is_over_fleet = settings.is_over_fleet(&file);
            let mut language = settings.language;
            language.extensions |= is_over_fleet;
            let parsed = self.parsed(&file, language, open, encoding)?;
            Some(Other { path: file, parsed, is_over_fleet })
        };
        files.into_iter().filter_map(read).collect()
    }

    fn parsed(
        &mut self,
        path: &Path,
        language: Language,
        open: &OpenTexts,
        encoding: Encoding,
    ) -> Option<Arc<Parsed>> {
        let state = match open.of_path(path) {
            Some(open) => State::Open(Arc::clone(&open.text)),
            None => {
                let metadata = path.metadata().ok()?;
                State::OnDisk(metadata.modified().ok(), metadata.len())
            }
        };
        if let Some((before, parsed)) = self.files.get(path)
            && *before == state
            && parsed.language == language
        {
            return Some(Arc::clone(parsed));
        }
        let text = open.read(path)?;
        self.last += 1;
        self.reads += 1;
        let text = SourceText::new(&*path.to_string_lossy(), text);
        let mut new = ParsedBefore::new(language);
        let before = match &state {
            State::Open(_) => self.before.entry(path.to_owned()).or_insert_with(|| new.clone()),
            State::OnDisk(..) => {
                self.before.remove(path);
                &mut new
            }
        };
        if before.language() != language {
            *before = ParsedBefore::new(language);
        }
        let parsed = Arc::new(parse(SourceId(FIRST + self.last), text, before, encoding));
        self.files.insert(path.to_owned(), (state, Arc::clone(&parsed)));
        Some(parsed)
    }
}

/// Reads the text of a file.
fn parse(id: SourceId, text: SourceText, before: &mut ParsedBefore, encoding: Encoding) -> Parsed {
    let language = before.language();
    let mut sources = SourceMap::default();
    sources.insert(id, text.clone());
    let mut registry = Registry::new(language);
    let mut mistakes = Diagnostics::default();
    registry.add_text_again(id, &sources, before, &mut mistakes);
    let has_mistakes = !mistakes.is_empty();
    let unregistered = unregistered(id, &text.text, &registry, has_mistakes, before);
    before.end_reading();
    let lines = LineIndex::new(&text.text, encoding);
    Parsed { id, text, lines, registry, unregistered, language }
}

/// The folder whose files belong together with a file.
fn root_of<'p>(path: &'p Path, folders: &'p [PathBuf], settings: &'p Settings) -> &'p Path {
    let own = path.parent().unwrap_or(path);
    let above = |folder: &&Path| path.starts_with(folder);
    if let Some(folder) = settings.file.as_deref().and_then(Path::parent).filter(above) {
        return folder;
    }
    let inside = folders.iter().map(PathBuf::as_path).filter(above);
    inside.max_by_key(|folder| folder.components().count()).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::lsp::files::uri_of;

    #[test]
    fn files_are_read_once_for_each_state() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        for name in ["a.conf", "b.conf", "c.conf"] {
            std::fs::write(path(name), "x = 1\n")?;
        }
        let (mut tree, mut open) = (Tree::default(), OpenTexts::default());
        let mut others = |open: &OpenTexts| {
            let language = Dialect::Fixed.into();
            let settings = Settings::of(Some(&path("a.conf")), language, open, Encoding::Utf8);
            let count = tree.others(&path("a.conf"), &[], &settings, open, Encoding::Utf8).len();
            (count, tree.reads)
        };
        assert_eq!(others(&open), (2, 2));
        assert_eq!(others(&open), (2, 2), "nothing has changed");
        let uri = uri_of(&path("b.conf")).expect("it is absolute");
        open.set(&uri, 1, "y = 1\n");
        assert_eq!(others(&open), (2, 3));
        assert_eq!(others(&open), (2, 3));
        open.close(&uri);
        std::fs::write(path("c.conf"), "longer = 1\n")?;
        assert_eq!(others(&open), (2, 5));
        Ok(())
    }
}
