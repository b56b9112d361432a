//! Text of identifiers, types, semantics and statuses against libpcp's.

use std::path::Path;

use pmderive_runtime::model::{InDom, PmStatus, Pmid, Semantics, ValueType};
use serde_json::Value;

fn rows(table: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pmapi/strings.json");
    let data: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rows = data["tables"][table]["rows"].as_array().unwrap().clone();
    assert!(!rows.is_empty());
    rows
}

fn word(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

fn code(value: &Value) -> i32 {
    i32::try_from(value.as_i64().unwrap()).unwrap()
}

#[test]
fn metric_identifiers() {
    for row in rows("id_str") {
        let pmid = Pmid(word(&row[0]));
        assert_eq!(pmid.to_string(), row[1].as_str().unwrap());
        let parts = [pmid.domain(), pmid.cluster(), pmid.item()];
        assert_eq!(parts, [word(&row[2]), word(&row[3]), word(&row[4])], "{pmid}");
    }
}

#[test]
fn instance_domain_identifiers() {
    for row in rows("indom_str") {
        let Some(indom) = InDom::from_wire(word(&row[0])) else {
            assert_eq!(row[1], "PM_INDOM_NULL");
            continue;
        };
        assert_eq!(indom.to_string(), row[1].as_str().unwrap());
        assert_eq!([indom.domain(), indom.serial()], [word(&row[2]), word(&row[3])], "{indom}");
    }
}

#[test]
fn types() {
    for row in rows("type_str") {
        let (code, text) = (code(&row[0]), row[1].as_str().unwrap());
        let value_type = ValueType::from_code(code);
        if text == "???" {
            assert_eq!(value_type, ValueType::Unknown, "{code}");
        } else {
            assert_eq!((value_type.code(), value_type.to_string().as_str()), (code, text));
        }
    }
}

#[test]
fn semantics() {
    for row in rows("sem_str") {
        let (code, text) = (code(&row[0]), row[1].as_str().unwrap());
        let semantics = Semantics::from_code(code);
        if text == "???" {
            assert_eq!(semantics, Semantics::Instant, "{code}");
        } else {
            assert_eq!((semantics.code(), semantics.to_string().as_str()), (code, text));
        }
    }
}

#[test]
fn statuses() {
    for row in rows("err_str") {
        let (code, text) = (code(&row[0]), row[1].as_str().unwrap());
        // A status is negative.
        if code >= 0 {
            continue;
        }
        // PM_ERR_ARG is newer than the recorded answers.
        if PmStatus(code) == PmStatus::ARG {
            continue;
        }
        // Texts of the SASL and NSS libraries.
        if code < PmStatus::NYI.0 {
            continue;
        }
        assert_eq!(PmStatus(code).to_string(), text, "{code}");
    }
}
