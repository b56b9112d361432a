//! Checks a pattern and writes it in the syntax of the engine that it needs.
//!
//! Compiles nothing, and leaves what is within brackets to [`super::bracket`].

use std::iter::Peekable;
use std::str::CharIndices;

use super::PatternError;
use super::bracket::Bracket;

/// Largest number in `{n,m}`.
const MAX_REPEAT: u32 = 32767;
/// Most repetitions, all numbers in `{n,m}` multiplied, where there are
/// back-references: the limit on going back does not see what goes forward only.
const MAX_REPETITIONS: u32 = 255;

/// What stands before a place where something could be repeated.
#[derive(Clone, Copy, PartialEq)]
enum Before {
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
/// It is none, or too large.
pub(super) fn translate(text: &str) -> Result<Translation, PatternError> {
    let mut translator = Translator::new(text, false);
    translator.translate()?;
    if !translator.has_back_reference {
        return Ok(Translation::Linear(translator.out));
    }
    let mut translator = Translator::new(text, true);
    translator.translate()?;
    if translator.repetitions > MAX_REPETITIONS {
        return Err(PatternError::TooLarge);
    }
    Ok(Translation::Backtracking(translator.out))
}

struct Translator<'t> {
    /// Writes for the engine that has back-references.
    is_backtracking: bool,
    has_back_reference: bool,
    text: &'t str,
    rest: Peekable<CharIndices<'t>>,
    out: String,
    before: Before,
    /// The open groups.
    groups: Vec<Group>,
    /// The whole pattern, which counts as a group without a number.
    whole: Group,
    /// Groups begun so far.
    begun: usize,
    /// All numbers of repetitions so far, multiplied.
    repetitions: u32,
    /// Groups that can be referred to, a bit for each number: those closed in
    /// this alternative or before the alternatives.
    closed: u16,
}

/// A group that is open.
#[derive(Clone, Copy, Default)]
struct Group {
    number: usize,
    /// Offset in the translation where it begins.
    start: usize,
    /// What was closed before it.
    before: u16,
    /// What was closed in its earlier alternatives.
    elsewhere: u16,
}

impl<'t> Translator<'t> {
    fn new(text: &'t str, is_backtracking: bool) -> Translator<'t> {
        Translator {
            is_backtracking,
            has_back_reference: false,
            text,
            rest: text.char_indices().peekable(),
            out: String::with_capacity(text.len() * 2),
            before: Before::Nothing,
            groups: Vec::new(),
            begun: 0,
            repetitions: 1,
            closed: 0,
            whole: Group::default(),
        }
    }

    fn translate(&mut self) -> Result<(), PatternError> {
        while let Some((position, character)) = self.rest.next() {
            match character {
                '\\' => self.escape()?,
                '[' => self.bracket(position + 1)?,
                '(' => {
                    self.begun += 1;
                    self.groups.push(Group {
                        number: self.begun,
                        start: self.out.len(),
                        before: self.closed,
                        elsewhere: 0,
                    });
                    self.out.push_str(if self.is_backtracking { "(" } else { "(?:" });
                    self.before = Before::Nothing;
                }
                // Without a group to close it is an ordinary character.
                ')' => match self.groups.pop() {
                    Some(group) => {
                        self.out.push(')');
                        self.closed |= group.elsewhere;
                        if group.number < 10 {
                            self.closed |= 1 << group.number;
                        }
                        self.before = Before::Atom(group.start);
                    }
                    None => self.literal(')'),
                },
                '|' => {
                    self.out.push('|');
                    self.before = Before::Nothing;
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
        if self.groups.is_empty() { Ok(()) } else { Err(PatternError::UnmatchedParen) }
    }

    fn atom(&mut self, translation: &str) {
        self.before = Before::Atom(self.out.len());
        self.out.push_str(translation);
    }

    fn anchor(&mut self, translation: &str) {
        self.out.push_str(translation);
        self.before = Before::Nothing;
    }

    fn literal(&mut self, character: char) {
        self.before = Before::Atom(self.out.len());
        push_literal(&mut self.out, character);
    }

    /// What follows a backslash: an operator of the GNU library or the character itself.
    fn escape(&mut self) -> Result<(), PatternError> {
        let (_, character) = self.rest.next().ok_or(PatternError::TrailingBackslash)?;
        match character {
            'w' => self.atom("[0-9A-Za-z_]"),
            'W' => self.atom("[^0-9A-Za-z_]"),
            's' => self.atom("[\\t-\\r ]"),
            'S' => self.atom("[^\\t-\\r ]"),
            // The other engine has no boundaries of ASCII words.
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
                // A digit that follows is one of the text.
                self.atom(&format!("(?:\\{character})"));
            }
            other => self.literal(other),
        }
        Ok(())
    }

    /// A run of repetition operators after one atom. Each is wrapped, since
    /// the target syntax reads `a*?` differently.
    fn repeat(&mut self, first: char) -> Result<(), PatternError> {
        let Before::Atom(start) = self.before else { return Err(PatternError::NothingToRepeat) };
        let mut operators = Vec::new();
        let mut next = Some(first);
        while let Some(operator) = next {
            let translation = match operator {
                '{' => self.interval()?,
                other => other.to_string(),
            };
            // Repeating the same star or question mark changes nothing.
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

    /// `{n}`, `{n,}`, `{,m}`, `{n,m}` after its brace.
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

    /// Digits, if there are any, and the `,` or `}` after them; a number too
    /// large to matter counts as one above the limit. Whether a wrong interval
    /// counts as bad or as unmatched depends on whether it has an end at all.
    fn repeat_count(&mut self) -> Result<(Option<u32>, char), PatternError> {
        let mut count = None;
        let mut is_bad = false;
        loop {
            let (_, mut character) = self.rest.next().ok_or(PatternError::UnmatchedBrace)?;
            if character == '\\' {
                // An escaped comma still is one.
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

    /// `[...]` after its bracket, which stands before `start`.
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
