//! Files of time zones, see tzfile(5).
//!
//! Finds the file of a name and lets a crate read it. The name may come from a
//! peer or an archive, so it must not lead anywhere else; the bytes may be
//! anybody's as well.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

use jiff::tz::TimeZone;

use super::posix::Period;

/// Where the files are, if `TZDIR` does not say.
const FOLDER: &str = "/usr/share/zoneinfo";

/// The zone of this machine.
pub(super) const LOCAL: &str = "/etc/localtime";

/// Largest file that is read; the largest that exist have 4 kilobytes.
const MAX_FILE_BYTES: u64 = 1 << 18;

/// The zone of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ZoneFile(TimeZone);

impl ZoneFile {
    /// Reads the file of a name such as `Europe/Paris`, or of the absolute path
    /// of this machine's zone. `None` if there is none, it is no zone file, or
    /// the name leads elsewhere.
    pub fn open(name: &str) -> Option<ZoneFile> {
        let folder = std::env::var_os("TZDIR").filter(|folder| !folder.is_empty());
        let folder = folder.map_or_else(|| PathBuf::from(FOLDER), PathBuf::from);
        let path = folder.join(name);
        if name.contains('\0') || path.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        if !path.starts_with(&folder) && path != Path::new(LOCAL) {
            return None;
        }
        // Not every path may be opened: a pipe would wait for its other end.
        if !std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            return None;
        }
        let mut bytes = Vec::new();
        std::fs::File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
        ZoneFile::parse(&bytes)
    }

    /// The zone in a file's bytes.
    pub fn parse(bytes: &[u8]) -> Option<ZoneFile> {
        TimeZone::tzif("", bytes).ok().map(ZoneFile)
    }

    /// What holds at a second since the epoch; before and after the years that
    /// the crate knows, what holds at their ends.
    pub fn at(&self, second: i64) -> Period<'static> {
        let [first, last] = [jiff::Timestamp::MIN, jiff::Timestamp::MAX];
        let second = second.clamp(first.as_second(), last.as_second());
        let found = self.0.to_offset_info(jiff::Timestamp::from_second(second).unwrap_or(last));
        Period {
            offset: found.offset().seconds(),
            is_dst: found.dst().is_dst(),
            abbreviation: found.abbreviation().to_owned().into(),
        }
    }
}
