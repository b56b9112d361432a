//! Replaces files as a whole: a reader sees the old text or the new one, never a part.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// Replaces the contents of a file, and keeps its owner and permissions.
///
/// # Errors
/// It cannot be written; its old contents stay.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    // The target of a symbolic link is replaced, not the link.
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".pmderive-").tempfile_in(directory)?;
    file.write_all(contents)?;
    let owner = file.as_file().metadata()?;
    if (owner.uid(), owner.gid()) != (metadata.uid(), metadata.gid()) {
        fchown(file.as_file(), Some(metadata.uid()), Some(metadata.gid()))?;
    }
    file.as_file().set_permissions(metadata.permissions())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}
