//! Archives of PCP's test suite: metrics of each, under options in turn.

use std::path::{Path, PathBuf};

use super::archive_runs::{self, Choice};
use super::comparison::Comparison;
use super::side_by_side::{SUITE, archives_of_suite};

/// Archives that are compared, unless all are.
const ARCHIVES: usize = 50;

/// The base names of the suite's archives, without those that are damaged on
/// purpose.
pub fn suite() -> Vec<PathBuf> {
    let folder = Path::new(SUITE).join("archives");
    let mut archives = archives_of_suite();
    archives.retain(|archive| archive.parent() == Some(&folder) && !archive.is_dir());
    archives
}

#[test]
fn archives_of_the_suite() {
    let Some(comparison) = Comparison::new() else { return };
    let all = suite();
    assert!(all.len() > ARCHIVES, "pcp-testsuite is not installed");
    let every = std::env::var_os("PMVAL_ARCHIVES").is_some_and(|value| value == "all");
    let count = if every { all.len() } else { ARCHIVES };
    let mut choice = Choice(1);
    let mut turn = 0;
    for position in 0..count {
        let base = &all[position * all.len() / count];
        for arguments in archive_runs::of(base, &mut choice, &mut turn) {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            comparison.add(&arguments);
        }
    }
    comparison.finish();
}
