//! The files of an archive that is being written. This is the one module of
//! the writer that touches files.
//!
//! In: whole files to be created and whole records to be appended. Out: files
//! that appear complete with their first bytes, and grow by one write for each
//! record; of a record that cannot be written whole nothing stays. What the
//! bytes mean is not known here.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::archive::files::is_file_of;
use crate::archive::label::Role;
use crate::archive_writer::WriteError;

/// Where files of an archive are kept.
pub(super) trait Storage: Send {
    /// Makes a file that did not exist and has these bytes, both or neither.
    /// From then on it is the one of its kind that grows.
    fn create(&mut self, role: Role, bytes: &[u8]) -> Result<(), WriteError>;

    /// Adds bytes to the end of a file that was created here, all or none.
    fn append(&mut self, role: Role, bytes: &[u8]) -> Result<(), WriteError>;

    /// Waits until everything written so far would survive a crash of the machine.
    fn sync(&mut self) -> Result<(), WriteError>;

    /// Removes metadata and index, where there is no volume.
    fn discard(&mut self) -> Result<(), WriteError>;

    /// Name of a file, for messages.
    fn path(&self, role: Role) -> PathBuf;
}

/// Files of the system.
pub(super) struct Disk {
    base: PathBuf,
    metadata: Option<Growing>,
    index: Option<Growing>,
    volume: Option<Growing>,
}

/// A file that grows.
struct Growing {
    file: File,
    /// Bytes of complete records.
    size: u64,
    /// More than that is in the file, and cannot be taken away.
    is_torn: bool,
}

/// Name of a file of the archive with the base name `base`.
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
    /// Files whose names begin with `base`. None of them may exist.
    pub(super) fn new(base: &Path) -> Result<Disk, WriteError> {
        let disk = Disk { base: base.to_path_buf(), metadata: None, index: None, volume: None };
        let name = base.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        // A comma separates archives where one is named to be read.
        if name.is_empty() || base.as_os_str().as_bytes().contains(&b',') {
            let problem = "cannot be that of an archive: it has a comma, or no last component";
            let text = base.display().to_string();
            return Err(WriteError::Text { what: "the base name".to_owned(), text, problem });
        }
        let folder = disk.folder();
        let failed = |source| WriteError::Io { path: folder.to_path_buf(), source };
        for entry in folder.read_dir().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if is_file_of(entry.file_name().as_bytes(), name) {
                return Err(WriteError::Exists { path: entry.path() });
            }
        }
        Ok(disk)
    }

    fn folder(&self) -> &Path {
        match self.base.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    fn slot(&mut self, role: Role) -> &mut Option<Growing> {
        match role {
            Role::Metadata => &mut self.metadata,
            Role::Index => &mut self.index,
            Role::Volume(_) => &mut self.volume,
        }
    }
}

impl Storage for Disk {
    fn create(&mut self, role: Role, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.path(role);
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => WriteError::Exists { path: path.clone() },
            _ => WriteError::Io { path: path.clone(), source },
        };
        // The volume before is complete; no later sync would reach it.
        if let Some(done) = self.slot(role) {
            done.file.sync_data().map_err(failed)?;
        }
        // Readers find files by their last suffix, and do not know this one.
        let mut file = tempfile::Builder::new()
            .prefix(&path.file_name().unwrap_or_default().to_os_string())
            .suffix(".new")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(self.folder())
            .map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        let file = file.persist_noclobber(&path).map_err(|error| failed(error.error))?;
        let size = bytes.len() as u64;
        *self.slot(role) = Some(Growing { file, size, is_torn: false });
        Ok(())
    }

    fn append(&mut self, role: Role, bytes: &[u8]) -> Result<(), WriteError> {
        let path = self.path(role);
        let missing = || WriteError::Unusable { path: path.clone() };
        let growing = self.slot(role).as_mut().ok_or_else(missing)?;
        if growing.is_torn {
            return Err(WriteError::Unusable { path });
        }
        // One system call, unless the disk is full.
        if let Err(source) = growing.file.write_all_at(bytes, growing.size) {
            growing.is_torn = growing.file.set_len(growing.size).is_err();
            return Err(WriteError::Io { path, source });
        }
        growing.size += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), WriteError> {
        let files = [(Role::Metadata, &self.metadata), (Role::Volume(0), &self.volume)];
        for (role, growing) in files.into_iter().chain([(Role::Index, &self.index)]) {
            if let Some(growing) = growing {
                let synced = growing.file.sync_data();
                synced.map_err(|source| WriteError::Io { path: self.path(role), source })?;
            }
        }
        let folder = self.folder();
        let synced =
            OpenOptions::new().read(true).open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|source| WriteError::Io { path: folder.to_path_buf(), source })
    }

    fn discard(&mut self) -> Result<(), WriteError> {
        for role in [Role::Index, Role::Metadata] {
            if self.slot(role).take().is_some() {
                let path = self.path(role);
                let removed = std::fs::remove_file(&path);
                removed.map_err(|source| WriteError::Io { path, source })?;
            }
        }
        Ok(())
    }

    fn path(&self, role: Role) -> PathBuf {
        file_name(&self.base, role)
    }
}
