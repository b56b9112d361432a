//! Finds the files of an archive.
//!
//! In: what a user gave as an archive: its base name or one of its files.
//! Out: the base name, and where metadata, index and data volumes are. Nothing
//! is opened here; archives of several members are refused.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::archive::bytes::Bytes;
use crate::archive::decompress::Compression;
use crate::model::PmStatus;
use crate::source::SourceError;

/// Where the contents of one file of an archive are.
#[derive(Clone, Debug)]
pub(super) enum Member {
    /// A file of the system.
    File { path: PathBuf, compression: Compression },
    /// Bytes in memory, and a name for messages.
    Memory { name: &'static str, bytes: Arc<[u8]> },
}

impl Member {
    /// Name for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Member::File { path, .. } => path.display().to_string(),
            Member::Memory { name, .. } => (*name).to_string(),
        }
    }

    pub(super) fn open(&self) -> io::Result<Box<dyn Bytes>> {
        match self {
            Member::File { path, compression } => compression.open(path),
            Member::Memory { bytes, .. } => Ok(Box::new(Arc::clone(bytes))),
        }
    }
}

/// The files of one archive.
#[derive(Clone, Debug)]
pub(super) struct ArchiveFiles {
    /// Path of the archive without any suffix.
    pub(super) base: PathBuf,
    pub(super) metadata: Member,
    pub(super) index: Option<Member>,
    /// Data volumes with their numbers, ascending; never empty.
    pub(super) volumes: Vec<(i32, Member)>,
}

/// What a file of an archive is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Metadata,
    Index,
    Volume(i32),
}

/// Splits the name of a file of an archive into the archive's base name, what
/// the file is and how it is stored. `None` for any other name.
fn split_name(name: &[u8]) -> Option<(&[u8], Kind, Compression)> {
    let (stem, compression) = Compression::of_name(name);
    let dot = stem.iter().rposition(|byte| *byte == b'.')?;
    let kind = match &stem[dot + 1..] {
        b"meta" => Kind::Metadata,
        b"index" => Kind::Index,
        digits if digits.iter().all(u8::is_ascii_digit) => {
            Kind::Volume(std::str::from_utf8(digits).ok()?.parse().ok()?)
        }
        _ => return None,
    };
    Some((&stem[..dot], kind, compression))
}

impl ArchiveFiles {
    /// Finds the archive that `path` stands for, as `pmNewContext(3)` does for
    /// one archive.
    pub(super) fn find(path: &Path) -> Result<ArchiveFiles, SourceError> {
        let target = || path.display().to_string();
        let refuse = |message: &str| {
            Err(SourceError::Specification { target: target(), message: message.to_string() })
        };
        let bytes = path.as_os_str().as_bytes();
        if bytes.is_empty() {
            return Err(missing(path, "no archive is named"));
        }
        if bytes.contains(&b',') {
            return refuse(
                "contexts of several archives are not supported yet; name a single archive",
            );
        }
        if path.is_dir() {
            return refuse(
                "a directory stands for all archives in it, and contexts of several archives \
                 are not supported yet; name a single archive",
            );
        }
        let Some(name) = path.file_name() else {
            return refuse("this is not the name of an archive");
        };
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let entries = std::fs::read_dir(directory)
            .and_then(|entries| entries.map(|e| Ok(e?.file_name())).collect::<io::Result<Vec<_>>>())
            .map_err(|source| SourceError::Io { target: target(), source })?;

        let base = base_name(name.as_bytes(), &entries);
        let base_path = path.with_file_name(OsStr::from_bytes(base));
        let mut found = Found::default();
        for entry in &entries {
            if let Some((stem, kind, compression)) = split_name(entry.as_bytes())
                && stem == base
            {
                found.add(kind, path.with_file_name(entry), compression);
            }
        }
        if found.is_empty() {
            if bytes.iter().any(|byte| b"*?[".contains(byte)) {
                return refuse("wildcards are not expanded; name a single archive");
            }
            let absent = rustix::io::Errno::NOENT;
            return Err(match path.exists() {
                true => SourceError::Damaged {
                    target: target(),
                    status: PmStatus(-absent.raw_os_error()),
                    message: "this is no archive, nor a file of one".to_owned(),
                },
                false => SourceError::Io { target: target(), source: absent.into() },
            });
        }
        found.finish(base_path)
    }

    /// The volume that a writer may have begun since the files were found.
    pub(super) fn next_volume(&self) -> Option<(i32, Member)> {
        let number = self.volumes.last()?.0.checked_add(1)?;
        let mut path = self.base.clone().into_os_string();
        path.push(format!(".{number}"));
        let path = PathBuf::from(path);
        let member = Member::File { path, compression: Compression::None };
        let exists = matches!(&member, Member::File { path, .. } if path.is_file());
        exists.then_some((number, member))
    }
}

/// The base name that `name` stands for: itself, unless it is the name of a
/// file of an archive, plain or still to be completed by a compression suffix.
fn base_name<'a>(name: &'a [u8], entries: &[std::ffi::OsString]) -> &'a [u8] {
    match split_name(name) {
        Some((base, _, Compression::None))
            if entries.iter().any(|e| Compression::of_name(e.as_bytes()).0 == name) =>
        {
            base
        }
        Some((base, ..)) if entries.iter().any(|e| e.as_bytes() == name) => base,
        _ => name,
    }
}

fn missing(path: &Path, message: &str) -> SourceError {
    SourceError::Damaged {
        target: path.display().to_string(),
        status: PmStatus::LOGFILE,
        message: message.to_string(),
    }
}

/// Files of one archive while its directory is read.
#[derive(Default)]
struct Found {
    metadata: Option<(PathBuf, Compression)>,
    index: Option<(PathBuf, Compression)>,
    volumes: std::collections::BTreeMap<i32, (PathBuf, Compression)>,
}

impl Found {
    fn is_empty(&self) -> bool {
        self.metadata.is_none() && self.index.is_none() && self.volumes.is_empty()
    }

    /// Of a plain file and a compressed one the plain one counts, of two
    /// compressed ones the one that can be read.
    fn add(&mut self, kind: Kind, path: PathBuf, compression: Compression) {
        let rank = |compression: Compression| match compression {
            Compression::None => 0,
            Compression::Xz | Compression::Zstd => 1,
            Compression::Unsupported(_) => 2,
        };
        let better = |old: Compression| rank(compression) < rank(old);
        match kind {
            Kind::Metadata if self.metadata.as_ref().is_none_or(|(_, old)| better(*old)) => {
                self.metadata = Some((path, compression));
            }
            Kind::Index if self.index.as_ref().is_none_or(|(_, old)| better(*old)) => {
                self.index = Some((path, compression));
            }
            Kind::Volume(number)
                if self.volumes.get(&number).is_none_or(|(_, old)| better(*old)) =>
            {
                self.volumes.insert(number, (path, compression));
            }
            _ => {}
        }
    }

    fn finish(self, base: PathBuf) -> Result<ArchiveFiles, SourceError> {
        let Some((path, compression)) = self.metadata else {
            return Err(missing(&base, "the archive has no metadata file (.meta)"));
        };
        let metadata = readable(path, compression)?;
        let volumes: Vec<(i32, Member)> = self
            .volumes
            .into_iter()
            .map(|(number, (path, compression))| Ok((number, readable(path, compression)?)))
            .collect::<Result<_, SourceError>>()?;
        if volumes.is_empty() {
            return Err(missing(&base, "the archive has no data volume (.0)"));
        }
        // The index only saves time: one that cannot be read is none.
        let index = self.index.and_then(|(path, compression)| readable(path, compression).ok());
        Ok(ArchiveFiles { base, metadata, index, volumes })
    }
}

/// A file that this reader can expand.
fn readable(path: PathBuf, compression: Compression) -> Result<Member, SourceError> {
    if let Compression::Unsupported(suffix) = compression {
        return Err(SourceError::Specification {
            target: path.display().to_string(),
            message: format!(
                "files compressed as {suffix} are not supported (.xz and .zst are); expand it first"
            ),
        });
    }
    Ok(Member::File { path, compression })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_as_pcp_does() {
        let cases = [
            ("a.0", Some(("a", Kind::Volume(0), Compression::None))),
            ("a.12.xz", Some(("a", Kind::Volume(12), Compression::Xz))),
            ("a.meta.zst", Some(("a", Kind::Metadata, Compression::Zstd))),
            ("a.b.index", Some(("a.b", Kind::Index, Compression::None))),
            ("x.meta.bad.1", Some(("x.meta.bad", Kind::Volume(1), Compression::None))),
            ("a.meta.gz", Some(("a", Kind::Metadata, Compression::Unsupported(".gz")))),
            ("foo.tar.xz", None),
            ("foo", None),
            ("a.-1", None),
            ("a.99999999999", None),
        ];
        for (name, expected) in cases {
            let expected =
                expected.map(|(base, kind, how): (&str, _, _)| (base.as_bytes(), kind, how));
            assert_eq!(split_name(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn a_base_name_and_every_member_lead_to_the_same_archive() {
        let directory = tempfile::tempdir().expect("temporary directory");
        for name in [
            "b.0.xz",
            "b.2",
            "b.2.xz",
            "b.meta",
            "b.index.gz",
            "c.meta",
            "d.1",
            "e.0",
            "e.meta.bz2",
            "20180127.08.40.0",
            "20180127.08.40.meta",
        ] {
            std::fs::write(directory.path().join(name), b"").expect("a small file");
        }
        let find = |name: &str| ArchiveFiles::find(&directory.path().join(name));
        for name in ["b", "b.0", "b.0.xz", "b.2", "b.meta", "b.index", "b.index.gz"] {
            let files = find(name).expect(name);
            assert_eq!(files.base, directory.path().join("b"), "{name}");
            assert!(files.index.is_none(), "{name}");
            let volumes: Vec<_> = files.volumes.iter().map(|(n, m)| (*n, m.name())).collect();
            let path = |name: &str| directory.path().join(name).display().to_string();
            assert_eq!(volumes, [(0, path("b.0.xz")), (2, path("b.2"))], "{name}");
        }
        assert_eq!(
            find("20180127.08.40").expect("digits may be part of a base name").base,
            directory.path().join("20180127.08.40")
        );
        let failures = [
            ("b.9", PmStatus(-2), "No such file"),
            ("c", PmStatus::LOGFILE, "no data volume"),
            ("d", PmStatus::LOGFILE, "no metadata file"),
            ("e", PmStatus::GENERIC, ".bz2 are not supported"),
            ("b,c", PmStatus::GENERIC, "several archives"),
            ("", PmStatus::GENERIC, "directory"),
            ("b*", PmStatus::GENERIC, "wildcards"),
            ("none/b", PmStatus(-2), "No such file"),
        ];
        for (name, status, message) in failures {
            let error = find(name).expect_err(name);
            assert_eq!(error.status(), status, "{name}: {error}");
            assert!(error.to_string().contains(message), "{name}: {error}");
        }
        let error = ArchiveFiles::find(Path::new("")).expect_err("nothing is named");
        assert_eq!(error.status(), PmStatus::LOGFILE);
    }
}
