//! Paths as users write them.

use std::path::Path;

/// The directory that a path names, or that it lies in: the path itself if it is a directory,
/// otherwise its parent.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.is_dir() {
        true => path,
        // A path that does not exist yet will be in its directory.
        false => {
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
        }
    }
}
