//! Metric descriptors: the meaning of a metric's values.

use std::fmt;

use super::{InDom, Pmid, Units};

/// An enum of codes, with the name that libpcp prints for each.
macro_rules! codes {
    (
        $(#[$about:meta])*
        $kind:ident;
        $(#[$other:meta])* Other;
        $($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*
    ) => {
        $(#[$about])*
        pub enum $kind {
            $($(#[$doc])* $name,)*
            $(#[$other])*
            Other(i32),
        }

        impl $kind {
            /// The code used on the wire and in archives.
            pub const fn code(self) -> i32 {
                match self {
                    $($kind::$name => $code,)*
                    $kind::Other(code) => code,
                }
            }

            /// The variant of a code on the wire and in archives.
            pub const fn from_code(code: i32) -> $kind {
                match code {
                    $($code => $kind::$name,)*
                    _ => $kind::Other(code),
                }
            }

            /// Name as libpcp prints it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($kind::$name => $text,)*
                    $kind::Other(_) => "???",
                }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

codes! {
    /// Type of a metric's values (`PM_TYPE_*` of PMAPI(3)), with the names of
    /// `pmTypeStr(3)`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    ValueType;
    /// A code without a defined meaning.
    Other;
    /// 32-bit signed integer.
    I32 = 0, "32";
    /// 32-bit unsigned integer.
    U32 = 1, "U32";
    /// 64-bit signed integer.
    I64 = 2, "64";
    /// 64-bit unsigned integer.
    U64 = 3, "U64";
    /// 32-bit IEEE floating point.
    F32 = 4, "FLOAT";
    /// 64-bit IEEE floating point.
    F64 = 5, "DOUBLE";
    /// Text: bytes without their terminating NUL.
    String = 6, "STRING";
    /// Opaque bytes.
    Aggregate = 7, "AGGREGATE";
    /// Opaque bytes that the agent owns. For a client the same as
    /// [`ValueType::Aggregate`].
    AggregateStatic = 8, "AGGREGATE_STATIC";
    /// Event records with microsecond stamps.
    Event = 9, "EVENT";
    /// Event records with nanosecond stamps.
    HighResEvent = 10, "HIGHRES_EVENT";
    /// The metric exists, but this system does not support it. It never has
    /// values.
    NoSupport = -1, "NO_SUPPORT";
    /// The type is unknown (`PM_TYPE_UNKNOWN`).
    Unknown = 255, "UNKNOWN";
}

impl ValueType {
    /// True for arrays of event records.
    pub const fn is_event(self) -> bool {
        matches!(self, ValueType::Event | ValueType::HighResEvent)
    }

    /// True for the six types that have arithmetic.
    pub const fn is_numeric(self) -> bool {
        self.code() >= 0 && self.code() <= 5
    }

    /// True if a block with this type code may hold a value of this type. Code 0
    /// means no type, as in blocks of old agents and archives. A 32-bit integer
    /// in a block has code 1, signed or not.
    pub(crate) const fn accepts_block_of(self, code: u8) -> bool {
        match self {
            ValueType::I32 | ValueType::U32 => code <= 1,
            ValueType::AggregateStatic => matches!(code, 0 | 7 | 8),
            _ => code == 0 || code as i32 == self.code(),
        }
    }

    /// Size in bytes of a lane in a column of this type: 4 or 8. The lane of a
    /// value that is not a number is a range in a byte arena.
    pub const fn lane_bytes(self) -> usize {
        match self {
            ValueType::I32 | ValueType::U32 | ValueType::F32 => 4,
            _ => 8,
        }
    }

    /// The type in the words of `pmPrintDesc(3)`. `None` for a metric without
    /// values.
    pub const fn description(self) -> Option<&'static str> {
        Some(match self {
            ValueType::I32 => "32-bit int",
            ValueType::U32 => "32-bit unsigned int",
            ValueType::I64 => "64-bit int",
            ValueType::U64 => "64-bit unsigned int",
            ValueType::F32 => "float",
            ValueType::F64 => "double",
            ValueType::String => "string",
            ValueType::Aggregate => "aggregate",
            ValueType::AggregateStatic => "static aggregate",
            ValueType::Event => "event record array",
            ValueType::HighResEvent => "highres event record array",
            ValueType::Unknown | ValueType::Other(_) => "???",
            ValueType::NoSupport => return None,
        })
    }
}

codes! {
    /// How the values of a metric relate to each other over time (`PM_SEM_*`), with
    /// the names of `pmSemStr(3)`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    Semantics;
    /// A code without a defined meaning. Metrics that are not supported have 0.
    Other;
    /// Grows from sample to sample until it wraps or restarts.
    Counter = 1, "counter";
    /// A measurement of a continuous quantity at one instant.
    Instant = 3, "instant";
    /// A value that stays until it changes, such as a setting.
    Discrete = 4, "discrete";
}

impl Semantics {
    /// These semantics, or "instant" for a code without a meaning.
    #[must_use]
    pub const fn or_instant(self) -> Semantics {
        match self {
            Semantics::Other(_) => Semantics::Instant,
            known => known,
        }
    }
}

/// The description of a metric's values: `pmDesc` of `pmLookupDesc(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MetricDesc {
    /// The metric's identifier.
    pub pmid: Pmid,
    /// Type of its values.
    pub value_type: ValueType,
    /// Instance domain; `None` for a metric with a single value.
    pub indom: Option<InDom>,
    /// Semantics of its values.
    pub semantics: Semantics,
    /// Dimension and scale of its values.
    pub units: Units,
}

/// Prints as `pmPrintDesc(3)` does: two lines without a final newline, or one
/// line for a metric that is not supported.
impl fmt::Display for MetricDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(value_type) = self.value_type.description() else {
            return f.write_str("    Data Type: Not Supported");
        };
        write!(f, "    Data Type: {value_type}")?;
        if let ValueType::Unknown | ValueType::Other(_) = self.value_type {
            write!(f, " ({})", self.value_type.code())?;
        }
        f.write_str("  InDom: ")?;
        match self.indom {
            Some(indom) => write!(f, "{indom}")?,
            None => f.write_str("PM_INDOM_NULL")?,
        }
        write!(f, " {:#x}\n    Semantics: {}", InDom::to_wire(self.indom), self.semantics)?;
        if let Semantics::Other(code) = self.semantics {
            write!(f, " ({code})")?;
        }
        match self.units.to_string() {
            units if units.is_empty() => f.write_str("  Units: none"),
            units => write!(f, "  Units: {units}"),
        }
    }
}
