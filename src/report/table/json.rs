//! The table as lines of JSON: first an object with the members `source` and
//! `metrics` ([`Schema`]), then the samples as `eval` prints them.

use std::io::Write as _;

use super::{Destination, ExportError, Exporter, Schema};
use crate::engine::Shown;
use crate::report::json::write_sample;

/// Writes a line of JSON for each sample, after one about the metrics.
pub struct Json {
    destination: Destination,
    line: String,
}

impl Json {
    pub fn begin(schema: &Schema, mut destination: Destination) -> Result<Json, ExportError> {
        let metrics: Vec<String> = schema.metrics.iter().map(|one| one.json()).collect();
        let (source, metrics) = (schema.source_json(), metrics.join(","));
        writeln!(destination, "{{\"source\":{source},\"metrics\":[{metrics}]}}")?;
        Ok(Json { destination, line: String::new() })
    }
}

impl Exporter for Json {
    fn sample(&mut self, shown: &Shown<'_>) -> Result<(), ExportError> {
        self.line.clear();
        write_sample(&mut self.line, shown);
        self.line.push('\n');
        self.destination.write_all(self.line.as_bytes())?;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Destination, ExportError> {
        Ok(self.destination)
    }
}
