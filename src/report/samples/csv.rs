//! Samples for spreadsheets and data frames: a header, then a line with time,
//! metric, instance and value for each value (RFC 4180, lines ended by LF).
//!
//! Numbers are exact. A metric without values has no line.

use std::convert::Infallible;
use std::ops::Range;

use pmderive_runtime::time::TimeZone;

use super::{Renderer, push_time};
use crate::engine::ReportSample;
use crate::report::csv::{write_field, write_value};
use crate::report::plain::write_integer;
use crate::report::rows::for_each_row;
use crate::report::table::Sampling;

/// The CSV form.
pub struct Csv {
    /// Zone of times; `None` for UTC.
    zone: Option<TimeZone>,
    /// The field with the sample's time, and its comma.
    time: String,
}

impl Csv {
    /// The form with times in a zone; `None` for UTC.
    pub fn new(zone: Option<TimeZone>) -> Csv {
        Csv { zone, time: String::new() }
    }
}

impl Renderer for Csv {
    fn begin(&mut self, out: &mut String) {
        out.push_str("time,metric,instance,value\n");
    }

    fn sample(&mut self, shown: &ReportSample<'_>, out: &mut String) {
        self.time.clear();
        push_time(&mut self.time, shown.values.timestamp(), self.zone.as_ref());
        self.time.push(',');
        // The common beginning of all lines of a metric.
        let mut head: Option<(usize, Range<usize>)> = None;
        let Ok(()) = for_each_row::<Infallible>(shown, Sampling::Records, |row| {
            let Ok(value) = row.content else { return Ok(()) };
            match &head {
                Some((metric, head)) if *metric == row.metric => {
                    out.extend_from_within(head.clone());
                }
                _ => {
                    let start = out.len();
                    out.push_str(&self.time);
                    write_field(out, |out| out.push_str(&shown.metrics[row.metric].name));
                    out.push(',');
                    head = Some((row.metric, start..out.len()));
                }
            }
            if let Some(instance) = row.instance {
                match row.instance_name {
                    Some(name) => write_field(out, |out| out.push_str(name)),
                    None => write_integer(out, instance),
                }
            }
            out.push(',');
            write_value(out, value);
            out.push('\n');
            Ok(())
        });
    }
}
