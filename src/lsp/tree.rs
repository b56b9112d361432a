//! The definition files in the project of an open file. Each state of a file is read once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::Location;

use super::analysis::{Mention, add_mentions};
use super::files::{ENDINGS, OpenTexts, uri_of};
use super::positions::{Encoding, LineIndex};
use super::settings::Settings;
use super::unregistered_names::{UnregisteredName, unregistered};
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::engine::Registry;
use crate::project::find;
use crate::stamps::Stamp;
use crate::syntax::{ParsedBefore, first_files_below, is_hidden, is_passed_over};
use crate::text::{SourceId, SourceMap, SourceText, Span};

/// First identifier of files. The open text and its parts have smaller ones.
const FIRST: u32 = 1 << 20;

/// Entries of folders that are visited, at most: the user waits meanwhile.
pub const MAX_LOOKED_AT: usize = 20_000;

/// Bytes of a file that is not open in the editor, at most. Definitions are shorter.
pub const MAX_BYTES: u64 = 1 << 20;

/// Bytes of all such files together, at most: their analyses stay in memory.
const MAX_ALL_BYTES: u64 = 64 << 20;

/// An analysed definition file.
#[derive(Debug)]
pub struct ParsedFile {
    /// The text, whose spans have this identifier.
    pub id: SourceId,
    /// The text with its name.
    pub text: SourceText,
    /// Its lines.
    pub lines: LineIndex,
    /// Its definitions.
    pub registry: Registry,
    /// The names in lines that the registry left out.
    pub unregistered: Vec<UnregisteredName>,
}

/// A file of the project.
#[derive(Clone, Debug)]
pub struct Other {
    /// The file.
    pub path: PathBuf,
    /// Its analysis.
    pub parsed: Arc<ParsedFile>,
    /// True if its definitions are over the fleet.
    pub is_over_fleet: bool,
}

impl Other {
    /// Adds the places of a name in it, in order.
    pub fn add_mentions(&self, name: &str, found: &mut Vec<Mention>) {
        let ParsedFile { text, registry, unregistered, .. } = &*self.parsed;
        // Most files lack the name.
        if text.text.contains(name) {
            add_mentions(name, registry.definitions().iter(), unregistered, found);
        }
    }

    /// The place of a span.
    pub fn location(&self, span: Span) -> Option<Location> {
        let bytes = span.start as usize..span.end as usize;
        let range = self.parsed.lines.range(&self.parsed.text.text, bytes);
        Some(Location { uri: uri_of(&self.path)?, range })
    }
}

/// The files of a project.
#[derive(Debug, Default)]
pub struct Others {
    /// The analysed files, in the order of their names.
    pub files: Vec<Other>,
    /// Files that cannot be read as text, or are too long.
    pub unread: Vec<PathBuf>,
    /// The first file that is too long, or goes beyond the length of all.
    pub too_long: Option<PathBuf>,
    /// The folder, if it has too many files.
    pub too_large: Option<PathBuf>,
}

/// Analysed files, each with a stamp to detect changes.
#[derive(Debug, Default)]
pub struct Tree {
    files: HashMap<PathBuf, (State, Language, Option<Arc<ParsedFile>>)>,
    /// Parsed expressions of open files, since these change often.
    before: HashMap<PathBuf, ParsedBefore>,
    last: u32,
    /// Number of files read in all, for tests.
    pub reads: usize,
}

/// State of a file; it changes with the file.
#[derive(Clone, Debug)]
enum State {
    Open(Arc<str>),
    OnDisk(Stamp),
}

impl State {
    fn of(path: &Path, open: &OpenTexts) -> Option<State> {
        Some(match open.of_path(path) {
            Some(open) => State::Open(Arc::clone(&open.text)),
            None => State::OnDisk(Stamp::of(path)?),
        })
    }
}

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        match (self, other) {
            (State::Open(one), State::Open(other)) => Arc::ptr_eq(one, other),
            (State::OnDisk(one), State::OnDisk(other)) => one == other,
            _ => false,
        }
    }
}

impl Tree {
    /// The other definition files of a file's project. The project is the folder of its
    /// settings, else the folder that is open in the editor, else the file's own.
    pub fn others(
        &mut self,
        path: &Path,
        folders: &[PathBuf],
        settings: &Settings,
        open: &OpenTexts,
        encoding: Encoding,
    ) -> Others {
        let root = root_of(path, folders, settings);
        self.all_of(root, Some(path), settings, open, encoding)
    }

    /// The definition files of the projects around that of a file, without its own.
    pub fn around(&mut self, settings: &Settings, open: &OpenTexts, encoding: Encoding) -> Others {
        let own = settings.file.as_deref().and_then(Path::parent);
        let Some((own, root)) = own.and_then(|own| Some((own, outermost(own)?))) else {
            return Others::default();
        };
        let mut others = self.all_of(&root, None, settings, open, encoding);
        others.files.retain(|file| !file.path.starts_with(own));
        others.unread.retain(|file| !file.starts_with(own));
        others
    }

    /// All definition files below a folder except one. With settings these are the files that
    /// `check` reads. Without, they have the usual endings or that of the file. Open files are
    /// among them.
    pub fn all_of(
        &mut self,
        folder: &Path,
        path: Option<&Path>,
        settings: &Settings,
        open: &OpenTexts,
        encoding: Encoding,
    ) -> Others {
        let ending = path.and_then(Path::extension);
        let has_ending = |entry: &Path| {
            let end = entry.extension();
            end.is_some_and(|end| ENDINGS.iter().any(|one| *one == end) || Some(end) == ending)
        };
        let is_wanted = |entry: &Path| match settings.file {
            Some(_) => !is_passed_over(entry),
            None => !is_hidden(entry) && (has_ending(entry) || entry.is_dir()),
        };
        let (found, is_whole) = first_files_below(folder, is_wanted, MAX_LOOKED_AT);
        let mut files: Vec<PathBuf> = found.into_iter().flatten().collect();
        let is_here = |file: &PathBuf| file.starts_with(folder) && !is_passed_over(file);
        files.extend(open.paths().filter(is_here));
        files.sort();
        files.dedup();
        let too_large = (!is_whole).then(|| folder.to_owned());
        let mut others = Others { too_large, ..Others::default() };
        let mut left = MAX_ALL_BYTES;
        let mut of_folders: HashMap<PathBuf, Settings> = HashMap::new();
        for file in files.into_iter().filter(|file| Some(&**file) != path) {
            // It stands for any file that might be there.
            let any = file.with_file_name("*");
            let new = || Settings::of(Some(&any), settings.options, open, encoding);
            let of_file = of_folders.entry(any.clone()).or_insert_with(new);
            let is_over_fleet = of_file.is_over_fleet(&file);
            // All files of a project have one dialect.
            let extensions = of_file.language.extensions || is_over_fleet;
            let language = Language { extensions, ..settings.language };
            let state = State::of(&file, open);
            if let Some(State::OnDisk(stamp)) = &state {
                if stamp.bytes() > MAX_BYTES.min(left) {
                    others.too_long.get_or_insert_with(|| file.clone());
                    others.unread.push(file);
                    continue;
                }
                left -= stamp.bytes();
            }
            let parsed =
                state.and_then(|state| self.parsed(&file, state, language, open, encoding));
            match parsed {
                Some(parsed) => others.files.push(Other { path: file, parsed, is_over_fleet }),
                None => others.unread.push(file),
            }
        }
        others
    }

    fn parsed(
        &mut self,
        path: &Path,
        state: State,
        language: Language,
        open: &OpenTexts,
        encoding: Encoding,
    ) -> Option<Arc<ParsedFile>> {
        if let Some((before, of, parsed)) = self.files.get(path)
            && (before, of) == (&state, &language)
        {
            return parsed.clone();
        }
        self.reads += 1;
        let text = match &state {
            State::Open(text) => Some(Arc::clone(text)),
            // No definition has a zero byte.
            State::OnDisk(_) => open.read(path).filter(|text| !text.contains('\0')),
        };
        let parsed = text.map(|text| {
            self.last += 1;
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
            Arc::new(parse(SourceId(FIRST + self.last), text, before, encoding))
        });
        self.files.insert(path.to_owned(), (state, language, parsed.clone()));
        parsed
    }
}

/// Reads the text of a file.
fn parse(
    id: SourceId,
    text: SourceText,
    before: &mut ParsedBefore,
    encoding: Encoding,
) -> ParsedFile {
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
    ParsedFile { id, text, lines, registry, unregistered }
}

/// The folder of a file's project.
fn root_of<'p>(path: &'p Path, folders: &'p [PathBuf], settings: &'p Settings) -> &'p Path {
    let own = path.parent().unwrap_or(path);
    let above = |folder: &&Path| path.starts_with(folder);
    if let Some(folder) = settings.file.as_deref().and_then(Path::parent).filter(above) {
        return folder;
    }
    let inside = folders.iter().map(PathBuf::as_path).filter(above);
    inside.max_by_key(|folder| folder.components().count()).unwrap_or(own)
}

/// The folder of the outermost settings around a project, if there are any.
fn outermost(project: &Path) -> Option<PathBuf> {
    projects_of(project.parent()?).last()
}

/// The folders of the settings at or above a folder, the nearest first.
pub fn projects_of(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let project = |folder: &Path| Some(find(&folder.join("*"))?.parent()?.to_owned());
    std::iter::successors(project(folder), move |inner| project(inner.parent()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

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
            let others = tree.others(&path("a.conf"), &[], &settings, open, Encoding::Utf8);
            (others.files.len(), tree.reads)
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

    #[test]
    fn long_files_and_zeros_are_not_read() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, bytes: u64| std::fs::File::create(path(name))?.set_len(bytes);
        let own = path("a.conf");
        let (mut tree, open) = (Tree::default(), OpenTexts::default());
        let settings = Settings::of(Some(&own), Dialect::Fixed.into(), &open, Encoding::Utf8);
        std::fs::write(path("z.conf"), "x = 1\n")?;
        write("b.conf", 1)?;
        write("c.conf", MAX_BYTES + 1)?;
        let others = tree.others(&own, &[], &settings, &open, Encoding::Utf8);
        assert_eq!((others.files.len(), others.unread), (1, vec![path("b.conf"), path("c.conf")]));
        assert_eq!(others.too_long, Some(path("c.conf")));
        assert_eq!(tree.reads, 2);
        // Together they are too long.
        std::fs::remove_file(path("c.conf"))?;
        for number in 0..MAX_ALL_BYTES / MAX_BYTES {
            write(&format!("d{number:03}.conf"), MAX_BYTES)?;
        }
        let others = tree.others(&own, &[], &settings, &open, Encoding::Utf8);
        assert_eq!(others.files.len(), 1);
        assert_eq!(others.too_long, Some(path("d063.conf")));
        Ok(())
    }
}
