//! From text to syntax trees: the only stage that knows logos and LALRPOP.
//!
//! ```text
//! text ── lexer ──► tokens ── repair ──► tokens ── grammar + builder ──► Expr
//!                      │                    │               │
//!                      ▼                    ▼               ▼
//!                  pcp_error            diagnostics     diagnostics
//! ```
//!
//! Parsing never fails: [`parse_expr`] gives a tree, with error nodes where the
//! text is wrong, and what libpcp would say of it.

pub mod ast;
mod builder;
mod explain;
mod keywords;
mod lexer;
mod origin;
mod pcp_error;
#[cfg(test)]
mod tests;
mod token;

use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::Dialect;
use crate::source::SourceId;

use ast::Expr;
use builder::Builder;
use explain::Explainer;
use origin::Origin;

pub use pcp_error::PcpError;

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

/// An expression as far as it was understood.
#[derive(Clone, Debug)]
pub struct ParsedExpr {
    /// The tree, never empty.
    pub expr: Expr,
    /// What libpcp says of the text, if it refuses it. Without it there is no
    /// error node in the tree.
    pub error: Option<PcpError>,
}

/// Parses an expression that stands at byte `base` of a text of the source map.
///
/// Answers to `pmRegisterDerived(3)`. Every mistake is reported to
/// `diagnostics`; the tree has error nodes in their places.
pub fn parse_expr(
    source: SourceId,
    text: &str,
    base: u32,
    dialect: Dialect,
    diagnostics: &mut Diagnostics,
) -> ParsedExpr {
    parse_at(&Origin::new(source, base), text, dialect, diagnostics)
}

/// Parses an expression whose bytes lead to their places through `origin`.
fn parse_at(
    origin: &Origin,
    text: &str,
    dialect: Dialect,
    diagnostics: &mut Diagnostics,
) -> ParsedExpr {
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let tokens = lexer::lex(text, dialect);
    let error = pcp_error::find(text, &tokens, dialect).err();
    let explainer = Explainer::new(text, &tokens);
    let mut builder = Builder::new(origin, dialect, explainer, diagnostics);
    let stream = tokens.iter().map(|at| Ok((at.start, at.token, at.end)));
    let expr = match grammar::ExpressionParser::new().parse(&mut builder, stream) {
        Ok(_) => builder.finish(),
        Err(_) => builder.refuse(0, end),
    };
    if error.is_some() && diagnostics.is_empty() {
        diagnostics.push(Diagnostic::error(Code::UnexpectedToken, origin.span(0, end), "TODO"));
    }
    ParsedExpr { expr, error }
}
