//! Words that are operators or clauses in other languages: `and`, `if ... then`,
//! `offset`, `IS NULL`.
//!
//! A clause is a row of a table: its words with the places between them, and what
//! to write. A clause that is found is reported and stands for one operand from
//! then on, so that nothing in it is reported twice.

use crate::diag::{Code, Diagnostic};

use super::super::delimiters::Delimiters;
use super::super::repair::Repair;
use super::super::token::{Invalid, Token, TokenAt};
use super::characters::begins_operand;
use super::clauses::{CLAUSES, Clause};
use super::filled;

/// Operators that are words elsewhere.
const OPERATORS: [(&str, &str, Token<'static>); 2] =
    [("and", "&&", Token::AndAnd), ("or", "||", Token::OrOr)];

/// Most tokens that are looked at for one clause.
const MAX_RUN: usize = 1_000;

/// A part of a clause.
#[derive(Clone, Copy)]
enum Part<'p> {
    Word(&'p str),
    Operand(char),
    Run(char),
    Group(char),
}

fn parts(form: &str) -> impl Iterator<Item = Part<'_>> {
    form.split(' ').map(|word| {
        let mut characters = word.chars();
        match (characters.next(), characters.next()) {
            (Some('%'), Some(place)) => Part::Operand(place),
            (Some('$'), Some(place)) => Part::Run(place),
            (Some('('), Some(place)) => Part::Group(place),
            _ => Part::Word(word),
        }
    })
}

/// Where a clause was found, as indices of tokens.
struct Found {
    clause: &'static Clause,
    first: usize,
    last: usize,
    word: usize,
    places: Vec<(char, usize, usize)>,
}

/// Reports the clauses of other languages and lets each stand as one operand,
/// or as nothing where the rest is right without it.
pub(in crate::syntax) fn clauses(repair: &mut Repair<'_, '_>) {
    if repair.tokens.len() > super::MAX_TOKENS {
        return;
    }
    let mut found: Vec<Found> = Vec::new();
    for index in 0..repair.tokens.len() {
        let Token::Name(word) = repair.tokens[index].token else { continue };
        let after = found.last().map_or(0, |one| one.last + 1);
        let looked = Looked { tokens: &repair.tokens, delimiters: &repair.delimiters, after };
        let is_of_word = |one: &&Clause| {
            let first = parts(one.form).find_map(|part| match part {
                Part::Word(word) => Some(word),
                _ => None,
            });
            first.is_some_and(|first| first.eq_ignore_ascii_case(word))
        };
        // With extensions there are groups, of hosts.
        let is_here = |one: &&Clause| !(repair.language.extensions && one.form.contains(" by "));
        let mut rows = CLAUSES.iter().filter(is_of_word).filter(is_here);
        found.extend(rows.find_map(|row| looked.matched(row, index)));
    }
    if found.is_empty() {
        return;
    }
    let mut tokens = Vec::with_capacity(repair.tokens.len());
    let mut next = 0;
    for one in &found {
        tokens.extend_from_slice(&repair.tokens[next..one.first]);
        if !leaves_nothing(one.clause) {
            let (start, end) = (repair.tokens[one.first].start, repair.tokens[one.last].end);
            tokens.push(TokenAt { token: Token::Invalid(Invalid::Refused), start, end });
        }
        next = one.last + 1;
        report(repair, one);
    }
    tokens.extend_from_slice(&repair.tokens[next..]);
    repair.set_tokens(tokens);
}

/// True for a clause that is no operand.
fn leaves_nothing(clause: &Clause) -> bool {
    clause.form.starts_with("on ") || clause.form.starts_with("ignoring ")
}

fn report(repair: &mut Repair<'_, '_>, found: &Found) {
    let Found { clause, first, last, word, places } = found;
    let at = repair.span(*word, *word);
    let whole = repair.span(*first, *last);
    let mut diagnostic = Diagnostic::error(Code::UnexpectedToken, at, clause.message);
    let texts: Vec<(char, &str)> =
        places.iter().map(|(place, first, last)| (*place, repair.slice(*first, *last))).collect();
    let is_refused_call = |(place, first, last): &(char, usize, usize)| {
        // An aggregate takes a name only.
        *place == '2' && clause.write == "$1$2" && last - first != 2
    };
    diagnostic = diagnostic.help(clause.help);
    if leaves_nothing(clause) {
        diagnostic = diagnostic.guess(whole, "");
    } else if !clause.write.is_empty()
        && !places.iter().any(is_refused_call)
        && let Some(text) = written(clause.write, &texts)
    {
        diagnostic = match clause.is_certain {
            true => diagnostic.fix(whole, text),
            false => diagnostic.guess(whole, text),
        };
    }
    // What is not taken over needs no report of its own.
    for (place, first, last) in places {
        if !super::uses(clause.write, *place) {
            repair.retract(*first, *last);
        }
    }
    repair.report(diagnostic);
}

/// A template filled in; of what stands in brackets there is one for each of a
/// list.
fn written(template: &str, texts: &[(char, &str)]) -> Option<String> {
    let parts = template.split_once('[').and_then(|(before, rest)| {
        let (each, after) = rest.split_once(']')?;
        Some((before, each, after))
    });
    let Some((before, each, after)) = parts else { return filled(template, texts) };
    let list = texts.iter().find(|(place, _)| *place == '2')?.1;
    let list = list.strip_prefix('(')?.strip_suffix(')')?;
    if list.contains(['(', '[', '"']) {
        return None;
    }
    let of_one = |one: &str| {
        let texts: Vec<(char, &str)> = texts
            .iter()
            .map(|(place, text)| (*place, if *place == '2' { one } else { *text }))
            .collect();
        filled(each, &texts)
    };
    let all: Option<Vec<String>> = list.split(',').map(of_one).collect();
    let all = all?.join(" || ");
    (all.len() <= super::MAX_REPEATED).then(|| format!("{before}{all}{after}"))
}

/// What a clause is looked for in.
struct Looked<'l, 't> {
    tokens: &'l [TokenAt<'t>],
    delimiters: &'l Delimiters,
    /// Before this token nothing is looked at.
    after: usize,
}

impl Looked<'_, '_> {
    /// The clause whose first word is the token at `word`.
    fn matched(&self, clause: &'static Clause, word: usize) -> Option<Found> {
        let form: Vec<Part<'_>> = parts(clause.form).collect();
        let head = form.iter().position(|part| matches!(part, Part::Word(_)))?;
        let mut places = Vec::new();
        let first = match form[..head] {
            [] => word,
            [Part::Operand(place)] => {
                let first = self.operand_before(word)?;
                places.push((place, first, word - 1));
                first
            }
            [Part::Run(place)] => {
                let first = self.run_before(word)?;
                places.push((place, first, word - 1));
                first
            }
            _ => return None,
        };
        let mut index = word + 1;
        for (at, part) in form.iter().enumerate().skip(head + 1) {
            index = match *part {
                Part::Word(wanted) => {
                    if !self.is_word(index, wanted) {
                        return None;
                    }
                    index + 1
                }
                Part::Operand(place) => {
                    let last = self.operand(index)?;
                    places.push((place, index, last));
                    last + 1
                }
                Part::Group(place) => {
                    let pair = self.delimiters.pair(index).filter(|pair| pair.open == index)?;
                    let close = pair.close?;
                    places.push((place, index, close));
                    close + 1
                }
                Part::Run(place) => {
                    if index == word + 1 && self.is_call_with_several(word) {
                        return None;
                    }
                    let end = match form.get(at + 1) {
                        Some(Part::Word(next)) => Some(*next),
                        _ => None,
                    };
                    let last = self.run(index, end, self.word_at(word)?)?;
                    places.push((place, index, last));
                    last + 1
                }
            };
        }
        Some(Found { clause, first, last: index - 1, word, places })
    }

    /// True for `word(a, b)`, which is a call of something.
    fn is_call_with_several(&self, word: usize) -> bool {
        let pair = self.delimiters.pair(word + 1).filter(|pair| pair.open == word + 1);
        pair.is_some_and(|pair| !pair.commas.is_empty())
    }

    fn word_at(&self, index: usize) -> Option<&str> {
        match self.tokens.get(index)?.token {
            Token::Name(word) => Some(word),
            _ => None,
        }
    }

    fn is_word(&self, index: usize, wanted: &str) -> bool {
        self.word_at(index).is_some_and(|word| word.eq_ignore_ascii_case(wanted))
    }

    /// Last token of the operand that begins at a token.
    fn operand(&self, index: usize) -> Option<usize> {
        let token = self.tokens.get(index)?.token;
        let close = |open: usize| {
            self.delimiters.pair(open).filter(|pair| pair.open == open).and_then(|pair| pair.close)
        };
        let is_paren =
            |index: usize| self.tokens.get(index).is_some_and(|at| at.token == Token::LeftParen);
        let last = match token {
            Token::LeftParen => close(index)?,
            token if token.is_function() => close(index + 1)?,
            Token::Name(_) if is_paren(index + 1) => close(index + 1)?,
            Token::Name(_)
            | Token::Integer(_)
            | Token::Double(_)
            | Token::Str(_)
            | Token::Invalid(Invalid::Refused) => index,
            _ => return None,
        };
        let next = self.tokens.get(last + 1).map(|at| at.token);
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
                let open = self.delimiters.pair(last)?.open;
                let before = open.checked_sub(1).filter(|before| {
                    let token = self.tokens[*before].token;
                    token.is_function() || matches!(token, Token::Name(_))
                });
                before.unwrap_or(open)
            }
            Token::Name(_) | Token::Integer(_) | Token::Double(_) => last,
            _ => return None,
        };
        (first >= self.after).then_some(first)
    }

    /// Last token before the word `end`, or before what ends the arguments or
    /// parentheses around a token.
    fn run(&self, start: usize, end: Option<&str>, own: &str) -> Option<usize> {
        let mut index = start;
        loop {
            let is_end = match self.tokens.get(index).map(|at| at.token) {
                None | Some(Token::RightParen | Token::Comma) => {
                    if end.is_some() {
                        return None;
                    }
                    true
                }
                Some(Token::Name(word)) => {
                    if word.eq_ignore_ascii_case(own) {
                        return None;
                    }
                    end.is_some_and(|end| word.eq_ignore_ascii_case(end))
                }
                _ => false,
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

    /// First token behind what begins the arguments or parentheses around a token.
    fn run_before(&self, end: usize) -> Option<usize> {
        let mut first = end;
        while first > self.after && end - first <= MAX_RUN {
            let before = first - 1;
            first = match self.tokens[before].token {
                Token::LeftParen | Token::Comma => break,
                Token::RightParen => self.delimiters.pair(before)?.open,
                _ => before,
            };
        }
        (first < end).then_some(first)
    }
}

/// Handles a word that is an operator elsewhere, at `index`; gives the index to
/// go on with.
pub(in crate::syntax) fn operator(
    repair: &mut Repair<'_, '_>,
    index: usize,
    word: &str,
) -> Option<usize> {
    let next = repair.tokens.get(index + 1).filter(|at| begins_operand(at.token))?;
    let next_start = next.start;
    if word.eq_ignore_ascii_case("not") && repair.operand_is_due() {
        let at = repair.span(index, index);
        let with_blank = repair.origin.span(repair.tokens[index].start, next_start);
        repair.report(
            Diagnostic::error(Code::UnexpectedToken, at, format!("`{word}` is no operator"))
                .help("write `!`")
                .fix(with_blank, "!"),
        );
        repair.push(Token::Bang, index, index);
        return Some(index + 1);
    }
    let (_, symbol, token) =
        OPERATORS.into_iter().find(|(other, ..)| other.eq_ignore_ascii_case(word))?;
    if repair.operand_is_due() {
        return None;
    }
    let at = repair.span(index, index);
    let error = Diagnostic::error(Code::UnexpectedToken, at, format!("`{word}` is no operator"))
        .help(format!("write `{symbol}`"));
    // Elsewhere `and` binds more tightly than `or`; here they are alike.
    let is_other = |at: &TokenAt<'_>| match at.token {
        Token::Name(other) => {
            !other.eq_ignore_ascii_case(word)
                && OPERATORS.iter().any(|(known, ..)| known.eq_ignore_ascii_case(other))
        }
        Token::AndAnd | Token::OrOr => at.token != token,
        _ => false,
    };
    let is_mixed = repair.tokens.iter().take(MAX_RUN).any(is_other);
    repair.report(match is_mixed {
        true => error
            .help(format!("write `{symbol}`; `&&` and `||` bind alike here, so use parentheses"))
            .guess(at, symbol),
        false => error.fix(at, symbol),
    });
    repair.push(token, index, index);
    Some(index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written has no place that the clause does not have.
    #[test]
    fn places_of_clauses() {
        for clause in CLAUSES {
            let known: Vec<char> = parts(clause.form)
                .filter_map(|part| match part {
                    Part::Word(_) => None,
                    Part::Operand(place) | Part::Run(place) | Part::Group(place) => Some(place),
                })
                .collect();
            let texts: Vec<(char, &str)> = known.iter().map(|place| (*place, "(x)")).collect();
            assert!(written(clause.write, &texts).is_some(), "{}", clause.form);
        }
    }
}
