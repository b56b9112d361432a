//! Replaces files as a whole: a reader sees the old text or the new one, never a part.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// Replaces the contents of a file, and keeps its owner and permissions. Returns false, and changes
/// nothing, if its contents are no longer those of `before`: somebody else has saved it.
///
/// # Errors
/// It cannot be written; its old contents stay.
pub fn replace(path: &Path, before: &[u8], contents: &[u8]) -> io::Result<bool> {
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
    // As late as possible.
    let mut now = Vec::with_capacity(before.len() + 1);
    File::open(&path)?.take(before.len() as u64 + 1).read_to_end(&mut now)?;
    if now != before {
        return Ok(false);
    }
    file.persist(&path)?;
    Ok(true)
}

/// The message about a file that was not replaced, as it is no longer as it was.
pub fn changed_meanwhile(name: &str) -> String {
    format!("{name} has changed meanwhile; run this again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_else_saved_stays() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("a.conf");
        for (now, is_replaced) in
            [("a = b\n", true), ("a = b\nc", false), ("a", false), ("", false)]
        {
            fs::write(&path, now).expect("a file");
            let done = replace(&path, b"a = b\n", b"a = c\n").expect("it can be written");
            let after = fs::read_to_string(&path).expect("a file");
            assert_eq!((done, &*after), (is_replaced, if is_replaced { "a = c\n" } else { now }));
        }
        // Nothing else is left in the folder.
        assert_eq!(fs::read_dir(folder.path()).expect("a directory").count(), 1);
    }
}
