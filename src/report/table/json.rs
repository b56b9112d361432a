//! The table as lines of JSON: first an object with the members `source` and
//! `metrics` ([`Schema`]), then the samples as `eval` prints them.

use super::Schema;
use crate::engine::ReportSample;
use crate::report::samples::{self, Renderer};

/// Writes a line of JSON about the metrics, then a line for each sample.
pub struct Json {
    head: String,
}

impl Json {
    /// The form for a source and its metrics.
    pub fn new(schema: &Schema) -> Json {
        let metrics: Vec<String> = schema.metrics.iter().map(|one| one.json()).collect();
        let (source, metrics) = (schema.source_json(), metrics.join(","));
        Json { head: format!("{{\"source\":{source},\"metrics\":[{metrics}]}}\n") }
    }
}

impl Renderer for Json {
    fn begin(&mut self, out: &mut String) {
        out.push_str(&self.head);
    }

    fn sample(&mut self, shown: &ReportSample<'_>, out: &mut String) {
        samples::json::Json.sample(shown, out);
    }
}
