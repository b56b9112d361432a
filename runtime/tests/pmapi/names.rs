//! Descriptors, units, statuses and identifiers as text.

use pmderive_runtime::model::{
    InDom, MetricDesc, PcpVersion, PmStatus, Pmid, Semantics, Units, ValueType,
};

use crate::{code, compare, number, text, units};

fn word(value: &serde_json::Value) -> u32 {
    u32::try_from(number(value)).unwrap()
}

#[test]
fn metric_identifiers_print_as_by_libpcp() {
    compare("strings", "id_str", |row| {
        let pmid = Pmid(word(&row[0]));
        let parts = [pmid.domain(), pmid.cluster(), pmid.item()];
        let theirs = format!("{} {:?}", text(&row[1]), [2, 3, 4].map(|part| word(&row[part])));
        (theirs, format!("{pmid} {parts:?}"))
    });
}

#[test]
fn domain_identifiers_print_as_by_libpcp() {
    compare("strings", "indom_str", |row| {
        let Some(indom) = InDom::from_wire(word(&row[0])) else {
            return (text(&row[1]).to_owned(), "PM_INDOM_NULL".to_owned());
        };
        let theirs = format!("{} {:?}", text(&row[1]), [2, 3].map(|part| word(&row[part])));
        (theirs, format!("{indom} {:?}", [indom.domain(), indom.serial()]))
    });
}

#[test]
fn types_and_semantics_print_as_by_libpcp() {
    compare("strings", "type_str", |row| {
        let printed = ValueType::from_code(code(&row[0])).to_string();
        (text(&row[1]).to_owned(), printed)
    });
    compare("strings", "sem_str", |row| {
        (text(&row[1]).to_owned(), Semantics::from_code(code(&row[0])).to_string())
    });
}

#[test]
fn descriptors_print_as_by_libpcp() {
    compare("strings", "print_desc", |row| {
        let desc = MetricDesc {
            pmid: Pmid::NULL,
            value_type: ValueType::from_code(code(&row[0])),
            indom: InDom::from_wire(word(&row[1])),
            semantics: Semantics::from_code(code(&row[2])),
            units: units(&row[3]),
        };
        (text(&row[4]).to_owned(), format!("{desc}\n"))
    });
}

#[test]
fn statuses_print_as_by_libpcp() {
    compare("strings", "err_str", |row| {
        (text(&row[1]).to_owned(), PmStatus(code(&row[0])).text(PcpVersion::V6_0))
    });
    assert_eq!(PmStatus::ARG.text(PcpVersion::V7_2), "Bad value for function argument");
    assert_eq!(PmStatus::NODATA.text(PcpVersion::V7_2), "Empty archive file");
    assert_eq!(PmStatus(-21376).to_string(), "Authentication - channel binding failure");
}

#[test]
fn units_print_as_by_libpcp() {
    compare("units", "format", |row| {
        let units: Units = units(&row[0]);
        let theirs = format!("{} {}", text(&row[1]), word(&row[2]));
        (theirs, format!("{units} {}", units.to_wire()))
    });
}

/// Text that libpcp understands, and text that it does not.
#[test]
fn units_read_as_by_libpcp() {
    compare("units", "parse", |row| {
        let theirs = match row[4].as_str() {
            Some(message) => format!("{} {message}", code(&row[1])),
            None => format!("{:?} {}", units(&row[2]), text(&row[3]).replace("-nan", "nan")),
        };
        let ours = match Units::parse_version_6(text(&row[0])) {
            Ok(parsed) => {
                // A text that PCP 6 understands means the same to PCP 7.
                let version_7 = Units::parse(text(&row[0])).map(|parsed| parsed.units);
                assert_eq!(version_7, Ok(parsed.units), "{row}");
                // The multiplier with as many digits as in the table.
                let multiplier = pmderive_runtime::model::format_g(parsed.multiplier, 17);
                format!("{:?} {}", parsed.units, multiplier.replace("-nan", "nan"))
            }
            Err(error) => format!("{} {error}", PmStatus::CONV.0),
        };
        (theirs, ours)
    });
    compare("units", "parse_abort", |row| {
        let error = Units::parse_version_6(text(&row[0])).expect_err("an error");
        ("SIGABRT".to_owned(), error.to_string())
    });
}
