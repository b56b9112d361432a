//! Finds the files of an archive.
//!
//! Input: the base name of an archive, or the name of one of its files. Output: the
//! base name, and the paths of metadata, index and data volumes. This module opens no
//! file and looks at one archive at a time.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pmderive_core::escape;
use pmderive_core::model::PmStatus;
use pmderive_core::source::SourceError;

use crate::archive::bytes::Bytes;
use crate::archive::decompress::{Compression, Expansions};
use crate::archive::index::LARGEST_INDEX;
use crate::archive::positions::VolumeId;

/// One file of an archive, or its contents in memory.
#[derive(Clone, Debug)]
pub(super) enum Member {
    /// A file on disk.
    File { path: PathBuf, compression: Compression, expansions: Expansions },
    /// Bytes in memory, and a name for messages.
    #[cfg(any(test, feature = "fuzz"))]
    Memory { name: &'static str, bytes: std::sync::Arc<[u8]> },
}

impl Member {
    /// Name of the file, for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Member::File { path, .. } => escape::path(&path).into_owned(),
            #[cfg(any(test, feature = "fuzz"))]
            Member::Memory { name, .. } => (*name).to_string(),
        }
    }

    /// Path of the file; `None` for one in memory.
    pub(super) fn path(&self) -> Option<&PathBuf> {
        match self {
            Member::File { path, .. } => Some(path),
            #[cfg(any(test, feature = "fuzz"))]
            Member::Memory { .. } => None,
        }
    }

    /// False if no writer appends to it: compressed files and memory.
    pub(super) fn can_grow(&self) -> bool {
        matches!(self, Member::File { compression: Compression::None, .. })
    }

    /// Size in bytes as stored, compressed or not.
    pub(super) fn size_on_disk(&self) -> io::Result<u64> {
        match self {
            Member::File { path, .. } => Ok(path.metadata()?.len()),
            #[cfg(any(test, feature = "fuzz"))]
            Member::Memory { bytes, .. } => Ok(bytes.len() as u64),
        }
    }

    /// Opens the file, also if it was compressed since it was found.
    pub(super) fn open(&self) -> io::Result<Box<dyn Bytes>> {
        match self {
            Member::File { path, compression, expansions } => {
                match expansions.open(path, *compression) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        let (path, compression) = Compression::of_missing(path).ok_or(error)?;
                        expansions.open(&path, compression)
                    }
                    opened => opened,
                }
            }
            #[cfg(any(test, feature = "fuzz"))]
            Member::Memory { bytes, .. } => Ok(Box::new(bytes.clone())),
        }
    }
}

/// The files of one archive.
#[derive(Clone, Debug)]
pub(super) struct ArchiveFiles {
    /// Path of the archive without suffixes.
    pub(super) base: PathBuf,
    pub(super) metadata: Member,
    pub(super) index: Option<Member>,
    /// Data volumes with their numbers, in ascending order. There is at least one.
    pub(super) volumes: Vec<(i32, Member)>,
}

/// The kind of a file of an archive, according to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Metadata,
    Index,
    Volume(i32),
}

/// Splits the name of a file of an archive into base name, kind and compression. `None`
/// for other names.
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

/// The base name of the archive that a file belongs to, according to the file's name
/// (`__pmLogBaseName(3)`). `None` for names of other files.
pub fn base_of_file(path: &Path) -> Option<PathBuf> {
    let (base, ..) = split_name(path.file_name()?.as_bytes())?;
    Some(path.with_file_name(OsStr::from_bytes(base)))
}

/// True if `name` belongs to a file of the archive with this base name.
pub(crate) fn is_file_of(name: &[u8], base: &[u8]) -> bool {
    split_name(name).is_some_and(|(stem, ..)| stem == base)
}

impl ArchiveFiles {
    /// Finds the archive that `path` names by its base name or one of its files.
    /// `listing` is that of its directory.
    pub(super) fn find(path: &Path, listing: &Listing) -> Result<ArchiveFiles, SourceError> {
        let name = path.file_name().map(OsStr::as_bytes).unwrap_or_default();
        let base = listing.base_of(name);
        let mut found = FoundFiles::default();
        for (entry, kind, compression) in listing.files.get(base).into_iter().flatten() {
            found.add(*kind, path.with_file_name(entry), *compression);
        }
        if !found.is_empty() {
            return found.finish(path.with_file_name(OsStr::from_bytes(base)), &listing.expansions);
        }
        let absent = rustix::io::Errno::NOENT;
        let message = if path.exists() {
            "this is neither an archive nor a file of one"
        } else if name.iter().any(|byte| b"*?[".contains(byte)) {
            "no archive has exactly this name, and as a pattern it matches none"
        } else {
            return Err(SourceError::Io {
                target: escape::path(&path).into_owned(),
                source: absent.into(),
            });
        };
        Err(SourceError::NotFound {
            target: escape::path(&path).into_owned(),
            status: PmStatus(-absent.raw_os_error()),
            message: message.to_owned(),
        })
    }

    /// All data volumes, from the first one to the last one.
    pub(super) fn volume_ids(&self) -> impl DoubleEndedIterator<Item = VolumeId> + use<> {
        (0..self.volumes.len()).map(VolumeId::at)
    }

    /// The volume after the last known one, if a writer has begun it meanwhile.
    pub(super) fn next_volume(&self) -> Option<(i32, Member)> {
        self.volume_after(self.volumes.last()?.0)
    }

    /// The volume after volume `number`, if it exists by now.
    pub(super) fn volume_after(&self, number: i32) -> Option<(i32, Member)> {
        let number = number.checked_add(1)?;
        let mut path = self.base.clone().into_os_string();
        path.push(format!(".{number}"));
        let path = PathBuf::from(path);
        let (compression, expansions) = (Compression::None, Expansions::default());
        let member = Member::File { path, compression, expansions };
        let exists = member.path().is_some_and(|path| path.is_file());
        exists.then_some((number, member))
    }
}

/// The files of archives in a directory.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// For each base name: the files' names, kinds and compressions.
    files: HashMap<Vec<u8>, Vec<(OsString, Kind, Compression)>>,
    /// Expansions of compressed files, which all archives share.
    expansions: Expansions,
}

impl Listing {
    /// Reads a directory. Each compressed file in it may expand to `max_expanded`
    /// bytes.
    pub(super) fn read(
        directory: &Path,
        max_expanded: Option<u64>,
    ) -> Result<Listing, SourceError> {
        let expansions = Expansions::within(max_expanded);
        let mut listing = Listing { expansions, ..Listing::default() };
        let read = std::fs::read_dir(directory).and_then(|mut entries| {
            entries.try_for_each(|entry| {
                let name = entry?.file_name();
                if let Some((base, kind, compression)) = split_name(name.as_bytes()) {
                    let files = listing.files.entry(base.to_vec()).or_default();
                    files.push((name, kind, compression));
                }
                Ok(())
            })
        });
        let target = || escape::path(&directory).into_owned();
        read.map_err(|source| SourceError::Io { target: target(), source })?;
        Ok(listing)
    }

    /// Base names of all archives with metadata, in ascending order.
    pub(super) fn archives(&self) -> Vec<PathBuf> {
        let has_metadata = |files: &[(OsString, Kind, Compression)]| {
            files.iter().any(|(_, kind, _)| *kind == Kind::Metadata)
        };
        let bases = self.files.iter().filter(|(_, files)| has_metadata(files));
        let mut bases: Vec<_> =
            bases.map(|(base, _)| PathBuf::from(OsStr::from_bytes(base))).collect();
        bases.sort_unstable();
        bases
    }

    /// The base name that `name` stands for. That is `name` itself, unless it is the
    /// name of an existing file, with or without the suffix of its compression.
    fn base_of<'a>(&self, name: &'a [u8]) -> &'a [u8] {
        let Some((base, _, compression)) = split_name(name) else { return name };
        let mut files = self.files.get(base).into_iter().flatten();
        let is_there = files.any(|(file, ..)| {
            let file = file.as_bytes();
            file == name || compression == Compression::None && Compression::of_name(file).0 == name
        });
        if is_there { base } else { name }
    }
}

pub(super) fn missing(path: &Path, message: &str) -> SourceError {
    SourceError::Damaged {
        target: escape::path(&path).into_owned(),
        status: PmStatus::LOGFILE,
        message: message.to_string(),
    }
}

/// The error for a name that stands for no archive.
pub(super) fn not_found(name: &Path, message: &str) -> SourceError {
    SourceError::NotFound {
        target: escape::path(&name).into_owned(),
        status: PmStatus::LOGFILE,
        message: message.to_owned(),
    }
}

/// Files of one archive, found while its directory is read.
#[derive(Default)]
struct FoundFiles {
    metadata: Option<(PathBuf, Compression)>,
    index: Option<(PathBuf, Compression)>,
    volumes: std::collections::BTreeMap<i32, Option<(PathBuf, Compression)>>,
}

impl FoundFiles {
    fn is_empty(&self) -> bool {
        self.metadata.is_none() && self.index.is_none() && self.volumes.is_empty()
    }

    /// Adds a file. A plain file takes precedence over a compressed one; among
    /// compressed files, the first name does.
    fn add(&mut self, kind: Kind, path: PathBuf, compression: Compression) {
        let slot = match kind {
            Kind::Metadata => &mut self.metadata,
            Kind::Index => &mut self.index,
            Kind::Volume(number) => self.volumes.entry(number).or_default(),
        };
        let rank = |path: &PathBuf, how: Compression| (how != Compression::None, path.clone());
        if slot.as_ref().is_none_or(|(old, how)| rank(&path, compression) < rank(old, *how)) {
            *slot = Some((path, compression));
        }
    }

    fn finish(self, base: PathBuf, expansions: &Expansions) -> Result<ArchiveFiles, SourceError> {
        let expanded =
            |(path, compression), expansions| Member::File { path, compression, expansions };
        let member = |found| expanded(found, expansions.clone());
        let index = self.index.map(|found| expanded(found, expansions.up_to(LARGEST_INDEX)));
        let Some(metadata) = self.metadata.map(member) else {
            return Err(missing(&base, "the archive has no metadata file (.meta)"));
        };
        let volumes = self.volumes.into_iter();
        let volumes: Vec<(i32, Member)> =
            volumes.filter_map(|(number, found)| Some((number, member(found?)))).collect();
        if volumes.is_empty() {
            return Err(missing(&base, "the archive has no data volume (.0)"));
        }
        Ok(ArchiveFiles { base, metadata, index, volumes })
    }
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
            ("a.meta.gz", Some(("a", Kind::Metadata, Compression::Gzip))),
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
            "e.meta.Z",
            "readme",
            "20180127.08.40.0",
            "20180127.08.40.meta",
        ] {
            std::fs::write(directory.path().join(name), b"").expect("a small file");
        }
        let find = |name: &str| {
            let path = directory.path().join(name);
            ArchiveFiles::find(&path, &Listing::read(path.parent().expect("a folder"), None)?)
        };
        for name in ["b", "b.0", "b.0.xz", "b.2", "b.meta", "b.index", "b.index.gz"] {
            let files = find(name).expect(name);
            assert_eq!(files.base, directory.path().join("b"), "{name}");
            let index = files.index.map(|index| index.name());
            assert!(index.is_some_and(|index| index.ends_with("b.index.gz")), "{name}");
            let volumes: Vec<_> = files.volumes.iter().map(|(n, m)| (*n, m.name())).collect();
            let path = |name: &str| directory.path().join(name).display().to_string();
            assert_eq!(volumes, [(0, path("b.0.xz")), (2, path("b.2"))], "{name}");
        }
        assert_eq!(
            find("20180127.08.40").expect("digits may be part of a base name").base,
            directory.path().join("20180127.08.40")
        );
        // Among two compressed files, the first name counts.
        assert!(find("e").expect("complete").metadata.name().ends_with("e.meta.Z"));
        let failures = [
            ("b.9", PmStatus(-2), "No such file"),
            ("c", PmStatus::LOGFILE, "no data volume"),
            ("d", PmStatus::LOGFILE, "no metadata file"),
            ("b*", PmStatus(-2), "as a pattern"),
            ("readme", PmStatus(-2), "nor a file of one"),
            ("none/b", PmStatus(-2), "No such file"),
        ];
        for (name, status, message) in failures {
            let error = find(name).expect_err(name);
            assert_eq!(error.status(), status, "{name}: {error}");
            assert!(error.to_string().contains(message), "{name}: {error}");
        }
        let listing = Listing::read(directory.path(), None).expect("a folder");
        let archives = ["20180127.08.40", "b", "c", "e"].map(PathBuf::from);
        assert_eq!(listing.archives(), archives);
    }
}
