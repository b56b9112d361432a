//! Fetch groups over a source in memory, step by step.

use pmderive_runtime::context::{ConnectOptions, HostContext};
use pmderive_runtime::fetch_group::{ExtendError, FetchGroup, FetchGroupOptions, ItemSpec};
use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, InstId, MetricDesc, PmStatus, Pmid, Semantics, Timestamp, Units, Value, ValueType,
};
use pmderive_runtime::pdu::PduType;
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};
use pmderive_testkit::fake_pmcd::{self, FakeHost, FakePmcd, Fault, Metric, Rule, World};

const DOMAIN: InDom = InDom::new(9, 1);

const COUNTER: Pmid = Pmid::new(9, 0, 0);
const NUMBER: Pmid = Pmid::new(9, 0, 1);
const TEXT: Pmid = Pmid::new(9, 0, 2);
const SETTING: Pmid = Pmid::new(9, 0, 3);
const SET: Pmid = Pmid::new(9, 0, 4);
const WRAPPING: Pmid = Pmid::new(9, 0, 5);

/// The values of each metric at a time; no entry for an omitted one.
#[derive(Default)]
struct Script {
    now: i64,
    is_gap: bool,
    is_lost: bool,
    counter: u64,
    number: f64,
    text: &'static str,
    settings: Option<Vec<(InstId, u32)>>,
    set: Vec<(InstId, u32)>,
    wrapping: u32,
}

impl Feed for Script {
    fn fetch(
        &mut self,
        list: &FetchList,
        _: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        if self.is_lost {
            return Err(SourceError::Timeout { target: "a script".into(), seconds: 1.0 });
        }
        let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(self.now, 0));
        for pmid in list.pmids() {
            writer.set(*pmid);
            match *pmid {
                COUNTER => writer.block(-1, BlockValue::U64(self.counter)),
                NUMBER => writer.block(-1, BlockValue::F64(self.number)),
                TEXT => writer.block(-1, BlockValue::Text(self.text)),
                WRAPPING => writer.in_place(-1, self.wrapping),
                SETTING => match &self.settings {
                    None => writer.fail(PmStatus::NOAGENT),
                    Some(values) => values.iter().for_each(|(id, v)| writer.in_place(*id, *v)),
                },
                SET => self.set.iter().for_each(|(id, value)| writer.in_place(*id, *value)),
                _ => writer.fail(PmStatus::PMID),
            }
        }
        Ok(FetchEvents { gap: self.is_gap, ..FetchEvents::default() })
    }
}

type Group = FetchGroup<MemorySource<Script>>;

fn group(counter_wraps: bool) -> Group {
    let mut metadata = MemoryMetadata::default();
    for (name, pmid, value_type, indom, semantics, units) in [
        ("counter", COUNTER, ValueType::U64, None, Semantics::Counter, "Kbyte"),
        ("number", NUMBER, ValueType::F64, None, Semantics::Instant, "sec"),
        ("text", TEXT, ValueType::String, None, Semantics::Instant, ""),
        ("setting", SETTING, ValueType::U32, Some(DOMAIN), Semantics::Discrete, "count"),
        ("set", SET, ValueType::U32, Some(DOMAIN), Semantics::Counter, "count"),
        ("wrapping", WRAPPING, ValueType::U32, None, Semantics::Counter, ""),
    ] {
        let units = Units::parse(units).unwrap().units;
        metadata.add_metric(name, MetricDesc { pmid, value_type, indom, semantics, units });
    }
    metadata.set_instances(DOMAIN, vec![(1, "one".into()), (2, "two".into())]);
    let script = Script { now: 100, ..Script::default() };
    let source = MemorySource::new("a script", metadata, script);
    FetchGroup::with_options(source, FetchGroupOptions { counter_wraps, keep_discrete: true })
}

/// One second later, after a change.
fn step(group: &mut Group, change: impl FnOnce(&mut Script)) {
    let script = group.source().feed();
    script.now += 1;
    change(script);
    group.fetch().unwrap();
}

#[test]
fn rates_are_those_since_the_last_fetch_that_succeeded() {
    let mut group = group(false);
    let rate = group.item::<f64>(ItemSpec::of("counter")).unwrap();
    let scaled = group.item::<u32>(ItemSpec::of("counter").scale("byte/min")).unwrap();
    let value = group.item::<u64>(ItemSpec::of("counter").scale("instant")).unwrap();
    assert_eq!(group.get(rate), Err(PmStatus::VALUE));
    assert_eq!((group.kept(rate), group.kept(value)), (None, None));
    assert_eq!(group.timestamp(), Timestamp::default());
    step(&mut group, |script| script.counter = 10);
    assert_eq!((group.get(rate), group.get(value)), (Err(PmStatus::AGAIN), Ok(10)));
    assert_eq!(group.timestamp(), Timestamp::new(101, 0));
    step(&mut group, |script| script.counter = 13);
    assert_eq!((group.get(rate), group.get(scaled)), (Ok(3.0), Ok(3 * 1024 * 60)));

    group.source().feed().is_lost = true;
    assert!(group.fetch().is_err());
    assert_eq!((group.get(rate), group.get(value)), (Err(PmStatus::VALUE), Err(PmStatus::VALUE)));
    assert!(group.timestamp().sec > 1_000_000);
    group.source().feed().is_lost = false;
    step(&mut group, |script| (script.now, script.counter) = (105, 16));
    assert_eq!(group.get(rate), Ok(1.0), "in three seconds");

    step(&mut group, |script| (script.is_gap, script.counter) = (true, 20));
    assert_eq!((group.get(rate), group.get(value)), (Err(PmStatus::AGAIN), Ok(20)));
    step(&mut group, |script| (script.is_gap, script.counter) = (false, 19));
    assert_eq!(group.get(rate), Err(PmStatus::VALUE), "it fell");
    // Time stands still, then goes back, then advances.
    for (seconds, expected) in
        [(0, Err(PmStatus::AGAIN)), (-5, Err(PmStatus::AGAIN)), (1, Ok(1.0)), (2, Ok(0.5))]
    {
        step(&mut group, |script| {
            (script.now, script.counter) = (script.now - 1 + seconds, script.counter + 1);
        });
        assert_eq!(group.get(rate), expected, "after {seconds} s");
    }
}

#[test]
fn counters_wrap_only_where_that_is_said() {
    for (wraps, expected) in [(false, Err(PmStatus::VALUE)), (true, Ok(6.0))] {
        let mut group = group(wraps);
        let rate = group.item::<f64>(ItemSpec::of("wrapping")).unwrap();
        let number = group.item::<f64>(ItemSpec::of("number").scale("rate")).unwrap();
        step(&mut group, |script| (script.wrapping, script.number) = (u32::MAX - 1, 5.0));
        step(&mut group, |script| (script.wrapping, script.number) = (4, 3.5));
        assert_eq!(group.get(rate), expected);
        // A floating-point number has no range to wrap in.
        let falling = if wraps { Ok(-1.5) } else { Err(PmStatus::VALUE) };
        assert_eq!(group.get(number), falling);
    }
}

#[test]
fn text_and_numbers_become_each_other() {
    let mut group = group(false);
    let spec = || ItemSpec::of("text");
    let text = group.item::<String>(spec()).unwrap();
    let own = group.item::<Value>(spec()).unwrap();
    let integer = group.item::<i32>(spec()).unwrap();
    let half = group.item::<f64>(spec().scale("2")).unwrap();
    let rate = group.item::<f64>(spec().scale("rate")).unwrap();
    let number = group.item::<String>(ItemSpec::of("number")).unwrap();
    let whole = group.item::<i64>(ItemSpec::of("number").scale("ms")).unwrap();
    step(&mut group, |script| (script.text, script.number) = ("13", 1.5));
    assert_eq!((group.get(text), group.get(integer), group.get(half)), (Ok("13"), Ok(13), Ok(6.5)));
    assert_eq!(group.get(own), Ok(&Value::Text("13".into())));
    assert_eq!(group.get(number), Ok("1.50000000000000000e+00"));
    assert_eq!(group.get(whole), Ok(1500));
    step(&mut group, |script| (script.text, script.number) = ("20", f64::NAN));
    assert_eq!((group.get(rate), group.get(whole)), (Ok(7.0), Err(PmStatus::CONV)));
    step(&mut group, |script| (script.text, script.number) = ("x", 1e300));
    assert_eq!((group.get(text), group.get(integer)), (Ok("x"), Err(PmStatus::TYPE)));
    assert_eq!(group.kept(integer), None);
    assert_eq!((group.get(half), group.get(whole)), (Err(PmStatus::TYPE), Err(PmStatus::TRUNC)));
}

#[test]
fn discrete_values_stay_until_others_come() {
    let mut group = group(false);
    let one = group.item::<u32>(ItemSpec::of("setting").instance("one")).unwrap();
    let all = group.indom::<u32>(ItemSpec::of("setting")).unwrap();
    let rows = |group: &Group| {
        let rows = group.instances(all);
        (rows.status(), rows.iter().map(|row| row.value).collect::<Vec<_>>())
    };
    step(&mut group, |script| script.settings = Some(vec![]));
    assert_eq!((group.get(one), group.kept(one)), (Err(PmStatus::VALUE), None));
    step(&mut group, |script| script.settings = Some(vec![(2, 8), (1, 7)]));
    assert_eq!((group.get(one), rows(&group)), (Ok(7), (Ok(()), vec![Ok(7), Ok(8)])));
    step(&mut group, |script| script.settings = Some(vec![]));
    assert_eq!((group.get(one), rows(&group)), (Ok(7), (Ok(()), vec![Ok(7), Ok(8)])));
    step(&mut group, |script| script.settings = None);
    assert_eq!((group.get(one), group.kept(one)), (Err(PmStatus::NOAGENT), Some(7)));
    assert_eq!(rows(&group), (Err(PmStatus::NOAGENT), vec![Ok(7), Ok(8)]));
    step(&mut group, |script| script.settings = Some(vec![(2, 9)]));
    assert_eq!((group.get(one), group.kept(one)), (Err(PmStatus::VALUE), None));
    assert_eq!(rows(&group), (Ok(()), vec![Ok(9)]));
}

#[test]
fn instances_come_and_go_with_their_names() {
    let mut group = group(false);
    let all = group.indom::<f64>(ItemSpec::of("set")).unwrap();
    let two = group.indom::<u32>(ItemSpec::of("set").scale("instant").at_most(2)).unwrap();
    let rows = |group: &Group| {
        let rows = group.instances(all);
        rows.iter().map(|row| format!("{} {:?} {:?}", row.instance, row.name, row.value)).collect()
    };
    step(&mut group, |script| script.set = vec![(2, 20), (1, 10)]);
    let first: Vec<String> = rows(&group);
    assert_eq!(first, [r#"1 Some("one") Err(PM_ERR_AGAIN)"#, r#"2 Some("two") Err(PM_ERR_AGAIN)"#]);
    let domain = vec![(3, "three".into()), (2, "two".into()), (1, "one".into())];
    group.source().metadata().set_instances(DOMAIN, domain);
    step(&mut group, |script| script.set = vec![(4, 1), (3, 1), (2, 25), (1, 9)]);
    let second: Vec<String> = rows(&group);
    assert_eq!(
        second,
        [
            r#"1 Some("one") Err(PM_ERR_VALUE)"#,
            r#"2 Some("two") Ok(5.0)"#,
            r#"3 Some("three") Err(PM_ERR_VALUE)"#,
            "4 None Err(PM_ERR_VALUE)",
        ]
    );
    let cut = group.instances(two);
    assert_eq!((cut.status(), cut.len()), (Err(PmStatus::TOOBIG), 2));
    assert_eq!(cut.iter().map(|row| row.value).collect::<Vec<_>>(), [Ok(9), Ok(25)]);
    step(&mut group, |script| script.set = vec![]);
    assert_eq!((group.instances(all).status(), group.instances(all).len()), (Ok(()), 0));
}

#[test]
fn entries_may_be_added_and_forgotten_at_any_time() {
    let mut group = group(false);
    assert_eq!(group.fetch().unwrap_err().status(), PmStatus::TOOSMALL);
    let counter = group.item::<f64>(ItemSpec::of("counter")).unwrap();
    step(&mut group, |script| script.counter = 5);
    // The metric was there before the entry, so its value was as well.
    let again = group.item::<f64>(ItemSpec::of("counter")).unwrap();
    let other = group.item::<f64>(ItemSpec::of("wrapping")).unwrap();
    step(&mut group, |script| (script.counter, script.wrapping) = (6, 1));
    assert_eq!((group.get(counter), group.get(again)), (Ok(1.0), Ok(1.0)));
    assert_eq!(group.get(other), Err(PmStatus::VALUE));
    group.clear();
    assert_eq!(group.get(counter), Err(PmStatus::ARG));
    assert_eq!(group.fetch().unwrap_err().status(), PmStatus::TOOSMALL);
    let number = group.item::<f64>(ItemSpec::of("number")).unwrap();
    step(&mut group, |script| script.number = 2.5);
    assert_eq!((group.get(number), group.get(counter)), (Ok(2.5), Err(PmStatus::ARG)));
    assert_eq!(self::group(false).get(number), Err(PmStatus::ARG));
}

#[test]
fn what_cannot_be_is_said_at_once() {
    let mut group = group(false);
    let refused = |error: ExtendError| (error.status(), error.to_string());
    for (spec, status, text) in [
        (
            ItemSpec::of("nobody"),
            PmStatus::NAME,
            "nobody: no metric has this name (Unknown metric name)",
        ),
        (
            ItemSpec::of("set"),
            PmStatus::INDOM,
            "set: this metric needs an instance (Unknown or illegal instance domain identifier)",
        ),
        (
            ItemSpec::of("number").instance("one"),
            PmStatus::INDOM,
            "number: this metric has no instances (Unknown or illegal instance domain identifier)",
        ),
        (
            ItemSpec::of("set").instance("three"),
            PmStatus::INST,
            "set: there is no instance \"three\" (Unknown or illegal instance identifier)",
        ),
        (
            ItemSpec::of("number").scale("bogus"),
            PmStatus::CONV,
            "number: units \"bogus\": unrecognized or duplicate base unit (Impossible value or scale conversion)",
        ),
        (
            ItemSpec::of("number").scale("count"),
            PmStatus::CONV,
            "number: units \"count\" fit neither the metric's units, \"sec\", nor their rate (Impossible value or scale conversion)",
        ),
        (
            ItemSpec::of("number").value_type(ValueType::Event),
            PmStatus::TYPE,
            "number: values of type EVENT are neither numbers nor text (Unknown or illegal metric type)",
        ),
    ] {
        let error = group.item::<Value>(spec).unwrap_err();
        assert_eq!(refused(error), (status, text.to_owned()));
    }
    let error = group.event::<f64>(ItemSpec::of("number"), "text").unwrap_err();
    assert_eq!(error.status(), PmStatus::TYPE);
    let error = group.indom::<f64>(ItemSpec::of("set").instance("one")).unwrap_err();
    assert_eq!(error.status(), PmStatus::INDOM);
    assert_eq!(group.fetch().unwrap_err().status(), PmStatus::TOOSMALL, "nothing was added");
}

/// A recipe is for the units, semantics and type that the metric had.
#[test]
fn an_entry_whose_metric_has_other_metadata_has_no_value() {
    let desc = MetricDesc {
        pmid: Pmid::new(400, 0, 3),
        value_type: ValueType::U32,
        indom: None,
        semantics: Semantics::Instant,
        units: Units::parse("Kbyte").expect("units").units,
    };
    let mut metadata = MemoryMetadata::default();
    metadata.add_metric("shop.size", desc);
    let mut second = 0;
    let feed = move |_: &FetchList, metadata: &mut MemoryMetadata, batch: &mut ResultBatch| {
        second += 1;
        let is_changed = second == 2;
        if is_changed {
            let units = Units::parse("Mbyte").expect("units").units;
            metadata.add_metric("shop.size", MetricDesc { units, ..desc });
        }
        let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(second, 0));
        writer.set(desc.pmid);
        writer.in_place(-1, 7);
        Ok(FetchEvents { metadata_changed: is_changed, ..FetchEvents::default() })
    };
    let mut group = FetchGroup::new(MemorySource::new("a script", metadata, feed));
    let size = || ItemSpec::of("shop.size").scale("byte");
    let first = group.item::<u64>(size()).expect("an entry");
    group.fetch().expect("values");
    assert_eq!(group.get(first), Ok(7 << 10));
    group.fetch().expect("values");
    assert_eq!(group.get(first), Err(PmStatus::CONV));
    let again = group.item::<u64>(size()).expect("an entry");
    group.fetch().expect("values");
    assert_eq!((group.get(first), group.get(again)), (Err(PmStatus::CONV), Ok(7 << 20)));
}

/// While pmcd does not tell the new descriptor, there is no value either.
#[test]
fn a_descriptor_that_is_not_told_is_asked_for_again() {
    let size = |units: &str| {
        let units = Units::parse(units).expect("units").units;
        let metric = Metric::new("shop.size", fake_pmcd::Script::constant(7_u32)).in_units(units);
        metric.meaning(Semantics::Instant).numbered(Pmid::new(60, 9, 9))
    };
    let mut world = World::new();
    world.add(size("Kbyte"));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let source = HostContext::open_with(&pmcd.spec(), ConnectOptions::default()).expect("a pmcd");
    let mut group = FetchGroup::new(source);
    let spec = || ItemSpec::of("shop.size").scale("byte");
    let entry = group.item::<u64>(spec()).expect("an entry");
    group.fetch().expect("values");
    assert_eq!(group.get(entry), Ok(7 << 10));
    for replacement in ["Mbyte", "Kbyte"] {
        pmcd.host().change_names(|world| {
            world.remove("shop.size");
            world.add(size(replacement));
        });
        pmcd.host().inject(Rule::new(Fault::Status(PmStatus::AGAIN)).on(PduType::DescIds));
        group.fetch().expect("values");
        assert_eq!(group.get(entry), Err(PmStatus::CONV), "{replacement}");
        group.fetch().expect("values");
        let told = if replacement == "Kbyte" { Ok(7 << 10) } else { Err(PmStatus::CONV) };
        assert_eq!(group.get(entry), told, "{replacement}");
    }
}
