//! The layout of one expression: blanks between its tokens, and line breaks
//! where it is too long for one line.
//!
//! Input: the tokens of a correct expression. Output: text with the same
//! tokens. The layout needs no tree: lines break according to how tightly
//! operators bind, and the tokens tell that. Every step is a loop over the
//! tokens, so no expression is too long or too deep.

use crate::syntax::{Token, TokenAt};

/// Largest number of columns of a line, the continuation mark included.
pub const MAX_COLUMNS: usize = 100;
/// The end of a line that continues in the next.
const CONTINUATION: &str = " \\\n";
/// Columns of the continuation mark with the blank before it.
const CONTINUATION_COLUMNS: usize = 2;
/// Columns by which each broken group moves its lines to the right. Only a
/// limited number of groups count, because deep nesting must leave room for
/// text.
const INDENTATION: usize = 4;
const MAX_INDENTED_GROUPS: usize = 10;

/// Permission to write an expression over several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineBreaks {
    /// Breaks where the expression is too long for one line.
    Allowed,
    /// No breaks.
    Forbidden,
}

/// Appends an expression to a line. `out` holds the last `column` columns of that
/// line.
pub fn write_expression(
    text: &str,
    tokens: &[TokenAt<'_>],
    column: usize,
    breaks: LineBreaks,
    out: &mut String,
) {
    let layout = Layout::new(text, tokens);
    let all = 0..tokens.len();
    if breaks == LineBreaks::Forbidden || column + layout.columns(all) <= MAX_COLUMNS {
        layout.write_flat(out);
    } else {
        layout.write_broken(column, out);
    }
}

/// Operators that lines may break before, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Ternary,
    Boolean,
    Relation,
    Sum,
    Product,
}

/// Tokens whose breaks are made together or not at all: an operand chain of one
/// level, or the arguments of a call.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: usize,
    last: usize,
}

/// An expression with its measures.
struct Layout<'t> {
    pieces: Vec<&'t str>,
    /// True for each token with a blank before it.
    blank_before: Vec<bool>,
    /// True for each token that may begin a line.
    break_before: Vec<bool>,
    /// Columns of the tokens before each one, in one line; the last element
    /// counts all tokens.
    columns_before: Vec<usize>,
    /// Groups in the order of their first tokens, larger ones first.
    groups: Vec<Group>,
}

impl<'t> Layout<'t> {
    fn new(text: &'t str, tokens: &[TokenAt<'_>]) -> Layout<'t> {
        let piece = |at: &TokenAt<'_>| &text[at.start as usize..at.end as usize];
        let pieces: Vec<&str> = tokens.iter().map(piece).collect();
        let roles = roles(tokens);
        let blank_before: Vec<bool> = (0..tokens.len())
            .map(|index| index > 0 && is_apart(&roles, index) && !sticks(tokens, index))
            .collect();
        let mut columns_before = Vec::with_capacity(tokens.len() + 1);
        let mut columns = 0;
        for (piece, blank) in pieces.iter().zip(&blank_before) {
            columns_before.push(columns);
            columns += piece.chars().count() + usize::from(*blank);
        }
        columns_before.push(columns);
        let (groups, break_before) = groups(&roles);
        Layout { pieces, blank_before, break_before, columns_before, groups }
    }

    /// Columns of tokens in one line, without the blank before the first.
    fn columns(&self, tokens: std::ops::Range<usize>) -> usize {
        let blank = self.blank_before.get(tokens.start).is_some_and(|blank| *blank);
        (self.columns_before[tokens.end] - self.columns_before[tokens.start])
            .saturating_sub(usize::from(blank))
    }

    fn write_flat(&self, out: &mut String) {
        for (piece, blank) in self.pieces.iter().zip(&self.blank_before) {
            out.extend(blank.then_some(' '));
            out.push_str(piece);
        }
    }

    /// Breaks the outermost group, and the groups within it that do not fit.
    fn write_broken(&self, mut column: usize, out: &mut String) {
        let limit = MAX_COLUMNS - CONTINUATION_COLUMNS;
        // For each token, the first token from there on that may begin a line.
        let mut next_break = vec![self.pieces.len(); self.pieces.len() + 1];
        for index in (0..self.pieces.len()).rev() {
            next_break[index] =
                if self.break_before[index] { index } else { next_break[index + 1] };
        }
        let mut groups = self.groups.iter().peekable();
        // Groups around the current token, with the decision on each.
        let mut around: Vec<(Group, bool)> = Vec::new();
        let mut broken = 0;
        for (index, piece) in self.pieces.iter().enumerate() {
            while let Some((group, is_broken)) = around.last().copied()
                && group.last < index
            {
                broken -= usize::from(is_broken);
                around.pop();
            }
            // A break belongs to the innermost group around it.
            if self.break_before[index] && around.last().is_some_and(|(_, is_broken)| *is_broken) {
                out.push_str(CONTINUATION);
                column = INDENTATION * broken.min(MAX_INDENTED_GROUPS);
                out.extend(std::iter::repeat_n(' ', column));
            } else if self.blank_before[index] {
                out.push(' ');
                column += 1;
            }
            while let Some(group) = groups.next_if(|group| group.first == index) {
                let parent_is_broken = around.last().is_none_or(|(_, is_broken)| *is_broken);
                let end = next_break[group.last + 1];
                let is_broken = parent_is_broken && column + self.columns(group.first..end) > limit;
                broken += usize::from(is_broken);
                around.push((*group, is_broken));
            }
            out.push_str(piece);
            column += piece.chars().count();
        }
    }
}

/// The role of a token beside its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A value, or the end of one.
    Operand,
    /// `-` or `!` of one operand.
    Prefix,
    /// An infix operator, `?` and `:` included.
    Infix(Level),
    /// A function's name; its parenthesis follows.
    Function,
    Open,
    Close,
    Comma,
    Assign,
}

fn roles(tokens: &[TokenAt<'_>]) -> Vec<Role> {
    let mut roles: Vec<Role> = Vec::with_capacity(tokens.len());
    for at in tokens {
        let after_operand = matches!(roles.last(), Some(Role::Operand | Role::Close));
        roles.push(match at.token {
            Token::LeftParen => Role::Open,
            Token::RightParen => Role::Close,
            Token::Comma => Role::Comma,
            Token::Assign => Role::Assign,
            Token::Bang => Role::Prefix,
            Token::Minus if !after_operand => Role::Prefix,
            Token::Question | Token::Colon => Role::Infix(Level::Ternary),
            Token::AndAnd | Token::OrOr => Role::Infix(Level::Boolean),
            Token::Plus | Token::Minus => Role::Infix(Level::Sum),
            Token::Star | Token::Slash => Role::Infix(Level::Product),
            token if token.is_binary_operator() => Role::Infix(Level::Relation),
            token if token.is_function() => Role::Function,
            _ => Role::Operand,
        });
    }
    roles
}

/// True if a blank separates a token from the one before it.
fn is_apart(roles: &[Role], index: usize) -> bool {
    let (before, here) = (roles[index - 1], roles[index]);
    !matches!(before, Role::Open | Role::Prefix | Role::Function | Role::Assign)
        && !matches!(here, Role::Close | Role::Comma | Role::Assign)
}

/// True for an instance name, which stands directly behind its operand.
fn sticks(tokens: &[TokenAt<'_>], index: usize) -> bool {
    matches!(tokens[index].token, Token::Instance(_))
}

/// A group without its end so far.
enum OpenGroup {
    /// Operands of one level.
    Chain { level: Level, first: usize },
    /// The contents of a parenthesis.
    Parenthesis { first: usize, has_comma: bool, operand: usize },
}

/// The groups, and where lines may break.
fn groups(roles: &[Role]) -> (Vec<Group>, Vec<bool>) {
    let mut groups = Vec::new();
    let mut break_before = vec![false; roles.len()];
    let mut growing: Vec<OpenGroup> = Vec::new();
    // Start of the operand that the current token belongs to.
    let mut operand = 0;
    for (index, role) in roles.iter().enumerate() {
        // Chains that this token ends: all of its parenthesis, or the tighter ones.
        let loosest = match role {
            Role::Infix(level) => Some(*level),
            Role::Comma | Role::Close => None,
            _ => {
                if *role == Role::Open {
                    let first = index + 1;
                    growing.push(OpenGroup::Parenthesis { first, has_comma: false, operand });
                    operand = first;
                }
                continue;
            }
        };
        while let Some(OpenGroup::Chain { level, first }) = growing.last()
            && loosest.is_none_or(|loosest| *level > loosest)
        {
            groups.push(Group { first: *first, last: index - 1 });
            operand = *first;
            growing.pop();
        }
        match (role, growing.last_mut()) {
            (Role::Infix(level), top) => {
                if !matches!(top, Some(OpenGroup::Chain { level: of, .. }) if of == level) {
                    growing.push(OpenGroup::Chain { level: *level, first: operand });
                }
                break_before[index] = true;
                operand = index + 1;
            }
            (Role::Comma, Some(OpenGroup::Parenthesis { has_comma, .. })) => {
                *has_comma = true;
                if let Some(next) = break_before.get_mut(index + 1) {
                    *next = true;
                }
                operand = index + 1;
            }
            (_, Some(OpenGroup::Parenthesis { first, has_comma, operand: outer })) => {
                if *has_comma {
                    groups.push(Group { first: *first, last: index - 1 });
                }
                operand = *outer;
                growing.pop();
            }
            // Correct expressions have no other tokens.
            (_, _) => {}
        }
    }
    for group in growing {
        if let OpenGroup::Chain { first, .. } = group {
            groups.push(Group { first, last: roles.len() - 1 });
        }
    }
    groups.sort_by_key(|group| (group.first, std::cmp::Reverse(group.last)));
    (groups, break_before)
}
