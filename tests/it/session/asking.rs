//! Questions go through sources that wrap others in one call, whatever is
//! asked together, and have the answers that each has by itself.

use std::sync::Arc;

use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Engine, Session};
use pmderive_runtime::model::{LabelLevel, Pmid, TextKind, TextSubject, ValueType};
use pmderive_runtime::name_space::{LoadOptions, LocalNameSpace, WithNameSpace};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{
    Answer, FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, Question, SourceError,
};

use crate::table::{DOMAIN, SOME, TableSource, Values, add, shared, table_from};

/// A table that counts how often it is asked.
struct Counting {
    table: TableSource,
    calls: usize,
}

impl MetadataSource for Counting {
    fn ask(
        &mut self,
        questions: &[Question<'_>],
        answers: &mut Vec<Answer>,
    ) -> Result<(), SourceError> {
        self.calls += 1;
        self.table.ask(questions, answers)
    }

    fn name(&self) -> String {
        self.table.name()
    }

    fn metadata_epoch(&self) -> u64 {
        self.table.metadata_epoch()
    }
}

impl FetchSource for Counting {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        self.table.fetch(list, batch)
    }
}

/// Some of the table's metrics have other names here, and what is below
/// `t.dyn` is the table's.
const NAMES: &str = "root {\n t\n}\nt {\n one 7:0:0\n set 7:0:1\n counter 7:0:2\n\
                     renamed 7:0:3\n dyn 7:*:*\n}\n";

fn source(is_replaced: bool) -> WithNameSpace<Counting> {
    let mut table = table_from(0);
    add(&mut table, "t.dyn.some", 20, ValueType::U32, None, Values::U32(vec![(-1, 1)]));
    add(&mut table, "t.dyn.more", 21, ValueType::U32, None, Values::U32(vec![(-1, 2)]));
    let counting = Counting { table, calls: 0 };
    if !is_replaced {
        return WithNameSpace::own(counting);
    }
    let options = LoadOptions { preprocess: false, duplicates: true };
    let names = LocalNameSpace::parse(NAMES, "names", &options).expect("a name space");
    WithNameSpace::new(Arc::new(names), counting)
}

const NODES: [&str; 15] = [
    "",
    "t",
    "t.one",
    "t.set",
    "t.set.more",
    "t.renamed",
    "t.text",
    "t.dyn",
    "t.dyn.some",
    "t.dyn.none",
    "d",
    "d.sum",
    "d.lost",
    "e",
    "nothing.like.it",
];

fn questions() -> Vec<Question<'static>> {
    let of_table = [0, 1, 3, 20, 77].map(|item| Pmid::new(7, 0, item));
    let derived = (1..=9).map(|item| Pmid::new(511, 0, item));
    let pmids: Vec<Pmid> = of_table.into_iter().chain(derived).collect();
    let mut questions = Vec::new();
    for node in NODES {
        questions.extend([Question::Pmid(node), Question::PmidIfAny(node)]);
        questions.extend([Question::MetricsBelow(node), Question::Children(node)]);
    }
    for pmid in pmids {
        let (text, level) = (TextSubject::Metric(pmid), LabelLevel::Item(pmid));
        questions.extend([Question::Desc(pmid), Question::NamesOf(pmid)]);
        questions
            .extend([TextKind::OneLine, TextKind::Help].map(|kind| Question::Text(text, kind)));
        let levels = [level, LabelLevel::Domain(pmid.domain())];
        questions.extend(levels.map(Question::Labels));
    }
    questions.extend([
        Question::Domain(DOMAIN, Freshness::Cached),
        Question::KnownInstances(DOMAIN),
        Question::NamesAtOtherTimes(DOMAIN, &[0, 5]),
        Question::Instance(DOMAIN, "b"),
        Question::Instance(DOMAIN, "c"),
        Question::InstanceName(DOMAIN, 1),
        Question::Text(TextSubject::Domain(DOMAIN), TextKind::Help),
        Question::Labels(LabelLevel::Context),
        Question::HostName,
        Question::TimeZone,
    ]);
    questions
}

fn ask(source: &mut impl MetadataSource, questions: &[Question<'_>]) -> Vec<Answer> {
    let mut answers = Vec::new();
    source.ask(questions, &mut answers).expect("memory does not fail");
    answers
}

#[test]
fn what_is_asked_together_goes_on_together() {
    for dialect in [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0] {
        for is_replaced in [false, true] {
            let shared = shared(dialect, SOME);
            let engine = Arc::new(Engine::new(dialect, Backend::Interp));
            let mut context =
                Session::new(engine, shared, source(is_replaced)).expect("one language");
            // Once everything is bound.
            ask(&mut context, &questions());
            for questions in [questions(), questions().into_iter().rev().collect()] {
                let each: Vec<Answer> =
                    questions.iter().flat_map(|one| ask(&mut context, &[*one])).collect();
                assert_eq!(each.len(), questions.len());
                context.source().source().calls = 0;
                let together = ask(&mut context, &questions);
                assert_eq!(context.source().source().calls, 1);
                for ((question, together), alone) in questions.iter().zip(&together).zip(&each) {
                    assert_eq!(together, alone, "{question:?}, {dialect:?}, {is_replaced}");
                }
                assert_eq!(together.len(), questions.len());
                let known = together.iter().filter(|answer| answer.is_ok()).count();
                assert!(known > questions.len() / 4, "{known} of {}", questions.len());
            }
        }
    }
}
