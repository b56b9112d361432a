//! Finds notation of other languages by its form: words, marks and the places
//! between them.
//!
//! A form is a text such as `%1 between %2 and %3`. The tables of
//! [`super::clauses`] and [`super::marks`] say what each part stands for.

use super::super::delimiters::Delimiters;
use super::binding::level;
use super::clauses::Clause;
use crate::syntax::token::{Invalid, Token, TokenAt};

/// Largest number of tokens to examine for one clause.
pub(super) const MAX_RUN: usize = 1_000;

/// A part of a form.
#[derive(Clone, Copy)]
pub(super) enum Part<'p> {
    /// These characters, in any case, as whole tokens that touch.
    Word(&'p str),
    /// `%1`: a name, a number, a text, a call, or something in parentheses.
    Operand(char),
    /// `#1`: a number.
    Number(char),
    /// `@1`: the name of a metric.
    Name(char),
    /// `~1`: any one word.
    AnyWord(char),
    /// `=1`: a word that touches the token before it.
    Glued(char),
    /// `"1`: the contents of quotes.
    Quoted(char),
    /// `$1`: everything up to the next word, or to the end of the enclosing
    /// construct.
    Run(char),
    /// `(1`: something in parentheses.
    Group(char),
    /// `.`: the end of the text.
    End,
}

impl Part<'_> {
    /// The name of the place.
    pub fn place(self) -> Option<char> {
        match self {
            Part::Word(_) | Part::End => None,
            Part::Operand(place)
            | Part::Number(place)
            | Part::Name(place)
            | Part::AnyWord(place)
            | Part::Glued(place)
            | Part::Quoted(place)
            | Part::Run(place)
            | Part::Group(place) => Some(place),
        }
    }
}

/// The parts of a form. A `^` before them stands for the beginning of the text and
/// is not a part.
pub(super) fn parts(form: &str) -> impl Iterator<Item = Part<'_>> {
    form.trim_start_matches("^ ").split(' ').map(|word| {
        let mut characters = word.chars();
        let place = |place: char| place.is_ascii_digit();
        match (characters.next(), characters.next().filter(|c| place(*c))) {
            (Some('%'), Some(place)) => Part::Operand(place),
            (Some('#'), Some(place)) => Part::Number(place),
            (Some('@'), Some(place)) => Part::Name(place),
            (Some('~'), Some(place)) => Part::AnyWord(place),
            (Some('='), Some(place)) => Part::Glued(place),
            (Some('"'), Some(place)) => Part::Quoted(place),
            (Some('$'), Some(place)) => Part::Run(place),
            (Some('('), Some(place)) => Part::Group(place),
            (Some('.'), None) if word == "." => Part::End,
            _ => Part::Word(word),
        }
    })
}

/// The place of a clause, as indices of tokens.
pub(super) struct FoundClause {
    pub clause: &'static Clause,
    pub first: usize,
    pub last: usize,
    /// First and last token of the word or mark that identifies it.
    pub word: (usize, usize),
    pub places: Vec<(char, usize, usize)>,
}

/// The clauses of a table in a text. No two have a token in common.
pub(super) fn find(
    text: &str,
    tokens: &[TokenAt<'_>],
    delimiters: &Delimiters,
    table: &'static [Clause],
    is_wanted: impl Fn(&Clause) -> bool,
) -> Vec<FoundClause> {
    let mut found: Vec<FoundClause> = Vec::new();
    for index in 0..tokens.len() {
        let after = found.last().map_or(0, |one| one.last + 1);
        if index < after {
            continue;
        }
        let looked = TokenView { text, tokens, delimiters, after };
        let is_of_word = |one: &&Clause| {
            let word = parts(one.form).find_map(|part| match part {
                Part::Word(word) => Some(word),
                _ => None,
            });
            word.is_some_and(|word| looked.word(index, word).is_some())
        };
        let mut rows = table.iter().filter(is_of_word).filter(|one| is_wanted(one));
        found.extend(rows.find_map(|row| looked.matched(row, index)));
    }
    found
}

/// The tokens, with one token in place of each clause that is an operand.
pub(super) fn replaced<'t>(tokens: &[TokenAt<'t>], found: &[FoundClause]) -> Vec<TokenAt<'t>> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut next = 0;
    for one in found {
        out.extend_from_slice(&tokens[next..one.first]);
        if !one.clause.leaves_nothing() {
            let (start, end) = (tokens[one.first].start, tokens[one.last].end);
            out.push(TokenAt { token: Token::Invalid(Invalid::Refused), start, end });
        }
        next = one.last + 1;
    }
    out.extend_from_slice(&tokens[next..]);
    out
}

/// The tokens to search for clauses.
struct TokenView<'l, 't> {
    text: &'l str,
    tokens: &'l [TokenAt<'t>],
    delimiters: &'l Delimiters,
    /// Index of the first token to examine.
    after: usize,
}

impl<'t> TokenView<'_, 't> {
    /// The clause whose first word begins at the token `word`.
    fn matched(&self, clause: &'static Clause, word: usize) -> Option<FoundClause> {
        let form: Vec<Part<'_>> = parts(clause.form).collect();
        let head = form.iter().position(|part| matches!(part, Part::Word(_)))?;
        let Part::Word(spelling) = form[head] else { return None };
        let word_end = self.word(word, spelling)?;
        let mut places = Vec::new();
        let first = match form[..head] {
            [] => word,
            [part] => {
                let first = match part {
                    Part::Operand(_) => self.operand_before(word)?,
                    Part::Run(_) => self.run_before(word)?,
                    Part::Name(_) => word.checked_sub(1).filter(|before| self.is_name(*before))?,
                    _ => return None,
                };
                places.push((part.place()?, first, word - 1));
                first
            }
            _ => return None,
        };
        if first < self.after || clause.form.starts_with("^ ") && first > 0 {
            return None;
        }
        let mut index = word_end + 1;
        for (at, part) in form.iter().enumerate().skip(head + 1) {
            let last = match *part {
                Part::End if index == self.tokens.len() => continue,
                Part::End => return None,
                Part::Word(wanted) => self.word(index, wanted)?,
                Part::Operand(_) => self.operand(index)?,
                Part::Number(_) => Some(index).filter(|index| self.is_number(*index))?,
                Part::Name(_) => Some(index).filter(|index| self.is_name(*index))?,
                Part::AnyWord(_) => Some(index).filter(|index| self.is_any_word(*index))?,
                Part::Glued(_) => {
                    let is_glued = self.tokens.get(index)?.start == self.tokens[index - 1].end;
                    Some(index).filter(|index| is_glued && self.is_any_word(*index))?
                }
                Part::Quoted(_) => Some(index).filter(|index| self.is_quoted(*index))?,
                Part::Group(_) => self.delimiters.close_of(index)?,
                Part::Run(_) => {
                    if index == word + 1 && self.is_call_with_several(word) {
                        return None;
                    }
                    let end = match form.get(at + 1) {
                        Some(Part::Word(next)) if *next != ")" => Some(*next),
                        _ => None,
                    };
                    self.run(index, end, spelling)?
                }
            };
            if let Some(place) = part.place() {
                places.push((place, index, last));
            }
            index = last + 1;
        }
        Some(FoundClause { clause, first, last: index - 1, word: (word, word_end), places })
    }

    /// Last token of a word or mark that begins at a token.
    fn word(&self, index: usize, wanted: &str) -> Option<usize> {
        let start = self.tokens.get(index)?.start as usize;
        let text = self.text.get(start..start + wanted.len())?;
        if !text.eq_ignore_ascii_case(wanted) {
            return None;
        }
        let end = start + wanted.len();
        let mut last = index;
        while (self.tokens[last].end as usize) < end {
            last += 1;
            self.tokens.get(last)?;
        }
        (self.tokens[last].end as usize == end).then_some(last)
    }

    fn at(&self, index: usize) -> Option<Token<'t>> {
        self.tokens.get(index).map(|at| at.token)
    }

    fn is_name(&self, index: usize) -> bool {
        let is_called = self.at(index + 1) == Some(Token::LeftParen);
        matches!(self.at(index), Some(Token::Name(_))) && !is_called
    }

    fn is_number(&self, index: usize) -> bool {
        matches!(
            self.at(index),
            Some(Token::Integer(_) | Token::Double(_) | Token::Invalid(Invalid::TooLarge))
        )
    }

    fn is_any_word(&self, index: usize) -> bool {
        let Some(at) = self.tokens.get(index) else { return false };
        let text = self.text.get(at.start as usize..at.end as usize).unwrap_or_default();
        text.starts_with(|first: char| first.is_ascii_alphabetic())
    }

    fn is_quoted(&self, index: usize) -> bool {
        matches!(self.at(index), Some(Token::Str(_) | Token::Invalid(Invalid::SingleQuoted)))
    }

    /// True for `word(a, b)`, a call of some function.
    fn is_call_with_several(&self, word: usize) -> bool {
        let pair = self.delimiters.pair(word + 1).filter(|pair| pair.open == word + 1);
        pair.is_some_and(|pair| !pair.commas.is_empty())
    }

    /// Last token of the operand that begins at a token.
    fn operand(&self, index: usize) -> Option<usize> {
        let token = self.tokens.get(index)?.token;
        let is_paren = |index: usize| self.at(index) == Some(Token::LeftParen);
        let last = match token {
            Token::LeftParen => self.delimiters.close_of(index)?,
            token if token.is_function() => self.delimiters.close_of(index + 1)?,
            Token::Name(_) if is_paren(index + 1) => self.delimiters.close_of(index + 1)?,
            // A word such as `not`, which is an operator elsewhere.
            Token::Name(_) if level(token).is_some() => return None,
            Token::Name(_)
            | Token::Integer(_)
            | Token::Double(_)
            | Token::Str(_)
            | Token::Invalid(Invalid::Refused) => index,
            _ => return None,
        };
        let next = self.at(last + 1);
        Some(last + usize::from(matches!(next, Some(Token::Instance(_)))))
    }

    /// First token of the operand that ends before a token.
    fn operand_before(&self, end: usize) -> Option<usize> {
        let mut last = end.checked_sub(1).filter(|last| *last >= self.after)?;
        if matches!(self.tokens[last].token, Token::Instance(_)) {
            last = last.checked_sub(1)?;
        }
        let first = match self.tokens[last].token {
            Token::RightParen => {
                let (open, function) = self.delimiters.call_before(self.tokens, last)?;
                function.unwrap_or(open)
            }
            Token::Name(_) | Token::Integer(_) | Token::Double(_) => last,
            _ => return None,
        };
        (first >= self.after).then_some(first)
    }

    /// Last token before the word `end`, or before the end of the enclosing
    /// arguments or parentheses.
    fn run(&self, start: usize, end: Option<&str>, own: &str) -> Option<usize> {
        let mut index = start;
        loop {
            let is_end = match self.at(index) {
                None | Some(Token::RightParen | Token::Comma) => {
                    if end.is_some() {
                        return None;
                    }
                    true
                }
                Some(Token::Name(word)) if word.eq_ignore_ascii_case(own) => return None,
                _ => end.is_some_and(|end| self.word(index, end).is_some()),
            };
            if is_end {
                return (index > start).then(|| index - 1);
            }
            if index - start > MAX_RUN {
                return None;
            }
            index = match self.delimiters.pair(index) {
                Some(pair) if pair.open == index => pair.close?,
                _ => index,
            } + 1;
        }
    }

    /// First token after the beginning of the enclosing arguments, parentheses or branch.
    fn run_before(&self, end: usize) -> Option<usize> {
        let mut first = end;
        while first > self.after && end - first <= MAX_RUN {
            let before = first - 1;
            first = match self.tokens[before].token {
                Token::LeftParen | Token::Comma | Token::Question | Token::Colon => break,
                Token::RightParen => self.delimiters.pair(before)?.open,
                _ => before,
            };
        }
        (first < end).then_some(first)
    }
}
