//! Binding: from the names in expressions to what a source knows of them.
//!
//! All names of all definitions are looked up together, so that binding costs
//! a few round trips however many there are. What a name's absence means for
//! an expression is for the checker to say.

use std::sync::Arc;

use pmderive_runtime::model::{MetricDesc, PmStatus};
use pmderive_runtime::source::{MetadataSource, SourceError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::check::typed::Desc;
use crate::equivalent_domains::EquivalentDomains;
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprId, Node, NodeKind};

/// What a name stands for in one source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Name {
    /// A metric of the source.
    Metric(MetricDesc),
    /// Not a metric of the source; why.
    Unknown(PmStatus),
    /// A metric whose descriptor is not to be had; why.
    NoDescriptor(PmStatus),
    /// Another derived metric.
    Derived,
    /// Another derived metric that may be an operand.
    Nested {
        /// Its metadata.
        desc: Desc,
        /// Its position among the definitions that are checked together.
        definition: usize,
    },
    /// Another derived metric that might be an operand if its definition were right.
    Unusable,
}

/// Names with what they stand for.
#[derive(Debug, Default)]
pub struct Names {
    known: FxHashMap<Box<str>, Name>,
    /// Instance domains of these metrics that count as the same.
    pub equivalent_domains: Arc<EquivalentDomains>,
    missing_is_novalue: bool,
    /// Derived metrics as libpcp sees them where it lets them be operands:
    /// metrics of a domain that no source serves.
    derived: FxHashMap<Box<str>, MetricDesc>,
}

impl Names {
    /// Looks up all names that `expressions` mention, and `others`.
    /// `is_derived` tells which names are derived metrics, unless the source
    /// has a metric of that name.
    ///
    /// # Errors
    /// The source failed.
    pub fn look_up<'e>(
        expressions: impl IntoIterator<Item = &'e Expr>,
        others: impl IntoIterator<Item = &'e str>,
        is_derived: impl Fn(&str) -> bool,
        source: &mut dyn MetadataSource,
    ) -> Result<Names, SourceError> {
        let mut wanted: Vec<&str> = Vec::new();
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        let mut want = |name: &'e str| {
            if seen.insert(name) {
                wanted.push(name);
            }
        };
        others.into_iter().for_each(&mut want);
        for expr in expressions {
            references(expr).map(|reference| reference.name).for_each(&mut want);
        }
        let found = source.lookup_names(&wanted)?;
        let pmids: Vec<_> = found.iter().filter_map(|found| found.ok()).collect();
        let mut descs = source.lookup_descs(&pmids)?.into_iter();
        let mut known = FxHashMap::default();
        known.reserve(wanted.len());
        for (name, found) in wanted.into_iter().zip(found) {
            let meaning = match found {
                Ok(_) => match descs.next() {
                    Some(Ok(desc)) => Name::Metric(desc),
                    Some(Err(status)) => Name::NoDescriptor(status),
                    None => Name::NoDescriptor(PmStatus::PMID),
                },
                Err(_) if is_derived(name) => Name::Derived,
                Err(status) => Name::Unknown(status),
            };
            known.insert(name.into(), meaning);
        }
        Ok(Names { known, ..Names::default() })
    }

    /// Lets operands that are not metrics of the source count as `novalue()`,
    /// or not (`PCP_DERIVED_OPTION_NOVALUE` of pmSetDerivedControl(3)). For
    /// `defined()` they are missing all the same.
    pub fn treat_missing_as_novalue(&mut self, wanted: bool) {
        self.missing_is_novalue = wanted;
    }

    /// True for an operand that counts as `novalue()` because it is missing.
    pub fn is_novalue(&self, name: &str) -> bool {
        self.missing_is_novalue && matches!(self.get(name), Name::Unknown(_))
    }

    /// Says what the metadata of a derived metric are.
    pub(crate) fn describe(&mut self, name: &str, desc: MetricDesc) {
        if self.get(name) == Name::Derived {
            self.derived.insert(name.into(), desc);
        }
    }

    /// Metadata of a derived metric, if it can be used.
    pub fn derived(&self, name: &str) -> Option<MetricDesc> {
        self.derived.get(name).copied()
    }

    /// Says what is known of a derived metric now that it is checked; `None`
    /// if it cannot be used.
    pub(crate) fn define(&mut self, name: &str, checked: Option<(Desc, usize)>) {
        if let Some(meaning @ Name::Derived) = self.known.get_mut(name) {
            *meaning = match checked {
                Some((desc, definition)) => Name::Nested { desc, definition },
                None => Name::Unusable,
            };
        }
    }

    /// Names that are unknown because their definition was refused stand for
    /// derived metrics that cannot be used.
    pub(crate) fn refuse(&mut self, is_refused: impl Fn(&str) -> bool) {
        for (name, meaning) in &mut self.known {
            if matches!(meaning, Name::Unknown(_)) && is_refused(name) {
                *meaning = Name::Unusable;
            }
        }
    }

    /// What a name stands for; unknown if it was not among those looked up.
    pub fn get(&self, name: &str) -> Name {
        self.known.get(name).copied().unwrap_or(Name::Unknown(PmStatus::NAME))
    }
}

/// A name in an expression.
pub(crate) struct Reference<'e> {
    /// The name.
    pub name: &'e str,
    /// Where it stands.
    pub span: Span,
    /// The node that mentions it.
    pub node: ExprId,
    /// False if only its existence is asked for.
    pub wants_value: bool,
}

/// The names in an expression, in the order of its nodes.
pub(crate) fn references(expr: &Expr) -> impl Iterator<Item = Reference<'_>> {
    expr.nodes().filter_map(|(id, node)| {
        let (name, span) = name_in(node)?;
        let wants_value = !matches!(node.kind, NodeKind::Defined(_));
        Some(Reference { name, span, node: id, wants_value })
    })
}

/// The metric's name that a node mentions itself, and where.
pub(crate) fn name_in(node: &Node) -> Option<(&str, Span)> {
    match &node.kind {
        NodeKind::Metric(name) => Some((name, node.span)),
        NodeKind::Aggregate { metric, .. } | NodeKind::Defined(metric) => {
            Some((&metric.value, metric.span))
        }
        NodeKind::MkConst { attributes, .. } | NodeKind::NoValue(attributes) => {
            attributes.meta.as_ref().map(|meta| (&*meta.value, meta.span))
        }
        _ => None,
    }
}
