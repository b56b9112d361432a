//! Semantic tokens: the kind of each word of a text.

use lsp_types::{
    Position, SemanticToken, SemanticTokenModifier, SemanticTokenType, SemanticTokensLegend,
};

use super::positions::{Encoding, LineIndex, number};
use crate::dialect::Language;
use crate::syntax::{Lines, Token, name_mistake, tokens};
use crate::text::SourceId;
use crate::text::cache::Remembered;

/// Kinds of tokens; their positions are their numbers in the protocol.
const KINDS: [SemanticTokenType; 8] = [
    SemanticTokenType::VARIABLE,
    SemanticTokenType::FUNCTION,
    SemanticTokenType::NUMBER,
    SemanticTokenType::STRING,
    SemanticTokenType::REGEXP,
    SemanticTokenType::OPERATOR,
    SemanticTokenType::KEYWORD,
    SemanticTokenType::COMMENT,
];

/// The modifiers; each is a bit.
const MODIFIERS: [SemanticTokenModifier; 1] = [SemanticTokenModifier::DECLARATION];

/// The meaning of the numbers in tokens.
pub fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend { token_types: KINDS.to_vec(), token_modifiers: MODIFIERS.to_vec() }
}

/// The tokens of a text in the protocol's form, each relative to the one before it. A token of
/// several lines is split by lines. Lines in `before` are not analysed again.
pub fn semantic_tokens(
    text: &str,
    index: &LineIndex,
    language: Language,
    before: &mut Remembered<Box<[SemanticToken]>>,
) -> Vec<SemanticToken> {
    let mut all = Vec::new();
    let mut lines = Lines::new(SourceId(0), text, language.dialect);
    // The line of the last token, and the start of the next logical line.
    let (mut last, mut start) = (0, 0);
    while lines.next_line().is_some() {
        let raw = &text[start..lines.position()];
        let start_of_line = std::mem::replace(&mut start, lines.position());
        let compute = || tokens_of_line(raw, index.encoding(), language).into();
        let tokens = before.get(raw, |_| true, compute);
        let mut first = index.position(text, start_of_line).line;
        for token in tokens.iter() {
            let delta_line = first + token.delta_line - last;
            all.push(SemanticToken { delta_line, ..*token });
            (first, last) = (last + delta_line, last + delta_line);
        }
    }
    before.end_reading();
    all
}

/// The tokens of a logical line, as if the text began with it.
fn tokens_of_line(text: &str, encoding: Encoding, language: Language) -> Vec<SemanticToken> {
    let index = &LineIndex::new(text, encoding);
    let mut found = TokenList { text, index, tokens: Vec::new(), last: Default::default() };
    let mut lines = Lines::new(SourceId(0), text, language.dialect);
    while let Some(line) = lines.next_line() {
        let start = line.text.len() - line.text.trim_start().len();
        let place = |from: usize, to: usize| {
            let span = line.origin.span(number(from), number(to));
            span.start as usize..span.end as usize
        };
        if line.text[start..].starts_with('#') {
            found.add(place(start, line.text.trim_end().len()), &SemanticTokenType::COMMENT, 0);
            continue;
        }
        let Some((name, expression)) = line.text.split_once('=') else { continue };
        let name_end = name.trim_end().len();
        // `name(oneline) = text` has no expression.
        if start >= name_end || name_mistake(&name[start..name_end]).is_some() {
            continue;
        }
        found.add(place(start, name_end), &SemanticTokenType::VARIABLE, 1);
        let base = name.len() + 1;
        for one in tokens(expression, language) {
            let Some(kind) = kind(&one.token) else { continue };
            found.add(place(base + one.start as usize, base + one.end as usize), &kind, 0);
        }
    }
    found.tokens
}

fn kind(token: &Token<'_>) -> Option<SemanticTokenType> {
    Some(match token {
        token if token.is_function() => SemanticTokenType::FUNCTION,
        Token::Name(_) => SemanticTokenType::VARIABLE,
        Token::Integer(_) | Token::Double(_) => SemanticTokenType::NUMBER,
        Token::Str(_) | Token::Instance(_) => SemanticTokenType::STRING,
        Token::Pattern(_) => SemanticTokenType::REGEXP,
        Token::By | Token::Keyword(_) | Token::MetaKeyword => SemanticTokenType::KEYWORD,
        Token::LeftParen | Token::RightParen | Token::Comma | Token::Invalid(_) => return None,
        _ => SemanticTokenType::OPERATOR,
    })
}

struct TokenList<'t> {
    text: &'t str,
    index: &'t LineIndex,
    tokens: Vec<SemanticToken>,
    /// The start of the last token.
    last: (usize, Position),
}

impl TokenList<'_> {
    fn add(&mut self, place: std::ops::Range<usize>, kind: &SemanticTokenType, modifiers: u32) {
        let kind = KINDS.iter().position(|one| one == kind).unwrap_or(0);
        let mut from = place.start;
        while from < place.end {
            let rest = &self.text[from..place.end];
            let to = rest.find(['\r', '\n']).map_or(place.end, |at| from + at);
            self.add_in_line(from..to, number(kind), modifiers);
            from = to + 1;
        }
    }

    fn add_in_line(&mut self, place: std::ops::Range<usize>, kind: u32, modifiers: u32) {
        let start = self.index.position_behind(self.text, self.last, place.start);
        let end = self.index.position_behind(self.text, (place.start, start), place.end);
        let length = end.character.saturating_sub(start.character);
        if length == 0 {
            return;
        }
        let (_, before) = self.last;
        let delta_line = start.line - before.line;
        let column = if delta_line == 0 { before.character } else { 0 };
        self.tokens.push(SemanticToken {
            delta_line,
            delta_start: start.character - column,
            length,
            token_type: kind,
            token_modifiers_bitset: modifiers,
        });
        self.last = (place.start, start);
    }
}
