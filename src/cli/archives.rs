//! The archives that arguments name. Several options make one list, and a pattern stands for
//! the archives that it matches.
//!
//! Input: the arguments of `-a`, as the user gave them. Output: a list with commas for
//! `ArchiveContext::open`, which finds out whether the archives exist.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use pmderive_runtime::archive::base_of_file;

/// Joins several arguments to one list with commas. Like pmGetOptions(3), it leaves out an
/// argument that the list contains already.
pub fn joined(arguments: &[PathBuf]) -> Option<PathBuf> {
    let mut list: Vec<u8> = arguments.first()?.as_os_str().as_bytes().to_vec();
    for (at, argument) in arguments.iter().enumerate().skip(1) {
        if arguments[..at].contains(argument) {
            continue;
        }
        let argument = argument.as_os_str().as_bytes();
        if !list.split(|byte| *byte == b',').any(|known| known == argument) {
            list.push(b',');
            list.extend_from_slice(argument);
        }
    }
    Some(OsString::from_vec(list).into())
}

/// Replaces each pattern of a list by the archives that it matches, in order of their names. A
/// pattern without a match stays, and so does one that is the name of a file.
pub fn expanded(list: &Path) -> PathBuf {
    let list = list.as_os_str().as_bytes();
    let members = list.split(|byte| *byte == b',').map(|member| match matches(member) {
        found if found.is_empty() => member.to_vec(),
        found => found.join(&b','),
    });
    OsString::from_vec(members.collect::<Vec<_>>().join(&b',')).into()
}

/// Lists the archives and the directories that a pattern matches. Each archive comes once,
/// however many of its files match. The list is empty if the text is no pattern.
fn matches(pattern: &[u8]) -> Vec<Vec<u8>> {
    let is_pattern = pattern.iter().any(|byte| b"*?[".contains(byte));
    if !is_pattern || Path::new(OsStr::from_bytes(pattern)).exists() {
        return Vec::new();
    }
    let found = std::str::from_utf8(pattern).ok().and_then(|pattern| glob::glob(pattern).ok());
    let mut archives: Vec<Vec<u8>> = found
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|path| if path.is_dir() { Some(path) } else { base_of_file(&path) })
        // A comma would split the name in two.
        .filter(|path| !path.as_os_str().as_bytes().contains(&b','))
        .map(|path| path.into_os_string().into_vec())
        .collect();
    archives.sort_unstable();
    archives.dedup();
    archives
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_options_make_one_list() {
        let join = |arguments: &[&str]| {
            joined(&arguments.iter().map(PathBuf::from).collect::<Vec<_>>())
                .map(|list| list.display().to_string())
        };
        assert_eq!(join(&[]), None);
        assert_eq!(join(&["a,b", "c", "a", "ab", "c"]).as_deref(), Some("a,b,c,ab"));
        assert_eq!(join(&["a,a"]).as_deref(), Some("a,a"));
    }

    #[test]
    fn patterns_become_archives() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["b.0", "b.meta", "a.meta.xz", "a.index", "readme", "c*d.meta", "x,y.0"] {
            std::fs::write(path(name), b"").expect("a file");
        }
        std::fs::create_dir(path("bdir")).expect("a folder");
        let list = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| path(name).display().to_string()).collect();
            PathBuf::from(names.join(","))
        };
        let cases = [
            (list(&["*"]), list(&["a", "b", "bdir", "c*d"])),
            (list(&["b*", "q", "[ac]*.meta*"]), list(&["b", "bdir", "q", "a", "c*d"])),
            (list(&["c*d.meta", "none*"]), list(&["c*d.meta", "none*"])),
            (list(&["b", ""]), list(&["b", ""])),
        ];
        for (given, expected) in cases {
            assert_eq!(expanded(&given), expected);
        }
    }
}
