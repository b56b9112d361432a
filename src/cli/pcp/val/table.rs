//! Rows of values, and the names of instances above them.
//!
//! Input: the values of one sample, or of two for rates. Output: lines.

use std::io::Write;

use pmderive_runtime::model::{MetricDesc, PmStatus, Semantics, ValueType};

use super::instances::Instances;
use super::number::NumberFormat;
use super::row::Row;
use super::sample::{Number, Sample, SampleValue};
use crate::dialect::Dialect;
use crate::text::Escaping;

/// Distance of the decimal points of rates from the column's end, in characters.
const SHIFT: usize = 3;

/// The layout of a metric's values.
pub struct Table {
    desc: MetricDesc,
    format: NumberFormat,
    /// True if counters are printed as rates.
    shows_rates: bool,
    /// Blanks before the names of instances, where rows have times.
    margin: usize,
    dialect: Dialect,
    escaping: Escaping,
    /// True if a counter that fell has wrapped at 2^32 or 2^64.
    wraps: bool,
    /// Layout of names; chosen with the first ones.
    labels: Option<LabelLayout>,
    /// The last row of values, if every value had a column; else empty.
    row: Vec<u8>,
}

/// Position of the names of instances over their columns.
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
    /// A layout before the first names.
    pub fn new(
        desc: MetricDesc,
        format: NumberFormat,
        shows_rates: bool,
        margin: usize,
        dialect: Dialect,
        escaping: Escaping,
    ) -> Table {
        let wraps = std::env::var_os("PCP_COUNTER_WRAP").is_some();
        let (labels, row) = (None, Vec::new());
        Table { desc, format, shows_rates, margin, dialect, escaping, wraps, labels, row }
    }

    /// Appends the names of instances. If names have to be cut off, a list of the full ones
    /// precedes the first row.
    pub fn write_labels(&mut self, out: &mut Vec<u8>, instances: &Instances) {
        self.row.clear();
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
                    let missing = (SHIFT - width).saturating_sub(self.characters(name));
                    out.resize(out.len() + missing, b' ');
                }
                less => {
                    let width = less.filter(|_| is_shifted).unwrap_or(width);
                    let missing = width.saturating_sub(self.characters(name));
                    out.resize(out.len() + missing, b' ');
                    out.extend_from_slice(self.first_characters(name, width));
                }
            }
            out.extend_from_slice(behind);
        }
        out.push(b'\n');
    }

    /// A name as text, if pmval counts its characters and not its bytes.
    fn text_of<'n>(&self, name: &'n [u8]) -> Option<&'n str> {
        std::str::from_utf8(name).ok().filter(|_| self.dialect == Dialect::Fixed)
    }

    /// The number of characters of a name.
    fn characters(&self, name: &[u8]) -> usize {
        self.text_of(name).map_or(name.len(), |name| name.chars().count())
    }

    /// The first characters of a name.
    fn first_characters<'n>(&self, name: &'n [u8], count: usize) -> &'n [u8] {
        let end = match self.text_of(name) {
            Some(name) => name.char_indices().nth(count).map(|(end, _)| end),
            None => Some(count),
        };
        end.and_then(|end| name.get(..end)).unwrap_or(name)
    }

    fn label_layout(&self, instances: &Instances) -> LabelLayout {
        let longest = instances.columns().map(|(_, name)| self.characters(name)).max();
        let longest = longest.unwrap_or_default();
        match self.format.width {
            width if longest > width => LabelLayout::Cut,
            width if width >= SHIFT && longest > width - SHIFT => LabelLayout::Right,
            _ => LabelLayout::Shifted,
        }
    }

    /// Appends a row of values, and a warning for each value without a column. `before` is the
    /// sample of the row before.
    ///
    /// # Errors
    /// A value is not of the metric's type.
    pub fn write_values(
        &mut self,
        out: &mut Vec<u8>,
        instances: Option<&Instances>,
        before: Option<&Sample>,
        sample: &Sample,
    ) -> Result<(), PmStatus> {
        if before.is_some_and(|before| before.has_numbers_of(sample)) && !self.row.is_empty() {
            out.extend_from_slice(&self.row);
            return Ok(());
        }
        let start = out.len();
        self.row.clear();
        let width = self.format.width;
        let Some(instances) = instances else {
            self.put_value(&mut Row::new(out, width), sample.single())?;
            end_in_last_blank(out);
            self.row.extend_from_slice(&out[start..]);
            return Ok(());
        };
        let ids = instances.ids();
        let mut row = Row::new(out, width);
        if let Some(bits) = sample.bits_of(ids) {
            self.put_numbers(&mut row, bits);
        } else {
            let mut values = sample.ascending();
            for id in ids {
                self.put_value(&mut row, values.of_instance(*id))?;
            }
        }
        out.push(b'\n');
        if ids == sample.instances() {
            self.row.extend_from_slice(&out[start..]);
            return Ok(());
        }
        for (instance, value) in instances.without_column(sample.values()) {
            out.extend_from_slice(b"Warning: value=");
            self.write_value(out, value, 1)?;
            let _ = writeln!(out, ", but instance={instance} is unknown");
        }
        Ok(())
    }

    /// Appends a row of rates between two samples `elapsed` seconds apart, and a warning for
    /// each rate without a column.
    ///
    /// # Errors
    /// A value is not of the metric's type, or is no number.
    pub fn write_rates(
        &self,
        out: &mut Vec<u8>,
        instances: Option<&Instances>,
        before: &Sample,
        sample: &Sample,
        elapsed: f64,
    ) -> Result<(), PmStatus> {
        let time = elapsed * self.units_per_second();
        let width = self.format.width;
        let Some(instances) = instances else {
            let both = before.single().zip(sample.single());
            self.put_rate(&mut Row::new(out, width), both, time)?;
            end_in_last_blank(out);
            return Ok(());
        };
        let ids = instances.ids();
        let mut row = Row::new(out, width);
        if let (Some(before), Some(bits)) = (before.bits_of(ids), sample.bits_of(ids)) {
            self.put_rates(&mut row, before, bits, time);
        } else {
            let (mut values_before, mut values) = (before.ascending(), sample.ascending());
            for id in ids {
                let both = values_before.of_instance(*id).zip(values.of_instance(*id));
                self.put_rate(&mut row, both, time)?;
            }
        }
        out.push(b'\n');
        if ids == sample.instances() {
            return Ok(());
        }
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

    /// Writes a value into its column.
    fn put_value(&self, row: &mut Row<'_>, value: Option<SampleValue<'_>>) -> Result<(), PmStatus> {
        let Some(value) = value else {
            row.character(b'?');
            return Ok(());
        };
        match (self.fractional(value), value) {
            (Some(number), _) => {
                self.put_number(row, number?, self.desc.semantics == Semantics::Counter);
            }
            (None, SampleValue::Number(number)) => self.put_digits(row, number),
            (None, SampleValue::Raw(_)) => {
                row.column(|_| false, |out| self.write_printed(out, value, self.format.width));
            }
        }
        Ok(())
    }

    /// Writes the growth between two values, divided by a time, into its column.
    #[inline]
    fn put_rate(
        &self,
        row: &mut Row<'_>,
        both: Option<(SampleValue<'_>, SampleValue<'_>)>,
        time: f64,
    ) -> Result<(), PmStatus> {
        match both {
            Some((before, value)) => {
                self.put_number(row, self.growth(before, value)? / time, true);
            }
            None => row.character(b'?'),
        }
        Ok(())
    }

    /// Writes all columns, given the bits of their numbers.
    fn put_numbers(&self, row: &mut Row<'_>, bits: &[u64]) {
        let MetricDesc { value_type, semantics, .. } = self.desc;
        let is_fractional = matches!(value_type, ValueType::F32 | ValueType::F64);
        let is_growth = semantics == Semantics::Counter;
        for bits in bits {
            let number = Number { value_type, bits: *bits };
            match is_fractional {
                true => self.put_number(row, number.to_f64(), is_growth),
                false => self.put_digits(row, number),
            }
        }
    }

    /// Writes all columns of rates: the growth between two samples, divided by a time.
    fn put_rates(&self, row: &mut Row<'_>, before: &[u64], bits: &[u64], time: f64) {
        let value_type = self.desc.value_type;
        let number = |bits| Number { value_type, bits }.to_f64();
        for (before, bits) in before.iter().zip(bits) {
            let growth = self.unwrapped(number(*bits) - number(*before));
            self.put_number(row, growth / time, true);
        }
    }

    fn put_digits(&self, row: &mut Row<'_>, number: Number) {
        let mut text = itoa::Buffer::new();
        row.text(number.digits(&mut text).unwrap_or_default().as_bytes());
    }

    #[inline]
    fn put_number(&self, row: &mut Row<'_>, number: f64, is_growth: bool) {
        let format = self.format;
        row.column(
            |blanks| format.write_short(blanks, number),
            |out| match is_growth {
                true => format.write_growth(out, number),
                false => format.write(out, number),
            },
        );
    }

    /// The value as a number, if its type has a fraction.
    fn fractional(&self, value: SampleValue<'_>) -> Option<Result<f64, PmStatus>> {
        let is_fractional = matches!(self.desc.value_type, ValueType::F32 | ValueType::F64);
        is_fractional.then(|| value.number(self.desc.value_type))
    }

    fn write_value(
        &self,
        out: &mut Vec<u8>,
        value: SampleValue<'_>,
        width: usize,
    ) -> Result<(), PmStatus> {
        let format = NumberFormat { width, ..self.format };
        match (self.fractional(value), self.desc.semantics) {
            (Some(number), Semantics::Counter) => format.write_growth(out, number?),
            (Some(number), _) => format.write(out, number?),
            (None, _) => self.write_printed(out, value, width),
        }
        Ok(())
    }

    /// Appends a value as pmPrintValue(3) prints it.
    fn write_printed(&self, out: &mut Vec<u8>, value: SampleValue<'_>, width: usize) {
        match value {
            SampleValue::Number(number) => {
                let mut text = itoa::Buffer::new();
                let digits = number.digits(&mut text).unwrap_or_default();
                let _ = write!(out, "{digits:>width$}");
            }
            SampleValue::Raw(raw) => {
                let width = i32::try_from(width).unwrap_or(i32::MAX);
                let mut printed = Vec::new();
                raw.print(&mut printed, self.desc.value_type, width, &|_, _| String::new());
                let shown = self.escaping.bytes(&printed);
                // An escaped text is longer, and replaces blanks before it.
                let blanks = shown.iter().take_while(|byte| **byte == b' ').count();
                let longer = shown.len() - printed.len();
                out.extend_from_slice(&shown[blanks.min(longer)..]);
            }
        }
    }

    /// The growth of a counter.
    fn growth(&self, before: SampleValue<'_>, value: SampleValue<'_>) -> Result<f64, PmStatus> {
        let value_type = self.desc.value_type;
        Ok(self.unwrapped(value.number(value_type)? - before.number(value_type)?))
    }

    /// The growth of a counter, given the difference of two values.
    #[inline]
    fn unwrapped(&self, growth: f64) -> f64 {
        let range = match self.desc.value_type {
            _ if !self.wraps || growth >= 0.0 => 0.0,
            ValueType::I32 | ValueType::U32 => 2f64.powi(32),
            ValueType::I64 | ValueType::U64 => 2f64.powi(64),
            _ => 0.0,
        };
        growth + range
    }

    /// Factor from seconds to the metric's units of time, if time is one of its dimensions.
    fn units_per_second(&self) -> f64 {
        if self.desc.units.dim_time == 0 {
            return 1.0;
        }
        match self.desc.units.scale_time {
            0 => 1e9,
            1 => 1e6,
            2 => 1e3,
            // pmval has factors of single precision, and a day of sixty hours.
            4 if self.dialect != Dialect::Fixed => f64::from(1f32 / 60.0),
            5 if self.dialect != Dialect::Fixed => f64::from(1f32 / 3600.0),
            6 if self.dialect != Dialect::Fixed => f64::from(1f32 / 216_000.0),
            4 => 1.0 / 60.0,
            5 => 1.0 / 3600.0,
            6 => 1.0 / 86_400.0,
            _ => 1.0,
        }
    }
}

/// Replaces the blank behind the last column by the end of the line.
fn end_in_last_blank(out: &mut [u8]) {
    if let Some(last) = out.last_mut() {
        *last = b'\n';
    }
}
