//! Rules of interpolation that differ: between versions of libpcp, and by
//! variables of the environment.

use std::time::Duration;

use pmderive_core::model::{IntervalError, parse_interval};

/// Rules of interpolation (`PM_MODE_INTERP` of pmSetMode(3), and PCPIntro(1)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterpolationRules {
    /// Where values come from that are not interpolated.
    pub neighbour: Neighbour,
    /// A counter of integers that fell has wrapped once, rather than being
    /// reset (`PCP_COUNTER_WRAP`).
    pub counters_wrap: bool,
    /// What becomes of an interpolated integer that its type cannot hold.
    pub overflow: Overflow,
    /// Which marks end the continuity of values.
    pub marks: MarkRule,
}

/// Where the value of an instantaneous or discrete metric comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Neighbour {
    /// The nearer record, of two equally near the earlier one: libpcp from 6.3.2 on.
    /// Strings, aggregates and events come from the earlier one.
    #[default]
    Nearer,
    /// The earlier record: libpcp up to 6.3.1.
    Earlier,
}

/// What becomes of an interpolated integer that its type cannot hold, which
/// happens where a counter fell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The nearest value of the type.
    #[default]
    Nearest,
    /// What C compilers for x86-64 make of the conversion that is undefined
    /// there, as libpcp delivers it.
    AsInC,
}

/// Which mark records are gaps (`PCP_IGNORE_MARK_RECORDS`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkRule {
    /// All.
    #[default]
    All,
    /// None.
    Never,
    /// Those whose neighbouring records are further apart than this.
    Beyond(Duration),
}

impl InterpolationRules {
    /// What the variables of the environment `PCP_COUNTER_WRAP` and
    /// `PCP_IGNORE_MARK_RECORDS` say. An interval that is none leaves all
    /// marks in force.
    pub fn of_environment() -> InterpolationRules {
        InterpolationRules {
            counters_wrap: std::env::var_os("PCP_COUNTER_WRAP").is_some(),
            marks: marks_of_environment().unwrap_or_default(),
            ..InterpolationRules::default()
        }
    }

    /// What is wrong with the interval in `PCP_IGNORE_MARK_RECORDS`, if it is none.
    pub fn mistake_in_environment() -> Option<IntervalError> {
        marks_of_environment().err()
    }
}

fn marks_of_environment() -> Result<MarkRule, IntervalError> {
    match std::env::var("PCP_IGNORE_MARK_RECORDS") {
        Ok(text) if text.is_empty() => Ok(MarkRule::Never),
        Ok(text) => parse_interval(&text).map(MarkRule::Beyond),
        Err(_) => Ok(MarkRule::All),
    }
}
