//! Expressions of the same shape: they differ in the names of metrics only. Files of thousands
//! have a few dozen shapes. The grammar reads the first expression of each, and the others
//! are made like it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::text::Span;

use super::ast::Expr;
use super::origin::Origin;
use super::token::{Token, TokenAt};

/// Most shapes that are kept. Where there are more, few expressions have one of them.
const MAX_SHAPES: usize = 256;

/// Most tokens of an expression whose shape is kept.
const MAX_TOKENS: usize = 128;

/// The shapes of the expressions that were read so far.
#[derive(Debug, Default)]
pub struct Shapes {
    /// By their tokens. Names are empty, and places are those of the first and the last token.
    known: FxHashMap<Box<str>, Expr>,
    /// Names of metrics, which definitions share.
    names: FxHashSet<Arc<str>>,
    /// The tokens of the expression that was looked for last; nothing if it has no shape.
    key: String,
}

impl Shapes {
    /// The tree of an expression, if one of its shape was read before.
    pub fn find(&mut self, text: &str, tokens: &[TokenAt<'_>], origin: &Origin) -> Option<Expr> {
        self.look_for(text, tokens);
        let mut expr = self.known.get(&*self.key)?.clone();
        let names = &mut self.names;
        expr.each_name(&mut |name: &mut Arc<str>, first: Span| {
            if let Token::Name(text) = tokens[first.start as usize].token {
                *name = names.get(text).cloned().unwrap_or_else(|| {
                    let name: Arc<str> = text.into();
                    names.insert(Arc::clone(&name));
                    name
                });
            }
        });
        expr.each_span(&mut |span: &mut Span| {
            let (first, last) = (&tokens[span.start as usize], &tokens[span.end as usize]);
            *span = origin.span(first.start, last.end);
        });
        Some(expr)
    }

    /// Keeps the shape of the expression that was looked for last. It has no mistakes.
    pub fn keep(&mut self, expr: &mut Expr, tokens: &[TokenAt<'_>], origin: &Origin) {
        if self.key.is_empty() || tokens.len() > MAX_TOKENS || self.known.len() == MAX_SHAPES {
            return;
        }
        let token_at = |place: u32| {
            let at = origin.logical(place);
            tokens.partition_point(|token| token.end <= at) as u32
        };
        expr.number_shape();
        let mut shape = expr.clone();
        shape.each_span(&mut |span: &mut Span| {
            *span = Span::new(span.source, token_at(span.start), token_at(span.end - 1));
        });
        shape.each_name(&mut |name: &mut Arc<str>, _: Span| *name = Arc::default());
        self.known.insert(self.key.as_str().into(), shape);
    }

    /// Makes the key of an expression: its tokens as they are written, without names.
    fn look_for(&mut self, text: &str, tokens: &[TokenAt<'_>]) {
        self.key.clear();
        for TokenAt { token, start, end } in tokens {
            match token {
                Token::Name(_) => {}
                // In these, names are not those of metrics; or there is a mistake.
                Token::Anon | Token::Keyword(_) | Token::MetaKeyword | Token::By => {
                    return self.key.clear();
                }
                Token::MetaFunction | Token::Invalid(_) => return self.key.clear(),
                _ => self.key.push_str(&text[*start as usize..*end as usize]),
            }
            self.key.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::diag::Diagnostics;
    use crate::dialect::{Dialect, Language};
    use crate::syntax::ParsedExpr;
    use crate::syntax::{DefinitionItem, DefinitionReader};
    use crate::text::SourceMap;

    /// The last expression of a text, or why there is none; and how many shapes were kept.
    fn read(text: &str, language: Language) -> (Option<ParsedExpr>, usize) {
        let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
        let source = sources.add("test.conf", text);
        let mut reader = DefinitionReader::new(language);
        let items = reader.read(source, &sources, &mut diagnostics);
        let last = items.into_iter().next_back().map(|item| match item {
            DefinitionItem::Definition(definition) => definition.expr,
            other => unreachable!("{other:?}"),
        });
        (last, reader.shapes.known.len())
    }

    /// An expression like an earlier one has the same tree as without the earlier one.
    #[test]
    fn expressions_like_earlier_ones() {
        let parts = |parsed: Option<ParsedExpr>| parsed.map(|one| (one.expr, one.error));
        for (expression, shapes) in [
            ("A", 1),
            ("A + B * 2 - (-A)", 1),
            ("A + \\\n  sum(B) / \\\nA", 1),
            ("A[sd a] - A[s\\]da]", 1),
            ("rate(A) > 1.5 ? B : novalue()", 1),
            ("rescale(delta(A), \"Mbyte / sec\")", 1),
            ("matchinst(!/^sd [ab]/, A) / scalar(B)", 1),
            ("defined(A) && !defined(B) ? A : count(B)", 1),
            ("topk(3, A) + quantile(0.9, rate(B))", 1),
            ("sum(A + B) + clamp(A, 0, 1e3)", 1),
            ("avg_over(A, \"1 min\") == \"x\" || matchvalue(/x/, B)", 1),
            ("mkconst(1, meta=A) + B", 0),
            ("novalue(type=u64, meta=A)", 0),
            ("sum(A) by (B)", 0),
            ("anon(PM_TYPE_32)", 0),
            ("A +", 0),
            ("A B", 0),
        ] {
            let named = |a, b| expression.replace('A', a).replace('B', b);
            let first = named("a", "disk.dev.total");
            let second = named("mem.util", "b");
            for dialect in [Dialect::Fixed, Dialect::Pcp6_0, Dialect::Pcp7_2] {
                for extensions in [false, true] {
                    let language = Language { dialect, extensions };
                    let (both, kept) = read(&format!("m.a = {first}\nm.b = {second}\n"), language);
                    let (alone, _) = read(&format!("# a = {first}\nm.b = {second}\n"), language);
                    assert_eq!(parts(both), parts(alone), "{expression} {language:?}");
                    if extensions && dialect == Dialect::Fixed {
                        assert_eq!(kept, shapes, "{expression}");
                    }
                }
            }
        }
    }
}
