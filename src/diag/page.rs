//! A page of text for each code: what it means, why the rule exists, an example
//! that is wrong and one that is right, and what libpcp says.
//!
//! The pages are the Markdown files beside this one. Their examples stand in
//! fenced blocks called `wrong` and `right`, which tests compile: the former
//! has exactly the diagnostic of its page, the latter has none.

use super::Code;

macro_rules! pages {
    ($($name:ident = $number:literal,)*) => {
        /// The page of a code: Markdown, its prose in lines of 80
        /// characters at most.
        pub fn page(code: Code) -> &'static str {
            match code {
                $(Code::$name => include_str!(concat!("pages/PMD", $number, ".md")),)*
            }
        }
    };
}

pages! {
    IllegalCharacter = "0001",
    ConstantTooLarge = "0002",
    Unterminated = "0003",
    UnexpectedToken = "0010",
    UnexpectedEnd = "0011",
    UnbalancedDelimiter = "0012",
    UnknownFunction = "0013",
    WrongArguments = "0014",
    BadKeywordValue = "0015",
    BadUnits = "0016",
    BadPattern = "0017",
    MisplacedNoValue = "0018",
    TooComplex = "0019",
    MisplacedBy = "0020",
    BadDefinitionLine = "0030",
    BadMetricName = "0031",
    DuplicateName = "0032",
    BadAttribute = "0033",
    BadControl = "0034",
    UnreadableFile = "0035",
    LimitReached = "0036",
    UnknownMetric = "0100",
    NoDescriptor = "0101",
    NestedDerived = "0102",
    HiddenByMetric = "0103",
    DefinitionCycle = "0104",
    UnusableOperand = "0105",
    ByWithoutFleet = "0106",
    FleetOperand = "0107",
    UnknownLabel = "0108",
    NoSuchInstance = "0110",
    NotNumeric = "0200",
    BranchTypes = "0201",
    CounterMisuse = "0202",
    DimensionMismatch = "0203",
    IndomMismatch = "0204",
    BranchSemantics = "0205",
    BranchUnits = "0206",
    GuardShape = "0207",
    IncompatibleUnits = "0208",
    RateDimension = "0209",
    ExtraUnits = "0210",
    DimensionOverflow = "0211",
    NonCounterRate = "0300",
    GaugeDelta = "0301",
    AlwaysNoValue = "0302",
    NeedlessGuard = "0303",
    UnusedDefinition = "0304",
    SameExpression = "0305",
    GrowingDivisor = "0306",
    ConstantComparison = "0307",
    LonePoint = "0308",
    UncheckedDimensions = "0309",
    UnequalScales = "0310",
    EmptyingBranch = "0311",
    PatternBeyondBlank = "0312",
    CountDimension = "0313",
    UnsignedWrap = "0314",
    ZeroDivisor = "0315",
    CounterCompared = "0316",
    HiddenFactor = "0317",
    ShadowingName = "0318",
    ExpensivePattern = "0319",
    UnusedAllow = "0320",
    ShellPattern = "0321",
    SwallowedLine = "0322",
    NeedlessOperation = "0323",
    BoundsReversed = "0324",
    MixedLogic = "0325",
    BadTestFile = "0400",
    BadServeFile = "0401",
    BadConfigFile = "0402",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_of_its_code() {
        for code in Code::ALL {
            let text = page(*code);
            assert!(text.starts_with(&format!("# {code}: ")), "{code}");
            // What stands between fences may be longer.
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
