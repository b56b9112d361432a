//! Texts of labels, read and merged, against `pmMergeLabels(3)`. Where PCP 6.0
//! garbles its result, the table has that as well.

use std::path::Path;

use pmderive_runtime::model::{LabelFlags, LabelSet};
use serde_json::Value;

#[test]
fn labels_are_read_and_merged_as_by_libpcp() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pmapi/labels.json");
    let rows: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rows = rows.as_array().unwrap();
    assert!(rows.len() > 35, "{}", rows.len());
    for row in rows {
        let texts = row["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
        let sets: Result<Vec<_>, _> =
            texts.map(|text| LabelSet::parse(text, LabelFlags(1))).collect();
        let merged = match &sets {
            Ok(sets) => LabelSet::merged(sets).json().to_owned(),
            Err(_) => "-EINVAL".to_owned(),
        };
        assert_eq!(merged, row["merged"].as_str().unwrap(), "{}", row["texts"]);
        assert_ne!(Some(&*merged), row["pcp_6_0"].as_str(), "{}", row["texts"]);
    }
}
