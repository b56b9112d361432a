//! Turns text into syntax trees. Only this stage knows logos and LALRPOP.
//!
//! ```text
//! text ── lexer ──► tokens ── repair ──► tokens ── grammar + builder ──► Expr
//!                      │                    │               │
//!                      ▼                    ▼               ▼
//!                  pcp_error            diagnostics     diagnostics
//! ```
//!
//! Of expressions in definition files that differ in names of metrics only, the grammar reads the
//! first (`shapes`).
//!
//! Parsing never fails: [`parse_expr`] gives a tree, with error nodes where the
//! text is wrong, and libpcp's message about it.
//!
//! libpcp's reading comes first: a text that libpcp accepts means the same
//! here. Only a text that libpcp refuses is read again with the words of the
//! extensions, if these are allowed. So extensions cannot change what a text
//! means.

mod arguments;
pub mod ast;
mod builder;
mod files;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
pub(crate) mod keywords;
mod lexer;
mod mistakes;
mod names;
mod origin;
mod pcp_error;
mod print;
mod shapes;
#[cfg(test)]
pub(crate) mod tests;
mod token;

use std::sync::Arc;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::Language;
use crate::text::{SourceId, offset};

use ast::{Expr, NodeKind};
use builder::Builder;
use mistakes::explain::Explainer;
use mistakes::repair::MAX_REPORTS;
use mistakes::{Refused, teach, trial};
use origin::Origin;
use pcp_error::{Refusal, RefusedAt};
use shapes::Shapes;

pub use crate::functions::{Example, Function, ResultRule, functions, manual};
pub use crate::lanes::LaneRule;
pub use arguments::{NumberKind, Shape};
#[cfg(feature = "cli")]
pub(crate) use files::config::is_section;
pub use files::config::{
    Definition, DefinitionItem, DefinitionReader, Earlier, HelpText, TextKind, parse_definitions,
};
pub(crate) use files::config_names::bad_name;
pub use files::control::{ControlOption, Setting, parse_control};
pub use files::expression_cache::ParsedBefore;
pub(crate) use files::line_form::{LineForm, OutlinedLine};
#[cfg(feature = "lsp")]
pub(crate) use files::lines::{Line, Lines};
pub(crate) use files::load::BYTE_ORDER_MARK;
#[cfg(feature = "lsp")]
pub(crate) use files::load::first_files_below;
#[cfg(any(feature = "cli", feature = "lsp"))]
pub(crate) use files::load::is_passed_over;
#[cfg(feature = "cli")]
pub(crate) use files::load::{
    ENDINGS, may_be_rewritten, own_files_below, read_definition_file, read_text, read_text_file,
    text_of,
};
pub use files::load::{MAX_FILE_BYTES, STANDARD_INPUT, load_file, load_paths, load_readable_paths};
#[cfg(feature = "cli")]
pub(crate) use files::load::{Unreadable, is_hidden, mark_of};
pub(crate) use files::load::{definition_files, load_files, read_bounded};
pub(crate) use files::outline::{outline, outline_again, outline_each};
pub(crate) use files::own_comments::{OwnComment, Request, own_comments};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_definitions, fuzz_parse};
pub(crate) use keywords::{
    FUNCTION_NAMES, semantics as semantics_word, value_type as value_type_word,
};
pub(crate) use mistakes::habits::{function_elsewhere, window};
pub(crate) use mistakes::repair::WINDOWS;
pub(crate) use mistakes::suggest::counted;
pub use mistakes::suggest::{
    Group, choices, has_same_words, nearest, nearest_after, nearest_metric,
};
#[cfg(feature = "lsp")]
pub(crate) use names::is_of_name;
pub(crate) use names::is_space;
pub use names::{NameMistake, name_mistake};
pub use pcp_error::{MAX_NESTING, PcpError};
pub use print::{print_expr, print_node};
pub(crate) use token::{Token, TokenAt};

#[allow(
    clippy::all,
    clippy::pedantic,
    missing_docs,
    unused_imports,
    unused_parens,
    unused_lifetimes,
    dead_code
)]
mod grammar {
    include!(concat!(env!("OUT_DIR"), "/derive.rs"));
}

/// Longest expression that is accepted, in bytes.
pub const MAX_EXPRESSION_BYTES: usize = 16 << 20;

/// An expression, as far as it was understood.
#[derive(Clone, Debug)]
pub struct ParsedExpr {
    /// The tree, never empty.
    pub expr: Arc<Expr>,
    /// libpcp's error, if it refuses the text. Without an error, the tree has
    /// no error node.
    pub error: Option<PcpError>,
}

/// Parses an expression that stands at byte `base` of a text of the source map.
///
/// It corresponds to `pmRegisterDerived(3)`. Every mistake is reported to
/// `diagnostics`; the tree has error nodes in their places.
pub fn parse_expr(
    source: SourceId,
    text: &str,
    base: u32,
    language: impl Into<Language>,
    diagnostics: &mut Diagnostics,
) -> ParsedExpr {
    parse_at(&Origin::new(source, base), text, language.into(), None, diagnostics)
}

/// The tokens of an expression.
pub(crate) fn tokens(text: &str, language: Language) -> Vec<TokenAt<'_>> {
    lexer::lex(text, language)
}

/// Parses an expression whose bytes lead to their places through `origin`. `shapes` are those
/// of expressions of the same language.
fn parse_at(
    origin: &Origin,
    text: &str,
    language: Language,
    shapes: Option<&mut Shapes>,
    diagnostics: &mut Diagnostics,
) -> ParsedExpr {
    let (parsed, mut found) = read_at(origin, text, language, shapes);
    if parsed.error.is_some() {
        trial::doubt(text, origin, language, &mut found);
    }
    diagnostics.extend(found);
    parsed
}

/// Parses without trying the offered edits. It reports the first [`MAX_REPORTS`]
/// mistakes, whichever stage finds them.
fn read_at(
    origin: &Origin,
    text: &str,
    language: Language,
    shapes: Option<&mut Shapes>,
) -> (ParsedExpr, Diagnostics) {
    let mut found = Diagnostics::at_most(MAX_REPORTS);
    let parsed = read(origin, text, language, shapes, &mut found);
    (parsed, found)
}

fn read(
    origin: &Origin,
    text: &str,
    language: Language,
    mut shapes: Option<&mut Shapes>,
    diagnostics: &mut Diagnostics,
) -> ParsedExpr {
    let end = offset(text.len());
    if text.len() > MAX_EXPRESSION_BYTES {
        let message = format!("the expression has more than {MAX_EXPRESSION_BYTES} bytes");
        diagnostics.push(Diagnostic::error(Code::TooComplex, origin.span(0, 0), message));
        return refused(origin, end, PcpError { offset: 0, message: None });
    }
    let plain = Language::from(language.dialect);
    let mut tokens = lexer::lex(text, plain);
    let mut like_before = |tokens: &[TokenAt<'_>]| shapes.as_mut()?.find(text, tokens, origin);
    if let Some(expr) = like_before(&tokens) {
        return right(expr);
    }
    let mut found = pcp_error::find(text, &tokens, plain);
    if let (Err(Refusal { error, .. }), true) = (&found, language.extensions) {
        tokens = lexer::lex(text, language);
        if let Some(expr) = like_before(&tokens) {
            return right(expr);
        }
        // If the text is refused again, the diagnostic has the new place and the words of the first
        // refusal.
        let error = error.clone();
        found = pcp_error::find(text, &tokens, language)
            .map_err(|again| Refusal { error, at: again.at });
    }
    match found {
        Ok(()) => {
            let mut expr = build(text, &tokens, origin, language, diagnostics);
            // Diagnostics of the first expression would be missing for the others.
            if let Some(shapes) = shapes
                && diagnostics.is_empty()
            {
                shapes.keep(&mut expr, &tokens, origin);
            }
            right(expr)
        }
        Err(Refusal { error, at: RefusedAt::Nesting { token } }) => {
            let at = tokens[token];
            let message = format!("more than {MAX_NESTING} levels of nesting");
            let span = origin.span(at.start, at.end);
            diagnostics.push(
                Diagnostic::error(Code::TooComplex, span, message)
                    .label(span, "one level too many begins here"),
            );
            refused(origin, end, error)
        }
        Err(Refusal { error, at: RefusedAt::Token { next } }) => {
            let place = Refused { next, error: &error };
            let expr = teach(text, &tokens, place, origin, language, diagnostics);
            if language.extensions {
                diagnostics.change_each(Diagnostic::without_extensions);
            }
            ParsedExpr { expr: Arc::new(expr), error: Some(error) }
        }
    }
}

fn right(expr: Expr) -> ParsedExpr {
    ParsedExpr { expr: Arc::new(expr), error: None }
}

fn refused(origin: &Origin, end: u32, error: PcpError) -> ParsedExpr {
    ParsedExpr { expr: Arc::new(not_understood(origin, end)), error: Some(error) }
}

/// The tree of a text that is not understood at all.
fn not_understood(origin: &Origin, end: u32) -> Expr {
    let mut expr = Expr::default();
    expr.push(NodeKind::Error, origin.span(0, end));
    expr
}

/// Runs the generated parser. Places that have a diagnostic get no others.
fn build(
    text: &str,
    tokens: &[TokenAt<'_>],
    origin: &Origin,
    language: Language,
    diagnostics: &mut Diagnostics,
) -> Expr {
    let explainer = Explainer::new(text, tokens, language);
    let mut builder = Builder::new(origin, language, explainer, diagnostics);
    let stream = tokens.iter().map(|at| Ok((at.start, at.token, at.end)));
    match grammar::ExpressionParser::new().parse(&mut builder, stream) {
        Ok(_) => builder.finish(),
        Err(_) => builder.refuse(origin.span(0, offset(text.len()))),
    }
}
