//! The folio: a file that names the archives of a recording, for pmafm(1).

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use super::error::RecordError;

/// A folio that is being written.
#[derive(Debug)]
pub(super) struct Folio {
    pub path: PathBuf,
    pub file: File,
    /// Whether it names a replay configuration.
    pub has_replay: bool,
}

impl Folio {
    /// Writes who made it, where and when; `base` is the replay configuration.
    pub fn begin(
        &mut self,
        host: &str,
        time: &str,
        creator: &str,
        base: Option<&str>,
    ) -> Result<(), RecordError> {
        let replay = base.map(|base| format!(" {base}")).unwrap_or_default();
        self.write(&format!(
            "PCPFolio\nVersion: 1\n# use pmafm(1) to process this PCP Archive Folio\n#\n\
             Created: on {host} at {time}\nCreator: {creator}{replay}\n\
             {:<15} {:<23} Basename\n#\n",
            "#", "Host"
        ))
    }

    /// Writes the hosts with their archives.
    pub fn complete<'a>(
        &mut self,
        archives: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), RecordError> {
        let lines: String = archives
            .map(|(host, archive)| format!("{:<15} {host:<23} {archive}\n", "Archive:"))
            .collect();
        self.write(&lines)
    }

    fn write(&mut self, text: &str) -> Result<(), RecordError> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|source| RecordError::io(&self.path, source))
    }
}
