//! Diagnostics about definitions and options that are correct, but come too
//! late or exceed a limit.

use pmderive_runtime::model::PmStatus;

use super::Registered;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::syntax::{PcpError, Setting};
use crate::text::{SourceMap, Span};

/// Refuses the second definition of a name. `place` is its text, and `kind` is
/// libpcp's word for such a definition.
pub fn duplicate(name: &str, place: Span, kind: &str, diagnostics: &mut Diagnostics) -> PcpError {
    let message = format!("`{name}` is defined already");
    diagnostics.push(Diagnostic::error(Code::DuplicateName, place, message));
    PcpError { offset: 0, message: Some(format!("Duplicate {kind} derived metric name")) }
}

/// Refuses a definition because a limit is reached. `words` are libpcp's.
pub fn no_room(
    registered: &Registered,
    message: String,
    help: &str,
    words: &str,
    diagnostics: &mut Diagnostics,
) -> PcpError {
    let first = diagnostics.len();
    let span = registered.name_span;
    diagnostics.push(
        Diagnostic::error(Code::LimitReached, span, message).label(span, "one too many").help(help),
    );
    diagnostics.name_metric(first, &registered.name);
    PcpError { offset: 0, message: Some(words.to_owned()) }
}

/// Reports an option that is correct but could not be set. libpcp's words have
/// no place.
pub fn not_set(
    setting: Setting,
    outcome: Result<(), PmStatus>,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) {
    let Err(status) = outcome else { return };
    let Setting { option, value, span } = setting;
    let message = format!("cannot set {} to {value}", option.name());
    let help = match status {
        PmStatus::AGAIN => "PCP_DERIVED_CONTROL in the environment takes precedence",
        PmStatus::NOCONTEXT => "only a program can set it, for one of its contexts",
        _ => "see pmSetDerivedControl(3)",
    };
    let text = status.to_string().to_lowercase();
    let written = sources.slice(span);
    let said = format!("failed to set derived metric control {written}: {status}");
    diagnostics.push(
        Diagnostic::warning(Code::BadControl, span, message).label(span, text).help(help).pcp(said),
    );
}
