//! A pmcd whose clock stands still or goes back between two fetches.

use std::time::Duration;

use pmderive_runtime::fake_pmcd::{Clock, FakeHost, FakePmcd, Metric, Script, World};
use pmderive_runtime::model::{Semantics, Timestamp};

use super::command::run;

/// What `val` prints of a counter in six fetches, of which the fourth is
/// answered with a time that is set back. `total` grows on by fetches.
fn rates(set_back: Duration, options: &[&str]) -> Vec<String> {
    let mut world = World::new();
    let counts = (0..50u32).map(|number| number * 10);
    world.add(Metric::new("m.total", Script::cycle(counts)).meaning(Semantics::Counter));
    let step = Duration::from_secs(1);
    let clock = Clock::Steps { first: Timestamp::new(1_700_000_000, 0), step };
    let host = FakeHost::new(world).with_clock(clock).with_clock_set_back(3, set_back);
    let pmcd = FakePmcd::start(host);
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
