//! Parentheses that a replaced operand needs. A text in the place of another must
//! stay one operand of the expression around it.

use crate::dialect::Language;
use crate::syntax::lexer;
use crate::syntax::token::{Token, TokenAt};

/// The level of an operand without operators, or in parentheses.
const CLOSED: u8 = 6;

const COMPARISON: u8 = 2;

/// The level of an operator, loosest first. `None` for other tokens.
pub(in crate::syntax) fn level(token: Token<'_>) -> Option<u8> {
    match token {
        Token::Question | Token::Colon => Some(0),
        Token::AndAnd | Token::OrOr => Some(1),
        Token::Less
        | Token::LessEqual
        | Token::Equal
        | Token::GreaterEqual
        | Token::Greater
        | Token::NotEqual => Some(COMPARISON),
        Token::Plus | Token::Minus => Some(3),
        Token::Star | Token::Slash => Some(4),
        Token::Bang => Some(5),
        // These are operators elsewhere.
        Token::Name(word) if word.eq_ignore_ascii_case("and") => Some(1),
        Token::Name(word) if word.eq_ignore_ascii_case("or") => Some(1),
        Token::Name(word) if word.eq_ignore_ascii_case("not") => Some(5),
        _ => None,
    }
}

/// True for a token that compares.
pub(in crate::syntax) fn is_comparison(token: Token<'_>) -> bool {
    level(token) == Some(COMPARISON)
}

/// True for an operator that binds more tightly than a choice or `&&`.
pub fn is_tight(token: Token<'_>) -> bool {
    level(token).is_some_and(|level| level >= 2)
}

/// True if the operator would capture more than one operand before or behind it, between
/// these tokens. Comparisons have no order.
pub fn takes_more(
    operator: Token<'_>,
    before: Option<Token<'_>>,
    after: Option<Token<'_>>,
) -> bool {
    let (left, right) = (before.and_then(level), after.and_then(level));
    let own = level(operator);
    left.is_some_and(|left| Some(left) >= own)
        || right.is_some_and(|right| {
            Some(right) > own || is_comparison(operator) && right == COMPARISON
        })
}

/// True for an operator that leaves a product beside it whole.
pub fn is_looser_than_product(token: Token<'_>) -> bool {
    level(token).is_some_and(|level| level < 4)
}

/// The level of the loosest operator of a text. A text that begins with `!` is loose,
/// because `!` may capture more than one expects.
fn loosest(text: &str, language: Language) -> u8 {
    let (mut loosest, mut depth) = (CLOSED, 0_usize);
    let mut before: Option<Token<'_>> = None;
    for TokenAt { token, .. } in lexer::lex(text, language) {
        let is_due = before.is_none_or(|before| level(before).is_some());
        match token {
            Token::LeftParen => depth += 1,
            Token::RightParen => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            Token::Bang | Token::Invalid(_) | Token::Comma | Token::Assign => return 0,
            Token::Instance(_) => {}
            operator if level(operator).is_some() => {
                loosest = loosest.min(level(operator).unwrap_or_default());
            }
            // Two operands in a row.
            _ if !is_due => return 0,
            _ => {}
        }
        if depth == 0 {
            before = Some(token);
        }
    }
    loosest
}

/// A text in parentheses, if it needs them between these tokens to be one operand.
pub fn enclosed(
    text: &str,
    before: Option<Token<'_>>,
    after: Option<Token<'_>>,
    language: Language,
) -> String {
    let (left, right) = (before.and_then(level), after.and_then(level));
    let own = loosest(text, language);
    let is_free = left.is_none() && right.is_none();
    let is_held = left.is_none_or(|left| left < own) && right.is_none_or(|right| right <= own);
    match is_free || (is_held && own > 0) {
        true => text.to_owned(),
        false => format!("({text})"),
    }
}

/// The token at one end of a piece of a template.
pub fn edge(piece: &str, is_end: bool, language: Language) -> Option<Token<'_>> {
    let tokens = lexer::lex(piece, language);
    let token = if is_end { tokens.last() } else { tokens.first() };
    token.map(|at| at.token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    #[test]
    fn an_operand_stays_one() {
        let language = Language { dialect: Dialect::Fixed, extensions: true };
        let token = |text: &'static str| edge(text, false, language);
        for (before, text, after, expected) in [
            ("", "a ? 1 : 2", "", "a ? 1 : 2"),
            ("(", "a ? 1 : 2", ")", "a ? 1 : 2"),
            ("*", "a ? 1 : 2", "", "(a ? 1 : 2)"),
            (":", "a ? 1 : 2", "", "(a ? 1 : 2)"),
            ("/", "a * a", "", "(a * a)"),
            ("", "a * a", "/", "a * a"),
            ("+", "a * a", "-", "a * a"),
            ("", "a + 2", "/", "(a + 2)"),
            ("&&", "a == 2", "", "a == 2"),
            ("||", "a && 2", "", "(a && 2)"),
            ("not", "a == 2", "", "(a == 2)"),
            ("!", "a[x y]", "", "a[x y]"),
            ("!", "rate(a + 1)", "", "rate(a + 1)"),
            ("*", "(a + 1)", "*", "(a + 1)"),
            ("*", "-a", "", "(-a)"),
            ("&&", "!a", "", "(!a)"),
            ("&&", "a b", "", "(a b)"),
        ] {
            let text = enclosed(text, token(before), token(after), language);
            assert_eq!(text, expected, "{before} _ {after}");
        }
    }
}
