//! PCP's own agents, which `pminfo -L` loads into its process without a pmcd.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use crate::render::Rendered;

/// PCP with files of its own: the name space that its packages define, and
/// nowhere the numbers that its agents gave to instances before.
pub struct Pcp {
    directory: tempfile::TempDir,
    /// The option `-K` of `pminfo` for the agent.
    agent: String,
}

impl Pcp {
    /// PCP with one agent. `None` where it is not installed; nothing is
    /// compared then, which must not happen where the whole suite is meant to
    /// run.
    pub fn with_agent(domain: u32, name: &str) -> Option<Pcp> {
        let object = format!("/var/lib/pcp/pmdas/{name}/pmda_{name}.so");
        if !Path::new(&object).exists() {
            assert!(std::env::var_os("CI").is_none(), "PCP is not installed");
            eprintln!("NOT RUN: {object} is not installed");
            return None;
        }
        // The name of the entry point comes after that of the file.
        let agent = format!("add,{domain},{object},{name}_init");
        let directory = tempfile::tempdir().expect("a directory");
        let name_space = directory.path().join("pmns");
        fs::create_dir(&name_space).expect("a directory");
        for entry in fs::read_dir("/var/lib/pcp/pmns").expect("PCP's name space").flatten() {
            // All parts except those that are built from the others.
            if !["root", "root.prev", "stdpmid", ".NeedRebuild"]
                .iter()
                .any(|built| entry.file_name() == *built)
            {
                fs::copy(entry.path(), name_space.join(entry.file_name())).expect("a copy");
            }
        }
        symlink("/var/lib/pcp/pmdas", directory.path().join("pmdas")).expect("a link");
        let mut rebuild = Command::new(name_space.join("Rebuild"));
        rebuild.current_dir(&name_space).env("PCP_VAR_DIR", directory.path());
        let output = rebuild.output().expect("Rebuild runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // The names of agents that are not installed with the packages.
        let names = format!("/var/lib/pcp/pmdas/{name}/pmns");
        if let Ok(names) = fs::read_to_string(&names) {
            let symbol = format!("{}:", name.to_uppercase());
            let part = directory.path().join("part");
            fs::write(&part, names.replace(&symbol, &format!("{domain}:"))).expect("a file");
            let mut add = Command::new("/usr/lib/pcp/bin/pmnsadd");
            add.arg("-n").arg(name_space.join("root")).arg(part).current_dir(&name_space);
            let output = add.env("PCP_VAR_DIR", directory.path()).output().expect("pmnsadd runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        Some(Pcp { directory, agent })
    }

    /// `pminfo`'s output about metrics, in our form.
    pub fn pminfo(&self, root: &Path, names: &[String]) -> BTreeMap<String, Rendered> {
        // One metric at a time: if a file is missing, an agent fails a whole fetch.
        let text = self.printed(root, &["-b", "1", "-d", "-m", "-f"], names);
        paragraphs(&text, names).into_iter().filter_map(metric).collect()
    }

    /// The output of `pminfo` with these options.
    pub fn printed(&self, root: &Path, options: &[&str], names: &[String]) -> String {
        let numbers = self.directory.path().join("config");
        if numbers.exists() {
            fs::remove_dir_all(&numbers).expect("removed");
        }
        fs::create_dir_all(numbers.join("pmda")).expect("a directory");
        // pmdalinux has room for so many processors.
        let processors = available_parallelism().map_or(8, |number| number.get().max(8));
        let output = Command::new("pminfo")
            .args(["-L", "-K", "clear", "-K", &self.agent])
            .args(options)
            .args(names)
            .env("PCP_VAR_DIR", self.directory.path())
            .env("PCP_DERIVED_CONFIG", "")
            .env("LINUX_STATSPATH", root)
            .env("LINUX_NCPUS", processors.to_string())
            .output()
            .expect("pminfo runs");
        output.stdout.iter().copied().map(char::from).collect()
    }
}

/// pminfo's output for each metric. Arguments of a process may contain empty
/// lines, so only one before a metric's name separates two metrics.
fn paragraphs<'t>(text: &'t str, names: &[String]) -> Vec<&'t str> {
    let mut starts = Vec::new();
    for (end, gap) in text.match_indices("\n\n") {
        let start = end + gap.len();
        let name = text[start..].split_once(" PMID: ").map_or("", |(name, _)| name);
        if names.iter().any(|known| known == name) {
            starts.push(start);
        }
    }
    let ends = starts.iter().copied().skip(1).chain([text.len()]);
    let first = text[..starts.first().copied().unwrap_or(text.len())].trim_matches('\n');
    let mut paragraphs = vec![first];
    paragraphs.extend(starts.iter().zip(ends).map(|(start, end)| &text[*start..end]));
    paragraphs
}

/// A paragraph of pminfo's output.
fn metric(paragraph: &str) -> Option<(String, Rendered)> {
    let mut lines = paragraph.trim_matches('\n').lines();
    let (name, pmid) = lines.next()?.split_once(' ')?;
    let description = [pmid, lines.next()?, lines.next()?].join("\n");
    let values = lines.map(str::to_owned).collect();
    Some((name.to_owned(), Rendered { name: name.to_owned(), description, values }))
}
