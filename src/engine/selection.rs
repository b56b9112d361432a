//! A selection: definitions chosen for compiling, with everything that
//! compiling reads from the registry.
//!
//! The engine makes a selection once and binds it to any number of sources. A
//! selection asks no source and holds no answers.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pmderive_runtime::model::InDom;
use rustc_hash::FxHasher;

use super::anonymous::is_anonymous;
use super::nesting::needed_and_nested;
use super::registry::{Registered, Registry};
use crate::bind::{Literals, Mentions, mentions};
use crate::syntax::ControlOption;
use crate::syntax::ast::NodeKind;
use crate::text::Span;

/// Derived metrics of a registry, chosen in an order, as a copy. Later changes
/// of the registry do not affect it.
#[derive(Debug)]
pub struct Selection {
    registry: Registry,
    /// The chosen definitions, and after them those that they mention, directly
    /// or indirectly.
    definitions: Box<[Registered]>,
    /// Number of chosen definitions.
    count: usize,
    /// True if any of them mentions a definition.
    are_nested: bool,
    /// The names to ask a source for.
    questions: Mentions,
    /// Identifiers that the definitions contain.
    literals: Literals,
    /// The registry's option that changes the meaning of definitions.
    missing_is_novalue: bool,
    hash: u64,
}

impl Selection {
    /// Chooses definitions of a registry, and expressions without a name.
    pub fn new(registry: &Registry, chosen: &[&Registered]) -> Selection {
        let (definitions, are_nested) = needed_and_nested(registry, chosen);
        let own_names = definitions.iter().filter(|one| one.is_named).map(|one| &one.name);
        let expressions = definitions.iter().map(|one| &*one.expr);
        let questions = mentions(expressions, own_names);
        let anonymous = registry.anonymous_descs().map(|(_, desc)| desc.pmid);
        let literals = Literals {
            pmids: definitions.iter().filter_map(|one| one.pmid).chain(anonymous).collect(),
            domains: definitions.iter().flat_map(|one| literal_domains(one)).collect(),
        };
        let mut hasher = FxHasher::default();
        definitions.iter().for_each(|one| (one.key, one.pmid).hash(&mut hasher));
        chosen.len().hash(&mut hasher);
        Selection {
            registry: registry.clone(),
            definitions: definitions.into_iter().cloned().collect(),
            count: chosen.len(),
            are_nested,
            questions,
            literals,
            missing_is_novalue: registry.control(ControlOption::NoValue) == 1,
            hash: hasher.finish(),
        }
    }

    /// Number of chosen metrics.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if no metric was chosen.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Names of the chosen metrics, in the order of the request, with their
    /// places.
    pub fn named(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, Span)> {
        self.definitions[..self.count].iter().map(|one| (&one.name, one.name_span))
    }

    /// The chosen definitions, in the order asked for.
    #[cfg(feature = "fleet")]
    pub(crate) fn chosen(&self) -> impl ExactSizeIterator<Item = &Registered> {
        self.definitions[..self.count].iter()
    }

    /// The registry when the choice was made.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The chosen definitions in the order of the request, and after them those
    /// that they mention.
    pub(super) fn definitions(&self) -> Vec<&Registered> {
        self.definitions.iter().collect()
    }

    /// True if any of them mentions a definition.
    pub(super) fn are_nested(&self) -> bool {
        self.are_nested
    }

    /// The names to ask a source for.
    pub(super) fn mentions(&self) -> &Mentions {
        &self.questions
    }

    /// Identifiers that the definitions contain.
    pub(super) fn literals(&self) -> &Literals {
        &self.literals
    }

    /// The meaning of a name that the source does not know: whether a definition
    /// has it, and whether a refused one has it.
    fn meaning(&self, name: &str) -> [bool; 2] {
        let is_derived = self.registry.get(name).is_some() || is_anonymous(name);
        [is_derived, self.registry.is_refused(name)]
    }

    /// A hash; equal selections have the same.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }
}

impl PartialEq for Selection {
    /// True if compiling both against the same answers gives the same result,
    /// including diagnostics and their places.
    fn eq(&self, other: &Selection) -> bool {
        let same = |(a, b): (&Registered, &Registered)| {
            let same = (&a.name, a.name_span, a.is_named, a.key, a.pmid)
                == (&b.name, b.name_span, b.is_named, b.key, b.pmid);
            same && (Arc::ptr_eq(&a.expr, &b.expr) || a.expr == b.expr)
        };
        std::ptr::eq(self, other)
            || self.hash == other.hash
                && self.count == other.count
                && self.definitions.len() == other.definitions.len()
                && self.missing_is_novalue == other.missing_is_novalue
                && self.literals == other.literals
                && self.questions == other.questions
                && self.definitions.iter().zip(&other.definitions).all(same)
                && self.questions.names.iter().all(|name| self.meaning(name) == other.meaning(name))
    }
}

/// The domains in `indom=` of a definition.
fn literal_domains(one: &Registered) -> impl Iterator<Item = InDom> {
    one.expr.nodes().filter_map(|(_, node)| match &node.kind {
        NodeKind::MkConst { attributes, .. } | NodeKind::NoValue(attributes) => {
            attributes.indom.as_ref().and_then(|indom| indom.value)
        }
        _ => None,
    })
}
