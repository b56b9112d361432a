//! Agents of an application beside each other in one context.

use std::sync::Arc;

use pmderive_runtime::local::{Agent, Instances, LocalContext, Metric, Value, Values};
use pmderive_runtime::model::{
    InDom, InstanceDomain, MetricDesc, PmStatus, Pmid, Semantics, Units, ValueType,
};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, Freshness, MetadataSource};

/// Serves what its table says. Metrics over instances have one value for
/// each of two; each fetch counts.
struct Tabled {
    domain: u32,
    metrics: Vec<(&'static str, u32, ValueType, bool)>,
    fetches: u32,
    instances: Instances,
}

impl Tabled {
    fn new(domain: u32, metrics: Vec<(&'static str, u32, ValueType, bool)>) -> Box<Tabled> {
        let mut instances = Instances::default();
        let numbers = ["red", "green"].map(|name| instances.number(name));
        instances.set_present(numbers.into_iter());
        Box::new(Tabled { domain, metrics, fetches: 0, instances })
    }
}

impl Agent for Tabled {
    fn name(&self) -> &str {
        "tabled"
    }

    fn metrics(&self) -> Vec<Metric> {
        let metric = |&(name, item, value_type, over): &(&'static str, u32, ValueType, bool)| {
            let indom = over.then(|| InDom::new(self.domain, 0));
            let pmid = Pmid::new(self.domain, 0, item);
            let semantics = Semantics::Instant;
            let desc = MetricDesc { pmid, value_type, indom, semantics, units: Units::NONE };
            Metric { name: name.into(), desc, help: format!("Help for {name}.").into() }
        };
        self.metrics.iter().map(metric).collect()
    }

    fn begin_fetch(&mut self) {
        self.fetches += 1;
    }

    fn fetch(&mut self, pmid: Pmid, values: &mut Values<'_, '_>) -> Result<(), PmStatus> {
        match (pmid.item(), values.desc().indom) {
            (0, _) => values.put(-1, Value::U32(self.fetches)),
            (1, _) => {
                values.put(0, Value::Text("r"));
                values.put(1, Value::Text("g"));
            }
            // A value of the right type, then one of the wrong type.
            (2, _) => {
                values.put(0, Value::F64(1.0));
                values.put(1, Value::U64(2));
            }
            (3, _) => {
                values.put(-1, Value::I64(5));
                return Err(PmStatus::AGAIN);
            }
            _ => {}
        }
        Ok(())
    }

    fn instance_domain(&mut self, indom: InDom) -> Result<Arc<InstanceDomain>, PmStatus> {
        if indom.serial() != 0 {
            return Err(PmStatus::INDOM);
        }
        Ok(Arc::clone(self.instances.domain()))
    }
}

fn two_agents() -> LocalContext {
    let first = Tabled::new(
        400,
        vec![
            ("app.fetches", 0, ValueType::U32, false),
            ("app.colour.name", 1, ValueType::String, true),
            ("app.wrong", 2, ValueType::F64, true),
            ("app.failing", 3, ValueType::I64, false),
        ],
    );
    let second = Tabled::new(
        401,
        vec![("other.fetches", 0, ValueType::U32, false), ("other.none", 4, ValueType::U32, false)],
    );
    LocalContext::with_agents(vec![first, second]).expect("no conflicts")
}

#[test]
fn names_lead_to_metrics() {
    let mut context = two_agents();
    let names = ["app.fetches", "app", "app.colour", "app.col", "", "other.none"];
    assert_eq!(
        context.lookup_names(&names).expect("in this process"),
        [
            Ok(Pmid::new(400, 0, 0)),
            Err(PmStatus::NONLEAF),
            Err(PmStatus::NONLEAF),
            Err(PmStatus::NAME),
            Err(PmStatus::NAME),
            Ok(Pmid::new(401, 0, 4)),
        ]
    );
    assert_eq!(context.traverse("app.colour").expect("in this process"), ["app.colour.name"]);
    assert_eq!(context.traverse("other.none").expect("in this process"), ["other.none"]);
    assert_eq!(context.traverse("").expect("in this process").len(), 6);
    assert!(context.traverse("ap").expect("in this process").is_empty());
    assert_eq!(context.help(Pmid::new(401, 0, 4)), Some("Help for other.none."));
}

#[test]
fn value_sets_come_in_the_order_of_the_request() {
    let mut context = two_agents();
    let pmids = [(401, 0), (400, 3), (400, 1), (402, 9), (400, 2), (401, 9), (400, 0), (401, 4)]
        .map(|(domain, item)| Pmid::new(domain, 0, item));
    let domains = [InDom::new(400, 0), InDom::new(400, 1), InDom::new(402, 0)];
    let list = FetchList::new(pmids.into(), domains.into());
    let mut batch = ResultBatch::default();
    for fetch in 1..=2 {
        context.fetch(&list, &mut batch).expect("in this process");
        let part = &batch.parts()[0];
        let sets: Vec<_> = part.sets().collect();
        assert!(sets.iter().map(|set| set.pmid).eq(pmids));
        let counts: Vec<_> = sets.iter().map(|set| set.count).collect();
        assert_eq!(
            counts,
            [
                Ok(1),
                Err(PmStatus::AGAIN),
                Ok(2),
                Err(PmStatus::NOAGENT),
                Err(PmStatus::TYPE),
                Err(PmStatus::PMID),
                Ok(1),
                Ok(0),
            ]
        );
        // Each agent is told once that a fetch begins.
        for slot in [0, 6] {
            assert_eq!(sets[slot].lanes().next().map(|lane| lane.word), Some(fetch));
        }
        let texts: Vec<_> =
            sets[2].lanes().map(|lane| part.block(lane.word).expect("a block").1).collect();
        assert_eq!(texts, [b"r\0", b"g\0"]);
        assert_eq!(batch.domains.len(), 3);
        assert_eq!(batch.domains[0].as_ref().expect("known").len(), 2);
        assert_eq!(batch.domains[1], Err(PmStatus::INDOM));
        assert_eq!(batch.domains[2], Err(PmStatus::NOAGENT));
        let again = context.instance_domain(domains[0], Freshness::Cached);
        let again = again.expect("in this process").expect("known");
        assert!(Arc::ptr_eq(batch.domains[0].as_ref().expect("known"), &again));
    }
}

#[test]
fn conflicts_are_refused() {
    let u32s = |domain, names: &[&'static str]| {
        let items = (0u32..).zip(names).map(|(item, name)| (*name, item, ValueType::U32, false));
        Tabled::new(domain, items.collect()) as Box<dyn Agent>
    };
    let cases: [(Vec<Box<dyn Agent>>, &str); 5] = [
        (vec![u32s(400, &["a.b"]), u32s(401, &["a.b"])], "tabled: the name a.b is in use"),
        (vec![u32s(400, &["a.b"]), u32s(401, &["a.b.c"])], "tabled: the name a.b.c is in use"),
        (vec![u32s(400, &["a.b.c"]), u32s(401, &["a.b"])], "tabled: the name a.b is in use"),
        (vec![u32s(400, &["a"]), u32s(400, &["b"])], "tabled: b has the identifier 400.0.0 of a"),
        (vec![u32s(400, &["a..b"])], "tabled: \"a..b\" is not a name of a metric"),
    ];
    for (agents, message) in cases {
        let error = LocalContext::with_agents(agents).err().expect("a conflict");
        assert_eq!(error.to_string(), message);
    }
    let over = |name| Tabled::new(400, vec![(name, 1, ValueType::String, true)]) as Box<dyn Agent>;
    let mut other = Tabled::new(401, vec![("b", 1, ValueType::String, true)]);
    other.domain = 400;
    assert!(LocalContext::with_agents(vec![over("a"), other]).is_err());
}
