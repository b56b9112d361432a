//! The meaning of names in expressions, for one source.

use std::sync::Arc;

use pmderive_runtime::model::{MetricDesc, PmStatus};
use rustc_hash::{FxHashMap, FxHashSet};

use super::definition::{DefinitionId, Desc};
use super::equivalent_domains::EquivalentDomains;
use super::questions::NameAnswer;
use crate::dialect::Dialect;

/// The meaning of a name in one source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Name {
    /// A metric of the source.
    Metric(MetricDesc),
    /// Not a metric of the source, with the source's status.
    Unknown(PmStatus),
    /// A metric without a descriptor, with the source's status.
    NoDescriptor(PmStatus),
    /// Another derived metric, with its metadata if libpcp accepts it as an operand.
    /// libpcp treats it as a metric of a domain that no source serves.
    Derived(Option<MetricDesc>),
    /// Another derived metric that can be an operand.
    Nested {
        /// Its metadata.
        desc: Desc,
        /// Its position among the definitions that are checked together.
        definition: DefinitionId,
    },
    /// Another derived metric that cannot be an operand, because its definition
    /// has mistakes.
    Unusable,
}

/// Names with their meanings.
#[derive(Debug, Default)]
pub struct Names {
    known: FxHashMap<Arc<str>, Name>,
    /// Instance domains of these metrics that count as the same.
    pub equivalent_domains: Arc<EquivalentDomains>,
    missing_is_novalue: bool,
    /// Unknown names that are those of definitions with mistakes in their texts.
    refused: FxHashSet<Arc<str>>,
}

impl Names {
    /// The meaning of names, from a source's answers about them. `dialect` says how to
    /// read metadata. `is_derived` tells derived metrics by their names; a metric of the
    /// source with the same name takes precedence.
    pub(crate) fn new<'n>(
        names: impl Iterator<Item = (&'n Arc<str>, &'n NameAnswer)>,
        dialect: Dialect,
        is_derived: impl Fn(&str) -> bool,
        equivalent_domains: Arc<EquivalentDomains>,
    ) -> Names {
        let meaning = |(name, found): (&Arc<str>, &NameAnswer)| {
            let meaning = match *found {
                NameAnswer::Metric(desc) => Name::Metric(dialect.understood(desc)),
                NameAnswer::NoDescriptor(status) => Name::NoDescriptor(status),
                NameAnswer::Unknown(_) if is_derived(name) => Name::Derived(None),
                NameAnswer::Unknown(status) => Name::Unknown(status),
            };
            (Arc::clone(name), meaning)
        };
        let known = names.map(meaning).collect();
        Names { known, equivalent_domains, ..Names::default() }
    }

    /// Sets whether an operand that the source lacks counts as `novalue()`
    /// (`PCP_DERIVED_OPTION_NOVALUE` of pmSetDerivedControl(3)). `defined()`
    /// still reports it as missing.
    pub fn treat_missing_as_novalue(&mut self, wanted: bool) {
        self.missing_is_novalue = wanted;
    }

    /// True for an operand that counts as `novalue()` because it is missing.
    pub fn is_novalue(&self, name: &str) -> bool {
        self.missing_is_novalue && matches!(self.get(name), Name::Unknown(_))
    }

    /// Sets the metadata of a derived metric that libpcp accepts as an operand.
    pub(crate) fn describe(&mut self, name: &str, desc: MetricDesc) {
        if let Some(Name::Derived(known)) = self.known.get_mut(name) {
            *known = Some(desc);
        }
    }

    /// Sets the result of checking a derived metric; `None` if it cannot be
    /// used.
    pub(crate) fn define(&mut self, name: &str, checked: Option<(Desc, DefinitionId)>) {
        if let Some(meaning @ Name::Derived(_)) = self.known.get_mut(name) {
            *meaning = match checked {
                Some((desc, definition)) => Name::Nested { desc, definition },
                None => Name::Unusable,
            };
        }
    }

    /// Marks the unknown names whose definitions were refused. With `extensions`, they
    /// are derived metrics that cannot be used. Without, libpcp knows nothing of them.
    pub(crate) fn refuse(&mut self, extensions: bool, is_refused: impl Fn(&str) -> bool) {
        for (name, meaning) in &mut self.known {
            if !matches!(meaning, Name::Unknown(_)) || !is_refused(name) {
                continue;
            }
            match extensions {
                true => *meaning = Name::Unusable,
                false => drop(self.refused.insert(name.clone())),
            }
        }
    }

    /// True for an unknown name whose definition was refused.
    pub(crate) fn is_refused(&self, name: &str) -> bool {
        self.refused.contains(name)
    }

    /// The meaning of a name. A name that was not looked up is unknown.
    pub fn get(&self, name: &str) -> Name {
        self.known.get(name).copied().unwrap_or(Name::Unknown(PmStatus::NAME))
    }
}
