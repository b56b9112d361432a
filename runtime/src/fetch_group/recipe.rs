//! Turns the source's values into those of an entry: rates, scales, types. Each
//! entry of a group has one [`Recipe`], built once.

use pmderive_core::model::{
    Conversion, MetricDesc, ParsedUnits, PmStatus, RawValueRef, Semantics, Units, Value, ValueType,
    format_e,
};

/// The conversion of an entry's values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    /// The descriptor of the values.
    pub(super) desc: MetricDesc,
    /// False once the metric has another descriptor.
    pub(super) is_current: bool,
    pub(super) wanted: ValueType,
    pub(super) is_rate: bool,
    /// The conversion of scale, and a factor to multiply by afterwards. An
    /// impossible conversion makes the values fail, not the entry, as in
    /// libpcp.
    scale: Option<(Result<Conversion, PmStatus>, f64)>,
}

/// A value and its predecessor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample<'r> {
    pub(super) value: RawValueRef<'r>,
    /// The previous value and the seconds since then, or the reason why there
    /// is none.
    pub(super) previous: Result<(RawValueRef<'r>, f64), PmStatus>,
}

/// The problem with a scale, and its status.
pub(super) type Refusal = (String, PmStatus);

impl Recipe {
    /// The recipe that turns values of a metric into values of type `wanted`,
    /// scaled as the text says.
    pub(super) fn new(
        desc: &MetricDesc,
        scale: Option<&str>,
        wanted: ValueType,
    ) -> Result<Recipe, Refusal> {
        for value_type in [desc.value_type, wanted] {
            if !matches!(value_type.code(), 0..=6) {
                let problem = format!("values of type {value_type} are neither numbers nor text");
                return Err((problem, PmStatus::TYPE));
            }
        }
        let recipe =
            |is_rate, scale| Recipe { desc: *desc, is_current: true, wanted, is_rate, scale };
        let text = match scale {
            None => return Ok(recipe(desc.semantics == Semantics::Counter, None)),
            Some("rate") => return Ok(recipe(true, None)),
            Some("instant") => return Ok(recipe(false, None)),
            Some(text) => text,
        };
        let ParsedUnits { units, multiplier } = Units::parse(text)
            .map_err(|error| (format!("units \"{text}\": {error}"), PmStatus::CONV))?;
        let (own, differs) =
            (desc.units, |to: Units| (own_dimensions(desc.units)) != own_dimensions(to));
        if !differs(units) {
            return Ok(recipe(false, Some((Conversion::between(own, units), multiplier))));
        }
        // Without "per time", the units must have the metric's dimensions.
        let quantity = Units { dim_time: units.dim_time.saturating_add(1), ..units };
        let per_second = seconds(units.scale_time);
        match per_second {
            Some(seconds) if !differs(quantity) => {
                let conversion = Conversion::between(own, quantity);
                Ok(recipe(true, Some((conversion, seconds(multiplier)))))
            }
            _ => {
                let problem = format!(
                    "units \"{text}\" fit neither the metric's units, \"{own}\", nor their rate"
                );
                Err((problem, PmStatus::CONV))
            }
        }
    }

    /// True when values pass through without arithmetic.
    pub(super) fn is_direct(&self) -> bool {
        !self.is_rate && self.scale.is_none()
    }

    /// The converted value. A falling value has wrapped around if
    /// `counter_wraps`; otherwise it has no rate.
    pub(super) fn value(&self, sample: Sample<'_>, counter_wraps: bool) -> Result<Value, PmStatus> {
        if !self.is_current {
            return Err(PmStatus::CONV);
        }
        if self.is_direct() {
            return self.direct(sample.value);
        }
        let mut value = self.double(sample.value)?;
        if self.is_rate {
            let (previous, seconds) = sample.previous?;
            if seconds <= 0.0 {
                return Err(PmStatus::AGAIN);
            }
            let mut delta = value - self.double(previous)?;
            if delta < 0.0 {
                if !counter_wraps {
                    return Err(PmStatus::VALUE);
                }
                delta += self.range();
            }
            value = delta / seconds;
        }
        if let Some((conversion, multiplier)) = &self.scale {
            value = (*conversion)?.apply_f64(value) * multiplier;
        }
        self.narrowed(value)
    }

    /// The number of different values of a counter of the metric's type: where
    /// it wraps.
    fn range(&self) -> f64 {
        match self.desc.value_type {
            ValueType::I32 | ValueType::U32 => 4_294_967_296.0,
            ValueType::I64 | ValueType::U64 => 18_446_744_073_709_551_616.0,
            _ => 0.0,
        }
    }

    fn double(&self, value: RawValueRef<'_>) -> Result<f64, PmStatus> {
        let value = match self.desc.value_type {
            ValueType::String => parsed(value, ValueType::F64)?,
            value_type => value.extract(value_type, ValueType::F64)?,
        };
        if let Value::F64(value) = value { Ok(value) } else { Err(PmStatus::CONV) }
    }

    fn direct(&self, value: RawValueRef<'_>) -> Result<Value, PmStatus> {
        match (self.desc.value_type, self.wanted) {
            (ValueType::String, wanted) if wanted != ValueType::String => parsed(value, wanted),
            (ValueType::F32 | ValueType::F64, ValueType::String) => {
                let text = match value.extract(self.desc.value_type, self.desc.value_type)? {
                    // Enough digits to read the same number back.
                    Value::F32(value) => format_e(value.into(), 9),
                    Value::F64(value) => format_e(value, 17),
                    _ => return Err(PmStatus::CONV),
                };
                Ok(Value::Text(text.into()))
            }
            (value_type, wanted) => value.extract(value_type, wanted),
        }
    }

    /// A computed number as a value of the entry's type. An integer loses its
    /// fraction.
    fn narrowed(&self, value: f64) -> Result<Value, PmStatus> {
        let (low, high) = match self.wanted {
            ValueType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
            ValueType::U32 => (0.0, f64::from(u32::MAX)),
            ValueType::I64 => (-TWO_63, TWO_63.next_down()),
            ValueType::U64 => (0.0, (2.0 * TWO_63).next_down()),
            ValueType::F32 => (-f64::from(f32::MAX), f64::from(f32::MAX)),
            ValueType::F64 => return Ok(Value::F64(value)),
            ValueType::String => return Ok(Value::Text(format_e(value, 17).into())),
            _ => return Err(PmStatus::TYPE),
        };
        if value > high {
            return Err(PmStatus::TRUNC);
        }
        if value < low {
            return Err(if low == 0.0 { PmStatus::SIGN } else { PmStatus::TRUNC });
        }
        if value.is_nan() && self.wanted != ValueType::F32 {
            return Err(PmStatus::CONV);
        }
        Ok(match self.wanted {
            ValueType::I32 => Value::I32(value as i32),
            ValueType::U32 => Value::U32(value as u32),
            ValueType::I64 => Value::I64(value as i64),
            ValueType::U64 => Value::U64(value as u64),
            _ => Value::F32(value as f32),
        })
    }
}

const TWO_63: f64 = 9_223_372_036_854_775_808.0;

fn own_dimensions(units: Units) -> (i8, i8, i8, i8) {
    (units.dim_space, units.dim_time, units.dim_count, units.extra.quantity)
}

/// The conversion from a number per second to a number per unit of this time
/// scale.
fn seconds(scale_time: u8) -> Option<impl Fn(f64) -> f64> {
    const SCALES: [(f64, f64); 6] =
        [(1.0, 1e9), (1.0, 1e6), (1.0, 1e3), (1.0, 1.0), (60.0, 1.0), (3600.0, 1.0)];
    let (factor, divisor) = *SCALES.get(usize::from(scale_time))?;
    // The division is where libpcp divides, because the last digit must agree.
    Some(move |value: f64| value * factor / divisor)
}

/// The number that a text holds.
fn parsed(value: RawValueRef<'_>, wanted: ValueType) -> Result<Value, PmStatus> {
    match value.extract(ValueType::String, ValueType::String)? {
        Value::Text(text) => Value::parse(&text, wanted),
        _ => Err(PmStatus::CONV),
    }
}
