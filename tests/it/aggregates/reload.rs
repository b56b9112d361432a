//! Definitions over a fleet that change while it is watched: unchanged state goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use pmderive::internal::fleet::aggregates::Aggregates;
use pmderive::internal::fleet::frame::{Event, Frame, Stale, StaleReason};
use pmderive::internal::fleet::sinks::samples;
use pmderive::internal::fleet::sinks::sink_set::SinkSet;
use pmderive::internal::fleet::slot::Slot;
use pmderive::internal::fleet::targets::target::Target;
use pmderive::runtime::model::{InstId, Semantics, ValueType};

use super::fleet::{
    INTERVAL, aggregates, column, definitions, dropped, exported, finish, frame, frame_of,
    instances, schema, shown, target,
};

const BEFORE: &str = "f.old = max(x)\nf.rate = rate(sum(n) by (rack))\nf.sum = sum(x) by (rack)\n";
/// What stays is elsewhere, and before it there is something new.
const AFTER: &str = "f.first = min(x) by (dc)\nf.more = sum(y)\nf.sum = sum(x) by (rack)\n\
                     f.rate = rate(sum(n) by (rack))\n";

fn hosts() -> [Arc<Target>; 3] {
    // Groups are numbered as they come: b, then a.
    let [one, two] = [("web1:44321", "rack=b,dc=x"), ("web2:44321", "rack=a,dc=x")]
        .map(|(name, labels)| target(name, labels));
    [one, two, target("web3:44321", "rack=b,dc=y")]
}

/// All hosts answer in a slot: `x` and `y` are 1, 2 and 3, and `n` grows by a thousand
/// times that with every slot.
fn answer(fleet: &mut Aggregates, slot: u64) {
    let schema = schema([
        exported("n", ValueType::U64, Semantics::Counter, "count"),
        exported("x", ValueType::F64, Semantics::Instant, ""),
        exported("y", ValueType::F64, Semantics::Instant, ""),
    ]);
    for (at, host) in (1..).zip(hosts()) {
        let one = instances(&["one"]);
        let value = column(&one, &[f64::from(at as u32).to_bits()]);
        let count = column(&one, &[slot * 1000 * at]);
        let frame = frame(&host, "", slot, &schema, &[count, value.clone(), value]);
        fleet.collector.frame(&frame);
    }
    assert_eq!(dropped(&fleet.collector), (0, 0));
}

/// Identifiers of groups by name, of one metric.
fn ids(frame: &Frame, metric: &str) -> BTreeMap<String, InstId> {
    let (at, _) = frame.schema.find(metric).expect(metric);
    let (_, instances) = frame.columns.heads().get(at).expect(metric);
    let names = instances.names.iter().map(|name| name.to_string());
    names.zip(instances.ids.iter().copied()).collect()
}

fn stale(events: &[Event]) -> Vec<&Stale> {
    let mut stale = Vec::new();
    for event in events {
        if let Event::Stale(one) = event {
            stale.push(one);
        }
    }
    stale
}

/// Names of the metrics that have ended, with the sinks that are told.
fn ended(stale: &Stale) -> Vec<(&str, SinkSet)> {
    let metrics = stale.series.iter().map(|(at, _)| &stale.schema.metrics[*at]);
    metrics.map(|metric| (&*metric.name, metric.sinks)).collect()
}

#[test]
fn what_did_not_change_goes_on() {
    let exported = ["n", "x", "y"];
    let mut fleet = aggregates(&definitions(BEFORE, &exported));
    fleet.collector.set_targets(&hosts());
    for slot in [7, 8] {
        answer(&mut fleet, slot);
        finish(&mut fleet, slot);
    }
    // The slot is in its grace when the definitions change.
    answer(&mut fleet, 9);
    let before = finish(&mut fleet, 9);
    answer(&mut fleet, 10);
    let sinks = |_: &str| samples::sinks(&[0, 1]);
    fleet.follow(definitions(AFTER, &exported), false, &sinks, &hosts());
    let after = finish(&mut fleet, 10);
    let (one, two) = (frame_of(&before), frame_of(&after));
    for metric in ["f.sum", "f.rate"] {
        assert_eq!(ids(one, metric), ids(two, metric), "{metric}");
        assert_eq!(shown(&before)[metric], shown(&after)[metric], "{metric}");
        assert_eq!(ids(two, metric).len(), 2);
    }
    let rate = &shown(&after)["f.rate"];
    assert_eq!(rate["{rack=\"b\"}"], 400_f64.to_bits(), "{rate:?}");
    // The numbers of hosts beside them are the same instances, too.
    let (known, now) = (ids(one, "fleet.hosts.present"), ids(two, "fleet.hosts.present"));
    for (name, id) in known.iter().filter(|(name, _)| !name.contains("max(x)")) {
        assert_eq!(now.get(name), Some(id), "{name}");
    }
    // Values of an operand that was there are those of the slot; others are not known.
    assert_eq!(shown(&after)["f.first"]["{dc=\"y\"}"], 3_f64.to_bits());
    assert!(!shown(&after).contains_key("f.more"));
    let told = stale(&after);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0].reason, StaleReason::DefinitionChanged);
    assert_eq!(ended(told[0]), [("f.old", samples::sinks(&[0]))]);
    // Hosts are not counted any more beside what is gone.
    assert_eq!(told[1].reason, StaleReason::Vanished);
    assert!(ended(told[1]).iter().all(|(name, _)| name.starts_with("fleet.hosts.")));

    answer(&mut fleet, 11);
    let next = finish(&mut fleet, 11);
    assert_eq!(stale(&next).len(), 0);
    assert_eq!(shown(&next)["f.more"][""], 6_f64.to_bits());
    assert_eq!(shown(&next)["f.rate"], *rate);
}

#[test]
fn a_sink_that_goes_ends_no_series_of_others() {
    let definitions = definitions(BEFORE, &["n", "x"]);
    let mut fleet = aggregates(&definitions);
    let follow = |fleet: &mut Aggregates, places: &[u32]| {
        let sinks = samples::sinks(places);
        fleet.follow(Arc::clone(&definitions), false, &|_| sinks, &hosts());
    };
    follow(&mut fleet, &[0, 1]);
    for slot in [7, 8] {
        answer(&mut fleet, slot);
        finish(&mut fleet, slot);
    }
    follow(&mut fleet, &[1, 2]);
    answer(&mut fleet, 9);
    let events = finish(&mut fleet, 9);
    let told = stale(&events);
    assert_eq!(told.len(), 1, "{told:?}");
    let lost = samples::sinks(&[0]);
    assert!(ended(told[0]).iter().all(|(_, sinks)| *sinks == lost), "{told:?}");
    assert!(ended(told[0]).contains(&("f.sum", lost)));
    let rate = &shown(&events)["f.rate"];
    assert_eq!(rate["{rack=\"a\"}"], 200_f64.to_bits());
}

/// What it is a rate of was there all the time, under another name.
#[test]
fn a_rate_that_was_away_begins_anew() {
    let sum = definitions("f.n = sum(n) by (rack)\n", &["n"]);
    let both = "f.n = sum(n) by (rack)\nf.rate = rate(sum(n) by (rack))\n";
    let both = definitions(both, &["n"]);
    let mut fleet = aggregates(&both);
    fleet.collector.set_targets(&hosts());
    let mut has_rate = |slot, definitions| {
        fleet.follow(Arc::clone(definitions), false, &|_| samples::sinks(&[0]), &hosts());
        answer(&mut fleet, slot);
        shown(&finish(&mut fleet, slot)).contains_key("f.rate")
    };
    let plans = [&both, &both, &sum, &sum, &both, &both];
    let found: Vec<bool> = (7..).zip(plans).map(|(slot, plan)| has_rate(slot, plan)).collect();
    assert_eq!(found, [false, true, false, false, false, true]);
}

#[test]
fn another_interval_begins_other_slots() {
    let definitions = definitions(BEFORE, &["n", "x"]);
    let mut fleet = aggregates(&definitions);
    fleet.collector.set_targets(&hosts());
    for slot in [70, 71] {
        answer(&mut fleet, slot);
        finish(&mut fleet, slot);
    }
    fleet.follow(definitions, true, &|_| samples::sinks(&[0]), &hosts());
    // Slot 71 of ten seconds ended when slot 143 of five seconds did.
    answer(&mut fleet, 144);
    let events = fleet.finish(Slot(144), Slot(144).end(INTERVAL / 2));
    // Hosts are fetched at other moments of these, so that no rate spans both.
    let told = stale(&events);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(ended(told[0]), [("f.rate", samples::sinks(&[0]))]);
    assert_eq!(shown(&events)["f.sum"]["{rack=\"b\"}"], 4_f64.to_bits());
    answer(&mut fleet, 145);
    let events = fleet.finish(Slot(145), Slot(145).end(INTERVAL / 2));
    assert_eq!(stale(&events).len(), 0);
    let rate = 4000_f64 / 5.0;
    assert_eq!(shown(&events)["f.rate"]["{rack=\"b\"}"], rate.to_bits());
}
