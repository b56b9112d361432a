//! Prints units.
//!
//! Input: [`Units`]. Output: the text of `pmUnitsStr(3)`, which `units_parse`
//! reads. All units can be printed, even those that no peer should send.

use std::fmt;

use super::units_words::{
    Axis, SPACE_NAMES, SPACE_NUMBERED, TIME_NAMES, TIME_NUMBERED, extra_word,
};
use super::{ExtraUnit, Units};

impl Units {
    /// Dimension and scale along one axis.
    const fn axis(&self, axis: Axis) -> (i8, i8) {
        match axis {
            // Scales of space and time are below 16.
            Axis::Space => (self.dim_space, self.scale_space as i8),
            Axis::Time => (self.dim_time, self.scale_time as i8),
            Axis::Count => (self.dim_count, self.scale_count),
        }
    }

    /// True if every scale has a name, and so has the extra unit. The scale of an axis
    /// without a dimension has no meaning, and some agents leave any number there.
    pub fn have_words(&self) -> bool {
        let is_named = |axis: Axis, names: usize| {
            let (dimension, scale) = self.axis(axis);
            dimension == 0 || usize::try_from(scale).is_ok_and(|scale| scale < names)
        };
        let ExtraUnit { quantity, unit } = self.extra;
        let is_extra_named = match extra_word(quantity) {
            Some(word) => (1..=word.units.len()).contains(&usize::from(unit)),
            None => self.extra == ExtraUnit::default(),
        };
        is_named(Axis::Space, SPACE_NAMES.len())
            && is_named(Axis::Time, TIME_NAMES.len())
            && is_extra_named
    }
}

/// Prints as `pmUnitsStr(3)` of PCP 7 does: extra unit, space, time and count,
/// then a slash and the axes with negative dimension in the same order. A value
/// without dimension and scale prints nothing.
impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (sign, slash) in [(1, ""), (-1, "/ ")] {
            let mut slash = slash;
            if self.extra.quantity.signum() == sign {
                write!(f, "{separator}{slash}")?;
                write_extra(f, self.extra)?;
                (separator, slash) = (" ", "");
            }
            for axis in Axis::ALL {
                let (dimension, scale) = self.axis(axis);
                if dimension.signum() != sign {
                    continue;
                }
                write!(f, "{separator}{slash}")?;
                write_scale(f, axis, scale)?;
                if dimension.unsigned_abs() != 1 {
                    write!(f, "^{}", dimension.unsigned_abs())?;
                }
                (separator, slash) = (" ", "");
            }
        }
        if separator.is_empty() && self.scale_count != 0 {
            write_scale(f, Axis::Count, self.scale_count)?;
        }
        Ok(())
    }
}

fn write_scale(f: &mut fmt::Formatter<'_>, axis: Axis, scale: i8) -> fmt::Result {
    let (names, numbered): (&[&str], &str) = match axis {
        Axis::Space => (&SPACE_NAMES, SPACE_NUMBERED),
        Axis::Time => (&TIME_NAMES, TIME_NUMBERED),
        Axis::Count => {
            return match scale {
                0 => f.write_str("count"),
                1 => f.write_str("count x 10"),
                _ => write!(f, "count x 10^{scale}"),
            };
        }
    };
    match usize::try_from(scale).ok().and_then(|scale| names.get(scale)) {
        Some(name) => f.write_str(name),
        None => write!(f, "{numbered}{scale}"),
    }
}

fn write_extra(f: &mut fmt::Formatter<'_>, extra: ExtraUnit) -> fmt::Result {
    let Some(quantity) = extra_word(extra.quantity) else {
        return write!(f, "extra-{}", extra.quantity.unsigned_abs());
    };
    match usize::from(extra.unit).checked_sub(1).and_then(|unit| quantity.units.get(unit)) {
        Some((unit, _)) => write!(f, "{} ({unit})", quantity.name),
        None => write!(f, "{} (scale-{})", quantity.name, extra.unit),
    }
}
