//! Answers cases of the conformance corpus.
//!
//! Each case is one expression. It is registered in a fresh registry and
//! evaluated in its own context over an archive. The answers are in the words of
//! the corpus; values and descriptors are as the command's JSON has them.

use std::path::Path;
use std::sync::Arc;

use pmderive::internal::json::{write_desc, write_value};
use pmderive::runtime::archive::ArchiveContext;
use pmderive::runtime::eval;
use pmderive::runtime::model::{PmStatus, Timestamp, native_events};
use pmderive::runtime::program::{OutputId, Program, Status};
use pmderive::runtime::source::{FetchSource as _, Mode as FetchMode, SourceError};
use pmderive::{
    Backend, Diagnostics, Dialect, Engine, Registered, Registry, Session, SharedRegistry,
    SourceMap, Space,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Answer;

/// A case, without the results that the corpus expects.
#[derive(Debug, Deserialize)]
struct Case {
    id: String,
    archive: Option<String>,
    mode: Mode,
    #[serde(default = "default_name")]
    name: String,
    expr: String,
}

#[derive(Debug, Deserialize)]
struct Mode {
    kind: String,
    #[serde(default)]
    start: Option<String>,
    /// Milliseconds from one interpolated fetch to the next.
    #[serde(default)]
    step_ms: i64,
    #[serde(default)]
    count: usize,
}

fn default_name() -> String {
    "qa.x".to_string()
}

/// The library's answers to cases over the archives of a folder, in order.
pub fn replay(
    cases: &[Answer],
    archives: &Path,
    dialect: Dialect,
    backend: Backend,
) -> Vec<Answer> {
    let mut replayer = Replayer {
        engine: Arc::new(Engine::new(dialect, backend)),
        archives,
        space: Space::default(),
        programs: Vec::new(),
    };
    let case = |case: &Answer| serde_json::from_value(case.clone().into()).expect("a case");
    cases.iter().map(|one| replayer.answer(&case(one))).collect()
}

struct Replayer<'r> {
    engine: Arc<Engine>,
    archives: &'r Path,
    space: Space,
    /// Keeps kernels alive, so that cases with equal kernels share them.
    programs: Vec<Arc<Program>>,
}

/// What a writer of JSON writes.
fn written(write: impl FnOnce(&mut String)) -> Value {
    let mut text = String::new();
    write(&mut text);
    serde_json::from_str(&text).expect("JSON")
}

fn of_status(status: PmStatus) -> Value {
    json!({ "err": status.0, "errname": status.name() })
}

impl Replayer<'_> {
    fn answer(&mut self, case: &Case) -> Answer {
        let mut answer = Answer::new();
        answer.insert("id".into(), case.id.clone().into());
        let mut sources = SourceMap::default();
        let mut diagnostics = Diagnostics::default();
        let source = sources.add("<case>", case.expr.as_str());
        let mut registry = Registry::new(self.engine.dialect());
        let registered = registry.register(&case.name, source, &sources, &mut diagnostics);
        answer.insert(
            "register".into(),
            match &registered {
                Err(error) => {
                    json!({ "ok": false, "offset": error.offset, "message": error.message })
                }
                Ok(()) => json!({ "ok": true }),
            },
        );
        if let (Ok(()), Some(archive), "forw" | "interp") =
            (registered, &case.archive, &*case.mode.kind)
        {
            let definition = &registry.definitions()[0];
            if let Err(error) = self.evaluate(case, archive, &registry, definition, &mut answer) {
                let mut failed = of_status(error.status());
                failed["text"] = error.to_string().into();
                answer.insert("error".into(), failed);
            }
        }
        answer
    }

    /// Binds and fetches. The error is that of the archive before the first
    /// fetch.
    fn evaluate(
        &mut self,
        case: &Case,
        archive: &str,
        registry: &Registry,
        definition: &Registered,
        answer: &mut Answer,
    ) -> Result<(), SourceError> {
        let mut source = ArchiveContext::open(&self.archives.join(archive))?;
        if self.engine.dialect() != Dialect::Fixed {
            source.look_up_instances_by_beginning();
            source.take_untyped_numbers_as_native();
        }
        let rules = self.engine.dialect().interpolation(source.interpolation_rules());
        source.set_interpolation_rules(rules);
        let start = case.mode.start.as_deref().and_then(parse_timestamp).unwrap_or_default();
        let mode = match &*case.mode.kind {
            "interp" => {
                FetchMode::Interpolated { step: case.mode.step_ms.saturating_mul(1_000_000) }
            }
            _ => FetchMode::Forward,
        };
        source.set_mode(mode, Some(start))?;
        let mut diagnostics = Diagnostics::default();
        let engine = Arc::clone(&self.engine);
        let shared = SharedRegistry::from(registry.clone());
        let mut session = Session::new(engine, shared.into(), source);
        session.choose(&[definition], &mut diagnostics)?;
        let metric = session.metrics()[0].clone();
        let desc = match metric.desc {
            Ok(desc) => desc,
            Err(status) => {
                let text: Vec<&str> = diagnostics.iter().map(|one| &*one.message).collect();
                let mut failed = of_status(status);
                failed["ok"] = false.into();
                failed["phase"] = "desc".into();
                failed["message"] = text.join("\n").into();
                answer.insert("bind".into(), failed);
                return Ok(());
            }
        };
        answer.insert("bind".into(), json!({ "ok": true }));
        answer.insert("desc".into(), written(|out| write_desc(out, &desc)));
        self.programs.extend(session.program().cloned());
        let mut fetches = Vec::new();
        for _ in 0..case.mode.count {
            let mut sample = match session.sample(&mut self.space) {
                Ok(sample) => sample,
                Err(error) => {
                    fetches.push(of_status(error.status()));
                    break;
                }
            };
            let values = sample.values.get(OutputId(0));
            let time = sample.values.timestamp().to_string();
            let names = match desc.indom {
                None => None,
                Some(indom) => sample.instance_names(indom, values.instances)?.ok(),
            };
            let mut names = names.as_deref().map(|domain| domain.names());
            let mut row = |(instance, value)| {
                let name = names.as_mut().and_then(|names| names.as_text(instance));
                // libpcp gives events to programs in the byte order of this
                // machine.
                let events = match value {
                    eval::Value::Bytes(bytes) => native_events(desc.value_type, bytes).ok(),
                    _ => None,
                };
                let value = events.as_deref().map_or(value, eval::Value::Bytes);
                json!([instance, name, written(|out| write_value(out, value))])
            };
            let mut fetch = match values.status {
                Status::Failed(status) => of_status(status),
                _ => {
                    let rows: Vec<Value> = values.iter().map(&mut row).collect();
                    json!({ "n": rows.len(), "values": rows })
                }
            };
            fetch["t"] = time.into();
            fetches.push(fetch);
        }
        answer.insert("fetches".into(), fetches.into());
        Ok(())
    }
}

/// Seconds and nanoseconds since the epoch, as the corpus writes them.
fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let (sec, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    Some(Timestamp::new(sec.parse().ok()?, digits.parse().ok()?))
}
