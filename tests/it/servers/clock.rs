//! A pmcd whose clock stands still or goes back between two fetches.

use std::time::Duration;

use pmderive_runtime::model::{Semantics, Timestamp};
use pmderive_testkit::fake_pmcd::{Clock, FakeHost, FakePmcd, Metric, Script, World};

use super::command::run;

/// A pmcd whose fourth fetch is answered with a time that is set back.
/// `m.total` grows on by fetches.
fn pmcd_set_back(set_back: Duration) -> FakePmcd {
    let mut world = World::new();
    let counts = (0..50u32).map(|number| number * 10);
    world.add(Metric::new("m.total", Script::cycle(counts)).meaning(Semantics::Counter));
    let step = Duration::from_secs(1);
    let clock = Clock::Steps { first: Timestamp::new(1_700_000_000, 0), step };
    FakePmcd::start(FakeHost::new(world).with_clock(clock).with_clock_set_back(3, set_back))
}

/// What `val` prints of a counter in six fetches.
fn rates(set_back: Duration, options: &[&str]) -> Vec<String> {
    let pmcd = pmcd_set_back(set_back);
    let host = pmcd.spec().to_string();
    let arguments = [&["val", "-h", &host, "-s", "5", "-t", "1msec"], options, &["m.total"]];
    let ran = run(&arguments.concat());
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    ran.out.lines().rev().take(5).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn no_rate_is_told_of_a_clock_that_does_not_go_on() {
    for set_back in [Duration::from_secs(1), Duration::from_secs(3)] {
        let found = rates(set_back, &[]);
        let told = found.iter().filter(|line| *line == "10.00").count();
        let untold = found.iter().filter(|line| *line == "?").count();
        assert_eq!((told, untold), (4, 1), "{found:?}");
    }
}

#[test]
fn pmval_divides_all_the_same() {
    let found = rates(Duration::from_secs(1), &["--compat", "6.0"]);
    assert!(found.iter().any(|line| line == "INF"), "{found:?}");
}

/// In the default dialect a rate is told of no time that does not go on, and
/// the next sample has one again.
#[test]
fn eval_says_why_there_is_no_rate() {
    for (set_back, reason) in [(1, "same-time"), (3, "backward")] {
        for backend in ["interp", "jit"] {
            let pmcd = pmcd_set_back(Duration::from_secs(set_back));
            let host = pmcd.spec().to_string();
            let asked = ["eval", "-h", &host, "-s", "5", "-t", "1msec", "--format", "json"];
            let metrics = ["--backend", backend, "rate(m.total)", "rate(13)"];
            let ran = run(&[&asked[..], &metrics].concat());
            assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
            for (at, line) in ran.out.lines().enumerate() {
                let sample: serde_json::Value = serde_json::from_str(line).expect("JSON");
                for (metric, rate) in [(0, 10.0), (1, 0.0)] {
                    let metric = &sample["metrics"][metric];
                    match at {
                        2 => {
                            assert_eq!(metric["n"], 0, "{line}");
                            assert_eq!(metric["why"]["reason"], reason, "{line}");
                        }
                        _ => assert_eq!(metric["values"][0][2], rate, "{line}"),
                    }
                }
            }
            assert_eq!(ran.out.lines().count(), 5);
        }
    }
}
