//! The kinds of sources that an engine has programs for, as operators see them:
//! how many there are, who holds each, and how a kind differs from the usual
//! one.
//!
//! Sources of one kind are a [`Class`] and share a program; a kind takes the
//! memory of many sources. So the number of kinds is bounded, and a fleet that
//! splits into many can be told what splits it.

use std::cmp::Reverse;
use std::sync::Arc;

use pmderive_runtime::model::Units;
use pmderive_runtime::source::SourceError;

use super::Engine;
use super::classes::Class;
use super::selection::Selection;
use crate::bind::{Fingerprint, Found, Identities};

/// Kinds of sources that an engine has programs for at a time, unless it is
/// told otherwise.
pub const DEFAULT_KIND_LIMIT: usize = 4096;

/// A kind of sources, for one selection of definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Who holds its program: evaluators, sessions that have chosen, and whoever
    /// keeps what was compiled.
    pub holders: usize,
    /// How its sources differ from those of the kind of the same selection that
    /// has most holders. Nothing for that kind itself.
    pub differs: Option<String>,
}

impl Engine {
    /// The engine, with programs for no more than so many kinds of sources at a
    /// time; [`DEFAULT_KIND_LIMIT`] without this. A source of a further kind is
    /// refused with [`SourceError::TooManyKinds`], and harms no other.
    pub fn with_kind_limit(self, limit: usize) -> Engine {
        Engine { kind_limit: limit, ..self }
    }

    /// The kinds of sources in use, those with most holders first.
    pub fn kinds(&self) -> Vec<Kind> {
        let classes = self.classes_by_use();
        let kind = |(at, (holders, class)): (usize, &(usize, Arc<Class>))| {
            let usual = usual(&classes[..at], class.selection());
            let differs = usual.and_then(|usual| {
                difference(class.selection(), usual.fingerprint(), class.fingerprint())
            });
            Kind { holders: *holders, differs }
        };
        classes.iter().enumerate().map(kind).collect()
    }

    /// The class of a source by its answers, and what is its own in them.
    ///
    /// # Errors
    /// It would be one class too many. `name` is that of the source.
    pub(super) fn class_of(
        &self,
        selection: &Arc<Selection>,
        found: &[Found],
        name: impl FnOnce() -> String,
    ) -> Result<(Arc<Class>, Identities), SourceError> {
        let equivalent = self.dialect().is_version_7().then_some(&*self.equivalent_domains);
        let (fingerprint, identities) = Fingerprint::new(found, selection.literals(), equivalent);
        if let Some(class) =
            self.classes.find(selection, &fingerprint, self.kind_limit, &self.layouts)
        {
            return Ok((class, identities));
        }
        let usual = usual(&self.classes_by_use(), selection);
        let differs = usual.and_then(|one| difference(selection, one.fingerprint(), &fingerprint));
        let differs = differs.map(|differs| format!("; unlike most: {differs}"));
        Err(SourceError::TooManyKinds {
            target: name(),
            limit: self.kind_limit,
            differs: differs.unwrap_or_default(),
        })
    }

    /// The classes with the numbers of their holders, descending.
    fn classes_by_use(&self) -> Vec<(usize, Arc<Class>)> {
        let classes = self.classes.all().into_iter();
        let mut classes: Vec<_> = classes.map(|class| (class.holders(), class)).collect();
        classes.sort_by_key(|(holders, _)| Reverse(*holders));
        classes
    }
}

/// The class of a selection with most holders.
fn usual(by_use: &[(usize, Arc<Class>)], selection: &Selection) -> Option<Arc<Class>> {
    let mut classes = by_use.iter().map(|(_, class)| class);
    classes.find(|class| **class.selection() == *selection).cloned()
}

/// How the answers of two kinds of sources differ, in words.
fn difference(selection: &Selection, usual: &Fingerprint, other: &Fingerprint) -> Option<String> {
    let mentions = selection.mentions();
    let answers = mentions.names.iter().zip(usual.found().zip(other.found()));
    let mut told = answers.clone().filter_map(|(name, (usual, other))| told(name, usual, other));
    if let Some(first) = told.next() {
        return Some(match told.count() {
            0 => first,
            1 => format!("{first}, and 1 more metric differs"),
            more => format!("{first}, and {more} more metrics differ"),
        });
    }
    let mut regrouped = answers.filter(|(_, (usual, other))| usual != other);
    match regrouped.next() {
        Some((name, _)) => Some(format!(
            "`{name}` has its identifier or its instance domain in common with other metrics"
        )),
        None if usual == other => None,
        None => Some("other instance domains are equivalent (indom.conf)".to_owned()),
    }
}

/// How the answers about a name differ, but for identifiers: those that come
/// later depend on what came before.
fn told(name: &str, usual: &Found, other: &Found) -> Option<String> {
    let (usual, other) = match (usual, other) {
        (Found::Metric(usual), Found::Metric(other)) => (usual, other),
        _ if usual == other => return None,
        (_, Found::Metric(_)) => return Some(format!("`{name}` is a metric")),
        (_, Found::Unknown(status)) => return Some(format!("`{name}` is no metric ({status})")),
        (_, Found::NoDescriptor(status)) => {
            return Some(format!("`{name}` has no descriptor ({status})"));
        }
    };
    if other.value_type != usual.value_type {
        let (value_type, usual) = (other.value_type, usual.value_type);
        Some(format!("`{name}` has type {value_type}, not {usual}"))
    } else if other.semantics != usual.semantics {
        let (semantics, usual) = (other.semantics, usual.semantics);
        Some(format!("`{name}` has semantics {semantics}, not {usual}"))
    } else if other.units != usual.units {
        let words = |units: Units| match units {
            Units::NONE => "no units".to_owned(),
            units => format!("units \"{units}\""),
        };
        Some(format!("`{name}` has {}, most have {}", words(other.units), words(usual.units)))
    } else {
        match (other.indom, usual.indom) {
            (Some(_), None) => Some(format!("`{name}` has an instance domain")),
            (None, Some(_)) => Some(format!("`{name}` has no instance domain")),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
    use pmderive_runtime::model::{InDom, MetricDesc, Pmid, Semantics, ValueType};
    use pmderive_runtime::result::ResultBatch;
    use pmderive_runtime::source::{FetchEvents, FetchList};

    use super::*;
    use crate::diag::Diagnostics;
    use crate::dialect::Dialect;
    use crate::engine::{Backend, Registry, SharedRegistry};

    /// Nobody fetches here.
    struct Nothing;

    impl Feed for Nothing {
        fn fetch(
            &mut self,
            _: &FetchList,
            _: &mut MemoryMetadata,
            _: &mut ResultBatch,
        ) -> Result<FetchEvents, SourceError> {
            Ok(FetchEvents::default())
        }
    }

    /// `k.a`, `k.b` and `k.c`, over one domain; `change` makes them others.
    fn source(
        name: &str,
        change: impl Fn(&str, MetricDesc) -> Option<MetricDesc>,
    ) -> MemorySource<Nothing> {
        let mut metadata = MemoryMetadata::default();
        for (item, name) in (0..).zip(["k.a", "k.b", "k.c"]) {
            let desc = MetricDesc {
                pmid: Pmid::new(7, 0, item),
                value_type: ValueType::U32,
                indom: Some(InDom::new(7, 1)),
                semantics: Semantics::Instant,
                units: Units::NONE,
            };
            if let Some(desc) = change(name, desc) {
                metadata.add_metric(name, desc);
            }
        }
        MemorySource::new(name, metadata, Nothing)
    }

    fn registry() -> Registry {
        let shared = SharedRegistry::new(Dialect::Fixed);
        shared.register("d.sum", "k.a + k.b + k.c").expect("a good definition");
        shared.snapshot().registry
    }

    #[test]
    fn kinds_are_told_by_what_they_differ_from_the_usual_one() {
        type Change = fn(&str, MetricDesc) -> Option<MetricDesc>;
        let rows: [(Change, &str); 8] = [
            (
                |name, desc| (name != "k.b").then_some(desc),
                "`k.b` is no metric (Unknown metric name)",
            ),
            (
                |name, desc| {
                    Some(MetricDesc {
                        value_type: if name == "k.c" { ValueType::F64 } else { desc.value_type },
                        ..desc
                    })
                },
                "`k.c` has type DOUBLE, not U32",
            ),
            (
                |_, desc| Some(MetricDesc { semantics: Semantics::Discrete, ..desc }),
                "`k.a` has semantics discrete, not instant, and 2 more metrics differ",
            ),
            (
                |name, desc| {
                    Some(MetricDesc {
                        units: Units { dim_space: i8::from(name != "k.a"), ..Units::NONE },
                        ..desc
                    })
                },
                "`k.b` has units \"byte\", most have no units, and 1 more metric differs",
            ),
            (
                |_, desc| Some(MetricDesc { indom: None, ..desc }),
                "`k.a` has no instance domain, and 2 more metrics differ",
            ),
            (
                |name, desc| {
                    Some(MetricDesc {
                        indom: Some(InDom::new(7, if name == "k.b" { 2 } else { 1 })),
                        ..desc
                    })
                },
                "`k.b` has its identifier or its instance domain in common with other metrics",
            ),
            (
                |_, desc| {
                    Some(MetricDesc {
                        pmid: Pmid::new(8, 0, desc.pmid.item()),
                        indom: Some(InDom::new(8, 8)),
                        ..desc
                    })
                },
                "",
            ),
            (|_, desc| Some(desc), ""),
        ];
        let registry = registry();
        for (change, expected) in rows {
            let engine = Engine::new(Dialect::Fixed, Backend::Interp).with_kind_limit(1);
            let compile = |engine: &Engine, source: &mut MemorySource<Nothing>| {
                engine.compile(&registry, &registry.all(), source, &mut Diagnostics::default())
            };
            let usual: Vec<_> = (0..2)
                .map(|_| {
                    compile(&engine, &mut source("usual", |_, desc| Some(desc)))
                        .expect("memory")
                        .evaluator()
                })
                .collect();
            let other = compile(&engine, &mut source("other", change));
            let told = other.as_ref().err().map(|error| error.to_string());
            if expected.is_empty() {
                assert_eq!(told, None);
                continue;
            }
            assert_eq!(
                told.as_deref(),
                Some(&*format!(
                    "other: it is a further kind of source, and there are 1 kinds already; unlike most: {expected}"
                ))
            );
            let engine = engine.with_kind_limit(2);
            let other = compile(&engine, &mut source("other", change)).expect("memory").evaluator();
            let kinds = engine.kinds();
            assert_eq!(kinds[0], Kind { holders: 2, differs: None });
            assert_eq!(kinds[1], Kind { holders: 1, differs: Some(expected.to_owned()) });
            drop((usual, other));
            assert_eq!((engine.kinds(), engine.classes()), (Vec::new(), 0));
            let left = engine.with_kind_limit(1);
            assert!(compile(&left, &mut source("other", change)).is_ok(), "there is room again");
        }
    }
}
