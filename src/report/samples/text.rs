//! Samples for people, in the style of pminfo(1). Lines with values are the same as those of
//! `pminfo -f`, except that numbers have the fewest digits that give them back, unless a
//! dialect of libpcp is chosen. The line about a metric is that of `pminfo -d`.
//!
//! It leaves out a metric whose operands a record lacks. If all records lack them, the end says so.

use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{
    InstanceDomain, RawValueRef, ValueType, write_double, write_float, write_shortest_double,
    write_shortest_float, write_unknown_block,
};
use pmderive_runtime::program::Reason;
use pmderive_runtime::time::TimeZone;

use crate::bind::Desc;
use crate::dialect::Dialect;
use crate::engine::{Finding, Metric, ReportSample};
use crate::report::plain::{write_integer, write_value};
use crate::text::Escaping;

use super::{Renderer, append, instance_name, push_text, push_time};

/// The text form.
pub struct Text {
    several: bool,
    why: bool,
    zone: Option<TimeZone>,
    escaping: Escaping,
    dialect: Dialect,
    /// Metadata shown so far. They are shown with a metric's first sample, and
    /// again when they change.
    shown: Vec<Option<Desc>>,
}

impl Text {
    /// The form for one sample or for several.
    pub fn new(
        several: bool,
        why: bool,
        zone: Option<TimeZone>,
        escaping: Escaping,
        dialect: Dialect,
    ) -> Text {
        Text { several, why, zone, escaping, dialect, shown: Vec::new() }
    }

    /// Appends the lines before those with values.
    fn heading(&mut self, index: usize, metric: &Metric, out: &mut String) {
        out.push('\n');
        out.push_str(&self.escaping.text(&metric.name));
        out.push('\n');
        let Ok(desc) = metric.desc else { return };
        if self.shown[index].replace(desc) == Some(desc) {
            return;
        }
        append(out, format_args!("    Semantics: {}  Units: ", desc.semantics));
        let start = out.len();
        append(out, format_args!("{}", desc.units));
        out.push_str(if out.len() == start { "none\n" } else { "\n" });
    }

    /// Appends the line about event records that pminfo(1) prints without `-x`.
    fn push_events(&self, out: &mut String, value_type: ValueType, bytes: &[u8]) {
        let utc = TimeZone::utc();
        let zone = self.zone.as_ref().unwrap_or(&utc);
        let mut line = Vec::new();
        let code = u8::try_from(value_type.code()).unwrap_or_default();
        self.dialect.print(RawValueRef::Block { code, bytes }, &mut line, value_type, zone);
        out.push_str(&String::from_utf8_lossy(&line));
    }

    fn nothing(&self, reason: Reason, out: &mut String) {
        match self.why {
            true => append(out, format_args!("No value(s) available! ({reason})\n")),
            false => out.push_str("No value(s) available!\n"),
        }
    }
}

impl Renderer for Text {
    fn end(&mut self, metrics: &[Metric], out: &mut String) {
        for (index, metric) in metrics.iter().enumerate() {
            if metric.desc.is_ok() && self.shown.get(index) == Some(&None) {
                self.heading(index, metric, out);
                self.nothing(Reason::OperandEmpty, out);
            }
        }
    }

    fn sample(&mut self, shown: &ReportSample<'_>, out: &mut String) {
        let escaping = self.escaping;
        self.shown.resize(shown.metrics.len(), None);
        if self.several {
            out.push('\n');
            push_time(out, shown.values.timestamp(), self.zone.as_ref());
            out.push('\n');
        }
        for (index, (metric, finding)) in shown.findings().enumerate() {
            if matches!(finding, Finding::Empty(_)) && shown.lacking.get(index) == Some(&true) {
                continue;
            }
            self.heading(index, metric, out);
            match finding {
                Finding::Values(values) => {
                    let mut names = shown.domain(index).map(InstanceDomain::names);
                    // Old archives have instance numbers of single values, too.
                    let has_domain = metric.desc.is_ok_and(|desc| desc.indom.is_some());
                    let event = metric.desc.ok().map(|desc| desc.value_type);
                    let event = event.filter(|value_type| value_type.is_event());
                    for (instance, value) in values.iter() {
                        out.push_str("    ");
                        if has_domain && instance != -1 {
                            out.push_str("inst [");
                            write_integer(out, instance);
                            if let Some(names) = &mut names
                                && let Some(name) = instance_name(names, instance, escaping)
                            {
                                out.push_str(" or \"");
                                out.push_str(&name);
                                out.push('"');
                            }
                            out.push_str("] ");
                        }
                        out.push_str("value ");
                        match (value, event) {
                            (Value::Bytes(bytes), Some(value_type)) => {
                                self.push_events(out, value_type, bytes);
                            }
                            _ => push_value(out, value, escaping, self.dialect),
                        }
                        out.push('\n');
                    }
                }
                Finding::Empty(reason) => self.nothing(reason, out),
                Finding::Unusable(status, mistake)
                    if self.dialect != Dialect::Fixed && self.why =>
                {
                    let words = self.dialect.text(status);
                    append(out, format_args!("Error: {words} ({})\n", escaping.text(mistake)));
                }
                // libpcp's words are useful only to users who ask for its answers.
                Finding::Unusable(_, mistake) if self.dialect == Dialect::Fixed => {
                    append(out, format_args!("Error: {}\n", escaping.text(mistake)));
                }
                Finding::Failed(status) | Finding::Unusable(status, _) => {
                    append(out, format_args!("Error: {}\n", self.dialect.text(status)));
                }
            }
        }
    }
}

/// Appends a value in the form of `pmPrintValue(3)`, except for the digits.
fn push_value(out: &mut String, value: Value<'_>, escaping: Escaping, dialect: Dialect) {
    match value {
        Value::F32(value) if dialect == Dialect::Fixed => write_shortest_float(out, value),
        Value::F64(value) if dialect == Dialect::Fixed => write_shortest_double(out, value),
        Value::F32(value) => write_float(out, value),
        Value::F64(value) => write_double(out, value),
        Value::Text(bytes) => {
            out.push('"');
            push_text(out, bytes, escaping);
            out.push('"');
        }
        Value::Bytes(bytes) => write_unknown_block(out, bytes),
        _ => write_value(out, value),
    }
}
