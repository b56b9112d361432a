//! Samples for programs: one JSON object for each sample, on one line. Tables have a line about
//! the source and the metrics before them.

use crate::dialect::Dialect;
use crate::engine::ReportSample;
use crate::report::json::write_sample;

use super::Renderer;

/// The JSON form.
pub struct Json {
    /// The text before the first sample.
    pub head: String,
    /// The version in whose words statuses are told.
    pub dialect: Dialect,
}

impl Renderer for Json {
    fn begin(&mut self, out: &mut String) {
        out.push_str(&self.head);
    }

    fn sample(&mut self, shown: &ReportSample<'_>, out: &mut String) {
        write_sample(out, shown, self.dialect);
        out.push('\n');
    }
}
