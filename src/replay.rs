//! Answers cases of the conformance corpus: `pmderive replay`.
//!
//! Each case is one expression, in a fresh registry and its own context over an
//! archive. The answers are JSON, one line for each case, in the words of the
//! corpus.

use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;

use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{Timestamp, native_events};
use pmderive_runtime::program::{OutputId, Program};
use pmderive_runtime::source::{FetchSource as _, Mode as FetchMode, SourceError};
use serde::Deserialize;

use crate::diag::Diagnostics;
use crate::dialect::Dialect;
use crate::engine::{Backend, Definitions, Engine, Registered, Registry, Session, Space};
use crate::report::json::{write_desc, write_status, write_value, write_values_with};
use crate::text::SourceMap;
use crate::text::json::{write_string, write_string_or_null};

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

/// The error that ended a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// Reading cases or writing answers failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A line is not a case.
    #[error("line {line} is not a case: {source}")]
    Case {
        /// Number of the line, from 1.
        line: usize,
        /// The mistake.
        r#source: serde_json::Error,
    },
}

/// Answers all cases in `cases`, in order, over the archives in a directory.
///
/// # Errors
/// See [`ReplayError`]. Earlier answers have been written.
pub fn replay(
    cases: impl BufRead,
    archives: &Path,
    dialect: Dialect,
    backend: Backend,
    mut answers: impl Write,
) -> Result<(), ReplayError> {
    let mut replayer = Replayer {
        engine: Arc::new(Engine::new(dialect, backend)),
        archives,
        space: Space::default(),
        programs: Vec::new(),
        out: String::new(),
    };
    for (line, text) in (1..).zip(cases.lines()) {
        let text = text?;
        if text.trim().is_empty() {
            continue;
        }
        let case: Case =
            serde_json::from_str(&text).map_err(|source| ReplayError::Case { line, source })?;
        replayer.out.clear();
        replayer.answer(&case);
        replayer.out.push('\n');
        answers.write_all(replayer.out.as_bytes())?;
    }
    answers.flush()?;
    Ok(())
}

struct Replayer<'r> {
    engine: Arc<Engine>,
    archives: &'r Path,
    space: Space,
    /// Keeps kernels alive; cases with equal kernels then share them.
    programs: Vec<Arc<Program>>,
    out: String,
}

impl Replayer<'_> {
    fn answer(&mut self, case: &Case) {
        self.out.push_str("{\"id\":");
        write_string(&mut self.out, &case.id);
        let mut sources = SourceMap::default();
        let mut diagnostics = Diagnostics::default();
        let source = sources.add("<case>", case.expr.as_str());
        let mut registry = Registry::new(self.engine.dialect());
        let registered = registry.register(&case.name, source, &sources, &mut diagnostics);
        match registered {
            Err(error) => {
                let _ = write!(
                    self.out,
                    ",\"register\":{{\"ok\":false,\"offset\":{},\"message\":",
                    error.offset
                );
                write_string_or_null(&mut self.out, error.message.as_deref());
                self.out.push('}');
            }
            Ok(()) => {
                self.out.push_str(",\"register\":{\"ok\":true}");
                if let (Some(archive), "forw" | "interp") = (&case.archive, &*case.mode.kind) {
                    let definition = &registry.definitions()[0];
                    if let Err(error) = self.evaluate(case, archive, &registry, definition) {
                        self.failed_fetch(&error);
                    }
                }
            }
        }
        self.out.push('}');
    }

    /// Binds and fetches. The error is that of the archive before the first
    /// fetch.
    fn evaluate(
        &mut self,
        case: &Case,
        archive: &str,
        registry: &Registry,
        definition: &Registered,
    ) -> Result<(), SourceError> {
        let mut source = ArchiveContext::open(self.archives.join(archive))?;
        self.engine.dialect().apply_to(&mut source);
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
        let shared = Definitions::from(registry.clone());
        let mut session = Session::new(engine, shared, source).expect("one language");
        session.choose(&[definition], &mut diagnostics)?;
        let metric = session.metrics()[0].clone();
        let desc = match metric.desc {
            Ok(desc) => desc,
            Err(status) => {
                self.out.push_str(",\"bind\":{\"ok\":false,\"phase\":\"desc\",");
                write_status(&mut self.out, status);
                self.out.push_str(",\"message\":");
                let text: Vec<&str> = diagnostics.iter().map(|one| &*one.message).collect();
                write_string(&mut self.out, &text.join("\n"));
                self.out.push('}');
                return Ok(());
            }
        };
        self.out.push_str(",\"bind\":{\"ok\":true},\"desc\":");
        write_desc(&mut self.out, &desc);
        self.programs.extend(session.program().cloned());
        self.out.push_str(",\"fetches\":[");
        for fetch in 0..case.mode.count {
            if fetch > 0 {
                self.out.push(',');
            }
            let mut sample = match session.sample(&mut self.space) {
                Ok(sample) => sample,
                Err(error) => {
                    self.out.push('{');
                    write_status(&mut self.out, error.status());
                    self.out.push('}');
                    break;
                }
            };
            let values = sample.values.get(OutputId(0));
            let _ = write!(self.out, "{{\"t\":\"{}\",", sample.values.timestamp());
            let names = match desc.indom {
                None => None,
                Some(indom) => sample.instance_names(indom, values.instances)?.ok(),
            };
            write_values_with(&mut self.out, &values, names.as_deref(), |out, value| {
                // libpcp gives events to programs in the byte order of this
                // machine.
                let events = match value {
                    Value::Bytes(bytes) => native_events(desc.value_type, bytes).ok(),
                    _ => None,
                };
                write_value(out, events.as_deref().map_or(value, Value::Bytes));
            });
            self.out.push('}');
        }
        self.out.push(']');
        Ok(())
    }

    fn failed_fetch(&mut self, error: &SourceError) {
        self.out.push_str(",\"error\":{");
        write_status(&mut self.out, error.status());
        self.out.push_str(",\"text\":");
        write_string(&mut self.out, &error.to_string());
        self.out.push('}');
    }
}

/// Seconds and nanoseconds since the epoch, as the corpus writes them.
fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let (sec, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    Some(Timestamp::new(sec.parse().ok()?, digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_of_the_corpus() {
        let parse = |text| parse_timestamp(text).map(|t| t.to_string());
        assert_eq!(parse("1700000000.5").as_deref(), Some("1700000000.500000000"));
        assert_eq!(parse("17").as_deref(), Some("17.000000000"));
        assert_eq!(parse("x.1"), None);
    }
}
