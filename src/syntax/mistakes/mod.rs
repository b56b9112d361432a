//! Suggests corrections of an expression that libpcp refuses. Correct expressions never come here.
//!
//! ```text
//! tokens ── repairs ──► tokens that the grammar understands ── grammar ──► Expr
//!              │  (habits, calls, by, lexical ...)                │
//!              ▼                                                  ▼ explain
//!         diagnostics with edits ── trial: do they help? ──► diagnostics
//! ```
//!
//! [`repairs`] goes over the tokens. [`habits`] explains notation of other languages. [`calls`] and
//! its neighbours explain the arguments of functions, and [`lexical`] explains text that is no
//! token. [`explain`] says why the grammar stopped at the remaining tokens.

mod by;
mod call;
pub(super) mod calls;
mod calls_meant;
mod delimiters;
pub(super) mod edit;
pub(super) mod explain;
mod extension_calls;
pub(super) mod habits;
pub(super) mod lexical;
pub(super) mod repair;
mod repairs;
pub(super) mod suggest;
pub(super) mod trial;
pub(super) mod units_help;
mod unknown_calls;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::{Dialect, Language};
use crate::text::offset;

use self::delimiters::Delimiters;
use self::explain::Explainer;
use self::habits::calls::change_of_aggregate;
use super::ast::{Callee, Expr};
use super::origin::Origin;
use super::pcp_error::{self, PcpError};
use super::token::{Token, TokenAt};
use super::{build, lexer, not_understood};

/// Largest number of tokens for which the parser recovers from errors. Recovery
/// needs quadratic time or worse, so larger expressions get only the first
/// syntax error.
const MAX_RECOVERY_TOKENS: usize = 1_000;

/// The place where libpcp refuses a text.
pub(super) struct Refused<'r> {
    /// Index of the token that it does not take.
    pub(super) next: usize,
    /// Its words.
    pub(super) error: &'r PcpError,
}

/// Finds as many mistakes as possible in a text that libpcp refuses. The tree has error nodes
/// where nothing is understood.
pub(super) fn teach(
    text: &str,
    tokens: &[TokenAt<'_>],
    refused: Refused<'_>,
    origin: &Origin,
    language: Language,
    diagnostics: &mut Diagnostics,
) -> Expr {
    let end = offset(text.len());
    if !language.extensions && needs_extensions(text, origin, language.dialect, diagnostics) {
        return not_understood(origin, end);
    }
    let repaired = repairs::repair(text, tokens, origin, language, diagnostics);
    let expr = if tokens.len() <= MAX_RECOVERY_TOKENS {
        build(text, &repaired, origin, language, diagnostics)
    } else {
        if diagnostics.is_empty() {
            let mut explainer = Explainer::new(text, tokens, language);
            diagnostics.extend(explainer.explain_token(refused.next, origin));
        }
        not_understood(origin, end)
    };
    if diagnostics.is_empty() {
        debug_assert!(tokens.len() > MAX_RECOVERY_TOKENS, "the grammar accepts {text:?}");
        let offset = u32::try_from(refused.error.offset).unwrap_or(0).min(end);
        let span = origin.span(offset, offset);
        let message = refused.error.message.as_deref().unwrap_or("this is not understood");
        diagnostics.push(Diagnostic::error(Code::UnexpectedToken, span, message));
    }
    expr
}

/// Reports the functions of a text that is right except that it needs the
/// extensions. False if that is not its mistake. Other parts of the extensions
/// have better words of their own.
fn needs_extensions(
    text: &str,
    origin: &Origin,
    dialect: Dialect,
    diagnostics: &mut Diagnostics,
) -> bool {
    let language = Language { dialect, extensions: true };
    let tokens = lexer::lex(text, language);
    if pcp_error::find(text, &tokens, language).is_err() {
        return false;
    }
    let delimiters = Delimiters::new(&tokens);
    for (index, at) in tokens.iter().enumerate() {
        if diagnostics.is_full() {
            break;
        }
        if let Token::Function(_, Callee::Function(function)) = at.token {
            let name = function.name;
            let message = format!("there is no function `{name}`");
            let span = origin.span(at.start, at.end);
            diagnostics.push(
                Diagnostic::error(Code::UnknownFunction, span, message)
                    .help(format!("`{name}()` needs extensions")),
            );
        }
        if at.token == Token::By {
            // The grammar of the extensions accepts it: both have their
            // parentheses.
            let call = index.checked_sub(1).and_then(|last| Some((delimiters.pair(last)?, last)));
            let labels = delimiters.close_of(index + 1);
            let (Some((call, last)), Some(close)) = (call, labels) else { continue };
            let first = tokens[call.open.saturating_sub(1)].start;
            let (start, end) = (tokens[last].end, tokens[close].end);
            let before = &text[first as usize..start as usize];
            let arguments = &tokens[call.open..=last];
            let aggregate = &text[first as usize..tokens[call.open].start as usize];
            let change = change_of_aggregate(aggregate, text, arguments, language);
            let place = origin.span(if change.is_some() { first } else { start }, end);
            let message = "an aggregate takes all instances of a metric";
            let span = origin.span(at.start, end);
            diagnostics.push(
                Diagnostic::error(Code::MisplacedBy, span, message)
                    .label(span, "groups of hosts, which need extensions and a fleet")
                    .help(match &change {
                        Some(_) => "an aggregate takes a name; leave the labels out".to_owned(),
                        None => format!("leave the labels out; write `{before}`"),
                    })
                    .guess(place, change.unwrap_or_default()),
            );
        }
    }
    !diagnostics.is_empty()
}
