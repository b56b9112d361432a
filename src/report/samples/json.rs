//! Samples for programs: one JSON object for each sample, on one line.

use crate::engine::ReportSample;
use crate::report::json::write_sample;

use super::Renderer;

/// The JSON form.
pub struct Json;

impl Renderer for Json {
    fn sample(&mut self, shown: &ReportSample<'_>, out: &mut String) {
        write_sample(out, shown);
        out.push('\n');
    }
}
