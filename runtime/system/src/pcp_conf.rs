//! PCP's settings of this machine, see pcp.conf(5).
//!
//! A setting is looked up in the environment, then in the configuration file,
//! then among the defaults of a usual installation. The file is
//! `/etc/pcp.conf`, or the one that `PCP_CONF` names, or the one below
//! `PCP_DIR`.
//!
//! Three differences from libpcp: the environment is never changed, an empty
//! variable counts as missing, and a missing file does not end the program.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::bounded;

/// Defaults for settings that neither the environment nor the file has.
const DEFAULTS: &[(&str, &str)] = &[
    ("PCP_ETC_DIR", "/etc"),
    ("PCP_LOG_DIR", "/var/log/pcp"),
    ("PCP_RUN_DIR", "/run/pcp"),
    ("PCP_SYSCONF_DIR", "/etc/pcp"),
    ("PCP_TLSCONF_PATH", "/etc/pcp/tls.conf"),
    ("PCP_TMP_DIR", "/var/lib/pcp/tmp"),
    ("PCP_VAR_DIR", "/var/lib/pcp"),
];

/// Largest configuration file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The settings of a configuration file.
#[derive(Clone, Debug, Default)]
pub struct PcpConf {
    settings: HashMap<String, String>,
}

impl PcpConf {
    /// Reads the configuration file of this machine. Without a file there are
    /// only the environment and the defaults.
    pub fn load() -> PcpConf {
        PcpConf::read().unwrap_or_default()
    }

    fn read() -> std::io::Result<PcpConf> {
        let path = std::env::var_os("PCP_CONF").map_or_else(
            || {
                let top = std::env::var_os("PCP_DIR").unwrap_or_default();
                let mut path = PathBuf::from(if top.is_empty() { "/".into() } else { top });
                path.push("etc/pcp.conf");
                path
            },
            PathBuf::from,
        );
        let bytes = bounded::read_file(&path, MAX_FILE_BYTES)?;
        Ok(PcpConf::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// The settings in the text of a file: lines of `NAME=value`, with optional
    /// quotes around the value. Other lines are comments. Blanks belong to name
    /// and value. The first line of a name counts.
    pub fn parse(text: &str) -> PcpConf {
        let mut settings = HashMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.split_once('=') else { continue };
            let quoted = ['"', '\''].into_iter().find_map(|quote| {
                value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote))
            });
            let value = quoted.unwrap_or(value).to_owned();
            settings.entry(name.to_owned()).or_insert(value);
        }
        PcpConf { settings }
    }

    /// A setting (`pmGetOptionalConfig(3)`). The environment comes first.
    /// `None` where `pmGetConfig(3)` gives an empty text.
    pub fn get(&self, name: &str) -> Option<String> {
        let set = std::env::var(name).ok().filter(|value| !value.is_empty());
        set.or_else(|| self.settings.get(name).cloned()).or_else(|| {
            let found = DEFAULTS.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_names_and_values() {
        let text = "# comment\n\nPCP_TEST_A=/a b \nPCP_TEST_B=\"x y\"\nnothing\n\
                    PCP_TEST_A=second\n PCP_TEST_C=1\nPCP_TEST_D=\"x\" \nPCP_TEST_E='a\"b'\n\
                    #PCP_TEST_F=1\nPCP_TEST_G=\n";
        let conf = PcpConf::parse(text);
        for (name, expected) in [
            ("PCP_TEST_A", Some("/a b ")),
            ("PCP_TEST_B", Some("x y")),
            ("PCP_TEST_C", None),
            ("PCP_TEST_D", Some("\"x\" ")),
            ("PCP_TEST_E", Some("a\"b")),
            ("PCP_TEST_F", None),
            ("PCP_TEST_G", Some("")),
        ] {
            assert_eq!(conf.get(name).as_deref(), expected, "{name}");
        }
        assert!(PcpConf::default().get("PCP_RUN_DIR").is_some());
    }
}
