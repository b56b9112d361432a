//! The agent for tests and demonstrations: its descriptions are those of
//! pmdasample, and values can be stored.

use std::path::Path;

use pmderive_runtime::local::{LocalContext, SampleAgent};
use pmderive_runtime::model::{InDom, InstanceProfile, PmStatus, RawValue, Value, ValueType};
use pmderive_runtime::result::{InstanceValue, MetricValues};
use pmderive_runtime::source::{FetchSource, MetadataSource};

use crate::pcp::Pcp;
use crate::render::render;

fn sample() -> LocalContext {
    LocalContext::with_agents(vec![Box::new(SampleAgent::new())]).expect("a consistent agent")
}

#[test]
fn descriptors_and_constants_are_pmdasamples() {
    let Some(pcp) = Pcp::with_agent(29, "sample") else { return };
    let mut context = sample();
    let names = context.traverse("").expect("in this process");
    let theirs = pcp.pminfo(Path::new(""), &names);
    for ours in render(&mut context, &names).expect("in this process") {
        let theirs = &theirs[&ours.name];
        assert_eq!(ours.description, theirs.description, "{}", ours.name);
        let is_constant = ["one", "ten", "hundred", "million", "null", "hullo", "write_me"]
            .iter()
            .any(|last| ours.name.ends_with(last));
        // In pmdasample, the bins of 64 bits are about the agent's own output.
        let is_bin = ours.name.ends_with("bin") && !ours.name.contains("longlong");
        if is_constant || is_bin {
            assert_eq!(ours.values, theirs.values, "{}", ours.name);
        }
    }
}

#[test]
fn values_move_with_fetches_only() {
    let mut context = sample();
    let names = ["sample.seconds", "sample.colour", "sample.long.bin_ctr"];
    let pmids = context.lookup_names(&names).expect("in this process");
    let pmids: Vec<_> = pmids.into_iter().map(|pmid| pmid.expect("known")).collect();
    let mut profile = InstanceProfile::default();
    profile.include(InDom::new(29, 2), &[300]);
    profile.include(InDom::new(29, 1), &[0, 2]);
    context.set_profile(&profile).expect("in this process");
    for fetch in 0..3 {
        let result = context.fetch_values(&pmids).expect("in this process");
        let value =
            |metric: usize, value_type| result.sets[metric].decode(value_type).expect("values");
        assert_eq!(value(0, ValueType::U32), [(-1, Value::U32(fetch))]);
        let fetch = fetch.cast_signed();
        let colours = [(0, Value::I32(100 + fetch)), (2, Value::I32(300 + fetch))];
        assert_eq!(value(1, ValueType::I32), colours);
        assert_eq!(value(2, ValueType::I32), [(300, Value::I32(300 * fetch))]);
    }
}

#[test]
fn values_can_be_stored_where_the_agent_allows_it() {
    let mut context = sample();
    let names = ["sample.ulonglong.write_me", "sample.long.one"];
    let pmids = context.lookup_names(&names).expect("in this process");
    let pmids: Vec<_> = pmids.into_iter().map(|pmid| pmid.expect("known")).collect();
    let set = |pmid, value| MetricValues {
        pmid,
        outcome: Ok(vec![InstanceValue { instance: -1, value }]),
    };
    let eight = |number: u64| RawValue::Block { code: 3, bytes: number.to_be_bytes().into() };
    let mut store = |values: &[MetricValues]| context.store(values).expect("in this process");
    assert_eq!(store(&[set(pmids[0], eight(7))]), Ok(()));
    assert_eq!(store(&[]), Err(PmStatus::TOOSMALL));
    assert_eq!(store(&[set(pmids[0], RawValue::InPlace(1))]), Err(PmStatus::CONV));
    let both = [set(pmids[0], eight(8)), set(pmids[1], RawValue::InPlace(1))];
    assert_eq!(store(&both), Err(PmStatus::PERMISSION));
    let result = context.fetch_values(&pmids).expect("in this process");
    let stored = result.sets[0].decode(ValueType::U64).expect("a value");
    assert_eq!(stored, [(-1, Value::U64(8))], "what stood before the failure is stored");
}
