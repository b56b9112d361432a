//! The promises of readers of process files about any bytes, for fuzzers.

use pmderive_core::model::Timestamp;
use pmderive_core::result::{ResultPart, ResultWriter};

use super::*;

/// Reads `data` as each kind of process file, and as the files of users and
/// groups. For fuzzing.
pub fn fuzz_process_files(data: &[u8]) {
    let mut files = Files::new("/nonexistent".into());
    files.substitute(data.to_vec());
    let mut accounts = Accounts::default();
    accounts.read(&mut files);
    let everything = InstanceProfile::default();
    let mut part = ResultPart::default();
    let mut writer = ResultWriter::new(&mut part, Timestamp::default());
    for (row, metric) in TABLE.iter().zip(metrics(TABLE)) {
        let mut out = Values::new(&mut writer, metric.desc, &everything);
        values::put(&row.value, data, &accounts, 1, &mut out);
        // A value of another type than the metric's would give a status here.
        out.finish(Ok(()));
    }
    assert!(part.sets().all(|set| set.count.is_ok_and(|count| count <= 1)));
    let _ = values::state_of(data);
}
