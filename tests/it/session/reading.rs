//! The three ways to read a session: values where they lie, results as the
//! PMAPI has them, and samples of what was chosen.

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::engine::{Reading, Readings, Registered, Space};
use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{InDom, MetricDesc, PmStatus};
use pmderive_runtime::program::Status;
use pmderive_runtime::result::{ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource};

use crate::table::*;

/// What each reading says, in the words of `table::fetch`.
fn words(readings: &Readings<'_>, descs: &[Result<MetricDesc, PmStatus>]) -> Vec<String> {
    let mut batch = ResultBatch::default();
    let mut writer = ResultWriter::new(batch.add_part(), readings.timestamp());
    for (pmid, reading) in readings.iter() {
        match reading {
            Reading::Computed(values) => match values.status {
                Status::Failed(status) => writer.status(pmid, status),
                Status::Empty(_) => writer.set(pmid),
                Status::Values => {
                    writer.set(pmid);
                    for (instance, value) in values.iter() {
                        match value {
                            Value::U32(value) => writer.in_place(instance, value),
                            Value::U64(value) => {
                                writer.block(
                                    instance,
                                    pmderive_runtime::result::BlockValue::U64(value),
                                );
                            }
                            other => panic!("{other:?}"),
                        }
                    }
                }
            },
            Reading::Delivered(set) => writer.copy(&set),
            Reading::Empty => writer.set(pmid),
            Reading::Failed(status) => writer.status(pmid, status),
            other => panic!("{other:?}"),
        }
    }
    decode(&batch, descs).into_iter().map(|(_, values)| values).collect()
}

#[test]
fn readings_are_what_a_fetch_gives() {
    for dialect in [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0] {
        let shared = shared(dialect, SOME);
        let (mut fetching, mut reading) = (context(&shared), context(&shared));
        let mut space = Space::default();
        let lists: [&[&str]; 4] = [
            &["d.twice", "t.one", "d.lost", "t.set", "event.flags", "d.sum", "t.one"],
            &["t.text", "t.set", "t.one", "t.set"],
            &["d.sum", "d.twice"],
            &["event.missed", "d.lost"],
        ];
        let mut steps = 0;
        for values in [
            Values::U32(vec![(0, 10), (1, 20)]),
            Values::U32(vec![(1, 7)]),
            Values::Failed(PmStatus::AGAIN),
            Values::U32(vec![]),
        ] {
            for context in [&mut fetching, &mut reading] {
                set(context.source(), "t.set", values.clone());
            }
            for names in lists {
                let pmids = names.iter().map(|name| pmid(&mut fetching, name)).collect();
                let list = FetchList::new(pmids, vec![DOMAIN, InDom::new(7, 2)]);
                let descs = fetching.lookup_descs(list.pmids()).expect("memory does not fail");
                let mut batch = ResultBatch::default();
                let events = fetching.fetch(&list, &mut batch).expect("memory does not fail");
                let expected = decode(&batch, &descs);
                let expected: Vec<String> = expected.into_iter().map(|(_, one)| one).collect();

                let readings = reading.read(&list, &mut space).expect("memory does not fail");
                assert_eq!((readings.len(), readings.pmids()), (names.len(), list.pmids()));
                assert_eq!(readings.timestamp(), batch.timestamp());
                assert_eq!(readings.events, events);
                assert_eq!(words(&readings, &descs), expected, "{dialect:?} {names:?}");
                let mut written = ResultBatch::default();
                readings.write(&mut written);
                let written_words = decode(&written, &descs);
                let written_words: Vec<String> =
                    written_words.into_iter().map(|(_, one)| one).collect();
                assert_eq!(written_words, expected, "{dialect:?} {names:?}, written");
                let domains = |batch: &ResultBatch| -> Vec<Result<usize, PmStatus>> {
                    let known = batch.domains.iter();
                    known.map(|one| one.as_ref().map(|one| one.len()).map_err(|e| *e)).collect()
                };
                assert_eq!(domains(&written), domains(&batch));
                assert_eq!(domains(&written), [Ok(2), Err(PmStatus::INDOM)]);
                steps += 1;
            }
        }
        assert_eq!(steps, 16);
    }
}

/// What was chosen and what lists compute share previous samples, each as of
/// the last fetch in which it was computed.
#[test]
fn a_choice_and_lists_in_turn() {
    let definitions = [("d.a", "delta(t.set)"), ("d.b", "delta(t.counter)")];
    let shared = shared(Dialect::Fixed, &definitions);
    let mut session = context(&shared);
    let (mut space, mut diagnostics) = (Space::default(), Diagnostics::default());
    let snapshot = shared.snapshot();
    let mut sources = SourceMap::default();
    let text = sources.add("<expression>", "delta(t.counter) / 5");
    let expression = snapshot.registry.parse(text, &sources, &mut diagnostics).expect("no mistake");
    let chosen: Vec<&Registered> =
        vec![snapshot.registry.get("d.a").expect("a definition"), &expression];

    let nothing = session.sample(&mut space).expect("memory does not fail");
    assert!(nothing.metrics.is_empty() && nothing.values.is_empty(), "nothing was chosen");
    session.choose(&chosen, &mut diagnostics).expect("memory does not fail");
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert!(session.needs_two_samples());
    let both = list(&mut session, &["d.a", "d.b", "t.one"]);

    let mut step = |value: u32, is_sample: bool| -> Vec<String> {
        set(session.source(), "t.set", Values::U32(vec![(0, value)]));
        set(session.source(), "t.counter", Values::U64(vec![(0, u64::from(value) * 10)]));
        if !is_sample {
            return fetch(&mut session, &both);
        }
        let sample = session.sample(&mut space).expect("memory does not fail");
        let output = |at: usize| sample.metrics[at].output.expect("a usable metric");
        let values = |at: usize| {
            let values = sample.values.get(output(at));
            match values.is_empty() {
                true => "none".to_owned(),
                false => format!("{:?}", values.get(0)),
            }
        };
        vec![values(0), values(1)]
    };
    assert_eq!(step(1, true), ["none", "none"]);
    assert_eq!(step(2, true), ["I64(1)", "F64(2.0)"]);
    assert_eq!(step(4, false), ["0=2", "none", "-1=1"]);
    assert_eq!(step(8, false), ["0=4", "0=40", "-1=1"]);
    // The expression was computed two fetches ago.
    assert_eq!(step(16, true), ["I64(8)", "F64(28.0)"]);
    assert_eq!(step(32, false), ["0=16", "0=240", "-1=1"]);
    assert_eq!(step(64, true), ["I64(32)", "F64(96.0)"]);
}

/// A source that failed may be another one: what was chosen is to be chosen anew.
#[test]
fn a_choice_is_stale_after_a_failure() {
    for (dialect, expected) in [(Dialect::Fixed, true), (Dialect::Pcp7_2, false)] {
        let shared = shared(dialect, SOME);
        let mut session = context(&shared);
        let (mut space, mut diagnostics) = (Space::default(), Diagnostics::default());
        let snapshot = shared.snapshot();
        let chosen: Vec<&Registered> = vec![snapshot.registry.get("d.sum").expect("a definition")];
        session.choose(&chosen, &mut diagnostics).expect("memory does not fail");
        assert!(session.sample(&mut space).is_ok() && !session.is_stale());
        session.source().feed().fail_next();
        assert!(session.sample(&mut space).is_err());
        assert_eq!(session.is_stale(), expected, "{dialect:?}");
        session.choose(&chosen, &mut diagnostics).expect("memory does not fail");
        assert!(session.sample(&mut space).is_ok() && !session.is_stale(), "{dialect:?}");
    }
}
