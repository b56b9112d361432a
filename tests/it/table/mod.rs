//! Contexts of derived metrics over a table of metrics in memory, and their
//! answers in words.
#![allow(dead_code, unused_imports, reason = "each test uses a part")]

mod source;

use std::sync::Arc;

use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, ChangeError, Definitions, Engine, Session};
use pmderive_runtime::model::{PmStatus, Pmid, TextKind, TextSubject};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource};

pub use source::{DOMAIN, TableSource, Values, add, decode, set, table_from};

pub type Context = Session<TableSource>;

pub fn shared(dialect: Dialect, definitions: &[(&str, &str)]) -> Arc<Definitions> {
    let shared = Definitions::new(dialect);
    for (name, text) in definitions {
        shared.register(name, text).expect("a good definition");
    }
    Arc::new(shared)
}

/// The outcome of a change of definitions, with libpcp's status.
pub fn changed<T>(outcome: Result<T, ChangeError>) -> Result<T, PmStatus> {
    outcome.map_err(|error| error.status())
}

pub fn context(shared: &Arc<Definitions>) -> Context {
    let engine = Engine::new(shared.language(), Backend::Interp);
    Session::new(Arc::new(engine), Arc::clone(shared), table_from(0)).expect("one language")
}

pub fn pmid(context: &mut Context, name: &str) -> Pmid {
    lookup(context, name).expect("a known name")
}

pub fn lookup(context: &mut Context, name: &str) -> Result<Pmid, PmStatus> {
    context.lookup_names(&[name]).expect("memory does not fail")[0]
}

pub fn list(context: &mut Context, names: &[&str]) -> FetchList {
    FetchList::new(names.iter().map(|name| pmid(context, name)).collect(), Vec::new())
}

/// A fetch in words: for each entry its values, or its status.
pub fn fetch(context: &mut Context, list: &FetchList) -> Vec<String> {
    let mut batch = ResultBatch::default();
    context.fetch(list, &mut batch).expect("memory does not fail");
    let descs = context.lookup_descs(list.pmids()).expect("memory does not fail");
    let sets = decode(&batch, &descs);
    let pmids: Vec<Pmid> = sets.iter().map(|(pmid, _)| *pmid).collect();
    assert_eq!(pmids, list.pmids(), "exactly the caller's entries in the caller's order");
    sets.into_iter().map(|(_, values)| values).collect()
}

pub fn fetch_names(context: &mut Context, names: &[&str]) -> Vec<String> {
    let list = list(context, names);
    fetch(context, &list)
}

pub fn children(context: &mut Context, node: &str) -> Result<Vec<String>, PmStatus> {
    let children = context.children(node).expect("memory does not fail")?;
    let written = |child: &pmderive_runtime::source::Child| match child.is_leaf {
        true => child.name.to_string(),
        false => format!("{}.", child.name),
    };
    Ok(children.iter().map(written).collect())
}

pub fn name_of(context: &mut Context, pmid: Pmid) -> Result<String, PmStatus> {
    Ok(context.names_of(pmid).expect("memory does not fail")?.join(" "))
}

pub fn text(context: &mut Context, pmid: Pmid, kind: TextKind) -> Result<Box<str>, PmStatus> {
    context.text(TextSubject::Metric(pmid), kind).expect("memory does not fail")
}

pub const SOME: &[(&str, &str)] = &[
    ("d.sum", "sum(t.set)"),
    ("d.twice", "t.set * 2"),
    ("d.lost", "t.missing + 1"),
    ("t.set.more", "t.one"),
    ("t.one", "5"),
    ("d.rate", "rate(t.counter)"),
    ("e", "t.text"),
];
