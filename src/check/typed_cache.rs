//! Expressions of the same shape over metrics with the same metadata: one is checked, and the
//! others get its typed tree with their own metrics.

use std::num::NonZeroU64;

use pmderive_runtime::model::Pmid;
use rustc_hash::FxHashMap;

use super::typed::{TypedExpr, TypedKind};
use crate::bind::{Desc, Name, Names, references};
use crate::syntax::ast::Expr;

/// Most typed trees that are kept of one shape.
const MAX_KINDS: usize = 16;

/// The expressions that were checked so far for one source.
#[derive(Default)]
pub(crate) struct TypedCache {
    known: FxHashMap<NonZeroU64, Vec<CachedTree>>,
    /// The number of trees.
    count: u32,
    /// The shape of the expression that was looked for last; `None` if it has none, or mentions
    /// anything but metrics.
    shape: Option<NonZeroU64>,
    /// Its metrics, in the order of the mentions.
    metrics: Vec<Pmid>,
    /// Their metadata, and where each is mentioned first.
    kinds: Vec<(Desc, usize)>,
}

struct CachedTree {
    metrics: Box<[Pmid]>,
    kinds: Box<[(Desc, usize)]>,
    typed: TypedExpr,
}

impl TypedCache {
    /// The typed tree of an expression, if one like it was checked before. It has that one's
    /// number.
    pub(crate) fn find(&mut self, expr: &Expr, names: &Names) -> Option<TypedExpr> {
        self.metrics.clear();
        self.kinds.clear();
        self.shape = expr.shape();
        let shape = self.shape?;
        for mentioned in references(expr) {
            let Name::Metric(desc) = names.get(mentioned.name) else {
                self.shape = None;
                return None;
            };
            let before = self.metrics.iter().position(|pmid| *pmid == desc.pmid);
            self.kinds.push((desc.into(), before.unwrap_or(self.metrics.len())));
            self.metrics.push(desc.pmid);
        }
        let known = self.known.get(&shape)?.iter().find(|one| *one.kinds == *self.kinds)?;
        let mut typed = known.typed.clone();
        for node in &mut typed.nodes {
            if let TypedKind::Metric(pmid) = &mut node.kind {
                let at = known.metrics.iter().position(|one| one == pmid)?;
                *pmid = self.metrics[at];
            }
        }
        Some(typed)
    }

    /// Keeps the results of checking the expression that was looked for last, and gives it a
    /// number. The expression has no mistakes.
    pub(crate) fn keep(&mut self, typed: &mut TypedExpr) {
        let Some(shape) = self.shape else { return };
        let known = self.known.entry(shape).or_default();
        if typed.mentioned.is_empty() && known.len() < MAX_KINDS {
            typed.number = Some(self.count);
            self.count += 1;
            let (metrics, kinds) = (self.metrics.as_slice().into(), self.kinds.as_slice().into());
            known.push(CachedTree { metrics, kinds, typed: typed.clone() });
        }
    }
}
