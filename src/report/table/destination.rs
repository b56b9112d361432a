//! The destination of a table: a stream, or a file that gets its name only when
//! it is complete.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use pmderive_runtime::new_file::{NewFile, check_folder};

use crate::text::paths::directory_of;

/// End of the name of a file that is not complete.
const PARTIAL: &str = ".partial";

/// Size in bytes of the write buffer.
const BUFFER: usize = 256 * 1024;

/// A file or a stream for a table. A file has no name until
/// [`Destination::complete`]. If the destination is dropped before, the file is
/// gone.
pub struct Destination(BufWriter<Target>);

enum Target {
    Stream(Box<dyn Write + Send>),
    /// An existing path that is not a regular file.
    Device(File),
    File {
        unfinished: NewFile,
        path: PathBuf,
    },
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").finish_non_exhaustive()
    }
}

impl Destination {
    /// A stream, such as standard output.
    pub fn stream(out: impl Write + Send + 'static) -> Destination {
        Destination::to(Target::Stream(Box::new(out)))
    }

    /// A file. A file that already has the name stays until the new one is
    /// complete. A device or pipe is written directly.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn file(path: &Path) -> io::Result<Destination> {
        // Follows a link, so that the link stays.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
            let device = OpenOptions::new().write(true).open(&path)?;
            return Ok(Destination::to(Target::Device(device)));
        }
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let Some(name) = path.file_name() else {
            return Err(io::ErrorKind::InvalidFilename.into());
        };
        let folder = directory_of(&path);
        check_folder(folder)?;
        let mut beginning = OsString::from(".");
        beginning.push(name);
        beginning.push(".");
        let unfinished = NewFile::create(folder, (&beginning, OsStr::new(".unfinished")))
            // Drops the temporary name from the error, because users do not
            // know it.
            .map_err(|error| error.kind())?;
        Ok(Destination::to(Target::File { unfinished, path }))
    }

    fn to(target: Target) -> Destination {
        Destination(BufWriter::with_capacity(BUFFER, target))
    }

    /// Another handle of a device or pipe, to check whether it has a reader.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn device(&self) -> io::Result<Option<File>> {
        match self.0.get_ref() {
            Target::Device(device) => device.try_clone().map(Some),
            Target::Stream(_) | Target::File { .. } => Ok(None),
        }
    }

    /// True for a destination that does not end with the table.
    pub fn is_stream(&self) -> bool {
        !matches!(self.0.get_ref(), Target::File { .. })
    }

    /// Ends a complete table. A file gets its name.
    ///
    /// # Errors
    /// The rest cannot be written, or the file cannot be renamed. Then the file
    /// is gone.
    pub fn complete(self) -> io::Result<()> {
        self.end(|path| path).map(drop)
    }

    /// Ends a table that is readable but not complete. A file gets its name
    /// with `.partial` added, which is returned.
    ///
    /// # Errors
    /// As [`Destination::complete`].
    pub fn partial(self) -> io::Result<Option<PathBuf>> {
        self.end(|mut path| {
            path.as_mut_os_string().push(PARTIAL);
            path
        })
    }

    /// Of `bytes` that were written, the number of those that are no longer in the buffer.
    pub fn written(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.0.buffer().len() as u64)
    }

    /// Keeps a file up to the last of `ends` that it reaches, ascending numbers of bytes, after an
    /// error of writing. It gets the name of [`Destination::partial`], which is returned.
    pub fn keep(self, ends: impl IntoIterator<Item = u64>) -> Option<PathBuf> {
        let (Target::File { unfinished, mut path }, _) = self.0.into_parts() else { return None };
        let length = unfinished.file().metadata().ok()?.len();
        let end = ends.into_iter().take_while(|end| *end <= length).last()?;
        unfinished.file().set_len(end).ok()?;
        path.as_mut_os_string().push(PARTIAL);
        unfinished.replace(&path).ok()?;
        Some(path)
    }

    fn end(mut self, name: impl FnOnce(PathBuf) -> PathBuf) -> io::Result<Option<PathBuf>> {
        self.0.flush()?;
        match self.0.into_parts().0 {
            Target::Stream(_) | Target::Device(_) => Ok(None),
            Target::File { unfinished, path } => {
                let path = name(path);
                // A table that nobody else may read stays one. It keeps its owner if the
                // system allows that, as for root.
                if let Ok(before) = fs::metadata(&path) {
                    let _ = fchown(unfinished.file(), Some(before.uid()), Some(before.gid()));
                    let _ = unfinished.file().set_permissions(before.permissions());
                }
                // Otherwise a crash might leave the name without all of the
                // bytes.
                unfinished.file().sync_all()?;
                unfinished.replace(&path)?;
                Ok(Some(path))
            }
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Stream(out) => out.write(bytes),
            Target::Device(file) => file.write(bytes),
            Target::File { unfinished, .. } => unfinished.file().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Stream(out) => out.flush(),
            Target::Device(file) => file.flush(),
            Target::File { unfinished, .. } => unfinished.file().flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_owner() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.csv");
        fs::write(&path, "before")?;
        // Only root can give files away.
        let is_given = std::os::unix::fs::chown(&path, Some(1), Some(1)).is_ok();
        let mut destination = Destination::file(&path)?;
        destination.write_all(b"after")?;
        destination.complete()?;
        assert_eq!(fs::read(&path)?, b"after");
        let owner = fs::metadata(&path)?;
        assert!(!is_given || (owner.uid(), owner.gid()) == (1, 1), "{owner:?}");
        Ok(())
    }
}
