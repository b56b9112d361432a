//! Time zone files, see tzfile(5).
//!
//! This module finds the file of a name and lets a crate read it. The name may
//! come from a peer or an archive, so it must not lead out of the folder. The
//! bytes need not be trustworthy either.

use std::path::{Component, Path, PathBuf};

use jiff::tz::TimeZone;

use super::posix::{Period, PosixZone};
use crate::bounded;

/// The folder of the files, unless `TZDIR` names another.
const FOLDER: &str = "/usr/share/zoneinfo";

/// The file of this machine's zone.
pub(super) const LOCAL: &str = "/etc/localtime";

/// Largest file that is read, in bytes. The largest real files have 4
/// kilobytes.
const MAX_FILE_BYTES: u64 = 1 << 18;

/// The zone in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ZoneFile(TimeZone);

impl ZoneFile {
    /// Reads the file with a name such as `Europe/Paris`, or with the absolute
    /// path of this machine's zone. `None` if there is no file, the file is not
    /// a zone file, or the name leads out of the folder.
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
        // Opening a pipe would wait for its other end.
        if !std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            return None;
        }
        ZoneFile::parse(&bounded::read_file(&path, MAX_FILE_BYTES).ok()?)
    }

    /// The zone in a file's bytes.
    pub fn parse(bytes: &[u8]) -> Option<ZoneFile> {
        TimeZone::tzif("", bytes).ok().map(ZoneFile)
    }

    /// The period at a second since the epoch. Times outside the crate's range
    /// count as its first or last time.
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

/// The zone of a file as text that needs no such file: the name that a link to the
/// folder has, as in `:Europe/Vienna`, or else the rules at the file's end.
pub(super) fn portable(path: &Path) -> Option<String> {
    // Without the file, or without the target of a link, the zone is UTC.
    let Ok(bytes) = std::fs::read(path) else { return Some("UTC".to_owned()) };
    let target = std::fs::read_link(path).unwrap_or_default();
    if let Some((_, name)) = target.to_str().and_then(|target| target.rsplit_once("/zoneinfo/"))
        && !name.ends_with("localtime")
    {
        return Some(format!(":{}", name.trim_start_matches("posix/")));
    }
    let rules = bytes.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
    let rules = std::str::from_utf8(rules).ok()?;
    PosixZone::parse(rules).is_zone().then(|| rules.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_told_without_its_file() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let local = folder.path().join("localtime");
        assert_eq!(portable(&local).as_deref(), Some("UTC"));
        let zones = folder.path().join("zoneinfo/posix/Europe");
        std::fs::create_dir_all(&zones)?;
        std::fs::write(zones.join("Vienna"), "")?;
        std::os::unix::fs::symlink("posix/Europe", folder.path().join("zoneinfo/Europe"))?;
        for (target, expected) in [
            ("./zoneinfo/Europe/Vienna", ":Europe/Vienna"),
            ("./zoneinfo/../zoneinfo/posix/Europe/Vienna", ":Europe/Vienna"),
            ("./zoneinfo/Europe/Nowhere", "UTC"),
        ] {
            std::os::unix::fs::symlink(target, &local)?;
            assert_eq!(portable(&local).as_deref(), Some(expected));
            std::fs::remove_file(&local)?;
        }
        for (bytes, expected) in [
            (&b"TZif2\0\n\0\nCET-1CEST,M3.5.0,M10.5.0/3\n"[..], Some("CET-1CEST,M3.5.0,M10.5.0/3")),
            (b"TZif2\0\n\n", None),
            (b"TZif\0\0", None),
        ] {
            std::fs::write(&local, bytes)?;
            assert_eq!(portable(&local).as_deref(), expected);
        }
        Ok(())
    }
}
