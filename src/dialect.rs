//! The language of definitions: which version's answers to give where
//! implementations differ, and whether to allow forms that no libpcp
//! understands.
//!
//! Only parsing, binding, checking and lowering read a [`Language`]; a compiled
//! program has it folded in.

use std::fmt;
use std::str::FromStr;

use pmderive_runtime::archive::{ArchiveContext, InterpolationRules, Neighbour, Overflow};
use pmderive_runtime::model::{
    ExtraUnit, MetricDesc, PcpVersion, PmStatus, RawValueRef, Units, ValueType,
};
use pmderive_runtime::time::TimeZone;

use crate::diag::printable;

/// The implementation whose answers are given where implementations differ.
///
/// ```
/// use pmderive::runtime::model::PmStatus;
/// use pmderive::{Backend, Dialect, Engine};
///
/// let dialect: Dialect = "6.0".parse()?;
/// assert_eq!((dialect, dialect.to_string().as_str()), (Dialect::Pcp6_0, "6.0"));
/// assert!(!dialect.is_version_7() && Dialect::default().is_version_7());
/// assert_eq!(dialect.text(PmStatus::PMID), "Unknown or illegal metric identifier");
/// let engine = Engine::new(dialect, Backend::Auto);
/// # drop(engine);
/// # Ok::<(), pmderive::dialect::UnknownDialect>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Dialect {
    /// As libpcp 6.0 answers.
    #[cfg_attr(feature = "cli", value(name = "6.0"))]
    Pcp6_0,
    /// As libpcp 7.2 answers.
    #[cfg_attr(feature = "cli", value(name = "7.2"))]
    Pcp7_2,
    /// As 7.2, with its wrong numbers, labels and metadata corrected.
    #[default]
    #[cfg_attr(feature = "cli", value(name = "off"))]
    Fixed,
}

impl Dialect {
    /// All dialects with their words in options and files.
    pub const NAMED: [(&str, Dialect); 3] =
        [("6.0", Dialect::Pcp6_0), ("7.2", Dialect::Pcp7_2), ("off", Dialect::Fixed)];

    /// True where the 7.x language is understood: expressions under `delta()`,
    /// `novalue()`, `indom=`, `meta=`, extra units, lazy binding.
    pub const fn is_version_7(self) -> bool {
        !matches!(self, Dialect::Pcp6_0)
    }

    /// The text of a status (`pmErrStr(3)`).
    pub fn text(self, status: PmStatus) -> String {
        match self {
            Dialect::Pcp7_2 => status.text(PcpVersion::V7_2),
            Dialect::Pcp6_0 => status.text(PcpVersion::V6_0),
            Dialect::Fixed => status.to_string(),
        }
    }

    /// A metric's metadata as the version understands them. Version 6 takes the bytes of extra
    /// units, such as `temperature (C)`, for padding.
    pub(crate) fn understood(self, desc: MetricDesc) -> MetricDesc {
        let extra = if self.is_version_7() { desc.units.extra } else { ExtraUnit::default() };
        MetricDesc { units: Units { extra, ..desc.units }, ..desc }
    }

    /// Appends a value as `pmPrintValue(3)` of the version prints it, on one line without padding.
    pub(crate) fn print(
        self,
        value: RawValueRef<'_>,
        out: &mut Vec<u8>,
        value_type: ValueType,
        zone: &TimeZone,
    ) {
        let clock = |time, digits| match digits {
            9 => zone.clock_nanos(time),
            _ => zone.clock_millis(time),
        };
        match self {
            Dialect::Pcp6_0 => value.print_version_6(out, value_type, 1, &clock),
            Dialect::Pcp7_2 | Dialect::Fixed => value.print(out, value_type, 1, &clock),
        }
    }

    /// Gives an archive the peculiarities that definitions of the dialect rely on.
    pub(crate) fn apply_to(self, archive: &mut ArchiveContext) {
        if self != Dialect::Fixed {
            archive.look_up_instances_by_beginning();
            archive.take_untyped_numbers_as_native();
        }
        archive.set_interpolation_rules(self.interpolation(archive.interpolation_rules()));
    }

    /// The rules for interpolating archives: the dialect's, except where
    /// `environment` has its own.
    pub fn interpolation(self, environment: InterpolationRules) -> InterpolationRules {
        let (neighbour, overflow) = match self {
            Dialect::Pcp6_0 => (Neighbour::Earlier, Overflow::AsInC),
            Dialect::Pcp7_2 => (Neighbour::Nearer, Overflow::AsInC),
            Dialect::Fixed => (Neighbour::Nearer, Overflow::Nearest),
        };
        InterpolationRules { neighbour, overflow, ..environment }
    }
}

/// The dialect's word in options and files.
impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Dialect::NAMED.into_iter().find(|(_, dialect)| dialect == self);
        f.pad(named.map_or("", |(name, _)| name))
    }
}

/// The error for a text that is not the word of a dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no dialect; the dialects are 6.0, 7.2 and off", printable(text))]
pub struct UnknownDialect {
    /// The text.
    pub text: String,
}

/// Reads the word of [`Dialect::NAMED`].
impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Dialect, UnknownDialect> {
        let named = Dialect::NAMED.into_iter().find(|(name, _)| *name == text);
        named.map(|(_, dialect)| dialect).ok_or_else(|| UnknownDialect { text: text.to_owned() })
    }
}

/// A dialect, with or without extensions. Extensions never change the meaning
/// of a text that libpcp accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Language {
    /// The behaviour to follow.
    pub dialect: Dialect,
    /// True if functions and forms that libpcp refuses are allowed. The table
    /// in `grammar/extensions.md` has all of them.
    pub extensions: bool,
}

/// The dialect, and whether there are extensions.
impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extensions = if self.extensions { "with" } else { "without" };
        match self.dialect {
            Dialect::Fixed => write!(f, "the default dialect")?,
            dialect => write!(f, "the dialect of {dialect}")?,
        }
        write!(f, " {extensions} extensions")
    }
}

impl From<Dialect> for Language {
    fn from(dialect: Dialect) -> Language {
        Language { dialect, extensions: false }
    }
}
