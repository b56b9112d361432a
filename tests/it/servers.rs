//! Commands against faulty pmcds.

mod clock;
mod constants;
mod failing;
mod hostile;
mod refused;

use std::time::Duration;

use pmderive_runtime::model::{Semantics, Timestamp};
use pmderive_testkit::fake_pmcd::{Clock, FakeHost, FakePmcd, Metric, Script, World};

use crate::command;

/// A pmcd with the metrics `m.count` and `m.total`, a counter, whose clock goes
/// on by two seconds with each fetch.
fn pmcd() -> FakePmcd {
    let mut world = World::new();
    world.add(Metric::new("m.count", Script::constant(7u32)));
    world.add(Metric::new("m.total", Script::counter(5.0)).meaning(Semantics::Counter));
    let clock =
        Clock::Steps { first: Timestamp::new(1_700_000_000, 5_000), step: Duration::from_secs(2) };
    FakePmcd::start(FakeHost::new(world).with_clock(clock))
}
