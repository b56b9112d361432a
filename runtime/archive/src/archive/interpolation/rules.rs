//! Rules of interpolation that differ between versions of libpcp, or that environment
//! variables choose.

use std::time::Duration;

use pmderive_core::model::{TextFault, parse_interval};

/// Rules of interpolation (`PM_MODE_INTERP` of pmSetMode(3), and PCPIntro(1)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterpolationRules {
    /// The record that values come from if they are not interpolated.
    pub neighbour: Neighbour,
    /// An integer counter that fell has wrapped once; otherwise, it was reset
    /// (`PCP_COUNTER_WRAP`).
    pub counters_wrap: bool,
    /// The result for an interpolated integer that does not fit its type.
    pub overflow: Overflow,
    /// The marks that break the continuity of values.
    pub marks: MarkRule,
}

/// The record that the value of an instantaneous or discrete metric comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Neighbour {
    /// The nearer record; the earlier one if both are equally near (libpcp from 6.3.2
    /// on). Strings, aggregates and events always come from the earlier one.
    #[default]
    Nearer,
    /// The earlier record (libpcp up to 6.3.1).
    Earlier,
}

/// The result for an interpolated integer that does not fit its type. This happens
/// where a counter fell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// The nearest value of the type.
    #[default]
    Nearest,
    /// The result that C compilers for x86-64 give for the undefined conversion.
    /// libpcp delivers it.
    AsInC,
}

/// The mark records that are gaps (`PCP_IGNORE_MARK_RECORDS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MarkRule {
    /// All marks.
    #[default]
    All,
    /// No marks.
    Never,
    /// Marks whose neighbouring records are further apart than this.
    Beyond(Duration),
}

impl InterpolationRules {
    /// The rules that the environment variables `PCP_COUNTER_WRAP` and
    /// `PCP_IGNORE_MARK_RECORDS` choose. An invalid interval leaves all marks in force.
    pub fn of_environment() -> InterpolationRules {
        InterpolationRules {
            counters_wrap: std::env::var_os("PCP_COUNTER_WRAP").is_some(),
            marks: marks_of_environment().unwrap_or_default(),
            ..InterpolationRules::default()
        }
    }

    /// The mistake in the interval of `PCP_IGNORE_MARK_RECORDS`, if there is one.
    pub fn mistake_in_environment() -> Option<TextFault> {
        marks_of_environment().err()
    }
}

fn marks_of_environment() -> Result<MarkRule, TextFault> {
    match std::env::var("PCP_IGNORE_MARK_RECORDS") {
        Ok(text) => marks_beyond(&text),
        Err(_) => Ok(MarkRule::All),
    }
}

/// The rule for an interval. To libpcp, one of less than a microsecond is an empty one.
fn marks_beyond(interval: &str) -> Result<MarkRule, TextFault> {
    if interval.is_empty() {
        return Ok(MarkRule::Never);
    }
    let interval = parse_interval(interval)?;
    let counts = interval >= Duration::from_micros(1);
    Ok(if counts { MarkRule::Beyond(interval) } else { MarkRule::Never })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_marks() {
        for none in ["", "0", "0.0", "0sec", "1nsec"] {
            assert_eq!(marks_beyond(none).expect(none), MarkRule::Never, "{none:?}");
        }
        let six = MarkRule::Beyond(Duration::from_secs(6));
        assert_eq!(marks_beyond("6sec").expect("an interval"), six);
        marks_beyond("six").expect_err("no interval");
    }
}
