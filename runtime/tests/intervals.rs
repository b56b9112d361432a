//! Intervals as text, compared with libpcp's reading of them.

use std::path::Path;
use std::time::Duration;

use pmderive_runtime::model::parse_interval;
use serde_json::Value;

#[test]
fn intervals_are_read_as_by_libpcp() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pmapi/intervals.json");
    let data: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rows = data["tables"]["rows"]["rows"].as_array().unwrap();
    assert!(rows.len() > 200, "{}", rows.len());
    for row in rows {
        let text = row[0].as_str().unwrap();
        match (parse_interval(text), &row[4]) {
            (Ok(interval), Value::Null) => {
                // The nanoseconds of some rows are a whole second.
                let (sec, nsec) = (row[2].as_u64().unwrap(), row[3].as_u64().unwrap());
                let expected = Duration::from_secs(sec) + Duration::from_nanos(nsec);
                assert_eq!(interval, expected, "{text:?}");
            }
            (Err(error), Value::String(message)) => {
                assert_eq!(format!("{error}\n"), *message, "{text:?}");
            }
            (outcome, expected) => panic!("{text:?}: {outcome:?}, not {expected}"),
        }
    }
}
