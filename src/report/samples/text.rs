//! Samples for people, in the style of pminfo(1). Lines with values are the
//! same as those of `pminfo -f`, except for the digits of numbers where these
//! are ours, and the line about a metric is that of `pminfo -d`.

use std::borrow::Cow;

use pmderive_runtime::eval::Value;
use pmderive_runtime::model::{
    InstId, InstanceDomain, InstanceNames, write_double, write_float, write_shortest_double,
    write_shortest_float, write_unknown_block,
};
use pmderive_runtime::time::TimeZone;

use crate::bind::Desc;
use crate::engine::{Finding, Shown};
use crate::escape::line;
use crate::report::plain::{text, write_integer, write_value};
use crate::text::Escaping;

use super::{Digits, Renderer, append, push_time};

/// The text form.
pub struct Text {
    several: bool,
    why: bool,
    zone: Option<TimeZone>,
    escaping: Escaping,
    digits: Digits,
    /// Metadata shown so far. They are shown with the first sample, and again
    /// when they change.
    shown: Vec<Option<Desc>>,
}

impl Text {
    /// The form for one sample or for several.
    pub fn new(
        several: bool,
        why: bool,
        zone: Option<TimeZone>,
        escaping: Escaping,
        digits: Digits,
    ) -> Text {
        Text { several, why, zone, escaping, digits, shown: Vec::new() }
    }

    fn desc(&mut self, index: usize, desc: Desc, out: &mut String) {
        if self.shown[index].replace(desc) == Some(desc) {
            return;
        }
        append(out, format_args!("    Semantics: {}  Units: ", desc.semantics));
        let start = out.len();
        append(out, format_args!("{}", desc.units));
        out.push_str(if out.len() == start { "none\n" } else { "\n" });
    }
}

impl Renderer for Text {
    fn sample(&mut self, shown: &Shown<'_>, out: &mut String) {
        let escaping = self.escaping;
        self.shown.resize(shown.metrics.len(), None);
        if self.several {
            out.push('\n');
            push_time(out, shown.values.timestamp(), self.zone.as_ref());
            out.push('\n');
        }
        for (index, (metric, finding)) in shown.findings().enumerate() {
            out.push('\n');
            out.push_str(&escaping.text(&metric.name));
            out.push('\n');
            if let Ok(desc) = metric.desc {
                self.desc(index, desc, out);
            }
            match finding {
                Finding::Values(values) => {
                    let mut names = shown.domain(index).map(InstanceDomain::names);
                    for (instance, value) in values.iter() {
                        out.push_str("    ");
                        if instance != -1 {
                            out.push_str("inst [");
                            write_integer(out, instance);
                            if let Some(names) = &mut names
                                && let Some(name) = name(names, instance, escaping)
                            {
                                out.push_str(" or \"");
                                out.push_str(&name);
                                out.push('"');
                            }
                            out.push_str("] ");
                        }
                        out.push_str("value ");
                        push_value(out, value, escaping, self.digits);
                        out.push('\n');
                    }
                }
                Finding::Empty(reason) if self.why => {
                    append(out, format_args!("No value(s) available! ({})\n", reason));
                }
                Finding::Empty(_) => out.push_str("No value(s) available!\n"),
                Finding::Unusable(status, mistake) if self.digits == Digits::OfPcp && self.why => {
                    append(out, format_args!("Error: {status} ({})\n", escaping.text(mistake)));
                }
                // libpcp's words are of use to those only who ask for its answers.
                Finding::Unusable(_, mistake) if self.digits == Digits::Shortest => {
                    append(out, format_args!("Error: {}\n", escaping.text(mistake)));
                }
                Finding::Failed(status) | Finding::Unusable(status, _) => {
                    append(out, format_args!("Error: {status}\n"));
                }
            }
        }
    }
}

/// The name of an instance, in the form to show.
fn name<'d>(
    names: &mut InstanceNames<'d>,
    instance: InstId,
    escaping: Escaping,
) -> Option<Cow<'d, str>> {
    Some(match names.as_text(instance)? {
        Cow::Borrowed(name) => escaping.text(name),
        Cow::Owned(name) => escaping.text(&name).into_owned().into(),
    })
}

/// Appends a value in the form of `pmPrintValue(3)`, except for the digits.
fn push_value(out: &mut String, value: Value<'_>, escaping: Escaping, digits: Digits) {
    match value {
        Value::F32(value) if digits == Digits::Shortest => write_shortest_float(out, value),
        Value::F64(value) if digits == Digits::Shortest => write_shortest_double(out, value),
        Value::F32(value) => write_float(out, value),
        Value::F64(value) => write_double(out, value),
        Value::Text(bytes) => {
            out.push('"');
            match escaping {
                Escaping::Off => out.push_str(&text(bytes)),
                Escaping::On => out.push_str(&line(bytes)),
            }
            out.push('"');
        }
        Value::Bytes(bytes) => write_unknown_block(out, bytes),
        _ => write_value(out, value),
    }
}
