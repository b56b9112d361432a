//! The promises of readers of the kernel's files about any bytes, for fuzzers.

use std::collections::HashSet;

use pmderive_core::model::{InstanceProfile, Timestamp};
use pmderive_core::result::{ResultPart, ResultWriter};

use super::*;

/// Reads `data`, then its first half, as each file that the agent parses, and
/// checks that no instance has two values. For fuzzing.
pub fn fuzz_linux_files(data: &[u8]) {
    let mut agent = LinuxAgent::with_root("/nonexistent");
    let everything = InstanceProfile::default();
    for contents in [data, &data[..data.len() / 2]] {
        agent.files.substitute(contents.to_vec());
        agent.begin_fetch();
        let mut part = ResultPart::default();
        let mut writer = ResultWriter::new(&mut part, Timestamp::default());
        for metric in agent.metrics() {
            let mut values = Values::new(&mut writer, metric.desc, &everything);
            let outcome = agent.fetch(metric.desc.pmid, &mut values);
            values.finish(outcome);
            if let Some(indom) = metric.desc.indom {
                assert!(agent.instance_domain(indom).is_ok());
            }
        }
        for set in part.sets() {
            let mut seen = HashSet::new();
            assert!(set.instances().all(|instance| seen.insert(instance)), "{}: {set:?}", set.pmid);
        }
    }
}
