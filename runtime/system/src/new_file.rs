//! Files that get their names only when they are complete.
//!
//! Input: a folder, and later a name. Output: a file to write to.
//!
//! The file has no name until it is given one (`O_TMPFILE` of open(2)), so nothing of it remains,
//! even after a kill of the process. Where the file system cannot do that, the file has a temporary
//! name, which is removed when the file is dropped. A killed process leaves the temporary name
//! behind. Therefore the file is locked while it is open. The next process that creates a file with
//! the same affixes removes the unlocked ones.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use tempfile::{NamedTempFile, TempPath};

/// Permissions of new files, before the process's umask.
const MODE: u32 = 0o666;

/// Number of letters and digits between the affixes of a temporary name.
const RANDOM: usize = 6;

/// A file without its final name.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    folder: PathBuf,
    /// The beginning and the end of temporary names.
    affixes: (Box<OsStr>, Box<OsStr>),
    /// The temporary name, if the file system needs one.
    temporary: Option<TempPath>,
}

impl NewFile {
    /// Creates an empty file in a folder. A temporary name, if one is needed,
    /// stands between `affixes`. Files with such names that ended processes
    /// have left behind are removed.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the folder is not there or was removed, and every error
    /// of the system.
    pub fn create(folder: &Path, affixes: (&OsStr, &OsStr)) -> io::Result<NewFile> {
        let new = |file, temporary| NewFile {
            file,
            folder: folder.to_path_buf(),
            affixes: (affixes.0.into(), affixes.1.into()),
            temporary,
        };
        check_folder(folder)?;
        remove_abandoned(folder, affixes);
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        if let Ok(file) = open(folder, flags, Mode::from_raw_mode(MODE)) {
            let file = File::from(file);
            // Without /proc the file could never be given a name.
            if fs::exists(by_descriptor(&file)).unwrap_or(false) {
                return Ok(new(file, None));
            }
        }
        let (file, temporary) = loop {
            let made = builder(affixes).tempfile_in(folder)?;
            if is_kept(&made)? {
                break made.into_parts();
            }
        };
        Ok(new(file, Some(temporary)))
    }

    /// The file to write to and read from.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file a name that no other file has.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if a file has that name, and every
    /// error of the system. The error returns the unchanged file.
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

    /// Gives the file a name and replaces the file that has it. At every moment
    /// one of the two has the name.
    ///
    /// # Errors
    /// The system refuses. The new file is gone, and the old one stays.
    pub fn replace(mut self, path: &Path) -> io::Result<File> {
        let temporary = match self.temporary.take() {
            Some(temporary) => temporary,
            None => {
                match link(&self.file, path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    linked => return linked.map(|()| self.file),
                }
                // Only a file with a name can replace another. Where locks do
                // not work, no process removes abandoned files either, so a
                // failed lock does no harm.
                let _ = self.file.try_lock();
                let (beginning, end) = &self.affixes;
                let link = |path: &Path| link(&self.file, path);
                builder((beginning, end)).make_in(&self.folder, link)?.into_temp_path()
            }
        };
        temporary.persist(path).map_err(|error| error.error)?;
        Ok(self.file)
    }
}

/// Fails if a folder is not there. A process may still stand in one that was removed, and the
/// system gives other reasons for refusing a file there.
///
/// # Errors
/// [`io::ErrorKind::NotFound`], or the system does not tell.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    match fs::metadata(folder)?.nlink() {
        0 => Err(io::Error::new(io::ErrorKind::NotFound, "the folder was removed")),
        _ => Ok(()),
    }
}

fn builder<'a>((beginning, end): (&'a OsStr, &'a OsStr)) -> tempfile::Builder<'a, 'a> {
    let mut builder = tempfile::Builder::new();
    let permissions = Permissions::from_mode(MODE);
    builder.prefix(beginning).suffix(end).rand_bytes(RANDOM).permissions(permissions);
    builder
}

/// Locks a file that was just created. False if another process saw it as
/// abandoned before it was locked.
fn is_kept(made: &NamedTempFile) -> io::Result<bool> {
    match made.as_file().try_lock() {
        Err(TryLockError::WouldBlock) => Ok(false),
        // Where locks do not work, no process removes anything.
        Err(TryLockError::Error(_)) => Ok(true),
        Ok(()) => Ok(made.as_file().metadata()?.nlink() > 0),
    }
}

/// Removes files with a temporary name whose processes have ended. Files that
/// cannot be read or removed stay.
fn remove_abandoned(folder: &Path, affixes: (&OsStr, &OsStr)) {
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten().filter(|entry| is_temporary(&entry.file_name(), affixes)) {
        let _ = remove_unlocked(&entry.path());
    }
}

/// True if [`builder`] gives names like this one.
fn is_temporary(name: &OsStr, (beginning, end): (&OsStr, &OsStr)) -> bool {
    let between = name.as_bytes().strip_prefix(beginning.as_bytes());
    let between = between.and_then(|rest| rest.strip_suffix(end.as_bytes()));
    between.is_some_and(|between| {
        between.len() == RANDOM && between.iter().all(u8::is_ascii_alphanumeric)
    })
}

fn remove_unlocked(path: &Path) -> io::Result<()> {
    // A pipe or a symbolic link is none of these files.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    // Only the holder of the lock may remove the file.
    file.try_lock()?;
    let (open, named) = (file.metadata()?, fs::symlink_metadata(path)?);
    if open.is_file() && (open.dev(), open.ino()) == (named.dev(), named.ino()) {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// The path of an open file, with or without a name.
fn by_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Gives a name to a file without one.
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

    /// The same file on a file system that needs a temporary name.
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
    fn files_that_a_killed_process_has_left_go_with_the_next_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let others = [".a.Abc12.new", ".a.Abc-12.new", ".a.Abc1234.new", ".b.Abc123.new", "a"];
        for name in [".a.Abc123.new"].into_iter().chain(others) {
            fs::write(folder.path().join(name), name).expect("room");
        }
        fs::create_dir(folder.path().join(".a.folder.new")).expect("a folder");
        let in_use = folder.path().join(".a.locked.new");
        let lock = File::create(&in_use).expect("a file");
        lock.lock().expect("a lock");
        let mut expected: Vec<&str> = others.into();
        expected.extend([".a.folder.new", ".a.locked.new"]);
        expected.sort_unstable();

        drop(new(folder.path(), ""));
        assert_eq!(names(folder.path()), expected);
        drop(lock);
        drop(new(folder.path(), ""));
        expected.retain(|name| *name != ".a.locked.new");
        assert_eq!(names(folder.path()), expected);
    }

    #[test]
    fn a_file_that_is_being_written_is_not_abandoned() {
        let folder = tempfile::tempdir().expect("a folder");
        let affixes = (OsStr::new(".a."), OsStr::new(".new"));
        let made = builder(affixes).tempfile_in(folder.path()).expect("a file");
        assert!(is_kept(&made).expect("a file"));
        remove_abandoned(folder.path(), affixes);
        assert_eq!(names(folder.path()).len(), 1);

        // Between creation and locking, another process may see it as
        // abandoned.
        let made = builder(affixes).tempfile_in(folder.path()).expect("a file");
        let other = File::open(made.path()).expect("a file");
        other.lock().expect("a lock");
        assert!(!is_kept(&made).expect("a file"));
        fs::remove_file(made.path()).expect("a file");
        drop(other);
        assert!(!is_kept(&made).expect("a file"));
    }

    #[test]
    fn a_folder_that_is_not_there() {
        let affixes = (OsStr::new("a"), OsStr::new("b"));
        let error = NewFile::create(Path::new("/nonexistent"), affixes).expect_err("no folder");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);

        let removed = tempfile::tempdir().expect("a folder");
        let open = File::open(removed.path()).expect("a folder");
        removed.close().expect("it is empty");
        let error = NewFile::create(&by_descriptor(&open), affixes).expect_err("no folder");
        assert_eq!(error.to_string(), "the folder was removed");
    }
}
