//! The registry of diagnostic codes. A number never gets another meaning.
//!
//! Below 100 are mistakes in the text, from 100 on those of names, from 200 on
//! those of metadata, from 300 on what is allowed but hardly meant (lints).

use std::fmt;
use std::str::FromStr;

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
    /// `by` where it cannot stand, or without the labels that it needs.
    MisplacedBy = 20;
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
    /// Definitions that need each other.
    DefinitionCycle = 104;
    /// A derived metric as operand whose definition has mistakes.
    UnusableOperand = 105;
    /// `by` in a definition that is evaluated on each host.
    ByWithoutFleet = 106;
    /// A use of the fleet's metrics that no aggregate makes values of.
    FleetOperand = 107;
    /// A label of a `by` that no target has.
    UnknownLabel = 108;
    /// An instance that its domain does not have at present.
    NoSuchInstance = 110;
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
    /// `rate()` of something that is no counter.
    NonCounterRate = 300;
    /// `delta()` of something that is no counter.
    GaugeDelta = 301;
    /// A part that never has a value.
    AlwaysNoValue = 302;
    /// A guard that is known before there is a value.
    NeedlessGuard = 303;
    /// A definition that nothing uses.
    UnusedDefinition = 304;
    /// The expression of another definition.
    SameExpression = 305;
    /// Division by a counter as it is.
    GrowingDivisor = 306;
    /// A comparison whose outcome does not depend on values.
    ConstantComparison = 307;
    /// `.` as a number.
    LonePoint = 308;
    /// A comparison of different dimensions that a U32 operand lets through.
    UncheckedDimensions = 309;
    /// A comparison of different scales, which are not converted.
    UnequalScales = 310;
    /// A branch that may have no value and takes the other's with it.
    EmptyingBranch = 311;
    /// A pattern that only text behind a blank could match.
    PatternBeyondBlank = 312;
    /// Units of `count()` in a product or quotient.
    CountDimension = 313;
    /// Unsigned arithmetic with numbers that can be negative.
    UnsignedWrap = 314;
    /// Division by the constant zero.
    ZeroDivisor = 315;
    /// The value of a counter beside a constant in a comparison.
    CounterCompared = 316;
    /// A factor that changes the scale of values and not their units.
    HiddenFactor = 317;
    /// A name that is a group of others as well, or a word of the language.
    ShadowingName = 318;
    /// A pattern that costs more than it has to.
    ExpensivePattern = 319;
    /// A comment that allows nothing.
    UnusedAllow = 320;
    /// A pattern that looks like the shell's.
    ShellPattern = 321;
    /// A comment that takes the definition in the next line along.
    SwallowedLine = 322;
    /// An operation whose result is its operand.
    NeedlessOperation = 323;
    /// A lower bound above the upper one.
    BoundsReversed = 324;
    /// `&&` and `||` side by side.
    MixedLogic = 325;
    /// Something wrong with a file of unit tests.
    BadTestFile = 400;
    /// Something wrong with the configuration of `pmderive serve`, or with a file of targets.
    BadServeFile = 401;
    /// Something wrong with `pmderive.toml`.
    BadConfigFile = 402;
}

impl Code {
    /// The number after `PMD`.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

/// A text that is no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no code of a diagnostic; codes are written as in PMD0203")]
pub struct UnknownCode {
    /// The text.
    pub text: String,
}

impl FromStr for Code {
    type Err = UnknownCode;

    /// Reads `PMD0203`, in any case, or the number alone.
    fn from_str(text: &str) -> Result<Code, UnknownCode> {
        let prefixed = text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("PMD"));
        let digits = if prefixed { &text[3..] } else { text };
        let number = match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse::<u16>().ok(),
            false => None,
        };
        Code::ALL
            .iter()
            .copied()
            .find(|code| Some(code.number()) == number)
            .ok_or_else(|| UnknownCode { text: text.to_owned() })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PMD{:04}", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_they_are_printed() {
        for code in Code::ALL {
            assert_eq!(code.to_string().parse(), Ok(*code));
        }
        assert_eq!("pmd0203".parse(), Ok(Code::DimensionMismatch));
        assert_eq!("203".parse(), Ok(Code::DimensionMismatch));
        for bad in ["", "PMD", "PMD0004", "+203", "PMDx", "99999", "\u{e9}203"] {
            assert_eq!(bad.parse::<Code>(), Err(UnknownCode { text: bad.to_owned() }));
        }
    }
}
