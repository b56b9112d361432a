//! Checks a pattern and writes it in the syntax of its engine.
//!
//! This module compiles nothing. [`super::bracket`] translates bracket
//! expressions.

use std::iter::Peekable;
use std::str::CharIndices;

use super::bracket::Bracket;
use super::error::PatternError;

/// Largest number in `{n,m}`.
const MAX_REPEAT: u32 = 32767;
/// Limit on the product of all numbers in `{n,m}` of a pattern with
/// back-references. The limit on backtracking does not count forward steps.
const MAX_REPETITIONS: u32 = 255;

/// The part before a repetition operator.
#[derive(Clone, Copy, PartialEq)]
enum Repeatable {
    /// Start of the pattern, of a group or of an alternative; an anchor.
    Nothing,
    /// Something repeatable whose translation begins at this offset.
    Atom(usize),
}

/// A pattern in the syntax of an engine.
pub(super) enum Translation {
    Linear(String),
    Backtracking(String),
}

/// Translates a pattern.
///
/// # Errors
/// The text is not a pattern, or is too large; with the offset of the fault.
pub(super) fn translate(text: &str) -> Result<Translation, (PatternError, usize)> {
    let mut translator = Translator::new(text, false);
    translator.translate().map_err(|error| (error, translator.at))?;
    if !translator.has_back_reference {
        return Ok(Translation::Linear(translator.out));
    }
    let mut translator = Translator::new(text, true);
    translator.translate().map_err(|error| (error, translator.at))?;
    if translator.repetitions > MAX_REPETITIONS {
        return Err((PatternError::TooLarge, 0));
    }
    Ok(Translation::Backtracking(translator.out))
}

struct Translator<'t> {
    /// True when writing for the engine with back-references.
    is_backtracking: bool,
    has_back_reference: bool,
    text: &'t str,
    /// Offset of the part that is being read.
    at: usize,
    rest: Peekable<CharIndices<'t>>,
    out: String,
    before: Repeatable,
    /// Groups that are open.
    groups: Vec<Group>,
    /// The whole pattern. It counts as a group without a number.
    whole: Group,
    /// Number of groups that were opened so far.
    begun: usize,
    /// Product of all repetition counts so far.
    repetitions: u32,
    /// Groups that a back-reference may name, one bit for each number: groups
    /// closed in this alternative or before the first alternative.
    closed: u16,
}

/// A group that is open.
#[derive(Clone, Copy, Default)]
struct Group {
    number: usize,
    /// Offset of its parenthesis.
    at: usize,
    /// Offset in the translation where the group begins.
    start: usize,
    /// Value of `closed` before the group.
    before: u16,
    /// Groups that were closed in the group's earlier alternatives.
    elsewhere: u16,
}

impl<'t> Translator<'t> {
    fn new(text: &'t str, is_backtracking: bool) -> Translator<'t> {
        Translator {
            is_backtracking,
            has_back_reference: false,
            text,
            at: 0,
            rest: text.char_indices().peekable(),
            out: String::with_capacity(text.len() * 2),
            before: Repeatable::Nothing,
            groups: Vec::new(),
            begun: 0,
            repetitions: 1,
            closed: 0,
            whole: Group::default(),
        }
    }

    fn translate(&mut self) -> Result<(), PatternError> {
        while let Some((position, character)) = self.rest.next() {
            self.at = position;
            match character {
                '\\' => self.escape()?,
                '[' => self.bracket(position + 1)?,
                '(' => {
                    self.begun += 1;
                    self.groups.push(Group {
                        number: self.begun,
                        at: position,
                        start: self.out.len(),
                        before: self.closed,
                        elsewhere: 0,
                    });
                    self.out.push_str(if self.is_backtracking { "(" } else { "(?:" });
                    self.before = Repeatable::Nothing;
                }
                // Without an open group it is an ordinary character.
                ')' => match self.groups.pop() {
                    Some(group) => {
                        self.out.push(')');
                        self.closed |= group.elsewhere;
                        if group.number < 10 {
                            self.closed |= 1 << group.number;
                        }
                        self.before = Repeatable::Atom(group.start);
                    }
                    None => self.literal(')'),
                },
                '|' => {
                    self.out.push('|');
                    self.before = Repeatable::Nothing;
                    let group = self.groups.last_mut().unwrap_or(&mut self.whole);
                    group.elsewhere |= self.closed;
                    self.closed = group.before;
                }
                '^' | '$' => self.anchor(if character == '^' { "^" } else { "$" }),
                '.' => self.atom("."),
                '*' | '+' | '?' | '{' => self.repeat(character)?,
                other => self.literal(other),
            }
        }
        match self.groups.last() {
            None => Ok(()),
            Some(group) => {
                self.at = group.at;
                Err(PatternError::UnmatchedParen)
            }
        }
    }

    fn atom(&mut self, translation: &str) {
        self.before = Repeatable::Atom(self.out.len());
        self.out.push_str(translation);
    }

    fn anchor(&mut self, translation: &str) {
        self.out.push_str(translation);
        self.before = Repeatable::Nothing;
    }

    fn literal(&mut self, character: char) {
        self.before = Repeatable::Atom(self.out.len());
        push_literal(&mut self.out, character);
    }

    /// Consumes the character after a backslash: an operator of the GNU
    /// library, or a literal character.
    fn escape(&mut self) -> Result<(), PatternError> {
        let (_, character) = self.rest.next().ok_or(PatternError::TrailingBackslash)?;
        match character {
            'w' => self.atom("[0-9A-Za-z_]"),
            'W' => self.atom("[^0-9A-Za-z_]"),
            's' => self.atom("[\\t-\\r ]"),
            'S' => self.atom("[^\\t-\\r ]"),
            // `fancy-regex` has no word boundaries for ASCII words.
            'b' if self.is_backtracking => {
                self.anchor(
                    "(?:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))",
                );
            }
            'B' if self.is_backtracking => {
                self.anchor(
                    "(?:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_]))",
                );
            }
            '<' if self.is_backtracking => self.anchor("(?<![0-9A-Za-z_])(?=[0-9A-Za-z_])"),
            '>' if self.is_backtracking => self.anchor("(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])"),
            'b' => self.anchor("(?-u:\\b)"),
            'B' => self.anchor("(?-u:\\B)"),
            '<' => self.anchor("(?-u:\\b{start})"),
            '>' => self.anchor("(?-u:\\b{end})"),
            '`' => self.anchor("\\A"),
            '\'' => self.anchor("\\z"),
            '1'..='9' => {
                if self.closed >> (character as u8 - b'0') & 1 == 0 {
                    return Err(PatternError::BadBackReference);
                }
                self.has_back_reference = true;
                // The group keeps a following digit out of the reference.
                self.atom(&format!("(?:\\{character})"));
            }
            other => self.literal(other),
        }
        Ok(())
    }

    /// Consumes a run of repetition operators after one atom. Each operator
    /// gets its own group, because the target syntax reads `a*?` differently.
    fn repeat(&mut self, first: char) -> Result<(), PatternError> {
        let Repeatable::Atom(start) = self.before else {
            return Err(PatternError::NothingToRepeat);
        };
        let mut operators = Vec::new();
        let mut next = Some(first);
        while let Some(operator) = next {
            let translation = match operator {
                '{' => self.interval()?,
                other => other.to_string(),
            };
            // The same star or question mark twice is the same as once.
            if operators.last() != Some(&translation) || operator == '{' {
                operators.push(translation);
            }
            next = self.rest.next_if(|(_, c)| matches!(c, '*' | '+' | '?' | '{')).map(|(_, c)| c);
        }
        let atom = self.out.split_off(start);
        for _ in &operators {
            self.out.push_str("(?:");
        }
        self.out.push_str(&atom);
        for operator in &operators {
            self.out.push(')');
            self.out.push_str(operator);
        }
        Ok(())
    }

    /// Consumes `{n}`, `{n,}`, `{,m}` or `{n,m}` after the brace.
    fn interval(&mut self) -> Result<String, PatternError> {
        let (low, end) = self.repeat_count()?;
        let high = match end {
            '}' => Some(low.ok_or(PatternError::BadInterval)?),
            _ => match self.repeat_count()? {
                (high, '}') => high,
                _ => return Err(PatternError::BadInterval),
            },
        };
        let low = low.unwrap_or(0);
        if high.is_some_and(|high| high < low) {
            return Err(PatternError::BadInterval);
        }
        if high.unwrap_or(low) > MAX_REPEAT {
            return Err(PatternError::TooBig);
        }
        self.repetitions = self.repetitions.saturating_mul(high.unwrap_or(low).max(1));
        let high = high.map_or_else(String::new, |high| high.to_string());
        Ok(format!("{{{low},{high}}}"))
    }

    /// Consumes optional digits and the `,` or `}` after them. A number above
    /// the limit counts as the limit plus one. A wrong interval is "bad" if it
    /// has an end, and "unmatched" if not. The error therefore waits for the
    /// end.
    fn repeat_count(&mut self) -> Result<(Option<u32>, char), PatternError> {
        let mut count = None;
        let mut is_bad = false;
        loop {
            let (_, mut character) = self.rest.next().ok_or(PatternError::UnmatchedBrace)?;
            if character == '\\' {
                // An escaped comma is still a comma.
                character = match self.rest.next() {
                    Some((_, ',')) => ',',
                    _ => '\\',
                };
            }
            match character {
                ',' | '}' if is_bad => return Err(PatternError::BadInterval),
                ',' | '}' => return Ok((count, character)),
                '0'..='9' => {
                    let digit = u32::from(character) - u32::from('0');
                    count = Some((count.unwrap_or(0) * 10 + digit).min(MAX_REPEAT + 1));
                }
                _ => is_bad = true,
            }
        }
    }

    /// Consumes a bracket expression after its opening bracket. `start` is the
    /// offset after that bracket.
    fn bracket(&mut self, start: usize) -> Result<(), PatternError> {
        let (length, translation) = Bracket::new(&self.text[start..]).translate()?;
        let end = start + length;
        while self.rest.next_if(|(position, _)| *position < end).is_some() {}
        self.atom(&translation);
        Ok(())
    }
}

fn push_literal(out: &mut String, character: char) {
    if regex::escape(character.encode_utf8(&mut [0; 4])).len() > character.len_utf8() {
        out.push('\\');
    }
    out.push(character);
}
