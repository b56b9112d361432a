//! Parentheses in an expression, matched in pairs.
//!
//! One pass over the tokens finds the `)` of each `(`, and the commas directly between the two.

use crate::syntax::token::{Token, TokenAt};
use crate::text::offset;

/// The parentheses of one expression.
#[derive(Debug, Default)]
pub struct Delimiters {
    /// Pairs in the order of their `(`.
    pairs: Vec<Pair>,
    /// For each token, the index of the pair that it opens or closes.
    of_token: Vec<Option<u32>>,
    /// Tokens `)` without a partner.
    pub stray: Vec<usize>,
    /// Deepest nesting.
    pub depth: usize,
}

/// Two parentheses, as indices of tokens.
#[derive(Debug)]
pub struct Pair {
    /// The `(`.
    pub open: usize,
    /// The `)`, if there is one.
    pub close: Option<usize>,
    /// The commas between them, except those of inner pairs.
    pub commas: Vec<usize>,
}

impl Delimiters {
    /// Matches the parentheses of these tokens.
    pub fn new(tokens: &[TokenAt<'_>]) -> Delimiters {
        let mut found = Delimiters::default();
        let mut open: Vec<u32> = Vec::new();
        for (index, at) in tokens.iter().enumerate() {
            let mut pair = None;
            match at.token {
                Token::LeftParen => {
                    let number = offset(found.pairs.len());
                    found.pairs.push(Pair { open: index, close: None, commas: Vec::new() });
                    open.push(number);
                    found.depth = found.depth.max(open.len());
                    pair = Some(number);
                }
                Token::RightParen => {
                    pair = open.pop();
                    match pair {
                        Some(number) => found.pairs[number as usize].close = Some(index),
                        None => found.stray.push(index),
                    }
                }
                Token::Comma => {
                    if let Some(number) = open.last() {
                        found.pairs[*number as usize].commas.push(index);
                    }
                }
                _ => {}
            }
            found.of_token.push(pair);
        }
        found
    }

    /// The pair that this token opens or closes.
    pub fn pair(&self, token: usize) -> Option<&Pair> {
        let number = self.of_token.get(token).copied().flatten()?;
        self.pairs.get(number as usize)
    }

    /// The `)` of the `(` at a token.
    pub fn close_of(&self, open: usize) -> Option<usize> {
        self.pair(open).filter(|pair| pair.open == open)?.close
    }

    /// The `(` of the `)` at one of these tokens, and what is called if it ends a call.
    pub fn call_before(
        &self,
        tokens: &[TokenAt<'_>],
        close: usize,
    ) -> Option<(usize, Option<usize>)> {
        let open = self.pair(close)?.open;
        Some((open, open.checked_sub(1).filter(|before| tokens[*before].token.may_be_called())))
    }

    /// Each `(` without a partner, outermost first.
    pub fn unclosed(&self) -> impl Iterator<Item = usize> {
        self.pairs.iter().filter(|pair| pair.close.is_none()).map(|pair| pair.open)
    }
}
