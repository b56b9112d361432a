//! The registry of diagnostic codes. A number is never given to another meaning.

use std::fmt;

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $number:literal;)*) => {
        /// Stable code of a diagnostic, printed as `PMDnnnn`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Code {
            $($(#[doc = $doc])* $name = $number,)*
        }

        impl Code {
            /// All codes, ascending.
            pub const ALL: &[Code] = &[$(Code::$name,)*];
        }
    };
}

codes! {
    /// A character that cannot stand where it stands.
    IllegalCharacter = 1;
    /// An integer above 4294967295.
    ConstantTooLarge = 2;
    /// A string, instance name or pattern without its end.
    Unterminated = 3;
    /// A token that cannot stand where it stands.
    UnexpectedToken = 10;
    /// The expression ends too early.
    UnexpectedEnd = 11;
    /// A delimiter without its partner.
    UnbalancedDelimiter = 12;
    /// A call of something that is no function.
    UnknownFunction = 13;
    /// Arguments that a function does not take.
    WrongArguments = 14;
    /// A keyword value that is not understood.
    BadKeywordValue = 15;
    /// Units text that is not understood.
    BadUnits = 16;
    /// A pattern that is no regular expression.
    BadPattern = 17;
    /// `novalue()` elsewhere than as one branch of a ternary.
    MisplacedNoValue = 18;
    /// Nesting or size beyond the limits.
    TooComplex = 19;
    /// A line of a definition file that is no definition.
    BadDefinitionLine = 30;
    /// A name that cannot be a metric's.
    BadMetricName = 31;
    /// A name defined before.
    DuplicateName = 32;
    /// Something wrong with a help text line.
    BadAttribute = 33;
    /// Something wrong with a control line.
    BadControl = 34;
    /// A definition file that cannot be read.
    UnreadableFile = 35;
    /// A definition beyond the number that is allowed.
    LimitReached = 36;
    /// A metric that the source does not have.
    UnknownMetric = 100;
    /// A metric without a descriptor.
    NoDescriptor = 101;
    /// A derived metric as operand of another.
    NestedDerived = 102;
    /// A name of the source hides the definition.
    HiddenByMetric = 103;
    /// An operand whose type the operator or function does not take.
    NotNumeric = 200;
    /// Branches of different types.
    BranchTypes = 201;
    /// Counters where the operator does not take them.
    CounterMisuse = 202;
    /// Operands of different dimensions.
    DimensionMismatch = 203;
    /// Operands of different instance domains.
    IndomMismatch = 204;
    /// Branches of different semantics.
    BranchSemantics = 205;
    /// Branches of different units or scale.
    BranchUnits = 206;
    /// A guard over instances that the branches do not have.
    GuardShape = 207;
    /// Units that a conversion cannot reach.
    IncompatibleUnits = 208;
    /// A time dimension that `rate()` cannot take.
    RateDimension = 209;
    /// Extra units that cannot be combined.
    ExtraUnits = 210;
    /// A result whose dimension cannot be expressed.
    DimensionOverflow = 211;
}

impl Code {
    /// The number after `PMD`.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PMD{:04}", self.number())
    }
}
