//! Results of each aggregate, in tables.

use std::sync::Arc;

use pmderive::internal::fleet::aggregates::MAX_QUANTILE_VALUES;
use pmderive::internal::fleet::frame::{Event, Frame, StaleReason};
use pmderive::internal::fleet::slot::{Nanos, Slot};
use pmderive::internal::fleet::targets::target::{GroupId, Target};
use pmderive::runtime::model::{Semantics, ValueType};

use super::fleet::{
    aggregates, column, computed, definitions, dropped, exported, finish, frame, frame_of,
    instances, schema, shown, target,
};

/// Five hosts in two racks, one of which says itself where it stands, and one
/// nowhere.
fn hosts() -> [(Arc<Target>, &'static str); 5] {
    [
        (target("web1:44321", "rack=a,dc=x"), ""),
        (target("web2:44321", "rack=a"), "dc=y,rack=ignored"),
        (target("web3:44321", "dc=x"), "rack=b"),
        (target("web4:44321", "dc=x"), "rack=b"),
        (target("web5:44321", ""), ""),
    ]
}

/// Values of the hosts: of two disks, and of one for the second.
const VALUES: [&[f64]; 5] = [&[1.0, 2.0], &[4.0], &[8.0, 16.0], &[0.5, 0.25], &[3.0, 7.0]];

/// Results over [`VALUES`], as `instance=value` joined by blanks.
fn of(expression: &str) -> String {
    let definitions = definitions(&format!("f.x = {expression}\n"), &["x", "n"]);
    let mut fleet = aggregates(&definitions);
    let hosts = hosts();
    fleet.collector.set_targets(&hosts.clone().map(|(target, _)| target));
    let schema = schema([
        exported("n", ValueType::U32, Semantics::Counter, "count"),
        exported("x", ValueType::F64, Semantics::Instant, "byte"),
    ]);
    let (one, two) = (instances(&["sda"]), instances(&["sda", "sdb"]));
    for ((target, own), values) in hosts.iter().zip(VALUES) {
        let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        let of = if bits.len() == 1 { &one } else { &two };
        let counts = column(&instances(&[""]), &[u64::from(u32::MAX)]);
        let frame = frame(target, own, 7, &schema, &[counts, column(of, &bits)]);
        fleet.collector.frame(&frame);
    }
    let events = finish(&mut fleet, 7);
    assert!(fleet.evaluation.diagnostics().is_empty(), "{:?}", fleet.evaluation.diagnostics());
    let frame = frame_of(&events);
    let (at, metric) = frame.schema.find("f.x").expect("a definition without mistakes");
    let column = frame.columns.get(at).expect("a column");
    let values = column.bits.iter().enumerate().map(|(lane, bits)| {
        let name = column.instances.names.get(lane).map_or("", |name| name);
        match metric.value_type {
            ValueType::F64 => format!("{name}={}", f64::from_bits(*bits)),
            ValueType::F32 => format!("{name}={}", f32::from_bits(*bits as u32)),
            _ => format!("{name}={bits}"),
        }
    });
    let values: Vec<String> = values.collect();
    let units = metric.units.to_string();
    format!("{} {} [{units}] {}", metric.value_type, metric.semantics, values.join(" "))
}

#[test]
fn each_aggregate_over_all_hosts_and_over_groups() {
    for (expression, expected) in [
        ("sum(x)", "DOUBLE instant [byte] =41.75"),
        ("sum(x) by (rack)", r#"DOUBLE instant [byte] {rack=""}=10 {rack="a"}=7 {rack="b"}=24.75"#),
        (
            "sum(x) by (dc, rack)",
            r#"DOUBLE instant [byte] {dc="",rack=""}=10 {dc="x",rack="a"}=3 {dc="x",rack="b"}=24.75 {dc="y",rack="a"}=4"#,
        ),
        (
            "avg(x) by (rack)",
            r#"DOUBLE instant [byte] {rack=""}=5 {rack="a"}=2.3333333333333335 {rack="b"}=6.1875"#,
        ),
        ("min(x) by (dc)", r#"DOUBLE instant [byte] {dc=""}=3 {dc="x"}=0.25 {dc="y"}=4"#),
        ("max(x) by (dc)", r#"DOUBLE instant [byte] {dc=""}=7 {dc="x"}=16 {dc="y"}=4"#),
        ("count(x) by (dc)", r#"U64 instant [count] {dc=""}=2 {dc="x"}=6 {dc="y"}=1"#),
        ("count(x)", "U64 instant [count] =9"),
        (
            "quantile(0.5, x) by (rack)",
            r#"DOUBLE instant [byte] {rack=""}=5 {rack="a"}=2 {rack="b"}=4.25"#,
        ),
        ("quantile(1, x)", "DOUBLE instant [byte] =16"),
        (
            "topk(2, x)",
            r#"DOUBLE instant [byte] {instance="web3:44321",instname="sda"}=8 {instance="web3:44321",instname="sdb"}=16"#,
        ),
        (
            "topk(1, x) by (rack)",
            r#"DOUBLE instant [byte] {rack="",instance="web5:44321",instname="sdb"}=7 {rack="a",instance="web2:44321",instname="sda"}=4 {rack="b",instance="web3:44321",instname="sdb"}=16"#,
        ),
        ("bottomk(1, x)", r#"DOUBLE instant [byte] {instance="web4:44321",instname="sdb"}=0.25"#),
        // Sums of 32 bits are not cut off.
        ("sum(n)", "U64 counter [count] =21474836475"),
        ("max(n) by (nowhere)", r#"U64 instant [count] {nowhere=""}=4294967295"#),
        ("topk(1, n)", r#"U64 counter [count] {instance="web1:44321"}=4294967295"#),
    ] {
        assert_eq!(of(expression), expected, "{expression}");
    }
}

#[test]
fn any_expression_may_stand_over_aggregates() {
    for (expression, expected) in [
        (
            "sum(x) by (dc) / sum(x)",
            r#"DOUBLE instant [] {dc=""}=0.23952095808383234 {dc="x"}=0.6646706586826348 {dc="y"}=0.09580838323353294"#,
        ),
        (
            "max(x) by (dc) - min(x) by (dc)",
            r#"DOUBLE instant [byte] {dc=""}=4 {dc="x"}=15.75 {dc="y"}=0"#,
        ),
        ("max(sum(x) by (dc) * 2)", "DOUBLE instant [byte] =55.5"),
        ("rescale(sum(x), \"Kbyte\")", "DOUBLE instant [Kbyte] =0.040771484375"),
        (r#"matchinst(/dc="x"/, count(x) by (dc))"#, r#"U64 instant [count] {dc="x"}=6"#),
        ("defined(x) ? sum(x) : 1", "DOUBLE instant [byte] =41.75"),
        ("topk(1, sum(x) by (dc))", r#"DOUBLE instant [byte] {dc="x"}=27.75"#),
        (
            "topk(1, x) / topk(1, x)",
            r#"DOUBLE instant [] {instance="web3:44321",instname="sdb"}=1"#,
        ),
    ] {
        assert_eq!(of(expression), expected, "{expression}");
    }
}

/// What stands in an aggregate is an operand that hosts compute; frames have it under
/// its text.
#[test]
fn expressions_of_hosts_are_operands() {
    let text = "f.a = sum(x / n + 1) by (rack)\nf.b = max( x/n+1 )\nf.c = topk(1, abs(x)) by (dc)\n\
                f.d = max(sum(x))\nf.e = sum(sum(x)) by (rack)\nf.f = count(defined(y) ? x : n)\n";
    let definitions = definitions(text, &["x", "n"]);
    let operands: Vec<(&str, bool)> = definitions
        .operands
        .iter()
        .map(|operand| (&*operand.name, operand.computed.is_some()))
        .collect();
    let expected = [
        ("x / n + 1", true),
        ("abs(x)", true),
        ("x", false),
        ("sum(x)", true),
        ("defined(y) ? x : n", true),
    ];
    assert_eq!(operands, expected);
    let computed = |name| computed(&definitions, name);
    assert_eq!(computed("f.b"), "max(x / n + 1)");
    // Without `by` an aggregate within another one is of all hosts, as it ever was.
    assert_eq!(computed("f.d"), "max(sum(x))");
    assert_eq!(computed("f.e"), "sum(sum(x)) by (rack)");
    let hosts = [target("a", "rack=a"), target("b", "rack=b")];
    let mut fleet = aggregates(&definitions);
    fleet.collector.set_targets(&hosts);
    let schema = schema([exported("x / n + 1", ValueType::F64, Semantics::Instant, "")]);
    for (at, host) in hosts.iter().enumerate() {
        let columns = [column(&instances(&[""]), &[(at as f64 + 1.5).to_bits()])];
        fleet.collector.frame(&frame(host, "", 1, &schema, &columns));
    }
    let shown = shown(&finish(&mut fleet, 1));
    let of = |name: &str| -> Vec<f64> {
        shown[name].values().map(|bits| f64::from_bits(*bits)).collect()
    };
    assert_eq!((of("f.a"), of("f.b")), (vec![1.5, 2.5], vec![2.5]));
}

/// Values of the only metric `f.x` of a slot, with exact numbers.
fn values(events: &[Event]) -> String {
    let all = shown(events);
    let values = all.get("f.x").into_iter().flatten();
    let values: Vec<String> =
        values.map(|(name, bits)| format!("{name}={}", f64::from_bits(*bits))).collect();
    values.join(" ")
}

#[test]
fn rates_are_of_the_same_members_only() {
    let definitions = definitions("f.x = rate(sum(n) by (rack))\n", &["n"]);
    let mut fleet = aggregates(&definitions);
    let hosts = [target("a1", "rack=a"), target("a2", "rack=a"), target("b1", "rack=b")];
    fleet.collector.set_targets(&hosts);
    let schema = schema([exported("n", ValueType::U64, Semantics::Counter, "count")]);
    let (one, two) = (instances(&["sda"]), instances(&["sda", "sdb"]));
    let (both, only_b) = (r#"{rack="a"}=3 {rack="b"}=1"#, r#"{rack="b"}=1"#);
    // The slot, which hosts answer, how many disks a1 has, and the rates.
    for (slot, answering, disks, expected) in [
        (1, [true, true, true], 1, ""),
        (2, [true, true, true], 1, both),
        (3, [true, false, true], 1, only_b),
        (4, [true, true, true], 1, only_b),
        (5, [true, true, true], 1, both),
        (6, [true, true, true], 2, only_b),
        (7, [true, true, true], 2, r#"{rack="a"}=6 {rack="b"}=1"#),
        (8, [true, true, false], 2, r#"{rack="a"}=6"#),
        (9, [true, true, true], 1, ""),
        (10, [true, true, true], 1, both),
        // Two slots went by.
        (12, [true, true, true], 1, both),
        // A new connection of a1 is a gap.
        (13, [true, true, true], 1, only_b),
        (14, [true, true, true], 1, both),
    ] {
        for (at, target) in hosts.iter().enumerate() {
            let value = [30, 0, 10][at] * slot;
            let columns = match (at, disks) {
                (0, 2) => [column(&two, &[value, value])],
                _ => [column(&one, &[value])],
            };
            match answering[at] {
                true => fleet.collector.frame(&Frame {
                    gaps: u32::from(at == 0 && slot >= 13),
                    ..frame(target, "", slot, &schema, &columns)
                }),
                false => fleet.collector.failed(target, Slot(slot)),
            }
        }
        assert_eq!(values(&finish(&mut fleet, slot)), expected, "slot {slot}");
    }
}

#[test]
fn hosts_are_counted_by_what_became_of_them() {
    let definitions = definitions("f.x = sum(x) by (rack)\nf.y = count(x)\n", &["x"]);
    let mut fleet = aggregates(&definitions);
    let names = ["present", "failed", "missed", "unheard", "silent", "other", "new", "late"];
    let mut hosts: Vec<_> = names.iter().map(|name| target(name, "rack=a")).collect();
    // Only itself knows where it stands, and it has never answered.
    hosts.push(target("unknown", ""));
    fleet.collector.set_targets(&hosts);
    let schema_of =
        |units: &str| schema([exported("x", ValueType::F64, Semantics::Instant, units)]);
    let (first, other) = (schema_of("byte"), schema_of("sec"));
    fleet.announce(&first);
    let one = instances(&[""]);
    let value = || vec![column(&one, &[1.5f64.to_bits()])];
    fleet.collector.frame(&frame(&hosts[0], "", 3, &first, &value()));
    fleet.collector.failed(&hosts[1], Slot(3));
    fleet.collector.missed(&hosts[2], Slot(3));
    fleet.collector.frame(&frame(&hosts[4], "", 3, &first, &[column(&one, &[])]));
    fleet.collector.frame(&frame(&hosts[5], "", 3, &other, &value()));
    fleet.collector.frame(&frame(&hosts[6], "", 3, &schema([]), &[]));
    let events = finish(&mut fleet, 3);
    assert_eq!(dropped(&fleet.collector), (0, 0));
    fleet.collector.frame(&frame(&hosts[7], "", 3, &first, &value()));
    fleet.collector.frame(&frame(&target("x", ""), "", 4, &first, &value()));
    assert_eq!(dropped(&fleet.collector), (1, 1));
    let shown = shown(&events);
    let number = |what: &str, group: &str| {
        let name = format!("{{aggregate=\"sum(x) by (rack)\",{group}}}");
        shown[&format!("fleet.hosts.{what}")][&name]
    };
    for (what, expected) in [
        ("expected", 8),
        ("present", 1),
        ("failed", 1),
        ("missed", 3),
        ("no_value", 2),
        ("left_out", 1),
    ] {
        assert_eq!(number(what, "rack=\"a\""), expected, "{what}");
    }
    assert_eq!(number("missed", "group=\"unknown\""), 1);
    // Without `by` there is no host whose group is unknown.
    for (what, expected) in [
        ("expected", 9),
        ("present", 1),
        ("failed", 1),
        ("missed", 4),
        ("no_value", 2),
        ("left_out", 1),
    ] {
        let numbers = &shown[&format!("fleet.hosts.{what}")];
        assert_eq!(numbers["{aggregate=\"count(x)\"}"], expected, "{what}");
        assert_eq!(numbers.len(), 3, "{what}");
    }
    assert_eq!(values(&events), r#"{rack="a"}=1.5"#);
    let warnings = fleet.take_warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("x of other and hosts like it is DOUBLE"), "{warnings:?}");
    let frame = frame_of(&events);
    assert_eq!((frame.at, frame.stamp.to_string()), (Nanos(40_000_000_000), "40.000000000".into()));
}

/// A metric gets another type on every host, one after the other.
#[test]
fn what_no_host_has_any_more_decides_no_longer() {
    for text in ["f.x = 1.0 * sum(x)\n", "f.x = rate(sum(x))\n"] {
        let definitions = definitions(text, &["x"]);
        let mut fleet = aggregates(&definitions);
        let hosts = [target("a", ""), target("b", "")];
        fleet.collector.set_targets(&hosts);
        let semantics = match text.contains("rate") {
            true => Semantics::Counter,
            false => Semantics::Instant,
        };
        let of_type = |value_type| schema([exported("x", value_type, semantics, "")]);
        let (whole, float) = (of_type(ValueType::I32), of_type(ValueType::F64));
        let one = instances(&[""]);
        let bits = |slot: u64, schema| match Arc::ptr_eq(schema, &whole) {
            true => slot,
            false => (slot as f64 / 2.0).to_bits(),
        };
        let mut told = Vec::new();
        // The hosts with whole numbers, and those with others.
        for (slot, wholes, floats) in [
            (1, "ab", ""),
            (2, "ab", ""),
            // Nobody knows whether `b` comes back as it was.
            (3, "b", "a"),
            (4, "", "ab"),
            (5, "", "a"),
            // In slots without anybody nothing is found out.
            (6, "", ""),
            (7, "", "ab"),
            (8, "", "ab"),
        ] {
            for host in &hosts {
                for (names, schema) in [(wholes, &whole), (floats, &float)] {
                    if names.contains(&*host.name) {
                        let columns = [column(&one, &[bits(slot, schema)])];
                        fleet.collector.frame(&frame(host, "", slot, schema, &columns));
                    }
                }
            }
            told.push(values(&finish(&mut fleet, slot)));
        }
        let is_rate = text.contains("rate");
        assert_eq!(told[1], if is_rate { "=0.2" } else { "=4" });
        assert_eq!(told[3..6], ["", "", ""], "{told:?}");
        // What decides now is told of the third slot in which all were left out.
        assert_eq!(told[6], if is_rate { "" } else { "=7" });
        assert_eq!(told[7], if is_rate { "=0.1" } else { "=8" });
        let warnings = fleet.take_warnings();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[1].ends_with("on no host any more: the next host that has it decides"));
    }
}

/// Of hosts that are alike in this, only the first is told, in the order of shards.
#[test]
fn all_that_is_left_out_is_told() {
    let definitions = definitions("f.x = sum(x)\n", &["x"]);
    let mut fleet = aggregates(&definitions);
    let kinds = [
        ("a", ValueType::U32, Semantics::Instant),
        ("b", ValueType::I32, Semantics::Instant),
        ("c", ValueType::F64, Semantics::Instant),
        ("d", ValueType::U64, Semantics::Counter),
        ("e", ValueType::F64, Semantics::Instant),
        ("f", ValueType::U64, Semantics::Counter),
    ];
    let hosts = kinds.map(|(name, ..)| target(name, ""));
    fleet.collector.set_targets(&hosts);
    for (slot, answering) in [(1, 5), (2, 6)] {
        for (host, (_, value_type, semantics)) in hosts.iter().zip(kinds).take(answering) {
            let schema = schema([exported("x", value_type, semantics, "")]);
            let columns = [column(&instances(&[""]), &[1])];
            fleet.collector.frame(&frame(host, "", slot, &schema, &columns));
        }
        finish(&mut fleet, slot);
    }
    let warnings = fleet.take_warnings();
    let told = warnings.iter().map(|one| one.split(" and hosts like it").next().unwrap_or(one));
    assert_eq!(told.collect::<Vec<_>>(), ["x of b", "x of d", "x of c"], "{warnings:?}");
}

/// Other groups of hosts do not have the metric.
#[test]
fn hosts_without_an_operand_are_not_expected() {
    let definitions = definitions("f.x = sum(x) by (rack)\nf.y = count(y)\n", &["x", "y"]);
    let mut fleet = aggregates(&definitions);
    let of_group = |name: &str, labels: &str, group| {
        Arc::new(Target { group: GroupId(group), ..(*target(name, labels)).clone() })
    };
    fleet.collector.set_targets(&[
        of_group("a", "rack=a", 0),
        of_group("b", "rack=a", 1),
        of_group("c", "rack=c", 1),
        of_group("d", "rack=a", 2),
    ]);
    // In the order in which they are taken: x, y.
    let had = [[true, true], [false, true]].map(|had| had.into());
    fleet.collector.set_operands(had.into());
    let shown = shown(&finish(&mut fleet, 3));
    let expected = &shown["fleet.hosts.expected"];
    let expected: Vec<String> =
        expected.iter().map(|(name, number)| format!("{name}={number}")).collect();
    let of_x = r#"{aggregate="sum(x) by (rack)",rack="a"}=2"#;
    assert_eq!(expected, [r#"{aggregate="count(y)"}=4"#, of_x]);
}

#[test]
fn groups_end_once_and_keep_their_identifiers() {
    let definitions = definitions("f.x = sum(x) by (rack)\n", &["x"]);
    let mut fleet = aggregates(&definitions);
    let schema = schema([exported("x", ValueType::F64, Semantics::Instant, "")]);
    let hosts = [target("a", "rack=a"), target("b", "rack=b")];
    let one = instances(&[""]);
    fleet.collector.set_targets(&hosts);
    let mut told = Vec::new();
    for (slot, answering) in [(1, "b"), (2, "ab"), (3, "b"), (4, "b"), (5, "ab"), (6, "")] {
        for host in hosts.iter().filter(|host| answering.contains(&*host.name)) {
            let columns = [column(&one, &[1f64.to_bits()])];
            fleet.collector.frame(&frame(host, "", slot, &schema, &columns));
        }
        for event in finish(&mut fleet, slot) {
            let (what, schema, series) = match &event {
                Event::Frame(frame) => {
                    let all = frame.columns.iter().map(|one| one.instances);
                    let all = frame.schema.metrics.positions().zip(all);
                    ("has", &frame.schema, all.collect::<Vec<_>>())
                }
                Event::Stale(stale) => {
                    assert_eq!(stale.reason, StaleReason::Vanished);
                    let all = stale.series.iter().map(|(at, instances)| (*at, instances));
                    ("lost", &stale.schema, all.collect())
                }
            };
            for (at, instances) in series {
                if &*schema.metrics[at].name == "f.x" {
                    let ids = instances.ids.iter().zip(&instances.labels);
                    let ids: Vec<String> = ids
                        .map(|(id, labels)| format!("{id}{}", labels.get("rack").unwrap_or("?")))
                        .collect();
                    told.push(format!("{slot} {what} {}", ids.join(" ")));
                }
            }
        }
    }
    let expected = [
        "1 has 1b",
        "2 has 0a 1b",
        "3 lost 0a",
        "3 has 1b",
        "4 has 1b",
        "5 has 0a 1b",
        "6 lost 0a 1b",
        "6 has ",
    ];
    assert_eq!(told, expected);
    let ended = fleet.evaluation.end(Slot(7), Nanos(0), StaleReason::DefinitionChanged);
    let Some(Event::Stale(stale)) = ended else { panic!("numbers of hosts have ended") };
    assert_eq!(stale.series.len(), 6);
    assert!(fleet.evaluation.end(Slot(7), Nanos(0), StaleReason::DefinitionChanged).is_none());
}

#[test]
fn quantiles_of_too_many_values_have_no_value() {
    let definitions = definitions("f.x = quantile(1, x)\nf.n = count(x)\n", &["x"]);
    let mut fleet = aggregates(&definitions);
    let schema = schema([exported("x", ValueType::F64, Semantics::Instant, "")]);
    let hosts = [target("a", ""), target("b", "")];
    fleet.collector.set_targets(&hosts);
    let names: Vec<String> = (0..MAX_QUANTILE_VALUES).map(|at| format!("i{at:05}")).collect();
    let many = instances(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let bits = vec![2f64.to_bits(); MAX_QUANTILE_VALUES];
    for (slot, has_one_more, expected) in [(1, false, "=2"), (2, true, ""), (3, false, "=2")] {
        fleet.collector.frame(&frame(&hosts[0], "", slot, &schema, &[column(&many, &bits)]));
        if has_one_more {
            let one = vec![column(&instances(&["i"]), &[1f64.to_bits()])];
            fleet.collector.frame(&frame(&hosts[1], "", slot, &schema, &one));
        }
        let events = finish(&mut fleet, slot);
        assert_eq!(values(&events), expected, "slot {slot}");
        let count = MAX_QUANTILE_VALUES as u64 + u64::from(has_one_more);
        assert_eq!(shown(&events)["f.n"][""], count);
    }
    assert_eq!(fleet.evaluation.numbers.refused.get(), 1);
    let expected = "`quantile(1, x)` has no value: there are more than 65536 values";
    assert_eq!(fleet.take_warnings(), [expected]);
}

#[test]
fn sums_that_overflow_are_told_once() {
    let definitions = definitions("f.x = sum(x) by (rack)\n", &["x"]);
    let mut fleet = aggregates(&definitions);
    let schema = schema([exported("x", ValueType::U64, Semantics::Instant, "")]);
    let host = target("a", "rack=a");
    fleet.collector.set_targets(&[Arc::clone(&host)]);
    let two = instances(&["p", "q"]);
    let mut told = Vec::new();
    for slot in 1..4 {
        let columns = [column(&two, &[u64::MAX; 2])];
        fleet.collector.frame(&frame(&host, "", slot, &schema, &columns));
        assert_eq!(values(&finish(&mut fleet, slot)), "");
        told.extend(fleet.take_warnings());
    }
    assert_eq!(fleet.evaluation.numbers.refused.get(), 3);
    let expected =
        r#"`sum(x) by (rack)` has no value for {rack="a"}: the sum has more than 64 bits"#;
    assert_eq!(told, [expected]);
}

/// Bad input harms nothing else.
#[test]
fn frames_that_do_not_fit_have_no_value() {
    let definitions = definitions("f.x = sum(x)\nf.n = count(x)\n", &["x"]);
    let mut fleet = aggregates(&definitions);
    let schema = schema([exported("x", ValueType::F64, Semantics::Instant, "")]);
    let hosts = ["a", "b", "c", "d"].map(|name| target(name, ""));
    fleet.collector.set_targets(&hosts);
    let two = instances(&["p", "q"]);
    let bits = [1f64.to_bits(), 2f64.to_bits()];
    fleet.collector.frame(&frame(&hosts[0], "", 1, &schema, &[column(&two, &bits)]));
    fleet.collector.frame(&frame(&hosts[1], "", 1, &schema, &[column(&two, &bits[..1])]));
    fleet.collector.frame(&frame(&hosts[2], "", 1, &schema, &[]));
    // The last of two frames of a slot counts.
    fleet.collector.frame(&frame(&hosts[3], "", 1, &schema, &[column(&two, &bits)]));
    fleet.collector.frame(&frame(&hosts[3], "", 1, &schema, &[column(&two, &[bits[0]; 2])]));
    let events = finish(&mut fleet, 1);
    assert_eq!(values(&events), "=5");
    assert_eq!(shown(&events)["f.n"][""], 4);
    // Slots far ahead do not pile up. Their frames are counted.
    for slot in 10..100 {
        fleet.collector.frame(&frame(&hosts[0], "", slot, &schema, &[column(&two, &bits)]));
    }
    assert_eq!(fleet.collector.numbers.late.get(), 86);
    // One that is older than all that are open counts nowhere, and neither does its failure.
    let late = fleet.collector.numbers.late.get();
    fleet.collector.frame(&frame(&hosts[1], "", 95, &schema, &[column(&two, &bits)]));
    assert_eq!(fleet.collector.numbers.late.get(), late + 1);
    fleet.collector.failed(&hosts[0], Slot(95));
    assert_eq!(values(&finish(&mut fleet, 96)), "=3");
    assert_eq!(values(&finish(&mut fleet, 99)), "=3");
    // So are those of slots that are skipped.
    assert_eq!(fleet.collector.numbers.late.get(), late + 3);
    fleet.collector.frame(&frame(&hosts[0], "", 2, &schema, &[]));
    assert_eq!(fleet.collector.numbers.late.get(), late + 4);
}
