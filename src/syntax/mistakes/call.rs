//! A call as it stands in the tokens of a text: its name, its parentheses and its
//! arguments.

use crate::diag::{Code, Diagnostic};

use super::repair::Repair;

/// The decision whether the grammar can read a call.
pub enum Verdict {
    Sound,
    Refused,
}

/// Tokens of an argument: first and last index. `None` for an empty argument between
/// two commas.
pub type Argument = Option<(usize, usize)>;

/// The message about a missing comma between two arguments.
pub const MISSING_COMMA: &str = "a comma is missing";

/// A call, as indices of its tokens.
pub struct Call {
    pub name: String,
    pub function: usize,
    pub open: usize,
    pub close: usize,
    pub arguments: Vec<Argument>,
}

impl Call {
    /// The call whose function's name stands at `function`.
    pub fn new(repair: &Repair<'_, '_>, function: usize) -> Option<Call> {
        let open = function + 1;
        let pair = repair.delimiters.pair(open).filter(|pair| pair.open == open)?;
        let close = pair.close?;
        let ends = pair.commas.iter().copied().chain([close]);
        let mut start = open + 1;
        let mut arguments: Vec<Argument> = Vec::new();
        for end in ends {
            arguments.push((end > start).then(|| (start, end - 1)));
            start = end + 1;
        }
        if arguments == [None] {
            arguments.clear();
        }
        let name = repair.slice(function, function).to_ascii_lowercase();
        Some(Call { name, function, open, close, arguments })
    }

    pub fn error<'t>(
        &self,
        repair: &Repair<'_, 't>,
        argument: Option<(usize, usize)>,
        message: String,
    ) -> Diagnostic {
        let (first, last) = argument.unwrap_or((self.open, self.close));
        Diagnostic::error(Code::WrongArguments, repair.span(first, last), message)
    }

    pub fn whole(&self) -> Option<(usize, usize)> {
        (self.close > self.open + 1).then(|| (self.open + 1, self.close - 1))
    }
}
