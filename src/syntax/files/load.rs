//! Reads the texts of definition files, given a list of paths.
//!
//! The list is that of `pmLoadDerivedConfig(3)`. Nothing is parsed here. This
//! is the only part of the stage that touches the file system.

use std::borrow::Cow;
use std::collections::HashSet;
#[cfg(feature = "cli")]
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pmderive_runtime::bounded;

use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::dialect::Dialect;
use crate::escape;
use crate::text::stray;
use crate::text::{SourceId, SourceMap, Span};

/// Largest size of a definition file, in bytes, and of all files of one list of
/// paths together.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// The name of standard input in diagnostics.
pub const STANDARD_INPUT: &str = "<standard input>";

/// Reads the files of a `:`-separated list of files and directories.
///
/// It reads directories with everything below them, their entries in the byte
/// order of their names. Outside of libpcp's dialects it skips hidden files,
/// settings, tests and metadata (`is_passed_over`). A path of the list may lead
/// to anything readable, such as a FIFO. An unreadable path is reported, and the
/// rest is still read. Bytes that are not UTF-8 become private characters. An
/// empty path is reported; at the end of a list, where libpcp says nothing, only
/// as a warning.
///
/// libpcp accepts an empty list. A path that it cannot read ends the list, and
/// it skips entries that are neither file nor directory. So do its dialects.
pub fn load_paths(
    list: &str,
    dialect: Dialect,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<SourceId> {
    let is_fatal = dialect != Dialect::Fixed;
    if is_fatal && list.is_empty() {
        return Vec::new();
    }
    let loader = Loader::new(sources, diagnostics);
    Loader { is_fatal, reads_all: is_fatal, ..loader }.list(list)
}

/// Reads the files of a list as [`load_paths`] does, but in every dialect
/// continues after a path that it cannot read.
pub fn load_readable_paths(
    list: &str,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<SourceId> {
    Loader { reads_all: true, ..Loader::new(sources, diagnostics) }.list(list)
}

/// Reads one definition file, or all below a directory; `-` is standard input. Unreadable
/// files are reported.
pub fn load_file(
    path: &str,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<SourceId> {
    let mut loader = Loader::new(sources, diagnostics);
    match path {
        "-" => match read_bounded(io::stdin().lock(), MAX_FILE_BYTES) {
            Ok(bytes) => loader.add(STANDARD_INPUT, &bytes),
            Err(reason) => loader.unreadable(Path::new(STANDARD_INPUT), &reason),
        },
        _ => {
            loader.path(Path::new(path));
        }
    }
    loader.loaded
}

/// Reads one definition file, or all below a directory. Unreadable files are reported.
pub(crate) fn load_files(
    path: &Path,
    dialect: Dialect,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<SourceId> {
    let reads_all = dialect != Dialect::Fixed;
    let mut loader = Loader { reads_all, ..Loader::new(sources, diagnostics) };
    loader.path(path);
    loader.loaded
}

struct Loader<'l> {
    sources: &'l mut SourceMap,
    diagnostics: &'l mut Diagnostics,
    /// True if an unreadable file ends the list.
    is_fatal: bool,
    /// True if all files of a directory are read, as libpcp does.
    reads_all: bool,
    loaded: Vec<SourceId>,
    /// Number of bytes that may still be read.
    room: u64,
}

impl<'l> Loader<'l> {
    fn new(sources: &'l mut SourceMap, diagnostics: &'l mut Diagnostics) -> Loader<'l> {
        let loaded = Vec::new();
        let room = MAX_FILE_BYTES;
        Loader { sources, diagnostics, is_fatal: false, reads_all: false, loaded, room }
    }

    fn list(mut self, list: &str) -> Vec<SourceId> {
        let (paths, is_ended) = match list.strip_suffix(':') {
            Some(paths) => (paths, true),
            None => (list, false),
        };
        for path in paths.split(':') {
            let is_whole = self.path(Path::new(path));
            if self.is_fatal && !is_whole {
                return self.loaded;
            }
        }
        if is_ended {
            let message = "an empty path at the end of a list stands for no file";
            self.report(Path::new(""), message.to_owned(), Severity::Warning);
        }
        self.loaded
    }

    /// True if the whole path was read.
    fn path(&mut self, path: &Path) -> bool {
        let mut is_whole = true;
        let files = match path.is_dir() {
            true => definition_files(path, self.reads_all),
            false => vec![Ok(path.to_owned())],
        };
        for found in files {
            let read = found.and_then(|path| match read_definition_file(&path) {
                Ok(bytes) => match self.room.checked_sub(bytes.len() as u64) {
                    Some(room) => {
                        self.room = room;
                        Ok((path, bytes))
                    }
                    None => {
                        let reason =
                            format!("larger than {MAX_FILE_BYTES} bytes with the files before it");
                        Err(Unreadable { path, reason })
                    }
                },
                Err(reason) => Err(Unreadable { path, reason }),
            });
            match read {
                Ok((path, bytes)) => self.add(&escape::path(&path), &bytes),
                Err(Unreadable { reason, .. }) if self.is_fatal && reason == NO_FILE => {}
                Err(Unreadable { path, reason }) => {
                    self.unreadable(&path, &reason);
                    is_whole = false;
                    if self.is_fatal {
                        break;
                    }
                }
            }
        }
        is_whole
    }

    fn add(&mut self, name: &str, bytes: &[u8]) {
        // libpcp reads a byte order mark as part of the first name.
        let text = if self.reads_all { Ok(stray::decoded(bytes)) } else { text_of(bytes) };
        let text = match text {
            Ok(text) => text,
            Err(reason) => return self.unreadable(Path::new(name), reason),
        };
        let source = self.sources.add(name, text);
        let mark = mark_of(bytes);
        if !self.reads_all && !mark.is_empty() {
            self.sources.note_mark(source, mark);
        }
        self.loaded.push(source);
    }

    fn unreadable(&mut self, path: &Path, reason: &str) {
        let message = match path.as_os_str().is_empty() {
            true => "an empty path stands for no file".to_owned(),
            false => format!("cannot read {}: {reason}", escape::path(&path)),
        };
        self.report(path, message, Severity::Error);
        // The system's words without its number are the text of libpcp's status.
        let said = match path.as_os_str().is_empty() {
            true => "No such file or directory",
            false => reason.split(" (os error").next().unwrap_or_default(),
        };
        let last = self.diagnostics.len() - 1;
        self.diagnostics.since_mut(last).iter_mut().for_each(|one| one.pcp = Some(said.into()));
    }

    fn report(&mut self, path: &Path, message: String, severity: Severity) {
        // An empty text, which gives the report a place.
        let id = self.sources.add(escape::path(path), "");
        let error = Diagnostic::error(Code::UnreadableFile, Span::new(id, 0, 0), message);
        self.diagnostics.push(Diagnostic { severity, ..error });
    }
}

/// The byte order mark: it says that a text is UTF-8, before its first
/// character.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The reason why an entry of a directory is not read.
const NO_FILE: &str = "neither a file nor a directory";

/// A file or directory that cannot be read.
pub struct Unreadable {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

/// The files that a path stands for: itself, or all below a directory, in the
/// order of loading. With `all`, it skips nothing in a directory.
pub fn definition_files(path: &Path, all: bool) -> Vec<Result<PathBuf, Unreadable>> {
    match all {
        true => files_below(path, |_| true, usize::MAX).0,
        false => own_files_below(path, |entry| !is_passed_over(entry)),
    }
}

/// Like [`definition_files`], with a filter for the entries of directories. It leaves out
/// links to files that it has anyway; libpcp reads each as a file of its own.
pub fn own_files_below(
    path: &Path,
    is_wanted: impl Fn(&Path) -> bool,
) -> Vec<Result<PathBuf, Unreadable>> {
    first_files_below(path, is_wanted, usize::MAX).0
}

/// Endings of the names of definition files.
#[cfg(feature = "cli")]
pub const ENDINGS: [&str; 4] = [".conf", ".cfg", ".cnf", ".derived"];

/// True for a file below a directory that a program may rewrite: its name is that of a definition
/// file, and it is no link to a file elsewhere. A directory may hold anything, scripts included.
#[cfg(feature = "cli")]
pub fn may_be_rewritten(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
    ENDINGS.iter().any(|end| name.ends_with(end.as_bytes())) && !path.is_symlink()
}

/// Like [`own_files_below`], but with at most `most` entries. False if there are more.
pub fn first_files_below(
    path: &Path,
    is_wanted: impl Fn(&Path) -> bool,
    most: usize,
) -> (Vec<Result<PathBuf, Unreadable>>, bool) {
    let (mut files, is_whole) = files_below(path, is_wanted, most);
    leave_out_links(&mut files);
    (files, is_whole)
}

/// Skips everything but regular files and directories: reading a FIFO could block for ever.
fn files_below(
    path: &Path,
    is_wanted: impl Fn(&Path) -> bool,
    most: usize,
) -> (Vec<Result<PathBuf, Unreadable>>, bool) {
    let mut files = Vec::new();
    let mut left = most;
    // Visited directories: a link to one of them ends.
    let mut seen = HashSet::new();
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        let Some(others) = left.checked_sub(1) else { return (files, false) };
        left = others;
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) => {
                files.push(Err(Unreadable { path, reason: error.to_string() }));
                continue;
            }
        };
        if metadata.is_file() {
            files.push(Ok(path));
        } else if metadata.is_dir() {
            if let Ok(real) = fs::canonicalize(&path)
                && !seen.insert(real)
            {
                continue;
            }
            match entries(&path) {
                // The last is taken first.
                Ok(mut entries) => {
                    entries.retain(|entry| is_wanted(entry));
                    waiting.extend(entries.into_iter().rev());
                }
                Err(error) => files.push(Err(Unreadable { path, reason: error.to_string() })),
            }
        } else {
            files.push(Err(Unreadable { path, reason: NO_FILE.to_owned() }));
        }
    }
    (files, true)
}

/// Leaves out links to files that the list has anyway.
fn leave_out_links(files: &mut Vec<Result<PathBuf, Unreadable>>) {
    let (links, own): (Vec<&PathBuf>, Vec<&PathBuf>) =
        files.iter().flatten().partition(|path| path.is_symlink());
    if links.is_empty() || files.len() < 2 {
        return;
    }
    let mut seen: HashSet<PathBuf> =
        own.into_iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    files.retain(|file| match file {
        Ok(path) if path.is_symlink() => {
            fs::canonicalize(path).map_or(true, |real| seen.insert(real))
        }
        _ => true,
    });
}

/// True for files beside definitions that contain none: hidden ones, such as
/// those of git, and files of settings, tests and metadata.
pub fn is_passed_over(path: &Path) -> bool {
    let is_other = || path.extension().is_some_and(|end| end == "toml" || end == "json");
    is_hidden(path) || is_other() && !path.is_dir()
}

/// True for a file that a listing of its directory leaves out.
pub fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The text of a definition file, without the byte order mark that may precede it.
///
/// # Errors
/// The reason why it is not text, in words. A few zero bytes are mistakes in their lines.
pub fn text_of(bytes: &[u8]) -> Result<Cow<'_, str>, &'static str> {
    let zeros = bytes.iter().filter(|byte| **byte == 0).count();
    let others = || bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum::<usize>();
    if zeros > 0 && zeros + others() > bytes.len() / 8 {
        return Err("not a text in UTF-8: it has bytes that are 0");
    }
    Ok(stray::decoded(&bytes[mark_of(bytes).len()..]))
}

/// The byte order mark at the beginning of `bytes`. Empty if there is none.
pub fn mark_of(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(BYTE_ORDER_MARK.as_bytes()) { BYTE_ORDER_MARK } else { "" }
}

/// The bytes of a definition file, or the reason why it cannot be read.
pub fn read_definition_file(path: &Path) -> Result<Vec<u8>, String> {
    bounded::read_file(path, MAX_FILE_BYTES).map_err(|error| error.to_string())
}

/// All bytes of an input of at most `limit`, or the reason why it cannot be
/// read.
pub fn read_bounded(input: impl Read, limit: u64) -> Result<Vec<u8>, String> {
    bounded::read(input, limit).map_err(|error| error.to_string())
}

/// The text of an input of at most `limit` bytes, or the reason why there is
/// none.
#[cfg(feature = "cli")]
pub fn read_text(input: impl Read, limit: u64) -> Result<String, String> {
    let bytes = read_bounded(input, limit)?;
    String::from_utf8(bytes).map_err(|error| format!("not a text in UTF-8: {}", error.utf8_error()))
}

/// The text of a file of at most `limit` bytes, or the reason why there is none.
#[cfg(feature = "cli")]
pub fn read_text_file(path: &Path, limit: u64) -> Result<String, String> {
    read_text(fs::File::open(path).map_err(|error| error.to_string())?, limit)
}

fn entries(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        entries.push(entry?.path());
    }
    entries.sort();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files beyond the common limit are reported, however many there are.
    #[test]
    fn files_of_a_list_have_a_size_together() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        for (name, bytes) in [("a", MAX_FILE_BYTES / 2), ("b", MAX_FILE_BYTES / 2), ("c", 1)] {
            // Sparse files need no space on the disk.
            fs::File::create(root.path().join(name))?.set_len(bytes)?;
        }
        let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
        let list = root.path().to_str().expect("UTF-8");
        // Outside of libpcp's dialects these are no texts.
        let loaded = load_paths(list, Dialect::Pcp7_2, &mut sources, &mut diagnostics);
        assert_eq!(loaded.len(), 2);
        let said: Vec<_> = diagnostics.iter().map(|one| &*one.message).collect();
        assert!(matches!(said[..], [one] if one.contains("/c: larger than")), "{said:?}");
        Ok(())
    }

    /// Skipped files do not count.
    #[test]
    fn a_part_of_the_files_below_is_known_as_one() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        fs::create_dir(root.path().join("c"))?;
        for name in ["a", "b", "c/d", "e.json", "f.json"] {
            fs::write(root.path().join(name), "")?;
        }
        for (most, files, is_whole) in [(5, 3, true), (4, 2, false), (2, 1, false), (0, 0, false)] {
            let found = first_files_below(root.path(), |entry| !is_passed_over(entry), most);
            assert_eq!((found.0.len(), found.1), (files, is_whole), "{most}");
        }
        Ok(())
    }

    #[test]
    fn what_is_no_text_is_told_once() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let path = root.path().join("a.conf");
        for (bytes, texts, mistakes) in
            [(&b"\xef\xbb\xbfa.b = c\n"[..], 1, 0), (b"a\0.\0b\0\n\0", 0, 1), (&[0; 2000], 0, 1)]
        {
            fs::write(&path, bytes)?;
            let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
            let path = path.to_str().expect("UTF-8");
            let loaded = load_file(path, &mut sources, &mut diagnostics);
            assert_eq!((loaded.len(), diagnostics.len()), (texts, mistakes));
            if let [text] = loaded[..] {
                assert_eq!(&*sources.get(text).text, "a.b = c\n");
            }
        }
        Ok(())
    }

    /// Q39: files of a directory come in the order of their names.
    #[test]
    fn lists_of_files_and_directories() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("d/sub"))?;
        fs::create_dir_all(at("d/.git"))?;
        let others = ["d/pmderive.toml", "d/metadata.json", "d/.git/x", "d/.hidden"];
        for name in ["one", "d/b", "d/sub/x", "d/a~"].into_iter().chain(others) {
            fs::write(at(name), name)?;
        }
        std::os::unix::fs::symlink(root.path(), at("d/sub/loop"))?;
        std::os::unix::fs::symlink("nowhere", at("d/sub/zz"))?;
        let load_as = |list: String, dialect: Dialect| {
            let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
            let ids = load_paths(&list, dialect, &mut sources, &mut diagnostics);
            let texts: Vec<String> =
                ids.iter().map(|id| sources.get(*id).text.to_string()).collect();
            (texts, diagnostics.errors())
        };
        let load = |list: String| load_as(list, Dialect::Fixed);
        let root = root.path().display();
        let expected: Vec<String> =
            ["one", "d/a~", "d/b", "one", "d/sub/x"].map(str::to_owned).into();
        assert_eq!(load(format!("{root}/one:{root}/d")), (expected, 1));
        assert_eq!(load(format!("{root}/one:")), (vec!["one".to_owned()], 0));
        assert_eq!(load(String::new()), (vec![], 1));
        assert_eq!(load(":".to_owned()), (vec![], 1));
        assert_eq!(load(format!(":{root}/one")), (vec!["one".to_owned()], 1));
        assert_eq!(load("/dev/null".to_owned()), (vec![String::new()], 0));
        // Links to files of the directory do not count as further files.
        std::os::unix::fs::symlink("b", format!("{root}/d/aa"))?;
        assert_eq!(load(format!("{root}/d")).0.len(), 4);
        fs::remove_file(format!("{root}/d/aa"))?;
        let fifo = format!("{root}/d/fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status()?.success());
        let (texts, errors) = load(format!("{root}/d"));
        assert_eq!((texts.len(), errors), (4, 2), "it would never be written to");
        let writer = std::thread::spawn({
            let fifo = fifo.clone();
            move || fs::write(fifo, "from a pipe")
        });
        assert_eq!(load(fifo), (vec!["from a pipe".to_owned()], 0));
        writer.join().expect("it has written")?;
        assert_eq!(load(format!("{root}/none:{root}/one")), (vec!["one".to_owned()], 1));
        // libpcp's behaviour.
        let load = |list: String| load_as(list, Dialect::Pcp6_0);
        assert_eq!(load(String::new()), (vec![], 0));
        let list = format!("{root}/one:{root}/none:{root}/one");
        assert_eq!(load(list), (vec!["one".to_owned()], 1));
        fs::remove_file(at("d/sub/zz"))?;
        let (texts, errors) = load(format!("{root}/d"));
        assert_eq!((texts.len(), errors), (8, 0), "libpcp reads all");
        let list = format!(":{root}/none:{root}/one");
        let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
        let readable = load_readable_paths(&list, &mut sources, &mut diagnostics);
        let said: Vec<_> = diagnostics.iter().map(|one| one.pcp.as_deref()).collect();
        assert_eq!(said, [Some("No such file or directory"); 2]);
        assert_eq!(readable.len(), 1);
        Ok(())
    }
}
