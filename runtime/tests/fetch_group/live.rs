//! Experiments with fetch groups over a private pmcd, done by libpcp and by
//! this library.

use crate::libpcp::{From, Libpcp, Step, answers, blurred, differences};
use crate::real_pmcd::RealPmcd;

const I32: i32 = 0;
const U32: i32 = 1;
const I64: i32 = 2;
const U64: i32 = 3;
const F32: i32 = 4;
const F64: i32 = 5;
const STRING: i32 = 6;
const AGGREGATE: i32 = 7;
const EVENT: i32 = 9;

fn item(metric: &str, instance: Option<&str>, scale: Option<&str>, code: i32) -> Step {
    let text = |text: Option<&str>| text.map(str::to_owned);
    Step::Item { metric: metric.into(), instance: text(instance), scale: text(scale), code }
}

fn indom(metric: &str, scale: Option<&str>, code: i32, most: usize) -> Step {
    Step::Indom { metric: metric.into(), scale: scale.map(str::to_owned), code, most }
}

fn event(
    metric: &str,
    instance: Option<&str>,
    field: &str,
    scale: Option<&str>,
    code: i32,
    most: usize,
) -> Step {
    let text = |text: Option<&str>| text.map(str::to_owned);
    let (metric, field) = (metric.into(), field.into());
    Step::Event { metric, instance: text(instance), field, scale: text(scale), code, most }
}

/// Numbers that stay the same.
fn constant() -> Vec<Step> {
    let mut steps = Vec::new();
    for code in I32..=STRING {
        for metric in [
            "sample.long.one",
            "sample.float.one",
            "sample.double.million",
            "sample.string.hullo",
            "sample.string.write_me",
            "sample.long.write_me",
            "sample.longlong.write_me",
            "sample.double.write_me",
            "sample.float.write_me",
            "sample.ulonglong.ten",
            "sample.bad.novalues",
            "sample.noinst",
            "sample.string.null",
            "sample.bad.nosupport",
            "sample.nosuch",
            "sample.long",
        ] {
            for scale in [None, Some("1"), Some("2"), Some("0.5"), Some("instant"), Some("")] {
                steps.push(item(metric, None, scale, code));
            }
        }
        for scale in [None, Some("count / Kbyte"), Some("10 count / Mbyte")] {
            steps.push(item("sample.ulong.count.kilo", None, scale, code));
        }
        for metric in ["sample.bin", "sample.string.bin", "sample.double.bin"] {
            steps.push(item(metric, Some("bin-300"), Some("3"), code));
            steps.extend([16, 4, 0].map(|most| indom(metric, None, code, most)));
        }
        steps.push(indom("sample.long.hundred", None, code, 3));
        steps.push(indom("sample.bad.novalues", None, code, 3));
    }
    for metric in
        ["sample.bin", "sample.long.one", "sample.aggregate.hullo", "sample.event.records"]
    {
        for instance in [None, Some("bin-100"), Some("bogus bin")] {
            steps.extend(
                [I32, STRING, AGGREGATE, EVENT].map(|code| item(metric, instance, None, code)),
            );
            steps.push(item(metric, instance, Some("bogus"), F64));
            steps.push(item(metric, instance, Some("count"), F64));
        }
        steps.push(indom(metric, Some("byte"), AGGREGATE, 3));
    }
    steps.extend([Step::Fetch, Step::Fetch, Step::Clear, Step::Fetch]);
    steps.push(item("sample.bin", Some("bin-900"), Some("rate"), F64));
    steps.push(item("sample.bin", Some("bin-100"), None, U32));
    steps.extend([Step::Fetch, Step::Fetch]);
    // An entry that was added after a fetch that did not have its metric.
    steps.push(item("sample.longlong.ten", None, Some("rate"), F64));
    steps.extend([Step::Fetch, Step::Fetch]);
    steps
}

/// Numbers that grow and fall.
fn changing() -> Vec<Step> {
    let mut steps = Vec::new();
    for code in [I32, U32, I64, U64, F32, F64, STRING] {
        for metric in ["sample.seconds", "sample.milliseconds"] {
            for scale in [
                None,
                Some("sec"),
                Some("ms"),
                Some("1000 sec"),
                Some(""),
                Some("sec/sec"),
                Some("count"),
            ] {
                steps.push(item(metric, None, scale, code));
            }
        }
        for scale in
            [None, Some("Kbyte/sec"), Some("Mbyte/hour"), Some("byte / ms"), Some("Mbyte/sec^2")]
        {
            steps.push(indom("sample.long.bin_ctr", scale, code, 9));
            steps.push(item("sample.kbyte_ctr", None, scale, code));
        }
        steps.push(indom("sample.colour", Some("instant"), code, 3));
        for scale in [None, Some("count/min"), Some("count x 10^3 / sec"), Some("10 count / sec")] {
            steps.push(item("sample.const_rate.value", None, scale, code));
        }
    }
    steps.extend([Step::Fetch, Step::Sleep(300), Step::Fetch, Step::Sleep(1100), Step::Fetch]);
    steps
}

fn events() -> Vec<Step> {
    let mut steps = Vec::new();
    let records = ["sample.event.records", "sample.event.highres_records"];
    for metric in records {
        for field in [
            "sample.event.param_32",
            "sample.event.param_string",
            "sample.event.param_double",
            "event.missed",
            "event.flags",
            "sample.event.type",
        ] {
            steps.push(event(metric, Some("fungus"), field, None, STRING, 16));
            steps.push(event(metric, Some("bogus"), field, Some("instant"), F64, 16));
            steps.push(event(metric, Some("fungus"), field, Some("2"), F64, 1));
        }
    }
    for (metric, instance, field, scale) in [
        ("sample.event.records", None, "sample.event.param_32", None),
        ("sample.event.records", Some("nobody"), "sample.event.param_32", None),
        ("sample.bin", Some("bin-100"), "sample.event.param_32", None),
        ("sample.event.records", Some("fungus"), "sample.bin", None),
        ("sample.event.records", Some("fungus"), "sample.nosuch", None),
        ("sample.event.records", Some("fungus"), "sample.event.param_32", Some("rate")),
        ("sample.event.records", Some("fungus"), "sample.event.param_32", Some("count")),
        ("sample.event.records", Some("fungus"), "sample.event.param_32", Some("bogus")),
        ("sample.event.records", Some("fungus"), "sample.seconds", None),
        ("sample.event.records", Some("fungus"), "sample.aggregate.hullo", None),
        ("sample.event.no_indom_records", Some("fungus"), "sample.event.param_32", None),
        ("sample.event.no_indom_records", None, "sample.event.param_32", None),
    ] {
        steps.push(event(metric, instance, field, scale, I32, 8));
    }
    steps.extend(std::iter::repeat_n(Step::Fetch, 8));
    steps
}

fn wrapping() -> Vec<Step> {
    let mut steps = Vec::new();
    for metric in
        ["sample.wrap.long", "sample.wrap.ulong", "sample.wrap.longlong", "sample.wrap.ulonglong"]
    {
        steps.extend([item(metric, None, None, F64), indom(metric, None, F64, 1)]);
    }
    steps.extend([Step::Fetch, Step::Sleep(20), Step::Fetch, Step::Sleep(20), Step::Fetch]);
    steps
}

#[test]
fn values_of_pmcd_are_those_of_libpcp() {
    let (Some(libpcp), Some(pmcd)) = (Libpcp::new(), RealPmcd::start()) else { return };
    for (metric, value) in [
        ("sample.string.write_me", "13"),
        ("sample.long.write_me", "-10"),
        ("sample.longlong.write_me", "1000000000000"),
        ("sample.double.write_me", "1e42"),
        ("sample.float.write_me", "0.1"),
        ("sample.const_rate.gradient", "7"),
    ] {
        pmcd.tool("pmstore", &[metric, value]);
    }
    let from = From::Host(format!("unix:{}", pmcd.socket.display()));
    for (name, steps, counter_wraps, is_exact) in [
        ("constant", constant(), false, true),
        ("changing", changing(), false, false),
        ("events", events(), false, false),
        ("wrapping", wrapping(), true, false),
    ] {
        // Records come in turns, which are to begin with the first one.
        let reset = || {
            for metric in ["sample.event.reset", "sample.event.reset_highres"] {
                pmcd.tool("pmstore", &[metric, "0"]);
            }
        };
        reset();
        let mut theirs = libpcp.answers(&from, &steps, counter_wraps);
        reset();
        let mut ours = answers(&from, &steps, counter_wraps);
        let has_values = theirs.iter().filter(|line| !line.contains('(')).count();
        assert!(has_values > steps.len() / 2, "{name}: {theirs:#?}");
        theirs.iter_mut().for_each(|line| *line = blurred(line, is_exact));
        ours.iter_mut().for_each(|line| *line = blurred(line, is_exact));
        let differences = differences(&theirs, &ours);
        assert!(
            differences.is_empty(),
            "{name}: {}\n{}",
            differences.len(),
            differences[..differences.len().min(40)].join("\n")
        );
    }
}

/// A falling value has a rate only where counters wrap.
#[test]
fn counters_wrap_where_they_are_told_to() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let from = From::Host(format!("unix:{}", pmcd.socket.display()));
    let steps = [
        item("sample.wrap.ulong", None, None, F64),
        Step::Fetch,
        Step::Sleep(20),
        Step::Fetch,
        Step::Sleep(20),
        Step::Fetch,
        Step::Sleep(20),
        Step::Fetch,
        Step::Sleep(20),
        Step::Fetch,
    ];
    let missing = |wraps| {
        let lines = answers(&from, &steps, wraps);
        lines.iter().filter(|line| *line == "(-12351)").count()
    };
    assert!(missing(false) > 0);
    assert_eq!(missing(true), 0);
}

#[test]
fn sources_that_are_not_there() {
    let Some(libpcp) = Libpcp::new() else { return };
    let nowhere = From::Archive("/nowhere/archive".into());
    for from in [nowhere, From::Host("unix:/nowhere/socket".into())] {
        let theirs = libpcp.answers(&from, &[], false);
        assert_eq!(answers(&from, &[], false), theirs, "{from:?}");
    }
}
