//! Rows of values, and the names of instances above them.
//!
//! Takes the values of one sample, of two for rates, and appends lines; knows
//! neither where they come from nor when they were taken.

use std::io::Write;

use pmderive_runtime::model::{MetricDesc, PmStatus, Semantics, ValueType};

use super::instances::Instances;
use super::number::NumberFormat;
use super::sample::{Sample, SampleValue};
use crate::dialect::Dialect;

/// Places that the decimal points of rates stand left of the column's end.
const SHIFT: usize = 3;

/// How the values of a metric are laid out.
pub struct Table {
    desc: MetricDesc,
    format: NumberFormat,
    /// Values of counters become rates.
    shows_rates: bool,
    /// Blanks in front of the names of instances, where rows have times.
    margin: usize,
    dialect: Dialect,
    /// Counters below 2^32 and 2^64 that fell have wrapped.
    wraps: bool,
    /// Decided with the first names.
    labels: Option<LabelLayout>,
}

/// How the names of instances stand over their columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LabelLayout {
    /// To the left, over the digits before the decimal points.
    Shifted,
    /// To the right.
    Right,
    /// Cut off, with a list of the full names before the first ones.
    Cut,
}

/// Width of a column that holds values of a type; `None` for a type without values.
pub fn width(value_type: ValueType) -> Option<usize> {
    match value_type {
        ValueType::I32 | ValueType::U32 => Some(11),
        ValueType::F32 => Some(13),
        ValueType::I64
        | ValueType::U64
        | ValueType::F64
        | ValueType::String
        | ValueType::Aggregate
        | ValueType::AggregateStatic => Some(21),
        ValueType::Event | ValueType::HighResEvent => Some(0),
        ValueType::NoSupport | ValueType::Unknown | ValueType::Other(_) => None,
    }
}

impl Table {
    /// A layout without names yet.
    pub fn new(
        desc: MetricDesc,
        format: NumberFormat,
        shows_rates: bool,
        margin: usize,
        dialect: Dialect,
    ) -> Table {
        let wraps = std::env::var_os("PCP_COUNTER_WRAP").is_some();
        Table { desc, format, shows_rates, margin, dialect, wraps, labels: None }
    }

    /// The type of the values, if they are shown as numbers that may have a fraction.
    pub fn numbers(&self) -> Option<ValueType> {
        let MetricDesc { value_type, .. } = self.desc;
        let is_wanted = self.shows_rates || matches!(value_type, ValueType::F32 | ValueType::F64);
        is_wanted.then_some(value_type)
    }

    /// Appends the names of instances, in front of the first rows with those
    /// that have to be cut off in full.
    pub fn write_labels(&mut self, out: &mut Vec<u8>, instances: &Instances) {
        let layout = match self.labels {
            Some(layout) => layout,
            None => {
                let layout = self.label_layout(instances);
                if layout == LabelLayout::Cut {
                    for (position, (_, name)) in instances.columns().enumerate() {
                        let _ = write!(out, "full label for instance[{position}]: ");
                        out.extend_from_slice(name);
                        out.push(b'\n');
                    }
                }
                *self.labels.insert(layout)
            }
        };
        out.push(b'\n');
        if instances.columns().next().is_none() {
            return;
        }
        out.resize(out.len() + self.margin, b' ');
        let NumberFormat { width, precision } = self.format;
        let is_shifted = self.shows_rates && precision.is_none() && layout == LabelLayout::Shifted;
        for (_, name) in instances.columns() {
            let behind: &[u8] = if is_shifted { b"    " } else { b" " };
            match width.checked_sub(SHIFT) {
                None if is_shifted => {
                    out.extend_from_slice(name);
                    let missing = (SHIFT - width).saturating_sub(characters(name));
                    out.resize(out.len() + missing, b' ');
                }
                less => {
                    let width = less.filter(|_| is_shifted).unwrap_or(width);
                    let missing = width.saturating_sub(characters(name));
                    out.resize(out.len() + missing, b' ');
                    out.extend_from_slice(first_characters(name, width));
                }
            }
            out.extend_from_slice(behind);
        }
        out.push(b'\n');
    }

    fn label_layout(&self, instances: &Instances) -> LabelLayout {
        let longest = instances.columns().map(|(_, name)| characters(name)).max();
        let longest = longest.unwrap_or_default();
        match self.format.width {
            width if longest > width => LabelLayout::Cut,
            width if width >= SHIFT && longest > width - SHIFT => LabelLayout::Right,
            _ => LabelLayout::Shifted,
        }
    }

    /// Appends a row of values, and a warning for each without a column.
    ///
    /// # Errors
    /// A value is not of the metric's type.
    pub fn write_values(
        &self,
        out: &mut Vec<u8>,
        instances: Option<&Instances>,
        sample: &Sample,
    ) -> Result<(), PmStatus> {
        let Some(instances) = instances else {
            match sample.single() {
                Some(value) => self.write_value(out, value, self.format.width)?,
                None => self.write_missing(out),
            }
            out.push(b'\n');
            return Ok(());
        };
        let mut values = sample.ascending();
        for (id, _) in instances.columns() {
            match values.of_instance(id) {
                Some(value) => self.write_value(out, value, self.format.width)?,
                None => self.write_missing(out),
            }
            out.push(b' ');
        }
        out.push(b'\n');
        for (instance, value) in instances.without_column(sample.values()) {
            out.extend_from_slice(b"Warning: value=");
            self.write_value(out, value, 1)?;
            let _ = writeln!(out, ", but instance={instance} is unknown");
        }
        Ok(())
    }

    /// Appends a row of rates between two samples `elapsed` seconds apart, and
    /// a warning for each without a column.
    ///
    /// # Errors
    /// A value is not of the metric's type, or no number.
    pub fn write_rates(
        &self,
        out: &mut Vec<u8>,
        instances: Option<&Instances>,
        before: &Sample,
        sample: &Sample,
        elapsed: f64,
    ) -> Result<(), PmStatus> {
        let time = elapsed * self.units_per_second();
        let Some(instances) = instances else {
            match (before.single(), sample.single()) {
                (Some(before), Some(value)) => {
                    self.format.write_growth(out, self.growth(before, value)? / time);
                }
                _ => self.write_missing(out),
            }
            out.push(b'\n');
            return Ok(());
        };
        let (mut values_before, mut values) = (before.ascending(), sample.ascending());
        for (id, _) in instances.columns() {
            match (values_before.of_instance(id), values.of_instance(id)) {
                (Some(before), Some(value)) => {
                    self.format.write_growth(out, self.growth(before, value)? / time);
                }
                _ => self.write_missing(out),
            }
            out.push(b' ');
        }
        out.push(b'\n');
        for (instance, value) in instances.without_column(sample.values()) {
            if let Some(before) = before.of_instance(instance) {
                out.extend_from_slice(b"Warning: value=");
                let format = NumberFormat { width: 1, ..self.format };
                format.write_growth(out, self.growth(before, value)? / time);
                let _ = writeln!(out, ", but instance={instance} is unknown");
            }
        }
        Ok(())
    }

    fn write_missing(&self, out: &mut Vec<u8>) {
        out.resize(out.len() + self.format.width.saturating_sub(1), b' ');
        out.push(b'?');
    }

    fn write_value(
        &self,
        out: &mut Vec<u8>,
        value: SampleValue<'_>,
        width: usize,
    ) -> Result<(), PmStatus> {
        if !matches!(self.desc.value_type, ValueType::F32 | ValueType::F64) {
            let width = i32::try_from(width).unwrap_or(i32::MAX);
            value.raw.print(out, self.desc.value_type, width, &|_, _| String::new());
            return Ok(());
        }
        let format = NumberFormat { width, ..self.format };
        let number = value.number(self.desc.value_type)?;
        match self.desc.semantics {
            Semantics::Counter => format.write_growth(out, number),
            _ => format.write(out, number),
        }
        Ok(())
    }

    /// By how much a counter grew.
    fn growth(&self, before: SampleValue<'_>, value: SampleValue<'_>) -> Result<f64, PmStatus> {
        let value_type = self.desc.value_type;
        let growth = value.number(value_type)? - before.number(value_type)?;
        let range = match value_type {
            _ if !self.wraps || growth >= 0.0 => 0.0,
            ValueType::I32 | ValueType::U32 => 2f64.powi(32),
            ValueType::I64 | ValueType::U64 => 2f64.powi(64),
            _ => 0.0,
        };
        Ok(growth + range)
    }

    /// How many of the metric's units of time a second has, as far as it has
    /// time among its dimensions.
    fn units_per_second(&self) -> f64 {
        if self.desc.units.dim_time == 0 {
            return 1.0;
        }
        match self.desc.units.scale_time {
            0 => 1e9,
            1 => 1e6,
            2 => 1e3,
            4 => 1.0 / 60.0,
            5 => 1.0 / 3600.0,
            // pmval takes a day for sixty hours.
            6 if self.dialect != Dialect::Fixed => 1.0 / 216_000.0,
            6 => 1.0 / 86_400.0,
            _ => 1.0,
        }
    }
}

/// How many characters a name has; where it is not UTF-8, how many bytes.
fn characters(name: &[u8]) -> usize {
    std::str::from_utf8(name).map_or(name.len(), |name| name.chars().count())
}

/// The first characters of a name, as [`characters`] counts them.
fn first_characters(name: &[u8], count: usize) -> &[u8] {
    let end = match std::str::from_utf8(name) {
        Ok(name) => name.char_indices().nth(count).map(|(end, _)| end),
        Err(_) => Some(count),
    };
    end.and_then(|end| name.get(..end)).unwrap_or(name)
}
