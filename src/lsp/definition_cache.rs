//! What was found out about each definition of a text with a source, kept for the
//! text's next state, so that an edit costs what it changes. Nothing is asked here.
//!
//! A definition is checked again if its own text is another one, if it needs one that is
//! checked again, and if it mentions a name that nobody knows: what is suggested instead
//! depends on all other names. So is one that needs itself. Everything is checked again
//! if anything else changed that checking depends on.

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

/// How long it is kept: instances of a live source come and go.
const LIFE: Duration = Duration::from_secs(60);

/// The source that a text was checked with, as it was then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edition {
    /// When it was opened, which tells sources apart.
    pub opened: Instant,
    /// See [`metadata_epoch`].
    ///
    /// [`metadata_epoch`]: pmderive_runtime::source::MetadataSource::metadata_epoch
    pub epoch: u64,
}

/// What was found out about the definitions of a text.
pub struct Kept {
    /// The text's state.
    pub analysis: Arc<Analysis>,
    edition: Edition,
    /// When the first of it was found.
    since: Instant,
    places: Places,
    /// Parallel to the places.
    found: Vec<Found>,
}

/// What was found out about a definition.
#[derive(Default)]
struct Found {
    diagnostics: Vec<Diagnostic>,
    /// False as long as it was only found in passing, with a definition that needs it.
    is_checked: bool,
    /// It mentions a name that nobody knows.
    has_unknown: bool,
    /// Lints have seen all of it.
    is_linted: bool,
}

impl Found {
    /// True if its findings can depend on other definitions than its operands. Cycles do, as
    /// they are reported where the search entered them.
    fn is_open(&self) -> bool {
        let mut codes = self.diagnostics.iter().map(|one| one.code);
        self.has_unknown || codes.any(|code| code == Code::DefinitionCycle)
    }
}

/// Where definitions are in a text: from the first byte of each to that of the next one,
/// so that a comment belongs to the definition before it.
struct Places {
    own: SourceId,
    /// First bytes, in their order.
    starts: Vec<u32>,
    /// Parallel to `starts`.
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

    /// For each of them its place in an earlier state of the text.
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
            // Most of them come in the order that they had.
            let place = match earlier.names.get(next) {
                Some(same) if same == name => Some(next),
                _ => find(name),
            };
            next = place.map_or(next, |place| place + 1);
            place
        };
        self.names.iter().map(place).collect()
    }

    /// Which of them has a byte.
    fn at(&self, span: Span) -> Option<usize> {
        let before = self.starts.partition_point(|start| *start <= span.start);
        before.checked_sub(1).filter(|_| span.source == self.own)
    }

    fn text<'t>(&self, at: usize, text: &'t str) -> &'t str {
        let end = self.starts.get(at + 1).copied().unwrap_or(self.end);
        text.get(self.starts[at] as usize..end as usize).unwrap_or_default()
    }
}

impl Kept {
    /// Nothing is known of a text.
    fn nothing(analysis: &Arc<Analysis>, edition: Edition) -> Kept {
        let (since, places) = (Instant::now(), Places::of(analysis));
        let found = places.names.iter().map(|_| Found::default()).collect();
        Kept { analysis: Arc::clone(analysis), edition, since, places, found }
    }

    /// Takes from `before` what is still true in another state of the text.
    pub fn following(
        before: Option<&mut Kept>,
        analysis: &Arc<Analysis>,
        edition: Edition,
    ) -> Kept {
        let mut now = Kept::nothing(analysis, edition);
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

    /// True if all is the same that checking depends on, but for the text itself.
    fn is_like(&self, other: &Kept) -> bool {
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

    /// The definitions that are yet to be checked.
    pub fn missing(&self) -> Vec<Arc<Registered>> {
        let is_checked = |one: &Registered| {
            self.places.at(one.name_span).is_some_and(|at| self.found[at].is_checked)
        };
        self.analysis.definitions().filter(|one| !is_checked(one)).cloned().collect()
    }

    /// Takes note of what was found out about some definitions, and in passing about
    /// those that they need, unless these were checked before.
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

    /// The first bytes of the definitions of which lints have seen all.
    pub fn linted(&self) -> Vec<Span> {
        let places = self.places.starts.iter().zip(&self.found);
        let linted = places.filter(|(_, found)| found.is_linted);
        linted.map(|(start, _)| Span::new(self.places.own, *start, *start)).collect()
    }

    /// All that was found, in the order of the text.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut all = Diagnostics::default();
        all.extend(self.found.iter().flat_map(|found| found.diagnostics.iter().cloned()));
        all
    }
}

/// The names of definitions that need one of some names, directly or through others.
fn needing<'a>(analysis: &'a Analysis, names: &FxHashSet<&'a str>) -> FxHashSet<&'a str> {
    // Definitions of other files may be between two of the text.
    let definitions = analysis.registry.definitions();
    let mut again = FxHashSet::default();
    let needs = |one: &Registered| references(&one.expr).any(|one| names.contains(one.name));
    // Most edits are of what nothing else needs.
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

/// How far definitions that did not change are from where they were.
struct Moves<'p> {
    before: &'p Places,
    /// Parallel to the earlier places; `None` for those that changed.
    by: Vec<Option<i64>>,
}

impl<'p> Moves<'p> {
    /// `earlier` is parallel to the places of `now`: the places among those `before`.
    fn new(before: &'p Places, now: &Places, earlier: &[Option<usize>]) -> Moves<'p> {
        let mut by = vec![None; before.starts.len()];
        for (start, was) in now.starts.iter().zip(earlier) {
            if let Some(was) = *was {
                by[was] = Some(i64::from(*start) - i64::from(before.starts[was]));
            }
        }
        Moves { before, by }
    }

    /// Moves all places that a mistake names with their definitions; false if one of
    /// these is gone.
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
