//! Samples in columns, in the manner of pmrep(1): a line for each sample, a column for
//! each value. Numbers are rounded for people; every other form has all digits.
//!
//! ```text
//! 2023-11-15   disk.dev.total          mem.physmem
//! UTC          count                         Kbyte
//!                  sda       sdb
//! 20:26:45         135       141          24684092
//! ```
//!
//! The heading stands again after some lines, when the date changes, and when a sample
//! has an instance without a column. An instance that leaves keeps its column until then.

use std::sync::Arc;

use pmderive_runtime::eval::{Value, Values};
use pmderive_runtime::model::{InstId, InstanceDomain, Units};
use pmderive_runtime::time::TimeZone;

use super::{Renderer, append, instance_name, push_text, push_time};
use crate::engine::{Finding, ReportSample};
use crate::report::plain::write_value;
use crate::text::Escaping;

/// Samples below one heading.
const LINES: usize = 24;
/// The least width of a column, and the most that a rounded number takes.
const WIDTH: usize = 8;
/// Width of the column of times, to the millisecond.
const TIME_WIDTH: usize = 12;
/// The most of a metric's name or an expression that a heading shows.
const LONGEST_NAME: usize = 40;
/// Stands where there is no value, as in pmrep(1).
const NO_VALUE: &str = "N/A";

/// The form of columns.
pub struct Columns {
    /// Zone of times; `None` for UTC.
    zone: Option<TimeZone>,
    escaping: Escaping,
    /// One group of columns for each metric that can be used, in the order of the metrics.
    groups: Vec<Group>,
    /// The date in the heading.
    date: String,
    /// Samples below the heading so far.
    lines: usize,
    /// The sample's time, and a value.
    time: String,
    cell: String,
}

/// The columns of a metric.
struct Group {
    /// The metric's position among those of the sample.
    metric: usize,
    /// The instances, in the order of the first sample below the heading. A metric without
    /// values has a column of no instance.
    instances: Vec<InstId>,
    /// Their names, as the heading has them.
    domain: Option<Arc<InstanceDomain>>,
    /// The units that the heading has.
    units: Units,
    /// Widths of the columns, parallel to `instances`.
    widths: Vec<usize>,
    /// Blanks behind the columns, where the words above several take more room.
    padding: usize,
}

impl Columns {
    /// The form with times in a zone; `None` for UTC.
    pub fn new(zone: Option<TimeZone>, escaping: Escaping) -> Columns {
        Columns {
            zone,
            escaping,
            groups: Vec::new(),
            date: String::new(),
            lines: 0,
            time: String::new(),
            cell: String::new(),
        }
    }

    /// Makes columns for the values of a sample, and appends their heading.
    fn begin_table(&mut self, shown: &ReportSample<'_>, zone: &str, out: &mut String) {
        if !self.groups.is_empty() {
            out.push('\n');
        }
        self.groups.clear();
        let mut names = format!("{:<TIME_WIDTH$}", self.date);
        let mut units = format!("{zone:<TIME_WIDTH$}");
        let mut instances = " ".repeat(TIME_WIDTH);
        for (at, (metric, finding)) in shown.findings().enumerate() {
            let Ok(desc) = metric.desc else { continue };
            let values = match finding {
                Finding::Values(values) if !values.is_empty() => Some(values),
                _ => None,
            };
            let of_metric = values.map_or_else(|| vec![-1], |values| values.instances.to_vec());
            let mut known = shown.domain(at).map(InstanceDomain::names);
            let label = |instance: &InstId| {
                let name =
                    known.as_mut().and_then(|names| instance_name(names, *instance, self.escaping));
                match name {
                    Some(name) => name.into_owned(),
                    None if *instance == -1 => String::new(),
                    None => instance.to_string(),
                }
            };
            let labels: Vec<String> = of_metric.iter().map(label).collect();
            // Wide enough for the first values, too.
            let width = |(lane, label): (usize, &String)| {
                self.cell.clear();
                write_cell(&mut self.cell, values.map(|values| values.get(lane)), self.escaping);
                let needed = label.chars().count().max(self.cell.chars().count());
                needed.max(WIDTH)
            };
            let mut widths: Vec<usize> = labels.iter().enumerate().map(width).collect();
            let mut padding = 0;
            let (name, unit) =
                (shortened(&self.escaping.text(&metric.name)), desc.units.to_string());
            let needed = name.chars().count().max(unit.chars().count());
            let all: usize = widths.iter().map(|width| width + 2).sum::<usize>() - 2;
            let more = needed.saturating_sub(all);
            let all = all + more;
            match widths.as_mut_slice() {
                // Words above one column end where its numbers end.
                [only] => {
                    *only += more;
                    append(&mut names, format_args!("  {name:>all$}"));
                    append(&mut units, format_args!("  {unit:>all$}"));
                }
                _ => {
                    padding = more;
                    append(&mut names, format_args!("  {name:<all$}"));
                    append(&mut units, format_args!("  {unit:<all$}"));
                }
            }
            for (label, width) in labels.iter().zip(&widths) {
                append(&mut instances, format_args!("  {label:>width$}"));
            }
            append(&mut instances, format_args!("{:padding$}", ""));
            self.groups.push(Group {
                metric: at,
                instances: of_metric,
                domain: shown.domains.get(at).cloned().flatten(),
                units: desc.units,
                widths,
                padding,
            });
        }
        for line in [&names, &units, &instances] {
            let line = line.trim_end();
            if !line.is_empty() {
                out.push_str(line);
                out.push('\n');
            }
        }
        self.lines = 0;
    }
}

impl Group {
    /// True if the heading is right for the metric's values in a sample.
    fn fits(&self, shown: &ReportSample<'_>) -> bool {
        let finding = shown.finding(self.metric);
        let units = shown.metrics[self.metric].desc.ok().map(|desc| desc.units);
        units.is_none_or(|units| units == self.units)
            && self.has_room(&finding)
            && self.has_names(&finding, shown.domains.get(self.metric).and_then(Option::as_ref))
    }

    /// True if instances with values have the names of the heading.
    fn has_names(&self, finding: &Finding<'_>, now: Option<&Arc<InstanceDomain>>) -> bool {
        let (Some(before), Some(now), Finding::Values(values)) = (&self.domain, now, finding)
        else {
            return true;
        };
        Arc::ptr_eq(before, now)
            || values.instances.iter().all(|id| before.name(*id) == now.name(*id))
    }

    /// True if each value has a column.
    fn has_room(&self, finding: &Finding<'_>) -> bool {
        let Finding::Values(values) = finding else { return true };
        let mut next = 0;
        values
            .instances
            .iter()
            .all(|instance| position(&self.instances, *instance, &mut next).is_some())
    }

    /// Appends a cell for each column; `cell` is memory for one.
    fn write(
        &self,
        values: Option<&Values<'_>>,
        escaping: Escaping,
        cell: &mut String,
        out: &mut String,
    ) {
        let mut next = 0;
        for (instance, width) in self.instances.iter().zip(&self.widths) {
            cell.clear();
            let found = values.and_then(|values| {
                position(values.instances, *instance, &mut next).map(|lane| values.get(lane))
            });
            write_cell(cell, found, escaping);
            append(out, format_args!("  {cell:>width$}"));
        }
        append(out, format_args!("{:padding$}", "", padding = self.padding));
    }
}

/// The position of an instance. Most are at `next`, just after the previous one.
fn position(among: &[InstId], instance: InstId, next: &mut usize) -> Option<usize> {
    let at = match among.get(*next) {
        Some(expected) if *expected == instance => *next,
        _ => among.iter().position(|one| *one == instance)?,
    };
    *next = at + 1;
    Some(at)
}

impl Renderer for Columns {
    fn sample(&mut self, shown: &ReportSample<'_>, out: &mut String) {
        let mut time = std::mem::take(&mut self.time);
        time.clear();
        push_time(&mut time, shown.values.timestamp(), self.zone.as_ref());
        let (date, clock) = time.split_once('T').unwrap_or(("", &time));
        let (clock, zone) = clock.split_at(clock.find(['Z', '+', '-']).unwrap_or(clock.len()));
        let (seconds, fraction) = clock.split_once('.').unwrap_or((clock, ""));

        let can_be_used = |at: &usize| shown.metrics[*at].desc.is_ok();
        let usable = (0..shown.metrics.len()).filter(can_be_used);
        let is_same = usable.eq(self.groups.iter().map(|group| group.metric))
            && self.groups.iter().all(|group| group.fits(shown));
        if !is_same || self.lines == LINES || self.date != date {
            self.date.replace_range(.., date);
            self.begin_table(shown, if zone == "Z" { "UTC" } else { zone }, out);
        }
        self.lines += 1;

        out.push_str(seconds);
        match fraction.get(..3) {
            None | Some("000") => out.push_str("    "),
            Some(milliseconds) => append(out, format_args!(".{milliseconds}")),
        }
        for group in &self.groups {
            let values = match shown.finding(group.metric) {
                Finding::Values(values) => Some(values),
                _ => None,
            };
            group.write(values.as_ref(), self.escaping, &mut self.cell, out);
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
        self.time = time;
    }
}

/// A name that fits into a heading.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        None => name.to_owned(),
        Some(_) => {
            let end = name.char_indices().nth(LONGEST_NAME - 3).map_or(0, |(end, _)| end);
            format!("{}...", &name[..end])
        }
    }
}

/// Appends a value, or the sign for a missing one.
fn write_cell(out: &mut String, value: Option<Value<'_>>, escaping: Escaping) {
    match value {
        Some(Value::Text(bytes)) => push_text(out, bytes, escaping),
        Some(value) => write_rounded(out, value),
        None => out.push_str(NO_VALUE),
    }
}

/// Appends a value; a number with a fraction has at most three digits behind the point, and
/// as few as make it fit.
fn write_rounded(out: &mut String, value: Value<'_>) {
    let number = match value {
        Value::F32(number) => f64::from(number),
        Value::F64(number) => number,
        _ => return write_value(out, value),
    };
    match number.abs() {
        // Not a number, or infinite.
        size if !size.is_finite() => write_value(out, value),
        size if size != 0.0 && !(0.001..1e15).contains(&size) => {
            append(out, format_args!("{number:.2e}"));
        }
        size => {
            let places = [1e4, 1e5, 1e6].iter().filter(|limit| size >= **limit).count();
            let places = if places == 3 { 0 } else { 3 - places };
            append(out, format_args!("{number:.places$}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_fit() {
        for (number, text) in [
            (0.0, "0.000"),
            (2.5, "2.500"),
            (-0.25, "-0.250"),
            (1234.5678, "1234.568"),
            (12345.678, "12345.68"),
            (123456.78, "123456.8"),
            (1234567.8, "1234568"),
            (0.000_123, "1.23e-4"),
            (1e15, "1.00e15"),
            (f64::NAN, "nan"),
        ] {
            let mut out = String::new();
            write_rounded(&mut out, Value::F64(number));
            assert_eq!(out.to_lowercase(), text);
        }
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let name = "é".repeat(LONGEST_NAME);
        assert_eq!(shortened(&name), name);
        let cut = shortened(&format!("{name}é"));
        assert_eq!((cut.chars().count(), cut.ends_with("é...")), (LONGEST_NAME, true));
    }
}
