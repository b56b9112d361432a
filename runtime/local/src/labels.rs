//! Labels of this host and process: those that a pmcd on this host would give.
//!
//! Input: the names of the host, `/etc/machine-id`, and the files in which a
//! site adds labels of its own. Output: one label set of the context's level
//! (`pmGetContextLabels(3)`), and a warning for each file that is left out.
//! Agents give the labels of their metrics.

use std::io;
use std::path::{Path, PathBuf};

use pmderive_core::escape;
use pmderive_core::model::{LabelFlags, LabelMap, LabelSet, json_string};
use pmderive_system::bounded;
use pmderive_system::pcp_conf::PcpConf;

/// The flag that marks a label as one of the context's level.
const CONTEXT: LabelFlags = LabelFlags(1);

/// Largest size of a label file or of `labels.conf`, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 16;

/// The places that the host's labels come from.
#[derive(Debug)]
pub(super) struct HostLabels {
    /// `etc/machine-id` is below this directory.
    root: PathBuf,
    /// `labels.conf` and `labels/` are below this directory.
    settings: PathBuf,
}

/// The kernel's facts about host and process.
struct Facts {
    host: String,
    domain: String,
    user: u32,
    group: u32,
}

impl HostLabels {
    /// The usual places (`labels.conf(5)`).
    pub(super) fn usual() -> HostLabels {
        let settings = PcpConf::load().get("PCP_SYSCONF_DIR").unwrap_or_default();
        HostLabels { root: PathBuf::from("/"), settings: settings.into() }
    }

    /// The current labels, and the problems of files that were left out.
    pub(super) fn read(&self) -> (LabelSet, Vec<String>) {
        let names = rustix::system::uname();
        self.with(&Facts {
            host: names.nodename().to_string_lossy().into_owned(),
            domain: names.domainname().to_string_lossy().into_owned(),
            user: rustix::process::getuid().as_raw(),
            group: rustix::process::getgid().as_raw(),
        })
    }

    fn with(&self, facts: &Facts) -> (LabelSet, Vec<String>) {
        let mut warnings = Vec::new();
        let optional = LabelFlags(CONTEXT.0 | LabelFlags::OPTIONAL.0);
        let site = self.settings.join("labels");
        let mut sets = sets_of_folder(&site, CONTEXT, &mut warnings);
        sets.extend(sets_of_folder(&site.join("optional"), optional, &mut warnings));
        // The host's own labels override the labels in the site's files.
        sets.push(LabelSet::from_map(-1, &self.own(facts, optional)));
        (LabelSet::merged(&sets), warnings)
    }

    fn own(&self, facts: &Facts, optional: LabelFlags) -> LabelMap {
        let domain = match &*facts.domain {
            "" | "(none)" => "localdomain",
            domain => domain,
        };
        let mut labels = LabelMap::from([
            ("hostname".into(), (json_string(&facts.host).into(), CONTEXT)),
            ("domainname".into(), (json_string(domain).into(), CONTEXT)),
            ("userid".into(), (facts.user.to_string().into(), optional)),
            ("groupid".into(), (facts.group.to_string().into(), optional)),
        ]);
        if let Ok(text) = read_file(&self.root.join("etc/machine-id"))
            && let Some(id) = text.lines().next().map(str::trim).filter(|id| !id.is_empty())
        {
            let (name, id) = if self.hashes_machine() {
                ("machineid_sha256", sha256(id))
            } else {
                ("machineid", id.into())
            };
            labels.insert(name.into(), (json_string(&id).into(), CONTEXT));
        }
        labels
    }

    /// True if `labels.conf` asks for a hash in place of the machine's
    /// identifier.
    fn hashes_machine(&self) -> bool {
        let text = match read_file(&self.settings.join("labels.conf")) {
            Ok(text) => text,
            // It may ask for that.
            Err(error) => return error.kind() != io::ErrorKind::NotFound,
        };
        let mut global = true;
        let mut hashes = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                global = line == "[global]";
            } else if let Some((name, value)) = line.split_once('=')
                && global
                && name.trim() == "machineid_hash"
            {
                hashes = value.trim() == "sha256";
            }
        }
        hashes
    }
}

/// The labels of each file in a folder, in the order of file names. A missing
/// folder has no files.
fn sets_of_folder(folder: &Path, flags: LabelFlags, warnings: &mut Vec<String>) -> Vec<LabelSet> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| {
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !hidden && path.is_file()
    });
    files.sort_unstable();
    let read = |path: &PathBuf| {
        let text = read_file(path).map_err(|error| error.to_string())?;
        LabelSet::parse(&text, flags).map_err(|error| error.to_string())
    };
    let mut sets = Vec::new();
    for path in &files {
        match read(path) {
            Ok(set) => sets.push(set),
            Err(problem) => warnings
                .push(format!("{}: {problem}; its labels are left out", escape::path(&path))),
        }
    }
    sets
}

fn read_file(path: &Path) -> io::Result<String> {
    let bytes = bounded::read_file(path, MAX_FILE_BYTES)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_adds_labels_and_the_host_has_the_last_word() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for folder in ["etc", "labels/optional"] {
            std::fs::create_dir_all(path(folder)).expect("a folder");
        }
        let write = |name: &str, text: &str| std::fs::write(path(name), text).expect("a file");
        let labels = HostLabels { root: path(""), settings: path("") };
        let facts = |domain: &str| Facts {
            host: "web\"1".to_owned(),
            domain: domain.to_owned(),
            user: 7,
            group: 8,
        };
        let read = |domain: &str| {
            let (set, warnings) = labels.with(&facts(domain));
            (set.json().to_owned(), warnings)
        };
        let bare = r#"{"domainname":"localdomain","groupid":8,"hostname":"web\"1","userid":7}"#;
        assert_eq!(read("(none)"), (bare.to_owned(), vec![]));

        write("etc/machine-id", "3d1219c7c4c5404aaa1f6d2a48adfda4\n");
        write("labels/b", r#"{"hostname":"other","rack":{"row":2,"slot":1}}"#);
        write("labels/a", r#"{"rack":{"row":1}}"#);
        write("labels/c", "{\"wrong\"}");
        write("labels/.hidden", "{\"wrong\"}");
        write("labels/optional/a", r#"{"contact":"me"}"#);
        let (json, warnings) = read("example.com");
        let expected = r#"{"contact":"me","domainname":"example.com","groupid":8,"hostname":"web\"1","machineid":"3d1219c7c4c5404aaa1f6d2a48adfda4","rack.row":2,"rack.slot":1,"userid":7}"#;
        assert_eq!(json, expected);
        let file = path("labels/c");
        let warning =
            format!("{}: at byte 8: expected a colon; its labels are left out", file.display());
        assert_eq!(warnings, [warning]);
        let (set, _) = labels.with(&facts("x"));
        let flags: Vec<u8> = set.labels().map(|label| label.flags.0).collect();
        assert_eq!(flags, [0x81, 1, 0x81, 1, 1, 0x41, 0x41, 0x81]);

        write("labels.conf", "[global]\n#machineid_hash = none\nmachineid_hash = sha256\n[x]\n");
        let (json, _) = read("x");
        assert!(!json.contains("3d1219c7"));
        let hash = "0035969ec53f6e7f0fb40f08cc9ed4783aa99c2000cf1ebe4187c10dd0d8370f";
        assert!(json.contains(&format!("\"machineid_sha256\":\"{hash}\"")), "{json}");
    }
}
