//! Patterns of `matchinst()` and `matchvalue()`: POSIX extended regular expressions as
//! `regcomp(3)` of the GNU C library takes them.
//!
//! A pattern is checked and translated to the syntax of the `regex` crate,
//! whose matching time is linear in the text. No such engine has
//! back-references: patterns with them go to the `fancy-regex` crate, whose work
//! is bounded by a number of steps back. Letters and classes are ASCII's, as in
//! the C locale.

use std::fmt;
use std::iter::Peekable;
use std::str::CharIndices;
use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};

/// Longest pattern that is accepted, in bytes.
const MAX_PATTERN_BYTES: usize = 16 << 10;
/// Most memory that a compiled pattern may take, in bytes.
const MAX_COMPILED_BYTES: usize = 8 << 20;
/// Largest number in `{n,m}`.
const MAX_REPEAT: u32 = 32767;
/// Most steps of a compiled pattern with back-references.
const MAX_STEPS: usize = 1 << 16;
/// How often matching goes back, at most, where there are back-references: some
/// milliseconds, and enough for `(.*)-\1` in the longest name.
const MAX_BACKTRACKS: usize = 1 << 17;
/// Most repetitions, all numbers in `{n,m}` multiplied, where there are
/// back-references: the limit above does not see what goes forward only.
const MAX_REPETITIONS: u32 = 255;

/// A compiled pattern, cheap to clone.
#[derive(Clone, Debug)]
pub struct Pattern {
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Linear(Regex),
    /// With back-references.
    Backtracking(Arc<fancy_regex::Regex>),
}

/// Matching a pattern with back-references would take too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("matching a pattern with back-references takes too long")]
pub struct TooMuchWork;

/// Why a text is no pattern; displayed in the words of `regerror(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// `[` at the end of the pattern.
    Invalid,
    /// `[x` without its end.
    UnmatchedBracket,
    /// `(` without its end.
    UnmatchedParen,
    /// `{` without its end.
    UnmatchedBrace,
    /// `{` around anything but one or two ascending numbers.
    BadInterval,
    /// `[z-a]`, `[[:digit:]-z]`.
    BadRange,
    /// `[[:nothing:]]`
    BadClass,
    /// `[[.xyz.]]`
    BadCollation,
    /// `*`, `+`, `?` or `{` with nothing to repeat.
    NothingToRepeat,
    /// A backslash at the end.
    TrailingBackslash,
    /// `\1` before the end of the first group.
    BadBackReference,
    /// A number above 32,767 in `{n,m}`.
    TooBig,
    /// Valid for `regcomp(3)`, but larger or deeper than what is taken here.
    TooLarge,
}

impl Pattern {
    /// Compiles a pattern.
    pub fn new(text: &str) -> Result<Pattern, PatternError> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLarge);
        }
        // The translation is well-formed, so only its size or depth can be refused.
        let engine = match translate(text)? {
            Translation::Linear(text) => RegexBuilder::new(&text)
                .dot_matches_new_line(true)
                .size_limit(MAX_COMPILED_BYTES)
                .build()
                .map(Engine::Linear)
                .map_err(|_| PatternError::TooLarge)?,
            Translation::Backtracking(text) => fancy_regex::RegexBuilder::new(&text)
                .dot_matches_new_line(true)
                .delegate_size_limit(MAX_COMPILED_BYTES)
                .max_prog_size(MAX_STEPS)
                .backtrack_limit(MAX_BACKTRACKS)
                .build()
                .map(|regex| Engine::Backtracking(Arc::new(regex)))
                .map_err(|_| PatternError::TooLarge)?,
        };
        Ok(Pattern { engine })
    }

    /// True if the pattern occurs anywhere in the text. Bytes that are not
    /// UTF-8 are matched by nothing; by a pattern with back-references, as
    /// U+FFFD.
    ///
    /// # Errors
    /// [`TooMuchWork`], of patterns with back-references only.
    pub fn is_match(&self, text: impl AsRef<[u8]>) -> Result<bool, TooMuchWork> {
        match &self.engine {
            Engine::Linear(regex) => Ok(regex.is_match(text.as_ref())),
            Engine::Backtracking(regex) => {
                let text = String::from_utf8_lossy(text.as_ref());
                regex.is_match(&*text).map_err(|_| TooMuchWork)
            }
        }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PatternError::Invalid => "Invalid regular expression",
            PatternError::UnmatchedBracket => "Unmatched [, [^, [:, [., or [=",
            PatternError::UnmatchedParen => "Unmatched ( or \\(",
            PatternError::UnmatchedBrace => "Unmatched \\{",
            PatternError::BadInterval => "Invalid content of \\{\\}",
            PatternError::BadRange => "Invalid range end",
            PatternError::BadClass => "Invalid character class name",
            PatternError::BadCollation => "Invalid collation character",
            PatternError::NothingToRepeat => "Invalid preceding regular expression",
            PatternError::TrailingBackslash => "Trailing backslash",
            PatternError::BadBackReference => "Invalid back reference",
            PatternError::TooBig => "Regular expression too big",
            PatternError::TooLarge => "this pattern is larger than what is taken here",
        })
    }
}

impl std::error::Error for PatternError {}

/// What stands before a place where something could be repeated.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// Start of the pattern, of a group or of an alternative; an anchor.
    Nothing,
    /// Something repeatable whose translation begins at this offset.
    Atom(usize),
}

/// A pattern in the syntax of an engine.
enum Translation {
    Linear(String),
    Backtracking(String),
}

fn translate(text: &str) -> Result<Translation, PatternError> {
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

/// One character or class within brackets.
enum Element {
    Character(char),
    /// `[=a=]`, which stands for its character but ends no range.
    Equivalence(char),
    Class(&'static str),
}

/// The inside of a bracket expression, in which a backslash is nothing special.
struct Bracket<'t> {
    text: &'t str,
    position: usize,
}

/// Classes of characters that both syntaxes know by the same name.
const CLASSES: [&str; 12] = [
    "alpha", "digit", "alnum", "upper", "lower", "space", "blank", "punct", "print", "graph",
    "cntrl", "xdigit",
];

impl<'t> Bracket<'t> {
    fn new(text: &'t str) -> Bracket<'t> {
        Bracket { text, position: 0 }
    }

    /// Length of the expression without its first bracket, and its translation.
    fn translate(mut self) -> Result<(usize, String), PatternError> {
        let mut out = String::from("[");
        if self.text.is_empty() {
            return Err(PatternError::Invalid);
        }
        if self.eat("^") {
            out.push('^');
            if self.rest().is_empty() {
                return Err(PatternError::Invalid);
            }
        }
        let mut first = true;
        while first || !self.eat("]") {
            // A hyphen stands for itself only as the first or last element or as the end of a range.
            if !first && self.rest().starts_with('-') && !self.rest().starts_with("-]") {
                return Err(PatternError::BadRange);
            }
            first = false;
            let low = self.element()?;
            let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            match (low, is_range) {
                (Element::Class(name), false) => out.push_str(name),
                (Element::Class(_) | Element::Equivalence(_), true) => {
                    return Err(PatternError::BadRange);
                }
                (Element::Character(c) | Element::Equivalence(c), false) => {
                    push_class_member(&mut out, c);
                }
                (Element::Character(low), true) => {
                    self.position += 1;
                    if self.rest().is_empty() {
                        return Err(PatternError::UnmatchedBracket);
                    }
                    match self.element()? {
                        Element::Character(high) if low <= high => {
                            push_class_member(&mut out, low);
                            out.push('-');
                            push_class_member(&mut out, high);
                        }
                        _ => return Err(PatternError::BadRange),
                    }
                }
            }
        }
        out.push(']');
        Ok((self.position, out))
    }

    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.position += prefix.len();
        }
        found
    }

    fn element(&mut self) -> Result<Element, PatternError> {
        for (open, close) in [("[:", ":]"), ("[=", "=]"), ("[.", ".]")] {
            if !self.rest().starts_with(open) {
                continue;
            }
            let inside = &self.rest()[2..];
            let Some(length) = inside.find(close) else {
                return Err(PatternError::UnmatchedBracket);
            };
            let name = &inside[..length];
            self.position += length + 4;
            if open == "[:" {
                let index = CLASSES.iter().position(|class| *class == name);
                return index
                    .map(|index| Element::Class(CLASS_TRANSLATIONS[index]))
                    .ok_or(PatternError::BadClass);
            }
            let mut characters = name.chars();
            return match (characters.next(), characters.next()) {
                (Some(character), None) if open == "[=" => Ok(Element::Equivalence(character)),
                (Some(character), None) => Ok(Element::Character(character)),
                _ => Err(PatternError::BadCollation),
            };
        }
        let character = self.rest().chars().next().ok_or(PatternError::UnmatchedBracket)?;
        self.position += character.len_utf8();
        Ok(Element::Character(character))
    }
}

/// [`CLASSES`] in the target syntax.
const CLASS_TRANSLATIONS: [&str; 12] = [
    "[:alpha:]",
    "[:digit:]",
    "[:alnum:]",
    "[:upper:]",
    "[:lower:]",
    "[:space:]",
    "[:blank:]",
    "[:punct:]",
    "[:print:]",
    "[:graph:]",
    "[:cntrl:]",
    "[:xdigit:]",
];

fn push_literal(out: &mut String, character: char) {
    if regex::escape(character.encode_utf8(&mut [0; 4])).len() > character.len_utf8() {
        out.push('\\');
    }
    out.push(character);
}

fn push_class_member(out: &mut String, character: char) {
    if character.is_ascii() && !character.is_ascii_alphanumeric() {
        out.push_str(&format!("\\x{:02X}", u32::from(character)));
    } else {
        out.push(character);
    }
}

/// Compiles the first line of the data and matches the rest with it. Panics
/// where the translation is not what its target takes.
#[cfg(any(test, feature = "fuzz"))]
pub fn fuzz_pattern(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (pattern, text) = text.split_once('\n').unwrap_or((text, ""));
    match Pattern::new(pattern) {
        Ok(compiled) => {
            let _ = compiled.is_match(text);
        }
        Err(PatternError::TooLarge) if pattern.len() <= MAX_PATTERN_BYTES => {
            // The size or the depth may be refused; the syntax may not.
            let error = match translate(pattern) {
                Ok(Translation::Linear(text)) => {
                    regex::Regex::new(&text).err().map(|error| error.to_string())
                }
                Ok(Translation::Backtracking(text)) => {
                    fancy_regex::Regex::new(&text).err().map(|error| error.to_string())
                }
                Err(error) => (error == PatternError::TooLarge).then(|| "too large".to_owned()),
            };
            let size = ["size limit", "nest limit", "nest", "too big", "too large", "too complex"];
            let refused = error.unwrap_or_else(|| "size limit".to_owned());
            assert!(size.iter().any(|word| refused.contains(word)), "{pattern:?}: {refused}");
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_up_patterns_translate_or_are_refused() {
        let pieces = [
            "a",
            "b",
            "(",
            ")",
            "[",
            "]",
            "^",
            "$",
            "*",
            "+",
            "?",
            "{",
            "}",
            "{2}",
            "{1,3}",
            "{,2}",
            "|",
            ".",
            "\\",
            "\\w",
            "\\<",
            "\\b",
            "-",
            ":",
            "[:digit:]",
            "[=a=]",
            "[.-.]",
            "]-",
            ",",
            "1",
            "\u{e9}",
            "&&",
            "~",
            "\n",
            "\\1",
            "\\2",
            "\\>",
            "#",
            " ",
        ];
        let mut state = 7u64;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % limit
        };
        for _ in 0..20_000 {
            let pattern: String = (0..below(12)).map(|_| pieces[below(pieces.len())]).collect();
            fuzz_pattern(pattern.as_bytes());
        }
    }
}
