//! Control options: `#control` lines and `PCP_DERIVED_CONTROL`.
//!
//! This module turns `name=integer,...` into options with values. The registry
//! knows the effect of an option, and who may set it at which time.

use pmderive_runtime::model::PmStatus;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::syntax::mistakes::suggest::{choices, nearest};
use crate::syntax::origin::Origin;
use crate::text::{SourceId, SourceMap, Span, offset};

/// Options of `pmSetDerivedControl(3)`, with their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ControlOption {
    /// Largest number of global derived metrics, -1 for no limit.
    GlobalLimit = 1,
    /// Largest number of derived metrics of a context, -1 for no limit.
    ContextLimit = 2,
    /// Debugging output of the parser, 0 or 1.
    DebugSyntax = 3,
    /// Debugging output of the semantic checks, 0 or 1.
    DebugSemantics = 4,
    /// Debugging output of the evaluation, 0 or 1.
    DebugEval = 5,
    /// 1 if a missing operand counts as `novalue()`, else 0.
    NoValue = 6,
}

/// Names of the options. The manual page calls the last one `novalue`.
const OPTIONS: [(&str, ControlOption); 7] = [
    ("GLOBAL_LIMIT", ControlOption::GlobalLimit),
    ("CONTEXT_LIMIT", ControlOption::ContextLimit),
    ("DEBUG_SYNTAX", ControlOption::DebugSyntax),
    ("DEBUG_SEMANTICS", ControlOption::DebugSemantics),
    ("DEBUG_EVAL", ControlOption::DebugEval),
    ("OPTION_NOVALUE", ControlOption::NoValue),
    ("NOVALUE", ControlOption::NoValue),
];

impl ControlOption {
    /// All options, in the order of their codes.
    pub const ALL: [ControlOption; 6] = [
        ControlOption::GlobalLimit,
        ControlOption::ContextLimit,
        ControlOption::DebugSyntax,
        ControlOption::DebugSemantics,
        ControlOption::DebugEval,
        ControlOption::NoValue,
    ];

    /// The name in `#control` lines and in `PCP_DERIVED_CONTROL`.
    pub fn name(self) -> &'static str {
        let named = OPTIONS.iter().find(|(_, option)| *option == self);
        named.map_or("", |(name, _)| *name)
    }

    /// The option of this name or unambiguous beginning of a name, any case.
    fn find(name: &str) -> Option<ControlOption> {
        let whole = |candidate: &&(&str, ControlOption)| candidate.0.eq_ignore_ascii_case(name);
        if let Some((_, option)) = OPTIONS.iter().find(whole) {
            return Some(*option);
        }
        let mut beginnings = OPTIONS.iter().filter(|(candidate, _)| {
            candidate.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        });
        match (beginnings.next(), beginnings.next()) {
            (Some((_, option)), None) if !name.is_empty() => Some(*option),
            _ => None,
        }
    }

    /// True for a value that it can have.
    pub fn takes(self, value: i32) -> bool {
        match self {
            ControlOption::GlobalLimit | ControlOption::ContextLimit => value == -1 || value > 0,
            _ => value == 0 || value == 1,
        }
    }
}

/// An option with its value in a text, and the place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The option.
    pub option: ControlOption,
    /// The value, which the option can have.
    pub value: i32,
    /// `name=value`.
    pub span: Span,
}

/// Reads a whole text of control options, as in `PCP_DERIVED_CONTROL`
/// (PCPIntro(1)): `name=integer[,name=integer...]`. Mistakes are reported.
pub fn parse_control(
    source: SourceId,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<Setting> {
    match &*sources.get(source).text {
        "" => Vec::new(),
        text => parse_options(text, &Origin::new(source, 0), diagnostics),
    }
}

/// Reads `name=integer[,name=integer...]`. An unknown name skips its item, any
/// other mistake the rest of the text.
pub(super) fn parse_options(
    text: &str,
    origin: &Origin,
    diagnostics: &mut Diagnostics,
) -> Vec<Setting> {
    let mut options = Vec::new();
    let mut start = 0;
    for item in text.split(',') {
        let end = start + item.len();
        let span_start = offset(start);
        let span = origin.span(span_start, offset(end));
        start = end + 1;
        let error = |message: String| Diagnostic::error(Code::BadControl, span, message);
        let Some((name, value)) = item.split_once('=') else {
            let message = format!("`{item}` has no value");
            let said = format!("missing '=' in derived metric control ({item})");
            diagnostics.push(error(message).help("write `name=number`").pcp(said));
            break;
        };
        let Ok(value) = value.parse::<i32>() else {
            let (message, said) = match value {
                "" => (
                    format!("`{name}=` has no value"),
                    format!("missing value in derived metric control ({item})"),
                ),
                _ => (
                    format!("`{value}` is no whole number"),
                    format!("bad value ({value}) for derived metric control ({name})"),
                ),
            };
            let help = "write `name=number`, without blanks";
            diagnostics.push(error(message).help(help).pcp(said));
            break;
        };
        let refused = || {
            let reason = PmStatus::ARG;
            format!("failed to set derived metric control {name}={value}: {reason}")
        };
        match ControlOption::find(name) {
            Some(option) if option.takes(value) => options.push(Setting { option, value, span }),
            Some(ControlOption::GlobalLimit | ControlOption::ContextLimit) => {
                let message = format!("`{name}` cannot be {value}");
                let help = "a limit is above 0, or -1 for none";
                diagnostics.push(error(message).help(help).pcp(refused()));
            }
            Some(_) => {
                let message = format!("`{name}` cannot be {value}");
                diagnostics.push(error(message).help("it is 0 or 1").pcp(refused()));
            }
            None => {
                let message = format!("there is no control option `{name}`");
                let names = OPTIONS.map(|(name, _)| name);
                let said = format!("unknown derived metric control ({name})");
                let unknown = error(message).pcp(said);
                let place = origin.span(span_start, span_start + offset(name.len()));
                let otherwise = format!("one of {}", choices(names.into_iter().take(6)));
                diagnostics.push(unknown.meant(place, nearest(name, names), otherwise));
            }
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for option in ControlOption::ALL {
            assert_eq!(ControlOption::find(option.name()), Some(option));
        }
    }

    #[test]
    fn options_by_name_alias_and_beginning() {
        use ControlOption::*;
        for (text, expected, errors) in [
            ("GLOBAL_LIMIT=5", vec![(GlobalLimit, 5)], 0),
            ("novalue=1,g=-1", vec![(NoValue, 1), (GlobalLimit, -1)], 0),
            ("opt=1,debug=1,debug_e=1", vec![(NoValue, 1), (DebugEval, 1)], 1),
            ("=1,c=2", vec![(ContextLimit, 2)], 1),
            ("g=0,novalue=2,debug_sy=1", vec![(DebugSyntax, 1)], 2),
            ("g,c=2", vec![], 1),
            ("g=,c=2", vec![], 1),
            ("g=5x,c=2", vec![], 1),
        ] {
            let mut diagnostics = Diagnostics::default();
            let origin = Origin::new(SourceId(0), 9);
            let settings = parse_options(text, &origin, &mut diagnostics);
            let settings: Vec<(ControlOption, i32)> =
                settings.iter().map(|setting| (setting.option, setting.value)).collect();
            assert_eq!(settings, expected, "{text}");
            assert_eq!(diagnostics.errors(), errors, "{text}");
        }
    }
}
