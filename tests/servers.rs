//! Commands against pmcds that are not as they should be.

#[path = "command/mod.rs"]
mod command;
#[path = "servers/constants.rs"]
mod constants;

use pmderive_runtime::fake_pmcd::{Clock, FakeHost, FakePmcd, Metric, Script, World};
use pmderive_runtime::model::Timestamp;
use std::time::Duration;

/// A pmcd with one metric, `m.count`, whose clock goes on by two seconds with
/// each fetch.
fn pmcd() -> FakePmcd {
    let mut world = World::new();
    world.add(Metric::new("m.count", Script::constant(7u32)));
    let clock =
        Clock::Steps { first: Timestamp::new(1_700_000_000, 5_000), step: Duration::from_secs(2) };
    FakePmcd::start(FakeHost::new(world).with_clock(clock))
}
