//! Cache of the findings that a source gives about each definition of a text. The text's next
//! state uses it, so that an edit costs only what it changes.
//!
//! A definition is checked again in four cases: its own text has changed; it needs a definition
//! that is checked again; it mentions an unknown name, as suggestions depend on all names; or
//! it needs itself. All definitions are checked again if anything else changed that checking
//! depends on.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use super::analysis::Analysis;
use crate::bind::{Name, references};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::engine::{Examination, Registered};
use crate::syntax::ControlOption;
use crate::text::{SourceId, Span};

/// Lifetime of findings: instances of a live source come and go.
const LIFE: Duration = Duration::from_secs(60);

/// The state of the source with which a text was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edition {
    /// Time of opening, which tells sources apart.
    pub opened: Instant,
    /// See [`metadata_epoch`].
    ///
    /// [`metadata_epoch`]: pmderive_runtime::source::MetadataSource::metadata_epoch
    pub epoch: u64,
}

/// Findings about all definitions of a text.
pub struct DefinitionCache {
    /// The analysed state of the text.
    pub analysis: Arc<Analysis>,
    edition: Edition,
    /// Time of the oldest finding.
    since: Instant,
    places: Places,
    /// Findings, parallel to the places.
    found: Vec<Findings>,
}

/// Findings about one definition.
#[derive(Default)]
struct Findings {
    diagnostics: Vec<Diagnostic>,
    /// False while the findings come only from the check of another definition that needs it.
    is_checked: bool,
    /// True if it mentions an unknown name.
    has_unknown: bool,
    /// True if lints have examined all of it.
    is_linted: bool,
}

impl Findings {
    /// True if the findings can depend on more than the operands. Findings about cycles do, as a
    /// cycle is reported where the search entered it.
    fn is_open(&self) -> bool {
        let mut codes = self.diagnostics.iter().map(|one| one.code);
        self.has_unknown || codes.any(|code| code == Code::DefinitionCycle)
    }
}

/// Places of definitions in a text. Each reaches from its first byte to that of the next, so a
/// comment belongs to the definition before it.
struct Places {
    own: SourceId,
    /// First bytes, ascending.
    starts: Vec<u32>,
    /// Names, parallel to `starts`.
    names: Vec<Arc<str>>,
    /// The length of the text.
    end: u32,
}

impl Places {
    fn of(analysis: &Analysis) -> Places {
        let definitions = analysis.definitions();
        let mut places: Vec<(u32, Arc<str>)> =
            definitions.map(|one| (one.name_span.start, Arc::clone(&one.name))).collect();
        places.sort_unstable_by_key(|(start, _)| *start);
        let (starts, names) = places.into_iter().unzip();
        Places { own: analysis.own, starts, names, end: analysis.text().len() as u32 }
    }

    /// The place of each definition in an earlier state of the text.
    fn in_earlier(&self, earlier: &Places) -> Vec<Option<usize>> {
        let known = OnceCell::new();
        let find = |name: &str| {
            let known: &FxHashMap<&str, usize> = known.get_or_init(|| {
                earlier.names.iter().enumerate().map(|(at, name)| (&**name, at)).collect()
            });
            known.get(name).copied()
        };
        let mut next = 0;
        let place = |name: &Arc<str>| {
            // Most definitions keep their order.
            let place = match earlier.names.get(next) {
                Some(same) if same == name => Some(next),
                _ => find(name),
            };
            next = place.map_or(next, |place| place + 1);
            place
        };
        self.names.iter().map(place).collect()
    }

    /// Position of the definition at a span.
    fn at(&self, span: Span) -> Option<usize> {
        let before = self.starts.partition_point(|start| *start <= span.start);
        before.checked_sub(1).filter(|_| span.source == self.own)
    }

    fn text<'t>(&self, at: usize, text: &'t str) -> &'t str {
        let end = self.starts.get(at + 1).copied().unwrap_or(self.end);
        text.get(self.starts[at] as usize..end as usize).unwrap_or_default()
    }
}

impl DefinitionCache {
    /// An empty cache for a text.
    fn nothing(analysis: &Arc<Analysis>, edition: Edition) -> DefinitionCache {
        let (since, places) = (Instant::now(), Places::of(analysis));
        let found = places.names.iter().map(|_| Findings::default()).collect();
        DefinitionCache { analysis: Arc::clone(analysis), edition, since, places, found }
    }

    /// The cache for another state of the text, with the findings of `before` that are still
    /// valid.
    pub fn following(
        before: Option<&mut DefinitionCache>,
        analysis: &Arc<Analysis>,
        edition: Edition,
    ) -> DefinitionCache {
        let mut now = DefinitionCache::nothing(analysis, edition);
        let Some(before) = before.filter(|before| before.is_like(&now)) else { return now };
        now.since = before.since;
        let mut earlier = now.places.in_earlier(&before.places);
        let (text, text_before) = (analysis.text(), before.analysis.text());
        let mut seeds: FxHashSet<&str> = FxHashSet::default();
        let mut is_there = vec![false; before.places.names.len()];
        for (at, (name, was)) in now.places.names.iter().zip(&mut earlier).enumerate() {
            was.inspect(|was| is_there[*was] = true);
            let is_same = was.is_some_and(|was| {
                now.places.text(at, text) == before.places.text(was, text_before)
                    && !before.found[was].is_open()
            });
            if !is_same {
                *was = None;
                seeds.insert(name);
            }
        }
        let gone = before.places.names.iter().zip(is_there).filter(|(_, is_there)| !is_there);
        seeds.extend(gone.map(|(name, _)| &**name));
        let again = needing(analysis, &seeds);
        if !again.is_empty() {
            for (name, was) in now.places.names.iter().zip(&mut earlier) {
                was.take_if(|_| again.contains(&**name));
            }
        }
        let moves = Moves::new(&before.places, &now.places, &earlier);
        for (now, was) in now.found.iter_mut().zip(&earlier) {
            let Some(was) = *was else { continue };
            let mut found = std::mem::take(&mut before.found[was]);
            if found.is_checked && found.diagnostics.iter_mut().all(|one| moves.follow(one)) {
                *now = found;
            }
        }
        now
    }

    /// True if everything is equal that checking depends on, except the text itself.
    fn is_like(&self, other: &DefinitionCache) -> bool {
        let (one, two) = (&self.analysis, &other.analysis);
        let novalue = |analysis: &Analysis| analysis.registry.control(ControlOption::NoValue);
        let others = || one.others.iter().zip(&two.others);
        self.edition == other.edition
            && self.since.elapsed() < LIFE
            && one.uri == two.uri
            && one.own == two.own
            && one.registry.language() == two.registry.language()
            && novalue(one) == novalue(two)
            && one.others.len() == two.others.len()
            && others().all(|(one, two)| Arc::ptr_eq(&one.parsed, &two.parsed))
    }

    /// The definitions that must be checked.
    pub fn missing(&self) -> Vec<Arc<Registered>> {
        let is_checked = |one: &Registered| {
            self.places.at(one.name_span).is_some_and(|at| self.found[at].is_checked)
        };
        self.analysis.definitions().filter(|one| !is_checked(one)).cloned().collect()
    }

    /// Stores findings about some definitions. Findings about the definitions that they need are
    /// stored as well, unless these were checked before.
    pub fn note(
        &mut self,
        checked: &[Arc<Registered>],
        examination: &Examination,
        diagnostics: Diagnostics,
    ) {
        let mut of_checked = FxHashSet::default();
        for (one, examined) in checked.iter().zip(&examination.expressions) {
            let mut names = references(&one.expr).map(|reference| reference.name);
            let has_unknown = names.any(|name| match examination.names.get(name) {
                Name::Metric(_) | Name::Nested { .. } | Name::Derived(_) => false,
                Name::Unusable => self.analysis.registry.get(name).is_none(),
                Name::Unknown(_) | Name::NoDescriptor(_) => true,
            });
            let Some(at) = self.places.at(one.name_span) else { continue };
            of_checked.insert(at);
            let found = &mut self.found[at];
            (found.is_checked, found.has_unknown) = (true, has_unknown);
            found.is_linted = examined.is_seen_whole();
        }
        for diagnostic in diagnostics {
            let Some(at) = self.places.at(diagnostic.span) else { continue };
            let found = &mut self.found[at];
            let is_same =
                |one: &Diagnostic| (one.span, one.code) == (diagnostic.span, diagnostic.code);
            let is_known = found.is_checked && !of_checked.contains(&at);
            if !is_known && !found.diagnostics.iter().any(is_same) {
                found.diagnostics.push(diagnostic);
            }
        }
    }

    /// The first bytes of the definitions that lints have examined.
    pub fn linted(&self) -> Vec<Span> {
        let places = self.places.starts.iter().zip(&self.found);
        let linted = places.filter(|(_, found)| found.is_linted);
        linted.map(|(start, _)| Span::new(self.places.own, *start, *start)).collect()
    }

    /// All findings, in the order of the text.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut all = Diagnostics::default();
        all.extend(self.found.iter().flat_map(|found| found.diagnostics.iter().cloned()));
        all
    }
}

/// The names of definitions that need one of these names, directly or through others.
fn needing<'a>(analysis: &'a Analysis, names: &FxHashSet<&'a str>) -> FxHashSet<&'a str> {
    // Definitions of other files may stand between two of the text.
    let definitions = analysis.registry.definitions();
    let mut again = FxHashSet::default();
    let needs = |one: &Registered| references(&one.expr).any(|one| names.contains(one.name));
    // Most edits change a definition that no other needs.
    let mut waiting: Vec<&str> =
        definitions.iter().filter(|one| needs(one)).map(|one| &*one.name).collect();
    if waiting.is_empty() {
        return again;
    }
    let mut users: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    for one in definitions {
        for reference in references(&one.expr) {
            users.entry(reference.name).or_default().push(&one.name);
        }
    }
    while let Some(name) = waiting.pop() {
        if again.insert(name) {
            waiting.extend(users.remove(name).unwrap_or_default());
        }
    }
    again
}

/// Distances by which unchanged definitions have moved.
struct Moves<'p> {
    before: &'p Places,
    /// Distances, parallel to the earlier places; `None` for definitions that changed.
    by: Vec<Option<i64>>,
}

impl<'p> Moves<'p> {
    /// `earlier` is parallel to the places of `now`, with positions in `before`.
    fn new(before: &'p Places, now: &Places, earlier: &[Option<usize>]) -> Moves<'p> {
        let mut by = vec![None; before.starts.len()];
        for (start, was) in now.starts.iter().zip(earlier) {
            if let Some(was) = *was {
                by[was] = Some(i64::from(*start) - i64::from(before.starts[was]));
            }
        }
        Moves { before, by }
    }

    /// Moves all places of a diagnostic with their definitions. Returns false if a definition
    /// is gone.
    fn follow(&self, diagnostic: &mut Diagnostic) -> bool {
        let mut are_there = true;
        diagnostic.each_span(&mut |span| {
            if span.source != self.before.own {
                return;
            }
            match self.before.at(*span).and_then(|at| self.by[at]) {
                Some(by) => {
                    let moved = |offset: u32| (i64::from(offset) + by) as u32;
                    *span = Span::new(span.source, moved(span.start), moved(span.end));
                }
                None => are_there = false,
            }
        });
        are_there
    }
}
