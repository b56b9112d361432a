//! The registry of diagnostic codes. A number never gets another meaning.
//!
//! Each code has a page: what it means, why the rule exists, a wrong and a right
//! example, and libpcp's message. The pages are the Markdown files in `pages`.
//! Their examples stand in fenced blocks called `wrong` and `right`, which tests
//! compile: the former has exactly the diagnostic of its page, the latter has
//! none.
//!
//! Codes below 100 are mistakes in the text, from 100 on mistakes of names,
//! from 200 on those of metadata. Codes from 300 on are lints: definitions that are allowed but
//! hardly intended.

use std::fmt;
use std::str::FromStr;

// Builds the codes. The numbers have four digits, because the macro spells the names of the
// pages with them.
macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $number:tt;)*) => {
        /// Stable code of a diagnostic, printed as `PMDnnnn`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        #[allow(clippy::zero_prefixed_literal, reason = "the names of the pages have four digits")]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])* $name = $number,)*
        }

        impl Code {
            /// All codes, ascending.
            pub const ALL: &[Code] = &[$(Code::$name,)*];
        }

        /// The page of a code: Markdown with prose in lines of at most 80
        /// characters.
        pub fn page(code: Code) -> &'static str {
            match code {
                $(Code::$name => include_str!(concat!("pages/PMD", stringify!($number), ".md")),)*
            }
        }
    };
}

codes! {
    /// A character in the wrong place.
    IllegalCharacter = 0001;
    /// An integer above 4294967295.
    ConstantTooLarge = 0002;
    /// A string, instance name or pattern without its end.
    Unterminated = 0003;
    /// A token in the wrong place.
    UnexpectedToken = 0010;
    /// The expression ends too early.
    UnexpectedEnd = 0011;
    /// A delimiter without its partner.
    UnbalancedDelimiter = 0012;
    /// A call of something that is not a function.
    UnknownFunction = 0013;
    /// Arguments that a function does not accept.
    WrongArguments = 0014;
    /// A keyword value that is not understood.
    BadKeywordValue = 0015;
    /// Units text that is not understood.
    BadUnits = 0016;
    /// A pattern that is not a regular expression.
    BadPattern = 0017;
    /// `novalue()` outside the branches of a ternary, or in both.
    MisplacedNoValue = 0018;
    /// Nesting or size beyond the limits.
    TooComplex = 0019;
    /// `by` in the wrong place, or without its labels.
    MisplacedBy = 0020;
    /// A line of a definition file that is not a definition.
    BadDefinitionLine = 0030;
    /// A name that is not valid for a metric.
    BadMetricName = 0031;
    /// A name that is already defined.
    DuplicateName = 0032;
    /// A mistake in a help text line.
    BadAttribute = 0033;
    /// A mistake in a control line.
    BadControl = 0034;
    /// A definition file that cannot be read.
    UnreadableFile = 0035;
    /// A definition beyond the limit.
    LimitReached = 0036;
    /// A metric that the source does not have.
    UnknownMetric = 0100;
    /// A metric without a descriptor.
    NoDescriptor = 0101;
    /// A derived metric as operand of another.
    NestedDerived = 0102;
    /// A name of the source hides the definition.
    HiddenByMetric = 0103;
    /// Definitions that need each other.
    DefinitionCycle = 0104;
    /// A derived metric as operand whose definition has mistakes.
    UnusableOperand = 0105;
    /// `by` in a definition that is evaluated on each host.
    ByWithoutFleet = 0106;
    /// A use of the fleet's metrics that no aggregate makes values of.
    FleetOperand = 0107;
    /// A label of a `by` that no target has.
    UnknownLabel = 0108;
    /// An instance that its domain does not have at present.
    NoSuchInstance = 0110;
    /// An operand of a type that the operator or function does not accept.
    NotNumeric = 0200;
    /// Branches of different types.
    BranchTypes = 0201;
    /// Counters where the operator does not accept them.
    CounterMisuse = 0202;
    /// Operands of different dimensions.
    DimensionMismatch = 0203;
    /// Operands of different instance domains.
    IndomMismatch = 0204;
    /// Branches of different semantics.
    BranchSemantics = 0205;
    /// Branches of different units or scale.
    BranchUnits = 0206;
    /// A guard over instances that the branches do not have.
    GuardShape = 0207;
    /// Units that a conversion cannot reach.
    IncompatibleUnits = 0208;
    /// A time dimension that `rate()` does not accept.
    RateDimension = 0209;
    /// Extra units that cannot be combined.
    ExtraUnits = 0210;
    /// A result whose dimension cannot be expressed.
    DimensionOverflow = 0211;
    /// `rate()` of an operand that is not a counter.
    NonCounterRate = 0300;
    /// `delta()` of an operand that is not a counter.
    GaugeDelta = 0301;
    /// A part that never has a value.
    AlwaysNoValue = 0302;
    /// A guard whose value is fixed before evaluation.
    NeedlessGuard = 0303;
    /// A definition that nothing uses.
    UnusedDefinition = 0304;
    /// The expression of another definition.
    SameExpression = 0305;
    /// Division by a counter as it is.
    GrowingDivisor = 0306;
    /// A comparison whose outcome does not depend on values.
    ConstantComparison = 0307;
    /// `.` as a number.
    LonePoint = 0308;
    /// A comparison of different dimensions that a U32 operand lets through.
    UncheckedDimensions = 0309;
    /// A comparison of different scales, which are not converted.
    UnequalScales = 0310;
    /// A branch that may have no value and then removes the other's.
    EmptyingBranch = 0311;
    /// A pattern that only text behind a blank could match.
    PatternBeyondBlank = 0312;
    /// Units of `count()` in a product or quotient.
    CountDimension = 0313;
    /// Unsigned arithmetic with numbers that can be negative.
    UnsignedWrap = 0314;
    /// Division by the constant zero.
    ZeroDivisor = 0315;
    /// The value of a counter beside a constant in a comparison.
    CounterCompared = 0316;
    /// A factor that changes the scale of values and not their units.
    HiddenFactor = 0317;
    /// A name that is a group of others as well, or a word of the language.
    ShadowingName = 0318;
    /// A pattern that costs more than necessary.
    ExpensivePattern = 0319;
    /// A comment for pmderive that does nothing.
    IdleComment = 0320;
    /// A pattern that looks like the shell's.
    ShellPattern = 0321;
    /// A comment that swallows the definition in the next line.
    SwallowedLine = 0322;
    /// An operation whose result is its operand.
    NeedlessOperation = 0323;
    /// A lower bound above the upper one.
    BoundsReversed = 0324;
    /// `&&` and `||` side by side.
    MixedLogic = 0325;
    /// A mistake in a file of unit tests.
    BadTestFile = 0400;
    /// A mistake in the configuration of `pmderive serve`, or in a file of targets.
    BadServeFile = 0401;
    /// A mistake in `pmderive.toml`.
    BadConfigFile = 0402;
}

impl Code {
    /// The number after `PMD`.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

/// The error for a text that is not a code.
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

    #[test]
    fn each_page_is_of_its_code() {
        for code in Code::ALL {
            let text = page(*code);
            assert!(text.starts_with(&format!("# {code}: ")), "{code}");
            // Text between fences may be longer.
            let prose = text.split("```").step_by(2).flat_map(str::lines);
            let longest = prose.map(|line| line.chars().count()).max();
            assert!(longest.is_some_and(|longest| longest <= 80), "{code}: {longest:?}");
        }
    }

    #[test]
    fn no_page_is_of_no_code() {
        let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/src/diag/pages");
        let count = std::fs::read_dir(pages).expect("the folder of the pages").count();
        assert_eq!(count, Code::ALL.len());
    }
}
