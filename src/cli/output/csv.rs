//! Samples for spreadsheets and data frames: a header, then a line for each
//! value with time, metric, instance and value (RFC 4180, lines ended by LF).
//!
//! Numbers are exact. A metric without values has no line.

use std::ops::Range;

use pmderive_runtime::model::InstanceDomain;
use pmderive_runtime::time::TimeZone;

use crate::csv::{write_field, write_value};
use crate::engine::{Finding, Shown};

use super::{Renderer, append, push_time};

/// The CSV form.
pub struct Csv {
    /// Zone of times; UTC without one.
    pub zone: Option<TimeZone>,
}

impl Renderer for Csv {
    fn begin(&mut self, out: &mut String) {
        out.push_str("time,metric,instance,value\n");
    }

    fn shows_failures(&self) -> bool {
        false
    }

    fn sample(&mut self, shown: &Shown<'_>, out: &mut String) {
        let start = out.len();
        push_time(out, shown.values.timestamp(), self.zone.as_ref());
        out.push(',');
        // The time stands there already when the first value comes.
        let time = start..out.len();
        let mut is_first = true;
        for (index, (metric, finding)) in shown.findings().enumerate() {
            let Finding::Values(values) = finding else { continue };
            let mut names = shown.domain(index).map(InstanceDomain::names);
            // What all lines of the metric begin with.
            let mut head: Option<Range<usize>> = None;
            for (instance, value) in values.iter() {
                match &head {
                    Some(head) => out.extend_from_within(head.clone()),
                    None => {
                        let start = if is_first { time.start } else { out.len() };
                        if !std::mem::take(&mut is_first) {
                            out.extend_from_within(time.clone());
                        }
                        write_field(out, |out| out.push_str(&metric.name));
                        out.push(',');
                        head = Some(start..out.len());
                    }
                }
                if instance != -1 {
                    let name = names.as_mut().and_then(|names| names.of(instance));
                    write_field(out, |out| match name {
                        Some(name) => out.push_str(name),
                        None => append(out, format_args!("{instance}")),
                    });
                }
                out.push(',');
                write_value(out, value);
                out.push('\n');
            }
        }
        if is_first {
            out.truncate(start);
        }
    }
}
