//! A pmcd that greets and then fails fetches: it is tried again with pauses,
//! and given up in the end. How long the pauses are is tested beside them.

use pmderive_runtime::pdu::PduType;
use pmderive_testkit::fake_pmcd::{FakePmcd, Fault, Rule};

use super::command::{Run, run};
use super::pmcd;

/// A pmcd that closes connections instead of answering fetches.
fn failing(times: impl FnOnce(Rule) -> Rule) -> FakePmcd {
    let pmcd = pmcd();
    let rule = Rule::new(Fault::Close { after: 0 }).on(PduType::HighresFetch);
    pmcd.host().inject(times(rule));
    pmcd
}

fn run_at(pmcd: &FakePmcd, arguments: &[&str]) -> Run {
    run(&[arguments, &["-h", &pmcd.spec().to_string()]].concat())
}

const GIVEN_UP: &str = "--retry=TIME or --retry=forever tries for longer";

#[test]
fn a_pmcd_that_goes_on_failing_is_given_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("table.csv");
    let table = table.to_str().expect("UTF-8");
    for (arguments, status) in [
        (&["eval", "-s", "3", "-t", "1msec", "m.count"][..], 3),
        (&["eval", "rate(m.total)"], 3),
        (&["export", "-s", "3", "-t", "1msec", "-o", table, "m.count"], 3),
        (&["val", "-s", "3", "-t", "1msec", "m.count"], 1),
        (&["val", "m.total"], 1),
        (&["info", "-f", "m.count"], 1),
        (&["probe", "-v", "m.count"], 1),
    ] {
        let pmcd = failing(Rule::always);
        let found = run_at(&pmcd, &[arguments, &["--retry", "300msec"]].concat());
        assert_eq!(found.status, Some(status), "{arguments:?}: {}", found.err);
        let [first, over, last] = found.err.lines().collect::<Vec<_>>()[..] else {
            panic!("{}", found.err)
        };
        assert!(first.ends_with("closed the connection (for 0.3 seconds it is tried again)"));
        assert!(over.ends_with(GIVEN_UP), "{over}");
        assert!(last.contains("pmcd closed the connection"), "{last}");
        // After 0.1 and 0.2 seconds, or on a slow machine only once.
        assert!((2..=3).contains(&pmcd.host().connections()), "{}", pmcd.host().connections());
    }
    assert!(!std::fs::exists(table).expect("a folder"));
}

/// What came before stays.
#[test]
fn an_export_that_breaks_off_is_partial() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("table.csv").display().to_string();
    // The name of the host is fetched as well.
    let pmcd = failing(|rule| rule.after(6).always());
    let found = run_at(
        &pmcd,
        &["export", "-s", "9", "-t", "1msec", "--retry", "100msec", "-o", &table, "m.count"],
    );
    assert_eq!(found.status, Some(3), "{}", found.err);
    assert!(found.err.contains(&format!("samples so far are in {table}.partial")), "{}", found.err);
    let text = std::fs::read_to_string(format!("{table}.partial")).expect("a table");
    assert!(text.lines().count() >= 2, "{text}");
    assert!(!std::fs::exists(table).expect("a folder"));
}

#[test]
fn without_patience_the_first_failure_is_the_last() {
    for (arguments, status) in [
        (&["eval", "-s", "3", "--retry", "0", "m.count"][..], 3),
        (&["info", "-f", "--retry", "0", "m.count"], 1),
        // As PCP's tools have it.
        (&["info", "-f", "--compat", "6.0", "m.count"], 1),
        (&["probe", "-v", "--compat", "6.0", "m.count"], 1),
        (&["val", "--compat", "7.2", "m.count"], 1),
    ] {
        let pmcd = failing(Rule::always);
        let found = run_at(&pmcd, arguments);
        assert_eq!(found.status, Some(status), "{arguments:?}: {}", found.err);
        assert_eq!(pmcd.host().connections(), 1, "{arguments:?}");
        assert!(!found.err.contains("again"), "{}", found.err);
    }
    let found = run(&["eval", "--retry", "soon", "1"]);
    assert_eq!(found.status, Some(2), "{}", found.err);
}

#[test]
fn samples_go_on_once_it_answers() {
    for (arguments, expected) in [
        (&["eval", "-s", "2", "-t", "1msec", "--format", "csv", "m.count"][..], ",m.count,,7\n"),
        (&["export", "-s", "2", "-t", "1msec", "m.count"], ",m.count,,,U32,"),
        (&["val", "-s", "2", "-t", "1msec", "m.count"], "          7\n"),
        (&["info", "-f", "m.count"], "    value 7\n"),
        (&["probe", "-v", "m.count"], "m.count 1 7\n"),
    ] {
        let pmcd = failing(|rule| rule.times(2));
        let found = run_at(&pmcd, arguments);
        assert_eq!(found.status, Some(0), "{arguments:?}: {}", found.err);
        let samples = if arguments.contains(&"-s") { 2 } else { 1 };
        assert_eq!(found.out.matches(expected).count(), samples, "{}", found.out);
        assert_eq!(found.err.lines().count(), 1, "{}", found.err);
        assert!(found.err.ends_with("(for 60 seconds it is tried again)\n"), "{}", found.err);
        assert_eq!(pmcd.host().connections(), 3);
    }
    // What stands in front of the samples is asked for after the first fetch.
    let pmcd = failing(|rule| rule.after(1).times(2));
    let found = run_at(&pmcd, &["export", "-s", "2", "-t", "1msec", "m.count"]);
    assert_eq!(found.out.matches(",m.count,,,U32,").count(), 2, "{}", found.out);
}

/// No rate spans the time away.
#[test]
fn rates_begin_anew_after_a_gap() {
    // The host's name and two samples come before.
    let pmcd = failing(|rule| rule.after(3).times(1));
    let found = run_at(&pmcd, &["val", "-s", "4", "-t", "1msec", "m.total"]);
    assert_eq!(found.status, Some(0), "{}", found.err);
    let rows: Vec<&str> = found.out.lines().map(str::trim).collect();
    assert_eq!(rows[rows.len() - 4..], ["5.000", "No values available", "5.000", "5.000"]);
}

#[test]
fn a_recording_goes_on_with_a_mark() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = |name| folder.path().join(name).display().to_string();
    let record = |pmcd: &FakePmcd, samples, base: &str| {
        run_at(pmcd, &["record", "-s", samples, "-t", "1msec", "-o", base, "m.count"])
    };
    let good = pmcd();
    assert_eq!(record(&good, "1", &base("one")).status, Some(0));
    let until_second = u32::try_from(good.host().requests(PduType::HighresFetch)).expect("a few");
    let pmcd = failing(|rule| rule.after(until_second).times(3));
    let base = base("out");
    let found = record(&pmcd, "3", &base);
    assert_eq!(found.status, Some(0), "{}", found.err);
    assert!(found.err.contains("closed the connection (it is tried again)"), "{}", found.err);
    let archive = run(&["archive", "--scan", &base]);
    assert!(archive.out.contains("Records: 3, and 1 marks"), "{}", archive.out);
}
