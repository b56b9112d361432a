//! Words and marks that are operators or clauses in other languages: `and`, `if ...
//! then`, `offset`, `IS NULL`, `a ?? b`.
//!
//! [`super::forms`] finds clauses. A reported clause then counts as one operand, so
//! nothing in it is reported twice.

use crate::diag::{Code, Diagnostic, Diagnostics, Fix};
use crate::dialect::{Dialect, Language};
use crate::syntax::origin::Origin;
use crate::syntax::token::{Invalid, Token, TokenAt};

use super::super::delimiters::Delimiters;
use super::super::repair::{Repair, unexpected};
use super::binding;
use super::calls::{NO_GUARD, change_of_aggregate, is_guard};
use super::characters::Characters;
use super::clauses::{CLAUSES, Clause};
use super::forms::{self, FoundClause, MAX_RUN, Part};
use super::marks::MARKS;
use super::matchers::like;
use super::{Understood, filled, understood};

/// Operators that are words elsewhere.
const OPERATORS: [(&str, &str, Token<'static>); 2] =
    [("and", "&&", Token::AndAnd), ("or", "||", Token::OrOr)];

/// Words that are operators elsewhere, with advice where nothing follows one.
const UNFINISHED: [(&str, &str); 9] = [
    ("and", "write `&&`, and an operand to its right"),
    ("or", "write `||`, and an operand to its right"),
    ("is", "write `==`, and an operand to its right"),
    ("not", "`!` stands before its operand, as in `!defined(NAME)`"),
    ("mod", "there is no operator for remainders"),
    ("div", "write `/`, and an operand to its right"),
    ("xor", "write `!=` between two comparisons, each in parentheses"),
    ("between", "a range is two comparisons, as in `a >= 2 && a <= 5`"),
    ("like", "`matchinst()` chooses instances by a pattern"),
];

/// Reports notation with foreign marks, before single characters are reported;
/// returns the tokens without it.
pub(in crate::syntax) fn marks<'t>(
    text: &'t str,
    tokens: &[TokenAt<'t>],
    origin: &Origin,
    language: Language,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<TokenAt<'t>>> {
    if tokens.len() > super::MAX_TOKENS {
        return None;
    }
    let delimiters = Delimiters::new(tokens);
    // The second of two label matchers is no definition.
    let is_here = |one: &Clause| !(text.contains('{') && one.form.starts_with("^ $1 , "));
    let found = forms::find(text, tokens, &delimiters, MARKS, is_here);
    let clauses = Characters { text, tokens, origin, language };
    diagnostics.extend(found.iter().map(|one| clauses.clause(one)));
    (!found.is_empty()).then(|| forms::replaced(tokens, &found))
}

/// Reports the clauses of other languages. Each then counts as one operand, or
/// as nothing if the rest is right without it.
pub(in crate::syntax) fn clauses(repair: &mut Repair<'_, '_>) {
    if repair.tokens.len() > super::MAX_TOKENS {
        return;
    }
    // With extensions there are groups, of hosts.
    let is_here = |one: &Clause| !(repair.language.extensions && one.form.starts_with("%1 by "));
    let found = forms::find(repair.text, &repair.tokens, &repair.delimiters, CLAUSES, is_here);
    if found.is_empty() {
        return;
    }
    for one in &found {
        let Repair { text, tokens, origin, language, .. } = repair;
        let clauses = Characters { text, tokens, origin, language: *language };
        let diagnostic = clauses.clause(one);
        // Parts that the replacement leaves out need no report of their own.
        for (place, first, last) in &one.places {
            if !super::uses(one.clause.write, *place) {
                repair.retract(*first, *last);
            }
        }
        repair.report(diagnostic);
    }
    let tokens = forms::replaced(&repair.tokens, &found);
    repair.set_tokens(tokens);
}

impl Characters<'_, '_> {
    /// The mistake of a clause.
    fn clause(&self, found: &FoundClause) -> Diagnostic {
        let FoundClause { clause, first, last, word, places } = found;
        let whole = self.span(*first, *last);
        let spelling = self.text_of(word.0, word.1);
        let diagnostic =
            unexpected(self.span(word.0, word.1), clause.message.replace("$0", spelling));
        if self.language.dialect == Dialect::Pcp6_0 && is_guard(clause.write) {
            return diagnostic.help(NO_GUARD);
        }
        if clause.leaves_nothing() {
            return diagnostic.help(clause.help).guess(whole, "");
        }
        // An aggregate accepts a name only.
        let is_refused_call = clause.write == "$1$2"
            && places.iter().any(|(place, first, last)| *place == '2' && last - first != 2);
        let texts = self.texts(clause, places);
        let texts: Vec<(char, &str)> =
            texts.iter().map(|(place, text)| (*place, text.as_str())).collect();
        let text = match clause.write {
            "" => None,
            _ if is_refused_call => self.change_of_aggregate(places),
            template => written(template, &texts, self.language),
        };
        let before = first.checked_sub(1).and_then(|before| self.at(before));
        let after = self.at(last + 1);
        // The clause would capture `2 * a is 1` instead of `2 * (a is 1)`, and `a / 2 div b`
        // instead of `a / (2 div b)`.
        let takes_too_little =
            clause.binds_like.is_some_and(|like| binding::takes_more(like, before, after));
        // The order of the two in other languages varies.
        let is_repeated = clause.is_certain
            && after.is_some()
            && self.text[self.tokens[last + 1].start as usize..].starts_with(spelling);
        let text = text.filter(|_| !takes_too_little && !is_repeated);
        let Some(text) = text else { return diagnostic.help(clause.help) };
        let text = binding::enclosed(&text, before, after, self.language);
        match understood(&text, self.language) {
            Understood::WithExtensions if !self.language.extensions => {
                diagnostic.help(format!("{}: `{text}`, with extensions", clause.help))
            }
            Understood::Never => diagnostic.help(clause.help),
            _ => {
                let is_certain = clause.is_certain;
                diagnostic.help(clause.help).edit(Fix { span: whole, text, is_certain })
            }
        }
    }

    /// `rate(sum(NAME))` for `sum` and `(rate(NAME[5m]))`.
    fn change_of_aggregate(&self, places: &[(char, usize, usize)]) -> Option<String> {
        let place = |wanted| places.iter().find(|(place, ..)| *place == wanted);
        let (&(_, aggregate, _), &(_, first, last)) = (place('1')?, place('2')?);
        let aggregate = self.text_of(aggregate, aggregate);
        change_of_aggregate(aggregate, self.text, &self.tokens[first..=last], self.language)
    }

    /// True for tokens in one pair of parentheses.
    fn is_one_group(&self, first: usize, last: usize) -> bool {
        if self.tokens[first].token != Token::LeftParen || last < first + 2 {
            return false;
        }
        let delimiters = Delimiters::new(&self.tokens[first..=last]);
        delimiters.close_of(0) == Some(last - first)
    }

    /// The text in each place, and further texts that follow from it. `L` is the
    /// pattern for the operand of SQL's `LIKE` in `2`, `R` the hundredth part of `1`,
    /// and `B` a text without braces.
    fn texts(&self, clause: &Clause, places: &[(char, usize, usize)]) -> Vec<(char, String)> {
        let (form, template) = (clause.form, clause.write);
        let mut texts = Vec::with_capacity(places.len() + 2);
        for (place, first, last) in places {
            let text = self.text_of(*first, *last);
            let is_quoted =
                forms::parts(form).any(|part| matches!(part, Part::Quoted(one) if one == *place));
            let text = match is_quoted {
                true => text.get(1..text.len() - 1).unwrap_or_default(),
                false => text,
            };
            // A text in parentheses of the template needs none of its own.
            let is_group = uses_alone(template, *place) && self.is_one_group(*first, *last);
            let bare = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
            let text = bare.filter(|_| is_group).unwrap_or(text);
            if is_quoted {
                texts.push(('B', text.replace(['{', '}'], "")));
            }
            if *place == '2' {
                texts.extend(like(text).map(|pattern| ('L', pattern)));
            }
            if *place == '1'
                && let Ok(number) = text.parse::<f64>()
            {
                texts.push(('R', (number / 100.0).to_string()));
            }
            texts.push((*place, text.to_owned()));
        }
        texts
    }
}

/// True for a template with this place alone in parentheses.
fn uses_alone(template: &str, place: char) -> bool {
    template.contains(&format!("(${place})"))
}

/// Fills in a template. The part in braces is repeated for each element of a list.
fn written(template: &str, texts: &[(char, &str)], language: Language) -> Option<String> {
    let parts = template.split_once('{').and_then(|(before, rest)| {
        let (each, after) = rest.split_once('}')?;
        Some((before, each, after))
    });
    let Some((before, each, after)) = parts else { return filled(template, texts, language) };
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
        filled(each, &texts, language)
    };
    let all: Option<Vec<String>> = list.split(',').map(of_one).collect();
    let all = all?.join(" || ");
    (all.len() <= super::MAX_REPEATED).then(|| format!("{before}{all}{after}"))
}

/// Handles a word that is an operator elsewhere, at `index`; returns the index
/// of the next token to read.
pub(in crate::syntax) fn operator(
    repair: &mut Repair<'_, '_>,
    index: usize,
    word: &str,
) -> Option<usize> {
    let next = repair.tokens.get(index + 1);
    if let Some((_, help)) = UNFINISHED.iter().find(|(other, _)| other.eq_ignore_ascii_case(word))
        && next.is_none_or(|at| at.token == Token::RightParen)
        && !repair.operand_is_due()
    {
        let at = repair.span(index, index);
        let message = format!("nothing follows `{word}`");
        repair.report(Diagnostic::error(Code::UnexpectedEnd, at, message).help(*help));
        return Some(repair.blot_out(index, index));
    }
    if word.eq_ignore_ascii_case("is") && !repair.operand_is_due() && is_not(next) {
        return Some(unequal(repair, index));
    }
    // A reported clause is an operand as well.
    let next = next
        .filter(|at| at.token.begins_operand() || at.token == Token::Invalid(Invalid::Refused))?;
    let next_start = next.start;
    let is_number = matches!(next.token, Token::Integer(_) | Token::Double(_));
    if word.eq_ignore_ascii_case("not") && repair.operand_is_due() {
        let at = repair.span(index, index);
        let with_blank = repair.origin.span(repair.tokens[index].start, next_start);
        let error = unexpected(at, format!("`{word}` is no operator"));
        // Elsewhere `not` applies to a whole comparison, and `!` only to an
        // operand.
        let whole = whole_operand(repair, index + 1);
        let text = repair.slice(index + 1, whole);
        let enclosed = binding::enclosed(text, Some(Token::Bang), None, repair.language);
        let place = repair.span(index, whole);
        const ENCLOSE: &str = "write `!`, with parentheses around what it takes";
        // In spreadsheets it is a function, and the text after the call is not part of
        // its operand.
        let is_part = repair.before().is_some_and(binding::is_tight);
        let close = repair.delimiters.close_of(index + 1);
        let close = close.filter(|close| *close < whole || is_part);
        repair.report(match (close, enclosed.len() == text.len()) {
            (Some(close), _) => {
                let call = repair.slice(index + 1, close);
                error
                    .help(format!("{ENCLOSE}: `(!{call})` or `!{enclosed}`"))
                    .guess(repair.span(index, close), format!("(!{call})"))
            }
            (None, true) => error.help("write `!`").fix(with_blank, "!"),
            (None, false) => error.help(ENCLOSE).fix(place, format!("!{enclosed}")),
        });
        repair.push(Token::Bang, index, index);
        return Some(index + 1);
    }
    let (symbol, token) = operator_of(word)?;
    if repair.operand_is_due() {
        return None;
    }
    let at = repair.span(index, index);
    let error =
        unexpected(at, format!("`{word}` is no operator")).help(format!("write `{symbol}`"));
    // Elsewhere `and` binds more tightly than `or`; here both bind alike.
    let is_other = |at: &TokenAt<'_>| match at.token {
        Token::Name(other) => operator_of(other).is_some_and(|(other, _)| other != symbol),
        Token::AndAnd | Token::OrOr => at.token != token,
        _ => false,
    };
    let is_mixed = repair.tokens.iter().take(MAX_RUN).any(is_other);
    // Elsewhere `x or 0` gives a missing value.
    let is_condition = |at: &TokenAt<'_>| {
        binding::is_comparison(at.token)
            || matches!(at.token, Token::Bang | Token::AndAnd | Token::OrOr)
    };
    let is_value = token == Token::OrOr
        && is_number
        && !repair.out.iter().rev().take(MAX_RUN).any(is_condition);
    repair.report(match is_mixed {
        true => error
            .help(format!("write `{symbol}`; `&&` and `||` bind alike here, so use parentheses"))
            .guess(at, symbol),
        false if is_value => error
            .help("write `||` for 1 or 0; for what is missing, `defined(NAME) ? NAME : OTHER`")
            .guess(at, symbol),
        false => error.fix(at, symbol),
    });
    repair.push(token, index, index);
    Some(index + 1)
}

fn is_not(at: Option<&TokenAt<'_>>) -> bool {
    at.is_some_and(|at| matches!(at.token, Token::Name(word) if word.eq_ignore_ascii_case("not")))
}

/// Reports `is not`, which begins at a token and is not a clause; returns the index of the
/// next token to read.
fn unequal(repair: &mut Repair<'_, '_>, index: usize) -> usize {
    let at = repair.span(index, index + 1);
    let words = repair.slice(index, index + 1);
    if repair.at(index + 2).is_none_or(|token| token == Token::RightParen) {
        let message = format!("nothing follows `{words}`");
        let error = Diagnostic::error(Code::UnexpectedEnd, at, message);
        repair.report(error.help("write `!=`, and an operand to its right"));
        return repair.blot_out(index, index + 1);
    }
    let message = format!("`{words}` is no operator");
    let error = unexpected(at, message);
    repair.report(error.help("inequality is written `!=`").guess(at, "!="));
    repair.push(Token::NotEqual, index, index + 1);
    index + 2
}

/// The operator that a word stands for elsewhere, with its token.
fn operator_of(word: &str) -> Option<(&'static str, Token<'static>)> {
    let found = OPERATORS.iter().find(|(other, ..)| other.eq_ignore_ascii_case(word));
    found.map(|(_, symbol, token)| (*symbol, *token))
}

/// Last token of the operand of `not` elsewhere. The operand ends before the next `and`,
/// `or` or choice, or at the end of the enclosing parentheses.
fn whole_operand(repair: &Repair<'_, '_>, first: usize) -> usize {
    let mut last = first;
    let mut index = first;
    while let Some(token) = repair.at(index).filter(|_| index - first < MAX_RUN) {
        let ends = match token {
            Token::RightParen | Token::Comma | Token::Question | Token::Colon => true,
            Token::AndAnd | Token::OrOr => true,
            Token::Name(word) => operator_of(word).is_some(),
            _ => false,
        };
        if ends {
            break;
        }
        last = repair.delimiters.close_of(index).unwrap_or(index);
        index = last + 1;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    /// An edit without a question has the intended value.
    #[test]
    fn edits_keep_operands_whole() {
        for (text, expected) in [
            ("2 / b ** 2", Some("2 / (b * b)")),
            ("100 / b^2", None),
            ("b ** 2 ** 2", None),
            ("2 * if b then 1 else 2", Some("2 * (b ? 1 : 2)")),
            ("case when 1 then 10 else 20 end / 5", Some("(1 ? 10 : 20) / 5")),
            ("5 + case when b then 1 else 2 end * 2", Some("5 + (b ? 1 : 2) * 2")),
            ("if 1 then 5 else 0 ? 6 : 7", Some("1 ? 5 : (0 ? 6 : 7)")),
            ("2 * b between 3 and 5", None),
            ("1 && b between 3 and 5", Some("1 && (b >= 3 && b <= 5)")),
            ("b + 1 is 2", None),
            ("8 / div(b, 2)", None),
            ("or(1, 1 && 0)", Some("(1 || (1 && 0))")),
            ("if(1, 5, 0 ? 6 : 7)", Some("(1 ? 5 : (0 ? 6 : 7))")),
            ("not b", Some("!b")),
            ("not rate(b + 1)", Some("!rate(b + 1)")),
            ("not b == 3 and c", Some("!(b == 3) && c")),
            ("not (b) * 2", None),
            ("not(b > 4) + not(c > 1)", None),
            ("not(b > 4) and c", Some("!(b > 4) && c")),
            ("b between b - 1 and b + 1", None),
            ("b between 1 and b + 1", None),
            ("b = = c", Some("b == c")),
            ("b == = c", Some("b == c")),
            ("b != = c", Some("b != c")),
            ("b ~= 3", None),
            ("b && & c", None),
            ("b & c", None),
            ("mkconst(-5)", None),
            ("count(distinct b)", None),
            ("b == 1 or 0", Some("b == 1 || 0")),
            ("b * 2 or 0", None),
            ("b and b or 0", None),
            ("b > 2 and b between 1 and 3", Some("b > 2 && (b >= 1 && b <= 3)")),
            ("{b} {b}", None),
        ] {
            let mended = crate::syntax::tests::mended(&format!("a = {text}\n"));
            let expected = expected.map(|expected| format!("a = {expected}\n"));
            assert_eq!(mended, expected, "{text}");
        }
    }

    /// A replacement has only places that the clause has.
    #[test]
    fn places_of_clauses() {
        for clause in CLAUSES.iter().chain(MARKS) {
            let known = forms::parts(clause.form).filter_map(forms::Part::place);
            let texts: Vec<(char, &str)> =
                known.chain(['B', 'L', 'R']).map(|place| (place, "(x)")).collect();
            assert!(
                written(clause.write, &texts, Dialect::Fixed.into()).is_some(),
                "{}",
                clause.form
            );
        }
    }
}
