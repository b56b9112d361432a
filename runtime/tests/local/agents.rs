//! Several agents of an application in one context.

use std::borrow::Cow;
use std::sync::Arc;

use pmderive_runtime::local::{Agent, AgentValue, Instances, LocalContext, Metric, Values};
use pmderive_runtime::model::{
    InDom, InstanceDomain, LabelFlags, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid,
    RawValueRef, Semantics, TextKind, TextSubject, Units, ValueType,
};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, Freshness, MetadataSource};

/// An agent over a table. Metrics over instances have one value for each of
/// two; each fetch counts.
struct TableAgent {
    domain: u32,
    metrics: Vec<(&'static str, u32, ValueType, bool)>,
    fetches: u32,
    instances: Instances,
}

impl TableAgent {
    fn new(domain: u32, metrics: Vec<(&'static str, u32, ValueType, bool)>) -> Box<TableAgent> {
        let mut instances = Instances::default();
        let numbers = ["red", "green"].map(|name| instances.number(name));
        instances.set_present(numbers.into_iter());
        Box::new(TableAgent { domain, metrics, fetches: 0, instances })
    }
}

impl Agent for TableAgent {
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
            (0, _) => values.put(-1, AgentValue::U32(self.fetches)),
            (1, _) => {
                values.put(0, AgentValue::Text("r"));
                values.put(1, AgentValue::Text("g"));
            }
            // A value of the right type, then one of the wrong type.
            (2, _) => {
                values.put(0, AgentValue::F64(1.0));
                values.put(1, AgentValue::U64(2));
            }
            (3, _) => {
                values.put(-1, AgentValue::I64(5));
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

    fn domain_help(&self, indom: InDom) -> Option<Cow<'static, str>> {
        (indom.serial() == 0).then_some("Two colours.".into())
    }

    fn labels(&mut self, level: LabelLevel) -> Vec<LabelSet> {
        let set = |instance, json: String| {
            let set = LabelSet::parse(&json, LabelFlags(level.bit())).expect("labels");
            set.of_instance(instance)
        };
        match level {
            LabelLevel::Domain(_) => vec![],
            LabelLevel::Instances(_) => {
                [0, 1].map(|id| set(id, format!("{{\"fetches\":{}}}", self.fetches))).into()
            }
            _ => vec![set(-1, format!("{{\"level\":{}}}", level.bit()))],
        }
    }
}

fn two_agents() -> LocalContext {
    let first = TableAgent::new(
        400,
        vec![
            ("app.fetches", 0, ValueType::U32, false),
            ("app.colour.name", 1, ValueType::String, true),
            ("app.wrong", 2, ValueType::F64, true),
            ("app.failing", 3, ValueType::I64, false),
        ],
    );
    let second = TableAgent::new(
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
    let unknown = context.traverse("ap").expect_err("no such node");
    assert_eq!(unknown.to_string(), "this machine: Unknown metric name");
    let children = |context: &mut LocalContext, node| {
        let children = context.children(node).expect("in this process")?;
        Ok(children.into_iter().map(|child| (child.name.into(), child.is_leaf)).collect())
    };
    let expect = |list: &[(&str, bool)]| -> Result<Vec<(String, bool)>, PmStatus> {
        Ok(list.iter().map(|(name, is_leaf)| (name.to_string(), *is_leaf)).collect())
    };
    assert_eq!(children(&mut context, ""), expect(&[("app", false), ("other", false)]));
    assert_eq!(children(&mut context, "other"), expect(&[("fetches", true), ("none", true)]));
    assert_eq!(children(&mut context, "other.none"), expect(&[]));
    assert_eq!(children(&mut context, "ap"), Err(PmStatus::NAME));
    let mut names = |domain, item| {
        let found = context.names_of(Pmid::new(domain, 0, item)).expect("in this process");
        found.map(|names| names.join(" "))
    };
    assert_eq!(names(401, 4).as_deref(), Ok("other.none"));
    assert_eq!(names(401, 5), Err(PmStatus::PMID));
    assert_eq!(names(402, 5), Err(PmStatus::NOAGENT));
}

#[test]
fn texts_and_labels_are_the_agents() {
    let mut context = two_agents();
    let (metric, domain) = (TextSubject::Metric, TextSubject::Domain);
    let subjects = [
        metric(Pmid::new(401, 0, 4)),
        domain(InDom::new(400, 0)),
        domain(InDom::new(400, 7)),
        metric(Pmid::new(401, 0, 9)),
        metric(Pmid::new(402, 0, 9)),
        domain(InDom::new(402, 0)),
    ];
    for kind in [TextKind::OneLine, TextKind::Help] {
        let found = context.text_of_each(&subjects, kind).expect("in this process");
        let expected = [
            Ok("Help for other.none.".into()),
            Ok("Two colours.".into()),
            Err(PmStatus::TEXT),
            Err(PmStatus::TEXT),
            Err(PmStatus::NOAGENT),
            Err(PmStatus::NOAGENT),
        ];
        assert_eq!(found, expected);
    }
    let mut labels = |level| {
        let sets = context.labels(level).expect("in this process")?;
        Ok(sets.iter().map(|set| (set.instance(), set.json().to_owned())).collect())
    };
    let one = |json: &str| Ok(vec![(-1, json.to_owned())]);
    let indom = InDom::new(400, 0);
    assert_eq!(labels(LabelLevel::Domain(401)), one("{\"agent\":\"tabled\"}"));
    assert_eq!(labels(LabelLevel::Item(Pmid::new(401, 0, 4))), one("{\"level\":16}"));
    assert_eq!(labels(LabelLevel::InDom(indom)), one("{\"level\":4}"));
    let instances = labels(LabelLevel::Instances(indom)).expect("in this process");
    let fetches = |count: u32| format!("{{\"fetches\":{count}}}");
    assert_eq!(instances, [(0, fetches(1)), (1, fetches(1))]);
    assert_eq!(labels(LabelLevel::Domain(402)), Err(PmStatus::NOAGENT));
    let context = labels(LabelLevel::Context).expect("in this process");
    assert!(context[0].1.contains("\"hostname\":"), "{context:?}");
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
        // Each agent begins a fetch once.
        for slot in [0, 6] {
            assert_eq!(sets[slot].value(0), Some(RawValueRef::InPlace(fetch)));
        }
        let texts: Vec<_> = sets[2].values().map(|(_, text)| text.expect("a value")).collect();
        let text = |bytes| RawValueRef::Block { code: 6, bytes };
        assert_eq!(texts, [text(b"r\0"), text(b"g\0")]);
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
        TableAgent::new(domain, items.collect()) as Box<dyn Agent>
    };
    let cases: [(Vec<Box<dyn Agent>>, &str); 5] = [
        (vec![u32s(400, &["a.b"]), u32s(401, &["a.b"])], "tabled: the name a.b is in use"),
        (vec![u32s(400, &["a.b"]), u32s(401, &["a.b.c"])], "tabled: the name a.b.c is in use"),
        (vec![u32s(400, &["a.b.c"]), u32s(401, &["a.b"])], "tabled: the name a.b is in use"),
        (vec![u32s(400, &["a"]), u32s(400, &["b"])], "tabled: b has the identifier 400.0.0 of a"),
        (vec![u32s(400, &["a..b"])], "tabled: \"a..b\" is not a valid metric name"),
    ];
    for (agents, message) in cases {
        let error = LocalContext::with_agents(agents).expect_err("a conflict");
        assert_eq!(error.to_string(), message);
    }
    let over =
        |name| TableAgent::new(400, vec![(name, 1, ValueType::String, true)]) as Box<dyn Agent>;
    let mut other = TableAgent::new(401, vec![("b", 1, ValueType::String, true)]);
    other.domain = 400;
    assert!(LocalContext::with_agents(vec![over("a"), other]).is_err());
}
