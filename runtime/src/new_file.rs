//! Files that have their names only once they are what they should be.
//!
//! In: a folder, and later a name. Out: a file to write to. Until it is given
//! a name it has none at all (`O_TMPFILE` of open(2)), so that nothing stays of
//! it however the process ends; where the file system cannot do that, it has a
//! temporary one, which goes when the file is dropped. What is written to it is
//! not known here.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use tempfile::TempPath;

/// Permissions of new files, of which the process's mask takes some away.
const MODE: u32 = 0o666;

/// A file without a name of its own.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    folder: PathBuf,
    /// What temporary names look like: the beginning and the end.
    affixes: (Box<OsStr>, Box<OsStr>),
    /// The name that it has meanwhile, if it has to have one.
    temporary: Option<TempPath>,
}

impl NewFile {
    /// Makes an empty file in a folder. A temporary name, where one is needed,
    /// stands between `affixes`.
    ///
    /// # Errors
    /// The system refuses.
    pub fn create(folder: &Path, affixes: (&OsStr, &OsStr)) -> io::Result<NewFile> {
        let new = |file, temporary| NewFile {
            file,
            folder: folder.to_path_buf(),
            affixes: (affixes.0.into(), affixes.1.into()),
            temporary,
        };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        if let Ok(file) = open(folder, flags, Mode::from_raw_mode(MODE)) {
            let file = File::from(file);
            // Without /proc it could not be given a name.
            if fs::exists(by_descriptor(&file)).unwrap_or(false) {
                return Ok(new(file, None));
            }
        }
        let (file, temporary) = builder(affixes).tempfile_in(folder)?.into_parts();
        Ok(new(file, Some(temporary)))
    }

    /// What is written to and read from.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file a name that no other has.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is a file with that name, and
    /// whatever the system says; the file is as it was, and given back.
    pub fn name(mut self, path: &Path) -> Result<File, (NewFile, io::Error)> {
        match self.temporary.take() {
            None => match link(&self.file, path) {
                Ok(()) => Ok(self.file),
                Err(error) => Err((self, error)),
            },
            Some(temporary) => match temporary.persist_noclobber(path) {
                Ok(()) => Ok(self.file),
                Err(error) => {
                    self.temporary = Some(error.path);
                    Err((self, error.error))
                }
            },
        }
    }

    /// Gives the file a name, in place of a file that has it: there is always
    /// one of the two under it.
    ///
    /// # Errors
    /// The system refuses; the file is gone, and the other one stays.
    pub fn replace(mut self, path: &Path) -> io::Result<File> {
        let temporary = match self.temporary.take() {
            Some(temporary) => temporary,
            None => {
                match link(&self.file, path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    linked => return linked.map(|()| self.file),
                }
                // A name can be taken over by another name only.
                let (beginning, end) = &self.affixes;
                let link = |path: &Path| link(&self.file, path);
                builder((beginning, end)).make_in(&self.folder, link)?.into_temp_path()
            }
        };
        temporary.persist(path).map_err(|error| error.error)?;
        Ok(self.file)
    }
}

fn builder<'a>((beginning, end): (&'a OsStr, &'a OsStr)) -> tempfile::Builder<'a, 'a> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(beginning).suffix(end).permissions(Permissions::from_mode(MODE));
    builder
}

/// An open file as a path, whether it has a name or not.
fn by_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Gives a file without a name one.
fn link(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, by_descriptor(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    fn new(folder: &Path, contents: &str) -> NewFile {
        let new = NewFile::create(folder, (OsStr::new(".a."), OsStr::new(".new")));
        let new = new.expect("a file");
        new.file().write_all(contents.as_bytes()).expect("room");
        new
    }

    /// The same file where the file system wants it to have a name.
    fn named(folder: &Path, contents: &str) -> NewFile {
        let NewFile { file, folder, affixes, .. } = new(folder, contents);
        let (beginning, end) = &affixes;
        let link = |path: &Path| link(&file, path);
        let temporary = builder((beginning, end)).make_in(&folder, link).expect("a name");
        let temporary = Some(temporary.into_temp_path());
        NewFile { file, folder, affixes, temporary }
    }

    #[test]
    fn a_file_has_its_name_when_it_is_given_one() {
        for make in [new, named] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("a");
            drop(make(folder.path(), "gone"));
            assert_eq!(names(folder.path()), [""; 0]);
            make(folder.path(), "first").name(&path).expect("a new name");
            let (second, error) = make(folder.path(), "second").name(&path).expect_err("is taken");
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read_to_string(&path).expect("a file"), "first");
            second.name(&folder.path().join("b")).expect("a new name");
            make(folder.path(), "third").replace(&path).expect("a name");
            make(folder.path(), "fourth").replace(&folder.path().join("c")).expect("a name");
            assert_eq!(names(folder.path()), ["a", "b", "c"]);
            for (name, contents) in [("a", "third"), ("b", "second"), ("c", "fourth")] {
                let path = folder.path().join(name);
                assert_eq!(fs::read_to_string(&path).expect("a file"), contents);
                let mode = fs::metadata(&path).expect("a file").permissions().mode();
                assert_eq!(mode & 0o600, 0o600);
            }
        }
    }

    #[test]
    fn a_folder_that_is_not_there() {
        let affixes = (OsStr::new("a"), OsStr::new("b"));
        let error = NewFile::create(Path::new("/nonexistent"), affixes).expect_err("no folder");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
