//! The parts that sessions share when their sources give the same answers:
//! checked definitions, plans of lists, and scratch memory for evaluations.
//!
//! The key of a part is everything that it was made from, compared in full. A
//! part exists while a session uses it. Sessions whose answers differ, even
//! only in identifiers, have their own parts.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, Weak};

use pmderive_runtime::locks::lock;
use pmderive_runtime::source::{MetadataSource, SourceError};
use pmderive_runtime::weak_table::WeakTable;
use rustc_hash::{FxHashMap, FxHasher};

use super::Space;
use super::binding::{Bound, BoundByPmid, Outcome, Typed};
use super::lists::Needs;
use crate::bind::{DefinitionId, NameAnswer, ask};
use crate::diag::{Diagnostic, Diagnostics};
use crate::engine::metric::Metric;
use crate::engine::vocabulary::Vocabulary;
use crate::engine::{CheckedSelection, Engine, Registered, Registry, Selection};

/// The parts that sessions of an engine share.
#[derive(Default)]
pub(in crate::engine) struct SessionParts {
    together: Mutex<WeakTable<CheckedGroup>>,
    needs: Mutex<WeakTable<Needs>>,
    /// Unused buffers: as many as were in use at the same time.
    spaces: Mutex<Vec<Space>>,
}

/// Definitions that were checked together against a source's answers.
pub(super) struct CheckedGroup {
    selection: Selection,
    definitions: Vec<Arc<Registered>>,
    found: Vec<NameAnswer>,
    /// The metrics, parallel to the definitions.
    metrics: Vec<Metric>,
    pub(super) typed: Typed,
    /// Their mistakes. They suggest no names, because each source has its own.
    diagnostics: Diagnostics,
    /// The outcomes of all definitions, for sessions that have bound nothing
    /// else.
    bound: Mutex<Weak<BoundByPmid>>,
}

impl Engine {
    /// Checks definitions against a source, or finds the result for a source
    /// with the same answers.
    pub(super) fn check_together(
        &self,
        registry: &Registry,
        definitions: &[Arc<Registered>],
        source: &mut dyn MetadataSource,
    ) -> Result<Arc<CheckedGroup>, SourceError> {
        let chosen: Vec<&Registered> = definitions.iter().map(|one| &**one).collect();
        let selection = Selection::new(registry, &chosen);
        let found = ask(selection.mentions(), source)?;
        let mut hasher = FxHasher::default();
        hasher.write_u64(selection.hash());
        for found in &found {
            if let NameAnswer::Metric(desc) = found {
                desc.pmid.hash(&mut hasher);
            }
        }
        let hash = hasher.finish();
        let is_same = |one: &CheckedGroup| {
            let mut pairs = one.definitions.iter().zip(definitions);
            one.found == found
                && one.definitions.len() == definitions.len()
                && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
                && one.selection == selection
        };
        if let Some(known) = lock(&self.alike.together).find(hash, is_same) {
            return Ok(known);
        }
        let mut diagnostics = Diagnostics::default();
        let vocabulary = Vocabulary::unknown(registry);
        let examination = self.examine_found(&selection, &found, &vocabulary, &mut diagnostics);
        let CheckedSelection { metrics, typed } = examination.into_checked(chosen.into_iter());
        let together = Arc::new(CheckedGroup {
            selection,
            definitions: definitions.to_vec(),
            found,
            metrics,
            typed,
            diagnostics,
            bound: Mutex::default(),
        });
        lock(&self.alike.together).insert(hash, &together);
        Ok(together)
    }

    /// The needs of a list; `make` makes them unless a session has them.
    pub(super) fn needs(
        &self,
        hash: u64,
        is_meant: impl Fn(&Needs) -> bool,
        make: impl FnOnce() -> Needs,
    ) -> Arc<Needs> {
        let known = lock(&self.alike.needs).find(hash, &is_meant);
        known.unwrap_or_else(|| {
            // Runs without the lock, so no session waits for the compiler. If
            // two sessions make it, the first one is used.
            let made = Arc::new(make());
            lock(&self.alike.needs).find_or_insert(hash, is_meant, || made)
        })
    }

    /// A buffer for fetching.
    pub(super) fn space(&self) -> Space {
        lock(&self.alike.spaces).pop().unwrap_or_default()
    }

    /// Returns a buffer for other sessions to use.
    pub(super) fn give_back(&self, space: Space) {
        lock(&self.alike.spaces).push(space);
    }
}

impl CheckedGroup {
    /// The outcomes of the definitions.
    fn outcomes(self: &Arc<CheckedGroup>) -> BoundByPmid {
        let mut by_metric: FxHashMap<&str, Vec<Diagnostic>> = FxHashMap::default();
        for diagnostic in &self.diagnostics {
            if let Some(metric) = &diagnostic.metric {
                by_metric.entry(metric).or_default().push(diagnostic.clone());
            }
        }
        let outcome = |(definition, metric): (&Arc<Registered>, &Metric)| {
            let mut found = || by_metric.remove(&*metric.name).unwrap_or_default();
            let outcome = match (metric.is_hidden, metric.desc, metric.output) {
                (true, ..) => Outcome::Hidden(found()),
                (false, Ok(desc), Some(output)) => {
                    let at = DefinitionId(output.0);
                    Outcome::Usable { desc, among: Arc::clone(self), at }
                }
                _ => Outcome::Unusable(found()),
            };
            Some((definition.pmid?, Bound { definition: Arc::clone(definition), outcome }))
        };
        self.definitions.iter().zip(&self.metrics).filter_map(outcome).collect()
    }

    /// Adds the outcomes of the definitions to those of a session.
    pub(super) fn add_to(self: &Arc<CheckedGroup>, bound: &mut Arc<BoundByPmid>) {
        if !bound.is_empty() {
            return Arc::make_mut(bound).extend(self.outcomes());
        }
        let mut shared = lock(&self.bound);
        *bound = shared.upgrade().unwrap_or_else(|| {
            let made = Arc::new(self.outcomes());
            *shared = Arc::downgrade(&made);
            made
        });
    }
}

#[cfg(test)]
mod tests {
    use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
    use pmderive_runtime::model::{MetricDesc, Pmid, Semantics, Timestamp, Units, ValueType};
    use pmderive_runtime::result::{ResultBatch, ResultWriter};
    use pmderive_runtime::source::{FetchEvents, FetchList, FetchSource};

    use super::*;
    use crate::dialect::Dialect;
    use crate::engine::{Backend, Definitions, Session};

    /// A feed in which every metric has its item number as value.
    struct Items;

    impl Feed for Items {
        fn fetch(
            &mut self,
            list: &FetchList,
            _: &mut MemoryMetadata,
            batch: &mut ResultBatch,
        ) -> Result<FetchEvents, SourceError> {
            let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(1, 0));
            for pmid in list.pmids() {
                writer.set(*pmid);
                writer.in_place(-1, pmid.item());
            }
            Ok(FetchEvents::default())
        }
    }

    type Face = Session<MemorySource<Items>>;

    struct Faces {
        engine: Arc<Engine>,
        shared: Arc<Definitions>,
    }

    impl Faces {
        fn new(definitions: &[(&str, &str)]) -> Faces {
            let shared = Definitions::new(Dialect::Fixed);
            for (name, text) in definitions {
                shared.register(name, text).unwrap_or_else(|refused| panic!("{refused}"));
            }
            let engine = Arc::new(Engine::new(Dialect::Fixed, Backend::Interp));
            Faces { engine, shared: Arc::new(shared) }
        }

        /// A context over a source with these metrics. Their values are their
        /// item numbers.
        fn open(&self, metrics: &[(&str, u32)]) -> Face {
            let mut metadata = MemoryMetadata::default();
            for (name, item) in metrics {
                let (pmid, value_type) = (Pmid::new(7, 0, *item), ValueType::U32);
                let (indom, semantics, units) = (None, Semantics::Instant, Units::NONE);
                let desc = MetricDesc { pmid, value_type, indom, semantics, units };
                metadata.add_metric(*name, desc);
            }
            let source = MemorySource::new("items", metadata, Items);
            Session::new(Arc::clone(&self.engine), Arc::clone(&self.shared), source)
                .expect("one language")
        }

        /// Number of kinds of checked definitions and of lists in use.
        fn in_use(&self) -> (usize, usize) {
            let alike = &self.engine.alike;
            (lock(&alike.together).count(), lock(&alike.needs).count())
        }
    }

    /// The value of each metric, if it has one.
    fn numbers(face: &mut Face, names: &[&str]) -> Vec<Option<u32>> {
        let found = face.lookup_names(names).expect("memory does not fail");
        let pmids: Vec<Pmid> = found.into_iter().map(|pmid| pmid.expect("a name")).collect();
        let mut batch = ResultBatch::default();
        let list = FetchList::new(pmids, Vec::new());
        face.fetch(&list, &mut batch).expect("memory does not fail");
        let part = &batch.parts()[0];
        part.sets()
            .map(|set| set.value(0)?.number(ValueType::U32).map(|number| number as u32))
            .collect()
    }

    #[test]
    fn sources_with_the_same_answers_share_and_others_do_not() {
        let faces = Faces::new(&[("d.sum", "a.one + a.two"), ("d.twice", "2 * a.two")]);
        let plain: &[(&str, u32)] = &[("a.one", 1), ("a.two", 2)];
        let names = ["d.sum", "d.twice"];
        let (mut one, mut other) = (faces.open(plain), faces.open(plain));
        for _ in 0..2 {
            for face in [&mut one, &mut other] {
                assert_eq!(numbers(face, &names), [Some(3), Some(4)]);
            }
            assert!(Arc::ptr_eq(&one.bound, &other.bound));
            assert_eq!(faces.in_use(), (1, 1));
        }
        // The same names with other identifiers.
        let mut swapped = faces.open(&[("a.one", 2), ("a.two", 10)]);
        assert_eq!(numbers(&mut swapped, &names), [Some(12), Some(20)]);
        assert_eq!(faces.in_use(), (2, 2));
        // A definition that one session added is unknown to the others.
        let added = one.add_derived("d.own", "a.one * 7").expect("memory does not fail");
        added.unwrap_or_else(|refused| panic!("{refused}"));
        assert_eq!(numbers(&mut one, &["d.own", "d.sum"]), [Some(7), Some(3)]);
        assert!(other.lookup_names(&["d.own"]).expect("memory does not fail")[0].is_err());
        assert_eq!(numbers(&mut other, &names), [Some(3), Some(4)]);
        drop((one, other, swapped));
        assert_eq!(faces.in_use(), (0, 0));
    }

    /// Mistakes are the same for similar sources, but each source has its own
    /// names to suggest.
    #[test]
    fn mistakes_are_told_in_the_words_of_each_source() {
        let faces = Faces::new(&[("d.wrong", "a.tvo + 1"), ("d.right", "a.one")]);
        let told = |metrics: &[(&str, u32)]| {
            let mut face = faces.open(metrics);
            assert_eq!(numbers(&mut face, &["d.right", "d.wrong"]), [Some(1), None]);
            let (mistakes, _) = face.take_mistakes();
            let mistakes = face.with_suggestions(mistakes).expect("memory does not fail");
            let helps = mistakes.iter().map(|mistake| format!("{mistake:?}")).collect::<String>();
            (face, helps)
        };
        let (_first, two) = told(&[("a.one", 1), ("a.two", 2)]);
        let (_second, tve) = told(&[("a.one", 1), ("a.tvoo", 2)]);
        let (_third, again) = told(&[("a.one", 1), ("a.two", 3)]);
        assert!(two.contains("a.two") && !two.contains("a.tvoo"), "{two}");
        assert!(tve.contains("a.tvoo") && !tve.contains("a.two"), "{tve}");
        assert_eq!(two, again);
        assert_eq!(faces.in_use().0, 1, "the metric that is suggested is not asked for");
    }

    #[test]
    fn a_definition_that_is_replaced_leaves_the_others_as_they_were() {
        let faces = Faces::new(&[("d.one", "a.one"), ("d.two", "a.two")]);
        let plain: &[(&str, u32)] = &[("a.one", 1), ("a.two", 2)];
        let (mut seen, mut late) = (faces.open(plain), faces.open(plain));
        let names = ["d.one", "d.two"];
        assert_eq!(numbers(&mut seen, &names), [Some(1), Some(2)]);
        assert_eq!(numbers(&mut late, &names), [Some(1), Some(2)]);
        let replaced = faces.shared.replace("d.two", "a.two * 100");
        replaced.unwrap_or_else(|refused| panic!("{refused}"));
        let mut new = faces.open(plain);
        assert_eq!(numbers(&mut seen, &names), [Some(1), Some(200)]);
        assert_eq!(numbers(&mut new, &names), [Some(1), Some(200)]);
        assert_eq!(numbers(&mut late, &names), [Some(1), Some(200)]);
    }
}
