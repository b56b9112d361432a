//! Unit tests of definitions.
//!
//! A test gives samples of metrics step by step, with gaps, counters that
//! start again, instances that come and go, and fetches that fail; and it says
//! what comes of them. A file of tests is TOML:
//!
//! ```toml
//! files = ["shop.conf"]           # definition files, from where this file is
//! definitions = '''               # and definitions
//! shop.twice = 2 * hinv.ncpu
//! '''
//! compat = "off"                  # as --compat of the commands
//! extensions = false              # as --extensions
//! metadata = "host.json"          # metrics as `pmderive deps --metadata` writes them
//! interval = "10 sec"             # between steps; 1 sec without it
//! tolerance = "0.1%"              # how near numbers have to be; exact without it
//!
//! [metrics]                       # and metrics; without `indom` they have one value
//! "hinv.ncpu" = { type = "u32", semantics = "discrete" }
//! "disk.dev.total" = { type = "u64", semantics = "counter", units = "count", indom = "disks" }
//!
//! [[case]]
//! name = "a disk that was not there before has no rate"
//! gaps = [3]                      # steps, from 0, before which a mark or reconnection lies
//! failures = [{ step = 5, error = "PM_ERR_IPC" }]     # fetches that fail
//! [case.samples]
//! "hinv.ncpu" = 4                 # the same at all steps
//! "disk.dev.total" = { sda = "100+50x7", "nvme 0" = "_x2 7 8x4" }
//! [case.expect]                   # names of definitions, or expressions
//! "shop.twice" = "8x5 PM_ERR_IPC 8"
//! "rate(disk.dev.total)" = { sda = "none(first-sample) 5x2 _ 5 PM_ERR_IPC _", "nvme 0" = "_x3 *x*" }
//!
//! [[rejected]]                    # a `definition` or an `expression` with this error
//! expression = "hinv.ncpu + disk.dev.total"
//! code = "PMD0202"
//! ```
//!
//! What an instance has at each step is a [`Timeline`]. An instance that is
//! not mentioned has no value; a metric without samples has none at all. What
//! is said of one instance about a failure (`PM_ERR_AGAIN`) or about no values
//! (`none`) is said of the whole metric; without instances,
//! `"shop.busy" = "none(gap) PM_ERR_AGAIN *"`.

mod compare;
mod document;
mod file;
mod run;
mod series;
mod timeline;

use std::path::Path;

use crate::diag::Diagnostics;
use crate::source::SourceMap;

pub use compare::Why;
pub use file::{Case, Expected, Rejected, Subject, TestFile, Written, read};
pub use run::{Failure, NamedBackend, Outcome, Report, run};
#[doc(hidden)]
pub use timeline::fuzz_timeline;
pub use timeline::{Item, MAX_STEPS, Number, Run, Timeline, TimelineError, Tolerance};

/// Reads any text as a file of tests, of which nothing is run.
///
/// # Panics
/// When a place of a mistake is not in the text.
#[doc(hidden)]
pub fn fuzz_test_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut sources = SourceMap::default();
    let source = sources.add("fuzz", text);
    let mut diagnostics = Diagnostics::default();
    let file = read(source, Path::new("/nonexistent"), &sources, &mut diagnostics);
    assert!(file.is_some() || diagnostics.errors() > 0, "{text:?}");
    for diagnostic in &diagnostics {
        let place = diagnostic.span.start as usize..diagnostic.span.end as usize;
        assert!(text.get(place).is_some(), "{diagnostic:?} in {text:?}");
    }
}
