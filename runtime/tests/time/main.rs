//! Zones, intervals, points in time, windows and metrics as users write them, compared
//! with rows recorded from libpcp and with the libpcp of this machine.

mod metrics;
mod options;
mod oracle;
mod windows;
mod zones;

use std::path::Path;

use pmderive_testkit::oracle as program;

/// A file of rows recorded from libpcp.
fn golden(name: &str) -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pmapi").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
