//! Where a table goes: a file that has its name only once it is complete, or
//! a stream.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pmderive_runtime::new_file::NewFile;

/// Bytes that are gathered before they are written.
const BUFFER: usize = 256 * 1024;

/// A file or a stream that a table is written to. What is written to a file
/// stands in one without a name until [`Destination::complete`], and is gone when the
/// destination is dropped before.
pub struct Destination(BufWriter<Target>);

enum Target {
    Stream(Box<dyn Write + Send>),
    /// Something that is there already and is no regular file.
    Device(File),
    File {
        unfinished: NewFile,
        path: PathBuf,
    },
}

impl Destination {
    /// A stream, such as standard output.
    pub fn stream(out: impl Write + Send + 'static) -> Destination {
        Destination::to(Target::Stream(Box::new(out)))
    }

    /// A file. What is there under its name stays until the new one is complete.
    /// A device or pipe is written to as it is.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn file(path: &Path) -> io::Result<Destination> {
        // A link stays one.
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
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::metadata(folder)?;
        let mut beginning = OsString::from(".");
        beginning.push(name);
        beginning.push(".");
        let unfinished = NewFile::create(folder, (&beginning, OsStr::new(".unfinished")))
            // Without a temporary name, which tells nobody anything.
            .map_err(|error| error.kind())?;
        Ok(Destination::to(Target::File { unfinished, path }))
    }

    fn to(target: Target) -> Destination {
        Destination(BufWriter::with_capacity(BUFFER, target))
    }

    /// True for one that does not end where the table ends.
    pub fn is_stream(&self) -> bool {
        !matches!(self.0.get_ref(), Target::File { .. })
    }

    /// Ends a table that is complete: a file gets its name.
    ///
    /// # Errors
    /// What is still to be written cannot be, or the file cannot be renamed;
    /// it is gone then.
    pub fn complete(self) -> io::Result<()> {
        self.end(|path| path).map(drop)
    }

    /// Ends a table that could be read, and is not all that it should be. A
    /// file gets its name with `.partial` behind it, which is returned.
    ///
    /// # Errors
    /// As [`Destination::complete`].
    pub fn partial(self) -> io::Result<Option<PathBuf>> {
        self.end(|mut path| {
            path.as_mut_os_string().push(".partial");
            path
        })
    }

    fn end(mut self, name: impl FnOnce(PathBuf) -> PathBuf) -> io::Result<Option<PathBuf>> {
        self.0.flush()?;
        match self.0.into_parts().0 {
            Target::Stream(_) | Target::Device(_) => Ok(None),
            Target::File { unfinished, path } => {
                let path = name(path);
                // Else a crash might leave the name, and not all of the bytes.
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
