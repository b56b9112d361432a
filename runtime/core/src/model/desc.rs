//! Metric descriptors: the meaning of a metric's values.

use std::fmt;

use super::{InDom, Pmid, Units};

/// Type of a metric's values (`PM_TYPE_*` of PMAPI(3)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueType {
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit signed integer.
    I64,
    /// 64-bit unsigned integer.
    U64,
    /// 32-bit IEEE floating point.
    F32,
    /// 64-bit IEEE floating point.
    F64,
    /// Text: bytes without their terminating NUL.
    String,
    /// Opaque bytes.
    Aggregate,
    /// Opaque bytes that the agent owns. For a client the same as
    /// [`ValueType::Aggregate`].
    AggregateStatic,
    /// Event records with microsecond stamps.
    Event,
    /// Event records with nanosecond stamps.
    HighResEvent,
    /// The metric exists, but this system does not support it. It never has
    /// values.
    NoSupport,
    /// The type is unknown (`PM_TYPE_UNKNOWN`).
    Unknown,
    /// A code without a defined meaning.
    Other(i32),
}

impl ValueType {
    /// True for arrays of event records.
    pub const fn is_event(self) -> bool {
        matches!(self, ValueType::Event | ValueType::HighResEvent)
    }

    /// The code used on the wire and in archives.
    pub const fn code(self) -> i32 {
        match self {
            ValueType::I32 => 0,
            ValueType::U32 => 1,
            ValueType::I64 => 2,
            ValueType::U64 => 3,
            ValueType::F32 => 4,
            ValueType::F64 => 5,
            ValueType::String => 6,
            ValueType::Aggregate => 7,
            ValueType::AggregateStatic => 8,
            ValueType::Event => 9,
            ValueType::HighResEvent => 10,
            ValueType::NoSupport => -1,
            ValueType::Unknown => 255,
            ValueType::Other(code) => code,
        }
    }

    /// The type with a wire code.
    pub const fn from_code(code: i32) -> ValueType {
        match code {
            0 => ValueType::I32,
            1 => ValueType::U32,
            2 => ValueType::I64,
            3 => ValueType::U64,
            4 => ValueType::F32,
            5 => ValueType::F64,
            6 => ValueType::String,
            7 => ValueType::Aggregate,
            8 => ValueType::AggregateStatic,
            9 => ValueType::Event,
            10 => ValueType::HighResEvent,
            -1 => ValueType::NoSupport,
            255 => ValueType::Unknown,
            _ => ValueType::Other(code),
        }
    }

    /// True for the six types that have arithmetic.
    pub const fn is_numeric(self) -> bool {
        self.code() >= 0 && self.code() <= 5
    }

    /// True if a block with this type code may hold a value of this type. Code 0
    /// also stands for no type, as old agents and archives have it. A 32-bit
    /// integer has code 1 if it stands among blocks, whatever its sign.
    pub(crate) const fn accepts_block_of(self, code: u8) -> bool {
        match self {
            ValueType::I32 | ValueType::U32 => code <= 1,
            ValueType::AggregateStatic => matches!(code, 0 | 7 | 8),
            _ => code == 0 || code as i32 == self.code(),
        }
    }

    /// Size in bytes of a lane in a column of this type: 4 or 8. The lane of a
    /// value that is no number is a range in a byte arena.
    pub const fn lane_bytes(self) -> usize {
        match self {
            ValueType::I32 | ValueType::U32 | ValueType::F32 => 4,
            _ => 8,
        }
    }

    /// Name as `pmTypeStr(3)` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            ValueType::I32 => "32",
            ValueType::U32 => "U32",
            ValueType::I64 => "64",
            ValueType::U64 => "U64",
            ValueType::F32 => "FLOAT",
            ValueType::F64 => "DOUBLE",
            ValueType::String => "STRING",
            ValueType::Aggregate => "AGGREGATE",
            ValueType::AggregateStatic => "AGGREGATE_STATIC",
            ValueType::Event => "EVENT",
            ValueType::HighResEvent => "HIGHRES_EVENT",
            ValueType::NoSupport => "NO_SUPPORT",
            ValueType::Unknown => "UNKNOWN",
            ValueType::Other(_) => "???",
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

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How the values of a metric relate to each other over time (`PM_SEM_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Semantics {
    /// Grows from sample to sample until it wraps or restarts.
    Counter,
    /// A measurement of a continuous quantity at one instant.
    Instant,
    /// A value that stays until it changes, such as a setting.
    Discrete,
    /// A code without a defined meaning. Metrics that are not supported have 0.
    Other(i32),
}

impl Semantics {
    /// The code used on the wire and in archives.
    pub const fn code(self) -> i32 {
        match self {
            Semantics::Counter => 1,
            Semantics::Instant => 3,
            Semantics::Discrete => 4,
            Semantics::Other(code) => code,
        }
    }

    /// The semantics with a wire code.
    pub const fn from_code(code: i32) -> Semantics {
        match code {
            1 => Semantics::Counter,
            3 => Semantics::Instant,
            4 => Semantics::Discrete,
            _ => Semantics::Other(code),
        }
    }

    /// Name as `pmSemStr(3)` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Semantics::Counter => "counter",
            Semantics::Instant => "instant",
            Semantics::Discrete => "discrete",
            Semantics::Other(_) => "???",
        }
    }

    /// These semantics, or "instant" for a code without a meaning.
    #[must_use]
    pub const fn or_instant(self) -> Semantics {
        match self {
            Semantics::Other(_) => Semantics::Instant,
            known => known,
        }
    }
}

impl fmt::Display for Semantics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
