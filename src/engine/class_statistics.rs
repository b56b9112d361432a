//! Statistics for operators about the kinds of sources for which an engine has programs.
//! They give the number of kinds, the users of each, and how a kind differs from the usual
//! one.
//!
//! Sources of one kind are a [`Class`] and share a program. A kind needs the memory of many
//! sources, so the number of kinds is limited. If a fleet splits into many kinds, this
//! module says why.

use std::cmp::Reverse;
use std::sync::Arc;

use pmderive_runtime::model::Units;
use rustc_hash::FxHashSet;

use super::Engine;
use super::classes::{Class, Compiled};
use super::selection::Selection;
use crate::bind::{Fingerprint, NameAnswer};

/// Default limit for the number of kinds of sources that have programs at the
/// same time.
pub const DEFAULT_KIND_LIMIT: usize = 4096;

/// A kind of sources, for one selection of definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Number of the kind, unique among all past and present ones.
    pub number: u64,
    /// Number of users of its program: evaluators, sessions with a choice, and
    /// owners of compiled definitions.
    pub holders: usize,
    /// The difference from the kind with most users for the same selection.
    /// `None` for that kind itself.
    pub differs: Option<Difference>,
}

/// The difference between the sources of a kind and most others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The first metric that differs, and its property. `None` if only other instance
    /// domains are equivalent.
    pub first: Option<(Box<str>, Split)>,
    /// The whole difference in words.
    pub words: String,
}

/// The property that differs between a metric of one kind of sources and that
/// of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Split {
    /// Only one has such a metric, or a descriptor of it.
    Presence,
    /// The type.
    Type,
    /// The semantics.
    Semantics,
    /// The units.
    Units,
    /// The instance domain: only one has it, or shares it with other metrics.
    Domain,
}

impl Split {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Split::Presence => "presence",
            Split::Type => "type",
            Split::Semantics => "semantics",
            Split::Units => "units",
            Split::Domain => "domain",
        }
    }
}

/// Bytes that programs need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramBytes {
    /// Tables of the programs themselves, without native code.
    pub tables: usize,
    /// Parts of layouts, with their instances.
    pub layouts: usize,
}

impl Engine {
    /// Limits the number of kinds of sources with programs at a time; the
    /// default is [`DEFAULT_KIND_LIMIT`]. For a source of a further kind,
    /// [`Engine::compile`] and [`Session::choose`](super::Session::choose) fail with
    /// [`TooManyKinds`](pmderive_runtime::source::SourceError::TooManyKinds).
    /// Lists that are read or fetched have no limit, nor has [`Engine::bind`].
    #[must_use]
    pub fn with_kind_limit(self, limit: usize) -> Engine {
        Engine { kind_limit: limit, ..self }
    }

    /// The kinds of sources in use, those with most users first.
    pub fn kinds(&self) -> Vec<Kind> {
        let classes = self.classes_by_use();
        let kind = |(at, (holders, class)): (usize, &(usize, Arc<Class>))| {
            let usual = usual(&classes[..at], &class.selection);
            let differs = usual.and_then(|usual| {
                difference(&class.selection, &usual.fingerprint, &class.fingerprint)
            });
            Kind { number: class.number, holders: *holders, differs }
        };
        classes.iter().enumerate().map(kind).collect()
    }

    /// The difference between the sources that something was compiled for and most
    /// sources with the same definitions. `None` if they are the most common kind.
    pub fn difference(&self, compiled: &Compiled) -> Option<Difference> {
        let kinds = self.kinds();
        kinds.into_iter().find(|kind| kind.number == compiled.kind())?.differs
    }

    /// Bytes of the programs of all kinds. Common parts count once.
    pub fn program_bytes(&self) -> ProgramBytes {
        let mut seen = FxHashSet::default();
        let mut all = ProgramBytes::default();
        for class in self.classes.all() {
            let (tables, layouts) = class.bytes_unless(&mut seen);
            all.tables += tables;
            all.layouts += layouts;
        }
        all
    }

    /// The difference between most sources with these definitions and one that has no class, as
    /// the end of a sentence. Empty if there is none.
    pub(super) fn unlike_most(&self, selection: &Selection, other: &Fingerprint) -> String {
        let usual = usual(&self.classes_by_use(), selection);
        let differs = usual.and_then(|one| difference(selection, &one.fingerprint, other));
        differs.map(|differs| format!("; unlike most: {}", differs.words)).unwrap_or_default()
    }

    /// The classes with their numbers of users, in descending order.
    fn classes_by_use(&self) -> Vec<(usize, Arc<Class>)> {
        let classes = self.classes.all().into_iter();
        let mut classes: Vec<_> = classes.map(|class| (class.holders(), class)).collect();
        classes.sort_by_key(|(holders, _)| Reverse(*holders));
        classes
    }
}

/// The class with most users for a selection.
fn usual(by_use: &[(usize, Arc<Class>)], selection: &Selection) -> Option<Arc<Class>> {
    let mut classes = by_use.iter().map(|(_, class)| class);
    classes.find(|class| *class.selection == *selection).cloned()
}

/// The difference between the answers of two kinds of sources.
fn difference(
    selection: &Selection,
    usual: &Fingerprint,
    other: &Fingerprint,
) -> Option<Difference> {
    let mentions = selection.mentions();
    let answers = mentions.names.iter().zip(usual.found().zip(other.found()));
    let mut all = answers
        .clone()
        .filter_map(|(name, (usual, other))| Some((name, name_difference(name, usual, other)?)));
    if let Some((name, (split, first))) = all.next() {
        let words = match all.count() {
            0 => first,
            1 => format!("{first}, and 1 more metric differs"),
            more => format!("{first}, and {more} more metrics differ"),
        };
        return Some(Difference { first: Some(((**name).into(), split)), words });
    }
    let mut regrouped = answers.filter(|(_, (usual, other))| usual != other);
    match regrouped.next() {
        Some((name, _)) => {
            let words =
                format!("`{name}` shares its identifier or its instance domain with other metrics");
            Some(Difference { first: Some(((**name).into(), Split::Domain)), words })
        }
        None if usual == other => None,
        None => {
            let words = "other instance domains are equivalent (indom.conf)".to_owned();
            Some(Difference { first: None, words })
        }
    }
}

/// The difference between two answers about a name. Identifiers are ignored,
/// because they depend on earlier differences.
fn name_difference(name: &str, usual: &NameAnswer, other: &NameAnswer) -> Option<(Split, String)> {
    let (usual, other) = match (usual, other) {
        (NameAnswer::Metric(usual), NameAnswer::Metric(other)) => (usual, other),
        _ if usual == other => return None,
        (_, other) => {
            let words = match other {
                NameAnswer::Metric(_) => format!("`{name}` is a metric"),
                NameAnswer::Unknown(status) => format!("`{name}` is not a metric ({status})"),
                NameAnswer::NoDescriptor(status) => {
                    format!("`{name}` has no descriptor ({status})")
                }
            };
            return Some((Split::Presence, words));
        }
    };
    if other.value_type != usual.value_type {
        let (value_type, usual) = (other.value_type, usual.value_type);
        Some((Split::Type, format!("`{name}` has type {value_type}, not {usual}")))
    } else if other.semantics != usual.semantics {
        let (semantics, usual) = (other.semantics, usual.semantics);
        Some((Split::Semantics, format!("`{name}` has semantics {semantics}, not {usual}")))
    } else if other.units != usual.units {
        let words = |units: Units| match units {
            Units::NONE => "no units".to_owned(),
            units => format!("units \"{units}\""),
        };
        let words =
            format!("`{name}` has {}, most have {}", words(other.units), words(usual.units));
        Some((Split::Units, words))
    } else {
        let words = match (other.indom, usual.indom) {
            (Some(_), None) => format!("`{name}` has an instance domain"),
            (None, Some(_)) => format!("`{name}` has no instance domain"),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some((Split::Domain, words))
    }
}

#[cfg(test)]
mod tests {
    use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
    use pmderive_runtime::model::{InDom, MetricDesc, Pmid, Semantics, ValueType};
    use pmderive_runtime::result::ResultBatch;
    use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};

    use super::*;
    use crate::diag::Diagnostics;
    use crate::dialect::Dialect;
    use crate::engine::{Backend, Definitions, Registry};

    /// A feed that is never asked for values.
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

    /// A source with the metrics `k.a`, `k.b` and `k.c` over one domain;
    /// `change` alters them.
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
        let shared = Definitions::new(Dialect::Fixed);
        shared.register("d.sum", "k.a + k.b + k.c").expect("a good definition");
        shared.snapshot().registry
    }

    #[test]
    fn kinds_are_told_by_what_they_differ_from_the_usual_one() {
        type Change = fn(&str, MetricDesc) -> Option<MetricDesc>;
        let rows: [(Change, &str, Split); 8] = [
            (
                |name, desc| (name != "k.b").then_some(desc),
                "`k.b` is not a metric (Unknown metric name)",
                Split::Presence,
            ),
            (
                |name, desc| {
                    Some(MetricDesc {
                        value_type: if name == "k.c" { ValueType::F64 } else { desc.value_type },
                        ..desc
                    })
                },
                "`k.c` has type DOUBLE, not U32",
                Split::Type,
            ),
            (
                |_, desc| Some(MetricDesc { semantics: Semantics::Discrete, ..desc }),
                "`k.a` has semantics discrete, not instant, and 2 more metrics differ",
                Split::Semantics,
            ),
            (
                |name, desc| {
                    Some(MetricDesc {
                        units: Units { dim_space: i8::from(name != "k.a"), ..Units::NONE },
                        ..desc
                    })
                },
                "`k.b` has units \"byte\", most have no units, and 1 more metric differs",
                Split::Units,
            ),
            (
                |_, desc| Some(MetricDesc { indom: None, ..desc }),
                "`k.a` has no instance domain, and 2 more metrics differ",
                Split::Domain,
            ),
            (
                |name, desc| {
                    Some(MetricDesc {
                        indom: Some(InDom::new(7, if name == "k.b" { 2 } else { 1 })),
                        ..desc
                    })
                },
                "`k.b` shares its identifier or its instance domain with other metrics",
                Split::Domain,
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
                Split::Domain,
            ),
            (|_, desc| Some(desc), "", Split::Domain),
        ];
        let registry = registry();
        for (change, expected, by) in rows {
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
                    "other: this is a new kind of source, and the limit of 1 kinds is reached; unlike most: {expected}"
                ))
            );
            let engine = engine.with_kind_limit(2);
            let other = compile(&engine, &mut source("other", change)).expect("memory").evaluator();
            let kinds = engine.kinds();
            assert_eq!((kinds[0].holders, &kinds[0].differs), (2, &None));
            let differs = kinds[1].differs.as_ref().expect("another kind");
            assert_eq!((kinds[1].holders, &*differs.words), (1, expected));
            let (metric, split) = differs.first.as_ref().expect("a metric");
            assert!(expected.starts_with(&format!("`{metric}`")));
            assert_eq!(*split, by);
            let bytes = engine.program_bytes();
            // Both programs have much in common, which counts once.
            assert!(bytes.tables > 0);
            drop((usual, other));
            assert_eq!((engine.kinds(), engine.classes()), (Vec::new(), 0));
            let left = engine.with_kind_limit(1);
            assert!(compile(&left, &mut source("other", change)).is_ok(), "there is room again");
        }
    }
}
