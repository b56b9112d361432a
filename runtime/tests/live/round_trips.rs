//! The number of times that the client waits for its peer: over a network, this
//! is the cost of questions.

use std::sync::Arc;

use crate::fakes::{numbers_host, values};
use pmderive_runtime::context::{AsyncHostContext, ConnectOptions};
use pmderive_runtime::model::{
    InDom, InstanceDomain, LabelLevel, LabelSet, PmStatus, Pmid, TextKind, TextSubject, Timestamp,
};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{Answer, Fact, FetchList, Freshness, Question};
use pmderive_runtime::transport::ready;
use pmderive_testkit::fake_pmcd::Direct;

/// A context over a peer with metrics `m.0`, `m.1`, ... up to `count`, which
/// have texts as well.
fn peer(count: u32) -> AsyncHostContext<Direct> {
    let host = Arc::new(numbers_host(count));
    host.change(|world| {
        for number in 0..count.min(10_000) {
            let subject = TextSubject::Metric(Pmid(number));
            world.set_text(subject, TextKind::Help, "what it is");
        }
        world.set_text(TextSubject::Domain(InDom(9)), TextKind::OneLine, "one line");
        for serial in 0..1000 {
            world.set_instances(InDom(serial), &[(1, "one")]);
        }
    });
    Direct::attach("memory", &host);
    let options = ConnectOptions { request_timeout: None, ..ConnectOptions::default() };
    let spec = "pcp://memory".parse().expect("a specification");
    ready(AsyncHostContext::open_over(&spec, options)).expect("a peer")
}

/// Number of conversations for some work.
fn conversations(work: impl FnOnce()) -> u64 {
    let before = Direct::conversations();
    work();
    Direct::conversations() - before
}

/// All metadata of ten thousand metrics need one round trip for each kind of
/// question, although neither requests nor replies fit into the connection's
/// buffers.
#[test]
fn ten_thousand_metrics_are_bound_in_a_few() {
    const COUNT: u32 = 10_000;
    let mut host = peer(COUNT);
    let names: Vec<String> = (0..COUNT).map(|number| format!("m.{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids: Vec<Pmid> = (0..COUNT).map(Pmid).collect();
    let made = conversations(|| {
        let found = ready(host.lookup_names(&names)).expect("answers");
        assert!(found.iter().zip(&pmids).all(|(found, pmid)| *found == Ok(*pmid)));
    });
    assert_eq!(made, 1);
    let made = conversations(|| {
        let found = ready(host.lookup_descs(&pmids)).expect("answers");
        assert!(found.iter().zip(&pmids).all(|(found, pmid)| found.is_ok_and(|d| d.pmid == *pmid)));
    });
    assert_eq!(made, 1);
    let subjects = pmids.iter().map(|pmid| TextSubject::Metric(*pmid));
    let texts = subjects.map(|subject| Question::Text(subject, TextKind::Help));
    let levels = pmids.iter().map(|pmid| Question::Labels(LabelLevel::Item(*pmid)));
    let names_of = pmids.iter().map(|pmid| Question::NamesOf(*pmid));
    let domains = || (0..1000).map(|serial| Question::Domain(InDom(serial), Freshness::Cached));
    let made = conversations(|| {
        let found = ready(host.each::<Box<str>>(texts)).expect("answers");
        assert!(found.iter().all(|text| text.as_deref() == Ok("what it is")));
    });
    assert_eq!(made, 1);
    let made = conversations(|| {
        let found = ready(host.each::<Vec<LabelSet>>(levels)).expect("answers");
        assert!(found.iter().all(|sets| *sets == Ok(Vec::new())));
        let found = ready(host.each::<Vec<Box<str>>>(names_of)).expect("answers");
        assert_eq!(found.len(), pmids.len());
    });
    assert_eq!(made, 2);
    let made = conversations(|| {
        let found = ready(host.each::<Arc<InstanceDomain>>(domains()));
        assert!(found.expect("answers").iter().all(Result::is_ok));
    });
    assert_eq!(made, 1);
    // The client does not ask again for known facts.
    let made = conversations(|| {
        ready(host.lookup_names(&names)).expect("answers");
        ready(host.lookup_descs(&pmids)).expect("answers");
        ready(host.each::<Arc<InstanceDomain>>(domains())).expect("answers");
    });
    assert_eq!(made, 0);
}

/// Names that are not found need one more for the reasons.
#[test]
fn failures_are_explained_all_together() {
    let mut host = peer(10);
    let names: Vec<String> = (0..500).map(|number| format!("m.{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(conversations(|| drop(ready(host.lookup_names(&names)).expect("answers"))), 2);
    // Where reasons do not matter, there is no second round trip.
    let mut host = peer(10);
    let questions: Vec<Question<'_>> = names.iter().map(|name| Question::PmidIfAny(name)).collect();
    let mut answers = Vec::new();
    let made = conversations(|| ready(host.ask(&questions, &mut answers)).expect("answers"));
    assert_eq!((made, answers.len()), (1, names.len()));
    for (at, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_ok(), at < 10, "{}: {answer:?}", names[at]);
    }
}

/// Questions of any kinds go out together, and so do the second questions, about items without an
/// answer at first.
#[test]
fn questions_of_all_kinds_share_one() {
    let mut host = peer(1000);
    let known = [
        Question::Pmid("m.1"),
        Question::Desc(Pmid(2)),
        Question::Domain(InDom(3), Freshness::Cached),
        Question::NamesOf(Pmid(6)),
        Question::Labels(LabelLevel::Item(Pmid(7))),
        Question::NamesAtOtherTimes(InDom(3), &[1]),
    ];
    let open = [
        Question::KnownInstances(InDom(4)),
        Question::Domain(InDom(3), Freshness::Current),
        Question::Instance(InDom(5), "one"),
        Question::InstanceName(InDom(5), 1),
        Question::MetricsBelow("m"),
        Question::Children(""),
        Question::Text(TextSubject::Metric(Pmid(8)), TextKind::Help),
    ];
    // There is only one line, after a question for the help.
    let second = [
        Question::Pmid("no.such.metric"),
        Question::Desc(Pmid(99_999)),
        Question::Text(TextSubject::Domain(InDom(9)), TextKind::Help),
    ];
    let mut answers = Vec::new();
    let mut ask = |questions: &[Question<'_>]| {
        let made = conversations(|| ready(host.ask(questions, &mut answers)).expect("answers"));
        let found: Vec<Answer> = std::mem::take(&mut answers);
        assert_eq!(found.len(), questions.len());
        (made, found)
    };
    let questions: Vec<Question<'_>> = known.iter().chain(&open).copied().collect();
    let (made, found) = ask(&questions);
    assert_eq!((made, found.iter().all(Result::is_ok)), (1, true), "{found:?}");
    assert_eq!(ask(&known), (0, found[..known.len()].to_vec()));
    assert_eq!(ask(&questions), (1, found));
    let questions: Vec<Question<'_>> = second.iter().chain(&open).copied().collect();
    let (made, found) = ask(&questions);
    assert_eq!(made, 2);
    let text = Ok(Fact::Text("one line".into()));
    assert_eq!(found[..3], [Err(PmStatus::NAME), Err(PmStatus::PMID), text]);
    assert!(found[3..].iter().all(Result::is_ok), "{found:?}");
}

/// A fetch of more metrics than pmcd accepts in one request, with its domains.
#[test]
fn a_fetch_takes_one_however_large() {
    let mut host = peer(100_000);
    let pmids: Vec<Pmid> = (0..100_000).map(Pmid).collect();
    let list = FetchList::new(pmids.clone(), (0..50).map(InDom).collect());
    let mut batch = ResultBatch::default();
    for _ in 0..3 {
        let made = conversations(|| {
            ready(host.fetch(&list, &mut batch)).expect("values");
        });
        assert_eq!(made, 1);
        assert_eq!(batch.parts().len(), 7);
        assert_eq!(values(&batch), pmids.iter().map(|pmid| (*pmid, pmid.0)).collect::<Vec<_>>());
    }
}

/// Constants, too, have values at a time.
#[test]
fn a_fetch_without_metrics_takes_one_for_the_time() {
    let mut host = peer(1);
    let mut batch = ResultBatch::default();
    for domains in [vec![], vec![InDom(3)]] {
        let list = FetchList::new(Vec::new(), domains);
        let made = conversations(|| {
            ready(host.fetch(&list, &mut batch)).expect("a time");
        });
        assert_eq!(made, 1);
        assert_eq!(batch.timestamp(), Timestamp::new(1_000, 5_000));
        assert_eq!(batch.parts().iter().flat_map(|part| part.sets()).count(), 0);
        assert_eq!(batch.domains.len(), list.domains().len());
    }
}
