//! The files of an archive that is being written. No other module of the writer touches
//! files.
//!
//! Input: whole files to create and whole records to append. Output: files that appear
//! with their first bytes and grow by one write per record. Nothing stays of a record
//! that cannot be written whole.
//!
//! There is no archive without a volume, so the metadata gets its name together with
//! the first volume, just before it. A process that is killed between the two leaves
//! the metadata alone. The metadata is marked until the volume has its name. The mark
//! tells the next writer that nothing is lost with this file, and that it may take over
//! the name.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pmderive_core::escape;
use pmderive_system::new_file::NewFile;

use crate::archive::files::is_file_of;
use crate::archive::label::Role;
use crate::archive_writer::WriteError;

/// Mode bit that marks metadata whose archive has no volume yet. It is the sticky bit,
/// which means nothing for a file.
const BEGUN: u32 = 0o1000;

/// Longest base name in bytes with which the index still has a name.
const MAX_NAME: usize = 255 - ".index".len();

/// A place for the files of an archive.
pub(super) trait Storage: Send {
    /// Creates a file with these bytes, or no file if that fails. The file must not
    /// exist. Later calls of `append` for metadata, index or volumes go to the file
    /// of that kind created last.
    fn create(&mut self, role: Role, bytes: &[u8]) -> Result<(), WriteError>;

    /// Appends all of `bytes`, or nothing, to the current file of this kind.
    fn append(&mut self, role: Role, bytes: &[u8]) -> Result<(), WriteError>;

    /// Waits until everything written so far would survive a crash of the machine.
    fn sync(&mut self) -> Result<(), WriteError>;

    /// Removes the metadata if there is no volume.
    fn discard(&mut self) -> Result<(), WriteError>;

    /// Path of a file, for messages.
    fn path(&self, role: Role) -> PathBuf;
}

/// Files on disk.
pub(super) struct Disk {
    base: PathBuf,
    metadata: Option<GrowingFile>,
    index: Option<GrowingFile>,
    volume: Option<GrowingFile>,
}

/// A file that grows.
struct GrowingFile {
    file: FileName,
    /// Bytes of complete records.
    size: u64,
    /// The file has more bytes than that, and they cannot be removed.
    is_torn: bool,
}

/// A file that has its name already or not yet.
enum FileName {
    NotYet(NewFile),
    Yes(File),
}

impl GrowingFile {
    fn file(&self) -> &File {
        match &self.file {
            FileName::NotYet(new) => new.file(),
            FileName::Yes(file) => file,
        }
    }
}

/// Path of a file of the archive with the base name `base`.
pub(super) fn file_name(base: &Path, role: Role) -> PathBuf {
    let mut path = base.as_os_str().to_os_string();
    match role {
        Role::Metadata => path.push(".meta"),
        Role::Index => path.push(".index"),
        Role::Volume(number) => path.push(format!(".{number}")),
    }
    path.into()
}

impl Disk {
    /// Prepares files whose names begin with `base`. None of them may exist.
    pub(super) fn new(base: &Path) -> Result<Disk, WriteError> {
        let disk = Disk { base: base.to_path_buf(), metadata: None, index: None, volume: None };
        let name = base.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        // Tools read a list of archives with commas between them.
        let problem = if name.is_empty() || base.as_os_str().as_bytes().contains(&b',') {
            Some("cannot be that of an archive: it has a comma, or no last component")
        } else if name.len() > MAX_NAME {
            Some("is too long: no file name has more than 255 bytes")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(WriteError::text("the base name", &escape::path(&base), problem));
        }
        let failed = |source| WriteError::Io { path: disk.folder().to_path_buf(), source };
        let mut taken = Vec::new();
        for entry in disk.folder().read_dir().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if is_file_of(entry.file_name().as_bytes(), name) {
                taken.push(base.with_file_name(entry.file_name()));
            }
        }
        let metadata = disk.path(Role::Metadata);
        match taken.iter().min_by_key(|path| (**path != metadata, *path)) {
            None => Ok(disk),
            Some(path) if taken.len() == 1 && *path == metadata && remove_begun(path) => Ok(disk),
            Some(path) => Err(WriteError::Exists { path: path.clone() }),
        }
    }

    fn folder(&self) -> &Path {
        match self.base.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    fn slot(&mut self, role: Role) -> &mut Option<GrowingFile> {
        match role {
            Role::Metadata => &mut self.metadata,
            Role::Index => &mut self.index,
            Role::Volume(_) => &mut self.volume,
        }
    }
}

/// Removes metadata that a killed process left before its archive had a volume. False
/// if the file is something else, or if the process still runs.
fn remove_begun(path: &Path) -> bool {
    let is_begun = || -> io::Result<bool> {
        let file = File::open(path)?;
        // Only the process that holds the lock may remove the file.
        file.try_lock()?;
        let (open, named) = (file.metadata()?, fs::symlink_metadata(path)?);
        let is_marked = open.is_file() && open.mode() & BEGUN != 0;
        let is_same = (open.dev(), open.ino()) == (named.dev(), named.ino());
        Ok(is_marked && is_same && fs::remove_file(path).is_ok())
    };
    is_begun().unwrap_or(false)
}

impl Disk {
    /// Creates a file with these bytes and without a name.
    fn new_file(&self, path: &Path, bytes: &[u8]) -> io::Result<NewFile> {
        // Readers find files by their last suffix, and do not know this one.
        let affixes = (path.file_name().unwrap_or_default(), OsStr::new(".new"));
        let new = NewFile::create(self.folder(), affixes)?;
        new.file().write_all(bytes)?;
        Ok(new)
    }

    /// Gives the metadata its name unless it has one.
    fn name_metadata(&mut self) -> Result<(), WriteError> {
        let path = self.path(Role::Metadata);
        let Some(GrowingFile { file, size, is_torn }) = self.metadata.take() else { return Ok(()) };
        let (file, outcome) = match file {
            FileName::Yes(file) => (FileName::Yes(file), Ok(())),
            FileName::NotYet(new) => {
                mark(new.file(), true);
                // No other process knows the file yet, so this only fails on file
                // systems without locks. There the file counts as one in use.
                let _ = new.file().try_lock();
                match new.name(&path) {
                    Ok(file) => (FileName::Yes(file), Ok(())),
                    Err((new, error)) => (FileName::NotYet(new), Err(failure(&path, error))),
                }
            }
        };
        self.metadata = Some(GrowingFile { file, size, is_torn });
        outcome
    }
}

/// Marks metadata as that of an archive without volume, or removes the mark. Some file
/// systems refuse to set the bit; the file has no mark there.
fn mark(metadata: &File, is_begun: bool) {
    let Ok(about) = metadata.metadata() else { return };
    let mode = about.mode() & 0o777 | if is_begun { BEGUN } else { 0 };
    let _ = metadata.set_permissions(Permissions::from_mode(mode));
    if !is_begun {
        let _ = metadata.unlock();
    }
}

fn failure(path: &Path, source: io::Error) -> WriteError {
    let path = path.to_path_buf();
    match source.kind() {
        io::ErrorKind::AlreadyExists => WriteError::Exists { path },
        _ => WriteError::Io { path, source },
    }
}

impl Storage for Disk {
    fn create(&mut self, role: Role, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.path(role);
        let failed = |error| failure(&path, error);
        // The previous volume is complete, and later calls of `sync` do not reach it.
        if let Some(done) = self.slot(role) {
            done.file().sync_data().map_err(failed)?;
        }
        let new = self.new_file(&path, bytes).map_err(failed)?;
        let is_first = self.volume.is_none();
        let file = match role {
            Role::Metadata => FileName::NotYet(new),
            Role::Volume(_) | Role::Index => {
                // Otherwise the metadata would get its name although the archive cannot be made.
                if fs::symlink_metadata(&path).is_ok() {
                    return Err(WriteError::Exists { path });
                }
                self.name_metadata()?;
                FileName::Yes(new.name(&path).map_err(|(_, error)| failed(error))?)
            }
        };
        *self.slot(role) = Some(GrowingFile { file, size: bytes.len() as u64, is_torn: false });
        if is_first
            && self.volume.is_some()
            && let Some(metadata) = &self.metadata
        {
            mark(metadata.file(), false);
        }
        Ok(())
    }

    fn append(&mut self, role: Role, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.path(role);
        let missing = || WriteError::Unusable { path: path.clone() };
        let growing = self.slot(role).as_mut().ok_or_else(missing)?;
        if growing.is_torn {
            return Err(WriteError::Unusable { path });
        }
        // This is one system call, unless the disk is full.
        if let Err(source) = growing.file().write_all_at(bytes, growing.size) {
            growing.is_torn = growing.file().set_len(growing.size).is_err();
            return Err(WriteError::Io { path, source });
        }
        growing.size += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), WriteError> {
        let files = [(Role::Metadata, &self.metadata), (Role::Volume(0), &self.volume)];
        for (role, growing) in files.into_iter().chain([(Role::Index, &self.index)]) {
            if let Some(growing) = growing {
                let synced = growing.file().sync_data();
                synced.map_err(|source| WriteError::Io { path: self.path(role), source })?;
            }
        }
        let folder = self.folder();
        let synced =
            OpenOptions::new().read(true).open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|source| WriteError::Io { path: folder.to_path_buf(), source })
    }

    fn discard(&mut self) -> Result<(), WriteError> {
        // Files without names vanish when they are closed.
        if let Some(GrowingFile { file: FileName::Yes(_), .. }) = self.metadata.take() {
            let path = self.path(Role::Metadata);
            fs::remove_file(&path).map_err(|error| failure(&path, error))?;
        }
        Ok(())
    }

    fn path(&self, role: Role) -> PathBuf {
        file_name(&self.base, role)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.volume.is_none() {
            // No caller is left who could handle the error.
            let _ = self.discard();
        }
    }
}
