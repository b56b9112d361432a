//! Variables of the environment that stand for options, see pmGetOptions(3),
//! as far as they choose the source. For the commands called after PCP's tools
//! only: those read them.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Stop;
use super::args::SourceArguments;
use crate::escape::Foreign;

impl SourceArguments {
    /// Takes over what variables say: `PCP_ARCHIVE` and `PCP_ARCHIVE_LIST`
    /// come before the archives of options, `PCP_HOST` is a host. With `-L`
    /// they do not count.
    ///
    /// # Errors
    /// Hosts and archives are chosen at once, or two hosts.
    pub fn add_environment(
        &mut self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<(), Stop> {
        if self.local {
            return Ok(());
        }
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let archives = ["PCP_ARCHIVE", "PCP_ARCHIVE_LIST"].map(set).into_iter().flatten();
        self.archive.splice(0..0, archives.map(PathBuf::from));
        if let Some(host) = set("PCP_HOST") {
            if let Some(given) = &self.host {
                return Err(Stop::tool(&[
                    &"too many hosts requested: ",
                    &Foreign(&given.to_string()),
                    &"; PCP_HOST asks for another one",
                ]));
            }
            let spec = host.to_string_lossy().parse();
            self.host = Some(spec.map_err(|error| Stop::tool(&[&"PCP_HOST: ", &error]))?);
        }
        if self.host.is_some() && !self.archive.is_empty() {
            return Err(Stop::tool(&[&"only one host or archive allowed"]));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(host: Option<&str>, archives: &[&str], variables: &[(&str, &str)]) -> String {
        let mut source = SourceArguments {
            host: host.map(|host| host.parse().expect("a host")),
            archive: archives.iter().map(PathBuf::from).collect(),
            ..SourceArguments::default()
        };
        let value = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        };
        match source.add_environment(value) {
            Err(stop) => stop.to_string(),
            Ok(()) => match (source.host.clone(), source.archives()) {
                (Some(host), None) => format!("host {host}"),
                (None, Some(archives)) => archives.display().to_string(),
                _ => "nothing".to_owned(),
            },
        }
    }

    #[test]
    fn variables_are_options_that_come_first() {
        let archive = ("PCP_ARCHIVE", "a");
        let host = ("PCP_HOST", "b.invalid");
        assert_eq!(chosen(None, &[], &[]), "nothing");
        assert_eq!(chosen(None, &[], &[("PCP_ARCHIVE", ""), ("PCP_HOST", "")]), "nothing");
        assert_eq!(chosen(None, &["c"], &[("PCP_ARCHIVE_LIST", "d,e"), archive]), "a,d,e,c");
        assert_eq!(chosen(None, &["a"], &[archive]), "a");
        assert_eq!(chosen(None, &[], &[host]), "host b.invalid");
        assert_eq!(chosen(Some("c.invalid"), &[], &[]), "host c.invalid");
        let both = "only one host or archive allowed";
        assert_eq!(chosen(None, &[], &[host, archive]), both);
        assert_eq!(chosen(None, &["c"], &[host]), both);
        assert_eq!(chosen(Some("c.invalid"), &[], &[archive]), both);
        assert!(chosen(Some("c.invalid"), &[], &[host]).contains("too many hosts requested"));
    }
}
