//! The places of archives to test with, and the metrics in them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::model::Pmid;
use pmderive_runtime::source::{FetchList, MetadataSource};

/// An archive recorded for this project.
pub fn own(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/archives")).join(name)
}

/// An archive of PCP's test suite, from `archives` or `badarchives`. `None`
/// where the suite is not installed, which only a developer's machine may do.
pub fn installed(folder: &str, name: &str) -> Option<PathBuf> {
    installed_folder(folder).map(|folder| folder.join(name))
}

fn installed_folder(folder: &str) -> Option<PathBuf> {
    let path = Path::new("/var/lib/pcp/testsuite").join(folder);
    available(path.is_dir(), &path.display().to_string()).then_some(path)
}

/// Passes on whether something is there; where everything must be, its
/// absence is a failure.
pub fn available(present: bool, what: &str) -> bool {
    let required = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(present || !required, "{what} is not installed");
    if !present {
        eprintln!("SKIPPED: {what} is not installed");
    }
    present
}

/// The base names of all archives in a folder of PCP's test suite.
pub fn all_installed(folder: &str) -> Vec<PathBuf> {
    let Some(folder) = installed_folder(folder) else {
        return Vec::new();
    };
    let names = std::fs::read_dir(&folder).expect("the folder is there");
    let bases: BTreeSet<PathBuf> = names
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let (base, rest) = name.split_once(".meta")?;
            (rest.is_empty() || rest == ".xz").then(|| folder.join(base))
        })
        .collect();
    bases.into_iter().collect()
}

/// All metrics of an archive, in order of their identifiers, with all domains.
pub fn everything(context: &mut ArchiveContext) -> FetchList {
    let names = context.traverse("").expect("the root exists");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids = context.lookup_names(&names).expect("archives know their names");
    let pmids: BTreeSet<Pmid> = pmids.into_iter().map(|pmid| pmid.expect("a leaf")).collect();
    let pmids: Vec<Pmid> = pmids.into_iter().collect();
    let descs = context.lookup_descs(&pmids).expect("archives know their metrics");
    let domains: BTreeSet<_> =
        descs.into_iter().filter_map(|desc| desc.expect("it has a name").indom).collect();
    FetchList::new(pmids, domains.into_iter().collect())
}
