//! Definition files: from a list of paths to texts.
//!
//! Answers to the argument of `pmLoadDerivedConfig(3)`, without parsing
//! anything. The only part of this stage that touches the file system.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::source::{SourceId, SourceMap, Span};

/// Largest definition file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// Reads the files of a `:`-separated list of files and directories.
///
/// Directories are read with everything below them, their entries in the byte
/// order of their names. What is neither file nor directory is passed over.
/// What cannot be read is reported, and the rest still read. Bytes that are
/// not UTF-8 become U+FFFD. An empty list, or a `:` at the end, adds nothing.
pub fn load_paths(
    list: &str,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<SourceId> {
    Loader { sources, diagnostics: Some(diagnostics), loaded: Vec::new() }.list(list)
}

/// Reads the files of a list as [`load_paths`] does, but passes over what
/// cannot be read: what is not there is no mistake of the user's.
pub fn load_readable_paths(list: &str, sources: &mut SourceMap) -> Vec<SourceId> {
    Loader { sources, diagnostics: None, loaded: Vec::new() }.list(list)
}

struct Loader<'l> {
    sources: &'l mut SourceMap,
    /// Takes what cannot be read.
    diagnostics: Option<&'l mut Diagnostics>,
    loaded: Vec<SourceId>,
}

impl Loader<'_> {
    fn list(mut self, list: &str) -> Vec<SourceId> {
        let mut components: Vec<&str> = list.split(':').collect();
        if components.last().is_some_and(|last| last.is_empty()) {
            components.pop();
        }
        components.into_iter().for_each(|component| self.component(Path::new(component)));
        self.loaded
    }

    fn component(&mut self, path: &Path) {
        for found in definition_files(path) {
            let read = found.and_then(|path| match read_definition_file(&path) {
                Ok(bytes) => Ok((path, bytes)),
                Err(reason) => Err(Unreadable { path, reason }),
            });
            match read {
                Ok((path, bytes)) => {
                    let text = String::from_utf8_lossy(&bytes);
                    let id = self.sources.add(path.to_string_lossy(), text);
                    self.loaded.push(id);
                }
                Err(Unreadable { path, reason }) => self.unreadable(&path, &reason),
            }
        }
    }

    fn unreadable(&mut self, path: &Path, reason: &str) {
        let Some(diagnostics) = &mut self.diagnostics else { return };
        let name = path.to_string_lossy();
        // A text of its own, so that the report has a place to speak of.
        let id = self.sources.add(&*name, "");
        let message = match name.is_empty() {
            true => "an empty path stands for no file".to_owned(),
            false => format!("cannot read {name}: {reason}"),
        };
        diagnostics.push(Diagnostic::error(Code::UnreadableFile, Span::new(id, 0, 0), message));
    }
}

/// A file or directory that cannot be read.
pub struct Unreadable {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// The files that a path stands for: itself, or all below a directory, in the
/// order of loading. What is neither file nor directory is passed over.
pub fn definition_files(path: &Path) -> Vec<Result<PathBuf, Unreadable>> {
    let mut files = Vec::new();
    // Directories seen, so that a link to one above ends.
    let mut seen = HashSet::new();
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
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
                Ok(entries) => waiting.extend(entries.into_iter().rev()),
                Err(error) => files.push(Err(Unreadable { path, reason: error.to_string() })),
            }
        }
    }
    files
}

/// The bytes of a definition file, or why it cannot be read.
pub fn read_definition_file(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read =
        fs::File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Ok(length) if u64::try_from(length).is_ok_and(|length| length > MAX_FILE_BYTES) => {
            Err(format!("larger than {MAX_FILE_BYTES} bytes"))
        }
        Ok(_) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
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

    /// Q39: files of a directory come in the order of their names.
    #[test]
    fn lists_of_files_and_directories() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("d/sub"))?;
        for name in ["one", "d/b", "d/.hidden", "d/sub/x", "d/a~"] {
            fs::write(at(name), name)?;
        }
        std::os::unix::fs::symlink(root.path(), at("d/sub/loop"))?;
        std::os::unix::fs::symlink("nowhere", at("d/sub/zz"))?;
        let load = |list: String| {
            let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
            let ids = load_paths(&list, &mut sources, &mut diagnostics);
            let texts: Vec<String> =
                ids.iter().map(|id| sources.get(*id).text.to_string()).collect();
            (texts, diagnostics.errors())
        };
        let root = root.path().display();
        let expected: Vec<String> =
            ["one", "d/.hidden", "d/a~", "d/b", "one", "d/sub/x"].map(str::to_owned).into();
        assert_eq!(load(format!("{root}/one:{root}/d")), (expected, 1));
        assert_eq!(load(format!("{root}/one:")), (vec!["one".to_owned()], 0));
        assert_eq!(load(String::new()), (vec![], 0));
        assert_eq!(load(":".to_owned()), (vec![], 1));
        assert_eq!(load(format!(":{root}/one")), (vec!["one".to_owned()], 1));
        assert_eq!(load("/dev/null".to_owned()), (vec![], 0));
        assert_eq!(load(format!("{root}/none:{root}/one")), (vec!["one".to_owned()], 1));
        let mut sources = SourceMap::default();
        let readable = load_readable_paths(&format!(":{root}/none:{root}/one"), &mut sources);
        let texts: Vec<&str> = readable.iter().map(|id| &*sources.get(*id).text).collect();
        assert_eq!(texts, ["one"]);
        Ok(())
    }
}
