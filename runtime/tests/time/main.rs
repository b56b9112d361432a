//! Zones, intervals, points in time, windows and metrics as people write them, against
//! rows recorded from libpcp and the libpcp of this machine.

#[path = "../shared/choices.rs"]
mod choices;
mod metrics;
mod options;
mod oracle;
#[path = "../shared/oracle.rs"]
mod program;
mod windows;
mod zones;

use std::path::Path;

use choices::Choices;

/// A file of rows recorded from libpcp.
fn golden(name: &str) -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pmapi").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

impl Choices {
    /// One of a list.
    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}
