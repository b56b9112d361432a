//! Samples for programs: one JSON object for each, on one line.
//!
//! ```text
//! {"t": "SEC.NNNNNNNNN", "source": NAME, "metrics": [METRIC, ...]}
//! METRIC = {"name", "desc", "n", "values": [[INST, NAME, VALUE], ...]}
//!        | {"name", "desc", "n": 0, "values": [], "why": {"reason", "text"}}
//!        | {"name", "desc", "err", "errname", "text"}
//!        | {"name", "err", "errname", "text", "why": {"reason": "definition", "text"}}
//! ```
//!
//! A value without a domain has instance -1 and no name.

use pmderive_runtime::model::PmStatus;

use crate::engine::Metric;
use crate::json::{write_desc, write_status, write_string, write_values};

use super::{Finding, Renderer, Shown, append};

/// The JSON form.
pub struct Json;

impl Renderer for Json {
    fn sample(&mut self, shown: &Shown<'_>, out: &mut String) {
        append(out, format_args!("{{\"t\":\"{}\",\"source\":", shown.values.timestamp()));
        write_string(out, shown.source);
        out.push_str(",\"metrics\":[");
        for (index, (metric, finding)) in shown.findings().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_metric(out, shown, index, metric, finding);
        }
        out.push_str("]}\n");
    }
}

fn write_metric(
    out: &mut String,
    shown: &Shown<'_>,
    index: usize,
    metric: &Metric,
    finding: Finding<'_>,
) {
    out.push_str("{\"name\":");
    write_string(out, &metric.name);
    if let Ok(desc) = &metric.desc {
        out.push_str(",\"desc\":");
        write_desc(out, desc);
    }
    out.push(',');
    match finding {
        Finding::Values(values) => write_values(out, &values, shown.domain(index)),
        Finding::Empty(reason) => {
            out.push_str("\"n\":0,\"values\":[],\"why\":");
            write_why(out, reason.word(), &reason.to_string());
        }
        Finding::Failed(status) => write_failure(out, status),
        Finding::Unusable(status, mistake) => {
            write_failure(out, status);
            out.push_str(",\"why\":");
            write_why(out, "definition", mistake);
        }
    }
    out.push('}');
}

fn write_failure(out: &mut String, status: PmStatus) {
    write_status(out, status);
    out.push_str(",\"text\":");
    write_string(out, &status.to_string());
}

fn write_why(out: &mut String, reason: &str, text: &str) {
    out.push_str("{\"reason\":");
    write_string(out, reason);
    out.push_str(",\"text\":");
    write_string(out, text);
    out.push('}');
}
