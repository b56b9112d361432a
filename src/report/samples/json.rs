//! Samples for programs: one JSON object for each sample, on one line. Tables have a line about
//! the source and the metrics before them.

use crate::engine::ReportSample;
use crate::report::json::write_sample;

use super::Renderer;

/// The JSON form.
pub struct Json {
    /// The text before the first sample.
    pub head: String,
}

impl Renderer for Json {
    fn begin(&mut self, out: &mut String) {
        out.push_str(&self.head);
    }

    fn sample(&mut self, shown: &ReportSample<'_>, out: &mut String) {
        write_sample(out, shown);
        out.push('\n');
    }
}
