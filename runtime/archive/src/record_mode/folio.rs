//! Writes and reads folios. A folio is a file that names the archives of a recording,
//! for pmafm(1).

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pmderive_core::escape;

use super::error::RecordError;

/// A folio that is being written.
#[derive(Debug)]
pub(super) struct Folio {
    pub path: PathBuf,
    pub file: File,
    /// True if the folio names a replay configuration.
    pub has_replay: bool,
}

impl Folio {
    /// Writes the header: host, time, creator, and `base`, the replay configuration.
    pub fn begin(
        &mut self,
        host: &str,
        time: &str,
        creator: &str,
        base: Option<&str>,
    ) -> Result<(), RecordError> {
        self.write(&header(host, time, creator, base))
    }

    /// Writes the hosts with their archives.
    pub fn complete<'a>(
        &mut self,
        archives: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), RecordError> {
        self.write(&entries(archives))
    }

    fn write(&mut self, text: &str) -> Result<(), RecordError> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|source| RecordError::io(&self.path, source))
    }
}

pub(super) fn header(host: &str, time: &str, creator: &str, base: Option<&str>) -> String {
    let replay = base.map(|base| format!(" {base}")).unwrap_or_default();
    format!(
        "PCPFolio\nVersion: 1\n# use pmafm(1) to process this PCP Archive Folio\n#\n\
         Created: on {host} at {time}\nCreator: {creator}{replay}\n\
         {:<15} {:<23} Basename\n#\n",
        "#", "Host"
    )
}

pub(super) fn entries<'a>(archives: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    archives.map(|(host, archive)| format!("{:<15} {host:<23} {archive}\n", "Archive:")).collect()
}

/// Maximum size of a folio in bytes. Each line names an archive.
const LONGEST: u64 = 1 << 20;

/// The archives that a folio names. They are in the folio's folder.
///
/// # Errors
/// The file cannot be read or is not a folio. The text is libpcp's.
pub fn archives_of_folio(path: &Path) -> Result<Vec<PathBuf>, String> {
    let mut text = Vec::new();
    let file = File::open(path).map_err(|error| {
        let status = RecordError::io(path, error).status();
        format!("cannot open archive folio {}: {status}", escape::path(&path))
    })?;
    // A file that cannot be read is reported as one without a header.
    let _ = file.take(LONGEST).read_to_end(&mut text);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    parse(&text, &escape::path(&path), folder)
}

pub(super) fn parse(text: &[u8], path: &str, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').zip(1..);
    match lines.next() {
        None => return Err(format!("archive folio {path} has no header")),
        Some((line, _)) if line.starts_with(b"PCPFolio") => {}
        Some(_) => return Err(format!("archive folio {path} has bad magic")),
    }
    match lines.next() {
        None => return Err(format!("archive folio {path} has no version")),
        Some((line, _)) if line.starts_with(b"Version: 1") => {}
        Some(_) => return Err(format!("unknown version archive folio {path}")),
    }
    let mut archives = Vec::new();
    for (line, number) in lines {
        let Some(rest) = line.strip_prefix(b"Archive:") else { continue };
        let mut words = rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        // Text directly after the colon belongs to the keyword.
        if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            words.next();
        }
        let missing = |what| format!("missing {what} on archive folio line {number}");
        words.next().ok_or_else(|| missing("host"))?;
        let archive = words.next().ok_or_else(|| missing("path"))?;
        archives.push(folder.join(OsStr::from_bytes(archive)));
    }
    Ok(archives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folios_name_archives() {
        for (text, expected) in [
            ("", Err("archive folio F has no header")),
            ("x\n", Err("archive folio F has bad magic")),
            ("PCPFolio\n", Err("archive folio F has no version")),
            ("PCPFolio\n\nVersion: 1\n", Err("unknown version archive folio F")),
            ("PCPFolio\nVersion: 1\n", Ok("")),
            ("PCPFolio\nVersion: 1\nArchive:\nx", Err("missing host on archive folio line 3")),
            ("PCPFolio\nVersion: 1\n\nArchive: a ", Err("missing path on archive folio line 4")),
            ("PCPFolio\nVersion: 1\nArchive:a b\n", Err("missing path on archive folio line 3")),
            (
                "PCPFolio\nVersion: 1\n# x\nArchive: a b\n Archive: c d\nArchive:\te /f g",
                Ok("./b /f"),
            ),
        ] {
            let archives = parse(text.as_bytes(), "F", Path::new("."));
            let archives = archives.map(|archives| {
                let archives: Vec<_> =
                    archives.iter().map(|archive| escape::path(archive).into_owned()).collect();
                archives.join(" ")
            });
            assert_eq!(archives.as_deref().map_err(String::as_str), expected, "{text:?}");
        }
    }
}
