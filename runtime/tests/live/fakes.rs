//! The parts that tests with fake pmcds share.

use std::time::Duration;

use pmderive_runtime::context::{ConnectOptions, HostContext};
use pmderive_runtime::model::{InDom, Pmid, RawValueRef, Semantics, Timestamp, Value, ValueType};
use pmderive_runtime::pdu::PmnsNames;
use pmderive_runtime::result::ResultBatch;
use pmderive_testkit::fake_pmcd::{Clock, FakeHost, FakePmcd, Metric, Script, World};

/// A world with metrics `m.0`, `m.1`, ... up to `count`, each with one value,
/// its own number, which is its identifier as well.
pub fn numbers(count: u32) -> World {
    let mut world = World::empty();
    for number in 0..count {
        let own = Script::function(|moment| Some(Value::U32(moment.pmid.0)));
        let metric = Metric::new(format!("m.{number}"), own).numbered(Pmid(number));
        world.add(metric.of_type(ValueType::U32).meaning(Semantics::Instant));
    }
    for serial in 0..50 {
        world.set_instances(InDom(serial), &[(1, "one"), (2, "two")]);
    }
    world
}

/// A host with [`numbers`] whose time stands still.
pub fn numbers_host(count: u32) -> FakeHost {
    let clock = Clock::Steps { first: Timestamp::new(1_000, 5_000), step: Duration::ZERO };
    FakeHost::new(numbers(count)).with_clock(clock)
}

pub fn values(batch: &ResultBatch) -> Vec<(Pmid, u32)> {
    let sets = batch.sets();
    let values = sets.flat_map(|set| set.values().map(move |(_, value)| (set.pmid, value)));
    let number = |value: Option<RawValueRef<'_>>| value?.number(ValueType::U32);
    values.filter_map(|(pmid, value)| Some((pmid, number(value)? as u32))).collect()
}

pub fn options() -> ConnectOptions {
    ConnectOptions { request_timeout: Some(Duration::from_secs(20)), ..ConnectOptions::default() }
}

/// Options for peers that stall: long enough for the greeting of a busy
/// machine.
pub fn impatient() -> ConnectOptions {
    ConnectOptions { request_timeout: Some(Duration::from_secs(1)), ..options() }
}

pub fn open(pmcd: &FakePmcd) -> HostContext {
    HostContext::open_with(&pmcd.spec(), options()).expect("a connection")
}

/// The bytes of a list of names without statuses.
pub fn encoded_names(names: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    PmnsNames::encode_names(names, &mut bytes);
    bytes
}
