//! The meaning of definitions in each dialect, as tables. They have expressions with the
//! answers of 6.0 and of 7.2 and the right one, over archives of this repository and over the
//! sample agent of a real pmcd.
//!
//! `tests/quirks/*.txt` hold cases of three kinds of lines: a tag (number of the rule or quirk)
//! with the source and the number of fetches; the expression; and the answers. With
//! `QUIRKS=update` in the environment the answers are written anew. Read the difference then.

mod registry;
mod scripted;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pmderive::SourceMap;
use pmderive::diag::{Diagnostics, Severity};
use pmderive::dialect::Dialect;
use pmderive::engine::{Backend, Engine, Metric, Registered, Registry, Space};
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::context::HostContext;
use pmderive_runtime::eval::{Evaluation, Value};
use pmderive_runtime::program::{OutputId, Status};
use pmderive_runtime::source::FetchSource;
use pmderive_testkit::real_pmcd;

use crate::choosing::choosing;

const DIALECTS: [(Dialect, &str); 3] =
    [(Dialect::Pcp6_0, "6.0"), (Dialect::Pcp7_2, "7.2"), (Dialect::Fixed, "off")];

/// A case of a table.
struct Case {
    /// Lines before it that belong to no case.
    comment: String,
    tag: String,
    source: String,
    fetches: usize,
    expr: String,
    /// As in the file.
    answers: Vec<String>,
}

fn read(file: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(file).expect("a table");
    let mut cases: Vec<Case> = Vec::new();
    let mut comment = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            let _ = writeln!(comment, "{line}");
        } else if let Some(answer) = line.strip_prefix("    ") {
            let case = cases.last_mut().expect("a case before its answers");
            case.answers.push(answer.to_string());
        } else {
            let words: Vec<&str> = line.split(' ').collect();
            let [tag, source, fetches] = words[..] else { panic!("no head of a case: {line}") };
            cases.push(Case {
                comment: std::mem::take(&mut comment),
                tag: tag.to_string(),
                source: source.to_string(),
                fetches: fetches.parse().expect("a number of fetches"),
                expr: lines.next().expect("an expression").to_string(),
                answers: Vec::new(),
            });
        }
    }
    cases
}

/// Definitions of a dialect, each by the number of its case.
struct Defined {
    registry: Registry,
    /// What is said of refused ones.
    refused: Vec<Option<String>>,
}

fn define<'e>(dialect: Dialect, expressions: impl IntoIterator<Item = &'e str>) -> Defined {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let mut registry = Registry::new(dialect);
    let mut refused = Vec::new();
    for (number, expr) in expressions.into_iter().enumerate() {
        let source = sources.add("<case>", expr);
        let name = format!("t.x{number}");
        let outcome = registry.register(&name, source, &sources, &mut diagnostics);
        refused.push(outcome.err().map(|error| {
            format!("refused at {}: {}", error.offset, error.message.as_deref().unwrap_or("-"))
        }));
    }
    Defined { registry, refused }
}

impl Defined {
    /// Definitions that were accepted, with the number of their case.
    fn accepted(&self) -> Vec<(usize, &Registered)> {
        let name = |number: usize| format!("t.x{number}");
        let get = |number| self.registry.get(&name(number)).map(|one| (number, one));
        (0..self.refused.len()).filter_map(get).collect()
    }

    /// Answers to all cases over one source.
    fn answers<S: FetchSource>(self, dialect: Dialect, source: S, fetches: usize) -> Vec<String> {
        let engine = Arc::new(Engine::new(dialect, Backend::Interp));
        let accepted = self.accepted();
        let selection: Vec<&Registered> = accepted.iter().map(|(_, one)| *one).collect();
        let mut diagnostics = Diagnostics::default();
        let mut session = choosing(engine, source, &self.registry, &selection, &mut diagnostics)
            .expect("a source that answers");
        let mut answers: Vec<String> =
            self.refused.iter().map(|text| text.clone().unwrap_or_default()).collect();
        for ((number, _), metric) in accepted.iter().zip(session.metrics()) {
            answers[*number] = described(metric, &diagnostics);
        }
        let mut space = Space::default();
        for fetch in 0..fetches {
            let sample = match session.sample(&mut space) {
                Ok(sample) => sample,
                Err(error) => {
                    for (number, _) in &accepted {
                        let _ = write!(answers[*number], "; [{fetch}] fetch {}", error.status().0);
                    }
                    break;
                }
            };
            for ((number, _), metric) in accepted.iter().zip(sample.metrics) {
                if let Some(output) = metric.output {
                    let lead = if fetch == 0 { "" } else { ";" };
                    let _ = write!(answers[*number], "{lead} [{fetch}] ");
                    write_values(&mut answers[*number], &sample.values, output);
                }
            }
        }
        answers
    }
}

fn described(metric: &Metric, diagnostics: &Diagnostics) -> String {
    match &metric.desc {
        Ok(desc) => {
            let indom = desc.indom.map_or("NULL".to_string(), |indom| indom.to_string());
            format!("{}, {indom}, {}, \"{}\"", desc.value_type, desc.semantics, desc.units)
        }
        Err(_) => {
            let mine = |name: &Option<Box<str>>| name.as_deref() == Some(&*metric.name);
            let mut errors = diagnostics
                .iter()
                .filter(|one| mine(&one.metric) && one.severity == Severity::Error);
            let first = errors.next().expect("a reason");
            match &first.pcp {
                Some(text) => format!("rejected: {text}"),
                None => format!("rejected [{}]: {}", first.code, first.message),
            }
        }
    }
}

fn write_values(out: &mut String, evaluation: &Evaluation<'_>, output: OutputId) {
    let values = evaluation.get(output);
    match values.status {
        Status::Failed(status) => {
            let _ = write!(out, "{}", status.0);
        }
        Status::Empty(_) => out.push_str("none"),
        Status::Values => {
            for (at, (instance, value)) in values.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                if instance != -1 {
                    let _ = write!(out, "{instance}:");
                }
                let _ = match value {
                    Value::I32(value) => write!(out, "{value}"),
                    Value::U32(value) => write!(out, "{value}"),
                    Value::I64(value) => write!(out, "{value}"),
                    Value::U64(value) => write!(out, "{value}"),
                    Value::F32(value) => write!(out, "{value:?}"),
                    Value::F64(value) => write!(out, "{value:?}"),
                    Value::Text(text) => write!(out, "{:?}", String::from_utf8_lossy(text)),
                    Value::Bytes(bytes) => write!(out, "{} bytes", bytes.len()),
                };
            }
        }
    }
}

/// Lines of a case's answers; dialects that agree share one.
fn lines(answers: [&str; 3]) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, answer) in answers.iter().enumerate() {
        if answers[..at].contains(answer) {
            continue;
        }
        let same: Vec<&str> = DIALECTS
            .iter()
            .zip(answers)
            .filter(|(_, other)| other == answer)
            .map(|((_, name), _)| *name)
            .collect();
        let names = if same.len() == 3 { "all".to_string() } else { same.join(", ") };
        lines.push(format!("{names}: {answer}"));
    }
    lines
}

/// Compares the answers of a table, or writes them anew.
fn settle(file: &Path, cases: &[Case], answers: &[Vec<String>; 3]) {
    let mut text = String::new();
    let mut differences = String::new();
    for (at, case) in cases.iter().enumerate() {
        let lines = lines([&answers[0][at], &answers[1][at], &answers[2][at]]);
        let Case { comment, tag, source, fetches, expr, .. } = case;
        let _ = writeln!(text, "{comment}{tag} {source} {fetches}\n{expr}");
        for line in &lines {
            let _ = writeln!(text, "    {line}");
        }
        if lines != case.answers {
            let (want, got) = (case.answers.join("\n    "), lines.join("\n    "));
            let _ = writeln!(differences, "{tag} {expr}\n    {want}\nbut now\n    {got}");
        }
    }
    if std::env::var("QUIRKS").is_ok_and(|value| value == "update") {
        std::fs::write(file, text).expect("a writable table");
        return;
    }
    assert!(differences.is_empty(), "{}:\n{differences}", file.display());
}

fn table(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quirks").join(name)
}

#[test]
fn over_archives() {
    let file = table("archives.txt");
    let cases = read(&file);
    let archives = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives");
    let answers = DIALECTS.map(|(dialect, _)| {
        let answer = |case: &Case| {
            let mut source = ArchiveContext::open(archives.join(&case.source)).expect("an archive");
            if dialect != Dialect::Fixed {
                source.look_up_instances_by_beginning();
            }
            let defined = define(dialect, [&*case.expr]);
            defined.answers(dialect, source, case.fetches).remove(0)
        };
        cases.iter().map(answer).collect::<Vec<String>>()
    });
    settle(&file, &cases, &answers);
}

#[test]
fn over_the_sample_agent() {
    let Some(pmcd) = real_pmcd::RealPmcd::start() else { return };
    let file = table("sample.txt");
    let cases = read(&file);
    let spec = format!("unix:{}", pmcd.socket.display()).parse().expect("a host");
    let answers = DIALECTS.map(|(dialect, _)| {
        // All of a number of fetches at once, as an application would.
        let mut answers = vec![String::new(); cases.len()];
        let mut counts: Vec<usize> = cases.iter().map(|case| case.fetches).collect();
        counts.sort_unstable();
        counts.dedup();
        for count in counts {
            let numbers: Vec<usize> =
                (0..cases.len()).filter(|number| cases[*number].fetches == count).collect();
            let defined = define(dialect, numbers.iter().map(|number| &*cases[*number].expr));
            let source = HostContext::open(&spec).expect("a connection");
            for (number, answer) in numbers.iter().zip(defined.answers(dialect, source, count)) {
                answers[*number] = answer;
            }
        }
        answers
    });
    settle(&file, &cases, &answers);
}
