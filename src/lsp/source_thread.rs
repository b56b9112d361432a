//! The thread that asks sources of metrics: it checks texts with them, and makes hover texts.
//! Only this thread waits for a source; the server goes on without a source that hangs.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvError, RecvTimeoutError, Sender};
use lsp_server::RequestId;
use pmderive_runtime::locks::lock;

use super::analysis::Analysis;
use super::definition_cache::DefinitionCache;
use super::events::{Answer, Event};
use super::hover::{hover, instances_of};
use super::settings::Settings;
use super::source::{Opener, PAUSE, SharedOpener, Source, SourceHandle};
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::engine::{Registered, report_cycles};
#[cfg(feature = "fleet")]
use crate::fleet::stages;
use crate::lint::{
    apply_allowances, lint_comments, lint_definitions, lint_expressions, missing_instances,
    notation_of_others,
};
use crate::metadata::RecordedMetadata;
use crate::project::apply_levels;
use crate::stamps::Stamp;
use crate::text::Span;

/// Definitions that are checked before waiting requests are served.
const CHUNK: usize = 250;

/// Pause between looks for a source that failed. Then it may be opened again.
const UNTIL_NEXT_LOOK: Duration = PAUSE.saturating_add(Duration::from_secs(1));

/// Texts with a cache of findings.
const KEPT: usize = 8;

/// The right to compute: checking waits while a text is analysed, or while a user waits for an
/// answer about it.
#[derive(Clone, Default)]
pub struct Turn(Arc<Mutex<()>>);

impl Turn {
    /// Makes checking wait until the guard is dropped.
    pub fn take(&self) -> MutexGuard<'_, ()> {
        lock(&self.0)
    }

    fn give_way(&self) {
        drop(self.take());
    }
}

/// A question for the thread.
pub enum Question {
    /// The mistakes of a text.
    Check(Arc<Analysis>),
    /// The hover text at an offset of a text.
    Hover(RequestId, Arc<Analysis>, usize),
    /// Names of a metric's instances, for completion.
    Instances(RequestId, Arc<Analysis>, String),
}

/// The sources of all texts, each opened on first use.
pub struct Sources {
    /// The source that options choose.
    opener: Option<SharedOpener>,
    handles: Vec<(Chosen, SourceHandle)>,
}

/// The choice of a source, and of the language for it.
#[derive(Clone, Debug, PartialEq)]
struct Chosen {
    language: Language,
    /// A file of metadata, with its stamp from before it was read.
    metadata: Option<(PathBuf, Option<Stamp>)>,
}

impl Sources {
    /// Sources with the opener of the one that options choose, if they do.
    pub fn new(opener: Option<Opener>) -> Sources {
        let opener = opener.map(|opener| Arc::new(Mutex::new(opener)));
        Sources { opener, handles: Vec::new() }
    }

    /// The source of a text. Options take precedence over its folder. Returns true if the
    /// source is new.
    fn of(&mut self, settings: &Settings) -> (&mut SourceHandle, bool) {
        let metadata = match self.opener {
            Some(_) => None,
            None => settings.metadata.clone(),
        };
        self.chosen(settings.language, metadata)
    }

    fn chosen(
        &mut self,
        language: Language,
        metadata: Option<PathBuf>,
    ) -> (&mut SourceHandle, bool) {
        let metadata = metadata.map(|path| {
            let stamp = Stamp::of(&path);
            (path, stamp)
        });
        let chosen = Chosen { language, metadata };
        let known = self.handles.iter().position(|(other, _)| *other == chosen);
        let at = known.unwrap_or_else(|| {
            // A file that was written again is another source.
            let path = |one: &Chosen| one.metadata.as_ref().map(|(path, _)| path.clone());
            let is_old = |one: &Chosen| path(one).is_some() && path(one) == path(&chosen);
            self.handles.retain(|(one, _)| one.language != language || !is_old(one));
            let opener = match &chosen.metadata {
                None => self.opener.clone(),
                Some((path, _)) => Some(opener_of(path.clone())),
            };
            self.handles.push((chosen, SourceHandle::new(language, opener)));
            self.handles.len() - 1
        });
        (&mut self.handles[at].1, known.is_none())
    }
}

/// Opens a file of metadata.
fn opener_of(path: PathBuf) -> SharedOpener {
    let open = move || Ok(Source::Metadata(Box::new(RecordedMetadata::open(&path)?)));
    Arc::new(Mutex::new(Box::new(open)))
}

/// Starts the thread. It ends once all senders of questions are gone.
pub fn start(
    mut sources: Sources,
    language: Language,
    questions: Receiver<Question>,
    events: Sender<Event>,
    turn: Turn,
) -> std::io::Result<()> {
    let run = move || {
        if sources.opener.is_some() {
            names_of_source(sources.chosen(language, None).0, None, &events);
        }
        let mut thread = Thread {
            sources,
            checks: VecDeque::new(),
            unchecked: Vec::new(),
            caches: VecDeque::new(),
            events,
            turn,
        };
        while let Some(question) = thread.next(&questions) {
            thread.answer(question, &questions);
        }
    };
    thread::Builder::new().name("metrics".to_owned()).spawn(run).map(|_| ())
}

/// Sends the names of all metrics, for completion. If the source cannot be used it sends none,
/// so that requests do not wait for them.
fn names_of_source(handle: &mut SourceHandle, file: Option<PathBuf>, events: &Sender<Event>) {
    let traversed = handle.ask(|_, source| source.metadata().traverse(""));
    let mut names = traversed.unwrap_or_default();
    names.sort_unstable();
    // The send fails only if the loop has ended.
    let _ = events.send(Event::Names(file, names.into()));
    tell_trouble(handle, events);
}

fn tell_trouble(handle: &mut SourceHandle, events: &Sender<Event>) {
    if let Some(trouble) = handle.take_trouble() {
        let _ = events.send(Event::Trouble(trouble));
    }
}

struct Thread {
    sources: Sources,
    /// Texts to check when no request waits; one for each URI.
    checks: VecDeque<Arc<Analysis>>,
    /// Texts that were checked without their source, because it failed; one for each URI.
    unchecked: Vec<Arc<Analysis>>,
    /// Caches of findings, with the text that was checked last at the end.
    caches: VecDeque<DefinitionCache>,
    events: Sender<Event>,
    turn: Turn,
}

impl Thread {
    /// The next question: requests precede checks.
    fn next(&mut self, questions: &Receiver<Question>) -> Option<Question> {
        loop {
            let question = match self.checks.is_empty() {
                true => match self.receive(questions).ok()? {
                    Some(question) => question,
                    None => continue,
                },
                false => match questions.try_recv() {
                    Ok(question) => question,
                    Err(_) => return self.checks.pop_front().map(Question::Check),
                },
            };
            match question {
                Question::Check(analysis) => self.check_later(analysis),
                other => return Some(other),
            }
        }
    }

    /// Waits for a question. While a source is missing, it looks for the source now and then, and
    /// queues the texts that were checked without it; `None` after such a look.
    ///
    /// # Errors
    /// All senders are gone.
    fn receive(&mut self, questions: &Receiver<Question>) -> Result<Option<Question>, RecvError> {
        if self.unchecked.is_empty() {
            return questions.recv().map(Some);
        }
        match questions.recv_timeout(UNTIL_NEXT_LOOK) {
            Ok(question) => return Ok(Some(question)),
            Err(RecvTimeoutError::Disconnected) => return Err(RecvError),
            Err(RecvTimeoutError::Timeout) => {}
        }
        for analysis in std::mem::take(&mut self.unchecked) {
            let handle = self.handle(&analysis);
            if handle.source().is_some() {
                self.send(Event::SourceIsBack);
                self.check_later(analysis);
            } else {
                // The trouble is known.
                handle.take_trouble();
                self.unchecked.push(analysis);
            }
        }
        Ok(None)
    }

    /// Queues a text for checking, in its newest state.
    fn check_later(&mut self, analysis: Arc<Analysis>) {
        self.checks.retain(|other| other.uri != analysis.uri);
        self.checks.push_back(analysis);
    }

    fn answer(&mut self, question: Question, questions: &Receiver<Question>) {
        match question {
            Question::Check(analysis) => self.check(&analysis, questions),
            Question::Hover(id, analysis, offset) => {
                let found = hover(&analysis, offset, Some(self.handle(&analysis)));
                self.send(Event::Answered(id, Answer::Hover(found)));
            }
            Question::Instances(id, analysis, metric) => {
                let found = instances_of(&analysis, &metric, self.handle(&analysis));
                self.send(Event::Answered(id, Answer::Instances(found)));
            }
        }
        for (_, handle) in &mut self.sources.handles {
            tell_trouble(handle, &self.events);
        }
    }

    /// The source of a text. The names of a new source are sent to the loop.
    fn handle(&mut self, analysis: &Analysis) -> &mut SourceHandle {
        let (handle, is_new) = self.sources.of(&analysis.settings);
        if is_new && let Some(file) = &analysis.settings.metadata {
            names_of_source(handle, Some(file.clone()), &self.events);
        }
        handle
    }

    fn send(&self, event: Event) {
        // The send fails only if the loop has ended; then the questions end as well.
        let _ = self.events.send(event);
    }

    /// Checks a text. It serves requests in between, and stops if the text is queued again.
    fn check(&mut self, analysis: &Arc<Analysis>, questions: &Receiver<Question>) {
        #[cfg(feature = "fleet")]
        if let Some(over_fleet) = &analysis.over_fleet {
            let mut found = Diagnostics::default();
            let is_checked = self.check_over_fleet(analysis, over_fleet, &mut found);
            return self.tell(analysis, found, is_checked.then_some(&[]));
        }
        let of_text = self.caches.iter().position(|cache| cache.analysis.uri == analysis.uri);
        // The old state is large; it is freed once the client has the answer.
        let mut before = of_text.and_then(|at| self.caches.remove(at));
        let Some(edition) = self.handle(analysis).edition() else {
            return self.tell(analysis, Diagnostics::default(), None);
        };
        let mut cache = DefinitionCache::following(before.as_mut(), analysis, edition);
        for chunk in cache.missing().chunks(CHUNK) {
            if !self.check_some(chunk, &mut cache) {
                return self.tell(analysis, Diagnostics::default(), None);
            }
            self.turn.give_way();
            while let Ok(question) = questions.try_recv() {
                match question {
                    Question::Check(other) => {
                        let is_newer = other.uri == analysis.uri;
                        self.check_later(other);
                        if is_newer {
                            return self.keep(cache);
                        }
                    }
                    other => self.answer(other, questions),
                }
            }
        }
        self.tell(analysis, cache.diagnostics(), Some(&cache.linted()));
        self.keep(cache);
    }

    /// Sends the mistakes of a text. `linted` are the definitions that were checked as a whole;
    /// `None` without a source.
    fn tell(&mut self, analysis: &Arc<Analysis>, found: Diagnostics, linted: Option<&[Span]>) {
        self.unchecked.retain(|other| other.uri != analysis.uri);
        if linted.is_none() && self.handle(analysis).has_source() {
            self.unchecked.push(Arc::clone(analysis));
        }
        let diagnostics = finished(analysis, found, linted);
        let (uri, revision) = (analysis.uri.clone(), analysis.revision);
        self.send(Event::Checked { uri, revision, diagnostics });
    }

    fn keep(&mut self, cache: DefinitionCache) {
        self.caches.push_back(cache);
        if self.caches.len() > KEPT {
            self.caches.pop_front();
        }
    }

    /// Checks definitions over the fleet with a source that stands for its hosts. Returns false
    /// without one.
    #[cfg(feature = "fleet")]
    fn check_over_fleet(
        &mut self,
        analysis: &Analysis,
        over_fleet: &super::analysis::OverFleet,
        found: &mut Diagnostics,
    ) -> bool {
        let super::analysis::OverFleet { definitions, hosts, is_open } = over_fleet;
        // The text contains the expressions that hosts compute for its aggregates.
        let on_hosts = definitions.computed_by(hosts, *is_open);
        let aggregates = self.handle(analysis).ask(|engine, source| {
            let source = source.metadata();
            let examination = engine.examine(hosts, &on_hosts, source, found)?;
            lint_expressions(&on_hosts, Some(&examination), &analysis.sources, found);
            stages::across(engine, definitions, [(hosts, *is_open)], source)
        });
        let Some(mut aggregates) = aggregates else { return false };
        found.extend(stages::beyond_texts(&aggregates));
        stages::lint(definitions, Some(&mut aggregates), &analysis.sources, found);
        true
    }

    /// Checks some of a text's definitions. Returns false without a source.
    fn check_some(&mut self, definitions: &[Arc<Registered>], cache: &mut DefinitionCache) -> bool {
        let analysis = Arc::clone(&cache.analysis);
        let selection: Vec<&Registered> = definitions.iter().map(|one| &**one).collect();
        let mut found = Diagnostics::default();
        let examined = self.handle(&analysis).ask(|engine, source| {
            let (source, sources) = (source.metadata(), &analysis.sources);
            let examination = engine.examine(&analysis.registry, &selection, source, &mut found)?;
            missing_instances(&selection, &examination, sources, source, &mut found)?;
            Ok(examination)
        });
        let Some(examination) = examined else { return false };
        lint_expressions(&selection, Some(&examination), &analysis.sources, &mut found);
        cache.note(definitions, &examination, found);
        true
    }
}

/// The mistakes that a text alone shows.
pub fn textual(analysis: &Analysis) -> Diagnostics {
    finished(analysis, Diagnostics::default(), None)
}

/// Adds the findings that need no source. Removes those that comments or `pmderive.toml` allow.
fn finished(analysis: &Analysis, mut found: Diagnostics, linted: Option<&[Span]>) -> Diagnostics {
    let selection: Vec<&Registered> = analysis.definitions().map(|one| &**one).collect();
    if linted.is_none() {
        report_cycles(&analysis.registry, &mut found);
        let dialect = analysis.registry.language().dialect;
        notation_of_others(&selection, dialect, &analysis.sources, &mut found);
        lint_expressions(&selection, None, &analysis.sources, &mut found);
    }
    lint_definitions(&analysis.registry, &selection, &[], &mut found);
    lint_comments([analysis.own], analysis.registry.language(), &analysis.sources, &mut found);
    found.extend(analysis.diagnostics.clone());
    found.retain(|one| one.span.source == analysis.own);
    let mut found = found.without_consequences();
    let (language, sources) = (analysis.registry.language(), &analysis.sources);
    let linted = linted.unwrap_or_default();
    apply_allowances([analysis.own], language, linted, sources, &mut found);
    apply_levels(|_, code| analysis.settings.levels.of(code), &mut found);
    found.sort();
    without_repeats(found)
}

/// Removes repeated diagnostics: a definition that several chunks need is checked with each.
fn without_repeats(diagnostics: Diagnostics) -> Diagnostics {
    let mut seen: HashMap<(u32, u32), Vec<crate::diag::Code>> = HashMap::new();
    let mut diagnostics = diagnostics;
    diagnostics.retain(|one| {
        let codes = seen.entry((one.span.start, one.span.end)).or_default();
        let is_new = !codes.contains(&one.code);
        if is_new {
            codes.push(one.code);
        }
        is_new
    });
    diagnostics
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pmderive_runtime::archive::ArchiveContext;
    use pmderive_runtime::context::Context;
    use proptest::prelude::*;

    use super::*;
    use crate::dialect::Dialect;
    use crate::lsp::positions::Encoding;
    use crate::lsp::text_cache::{self, TextCache};

    /// Pieces that edits put into texts: lines that need each other in all ways.
    const PIECES: [&str; 20] = [
        "",
        "\n",
        "# text é🎈\n",
        "a.b = disk.dev.total\n",
        "a.b = rate(disk.dev.total)\n",
        "a.c = a.b + a.d\n",
        "a.d = a.c - 1\n",
        "a.d = sum(a.c)\n",
        "a.e = disk.dev.totl + a.d\n",
        "a.f = a.e * mem.util.used\n",
        "a.g = a.b + nothing.like.it\n",
        "a.h = a.g ? a.b : a.zz\n",
        "a.i = disk.dev.total[sda] + disk.dev.total[vdb] + a.b[nobody]\n",
        "a.j = matchinst(/nobody/, a.b) + hinv.ncpu\n",
        "a.k = defined(a.b) ? a.c : a.d\n",
        "a.b = a.c +\n",
        "disk.dev.total = 5\n",
        "nothing.like.it = count(a.b)\n",
        "#control novalue=1\n",
        "a.l = mkconst(1, meta=a.b) + a.b\n",
    ];

    fn read(text: &str, language: Language) -> Arc<Analysis> {
        Arc::new(text_cache::tests::read(
            text,
            language,
            Encoding::Utf8,
            &mut TextCache::new(language),
        ))
    }

    /// The state of a thread, and the receiver of its events.
    fn thread() -> (Thread, Receiver<Event>) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/archives/own-fleet");
        let opener: Opener = Box::new(move || {
            let archive = ArchiveContext::open(Path::new(path))?;
            Ok(Source::Context(Box::new(Context::Archive(Box::new(archive)))))
        });
        let (events, heard) = crossbeam_channel::unbounded();
        let (sources, turn) = (Sources::new(Some(opener)), Turn::default());
        let (checks, caches) = Default::default();
        (Thread { sources, checks, unchecked: Vec::new(), caches, events, turn }, heard)
    }

    fn checked((thread, heard): &mut (Thread, Receiver<Event>), text: &Arc<Analysis>) -> String {
        thread.check(text, &crossbeam_channel::never());
        heard
            .try_iter()
            .find_map(|event| match event {
                Event::Checked { diagnostics, .. } => Some(format!("{diagnostics:#?}")),
                _ => None,
            })
            .expect("it is checked")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// After any edits a text has the same mistakes as on a new server.
        #[test]
        fn what_is_kept_changes_nothing(
            edits in prop::collection::vec((any::<u16>(), 0usize..30, 0..PIECES.len()), 1..40),
            kind in 0usize..6,
        ) {
            let dialect = [Dialect::Fixed, Dialect::Pcp7_2, Dialect::Pcp6_0][kind / 2];
            let language = Language { dialect, extensions: kind % 2 == 0 };
            let (mut text, mut same) = (String::new(), thread());
            for (place, length, piece) in edits {
                let start = text.floor_char_boundary(usize::from(place) % (text.len() + 1));
                // Most edits are of whole lines.
                let start = match length {
                    0..5 => start,
                    _ => text[..start].rfind('\n').map_or(0, |end| end + 1),
                };
                let end = text.floor_char_boundary((start + length).min(text.len())).max(start);
                let end = match length {
                    0..10 => start,
                    10..20 => text[start..].find('\n').map_or(end, |line| start + line + 1),
                    _ => end,
                };
                text.replace_range(start..end, PIECES[piece]);
                let analysis = read(&text, language);
                let again = checked(&mut same, &analysis);
                prop_assert_eq!(again, checked(&mut thread(), &analysis), "{}", text);
            }
        }
    }

    #[test]
    fn an_edit_has_checked_what_it_changes() {
        let language = Language { dialect: Dialect::Fixed, extensions: true };
        let lines = [
            "a.b = disk.dev.total",
            "a.c = a.b + 1",
            "# Between.",
            "a.d = disk.dev.total - hinv.ncpu + 1",
            "a.e = a.c * 2",
            "a.f = disk.dev.totl",
            "a.g = a.f + 1",
            "a.h = hinv.ncpu",
        ];
        let mut thread = thread();
        let before = read(&lines.join("\n"), language);
        let found = checked(&mut thread, &before);
        assert!(found.contains("disk.dev.totl"), "{found}");
        let mut cache = thread.0.caches.pop_back();
        assert!(cache.is_some());
        let edition = thread.0.handle(&before).edition().expect("it is open");
        // An unknown name is looked up again each time.
        for (edits, again) in [
            (&[][..], "a.f a.g"),
            (&[(3, "a.d = disk.dev.total - hinv.ncpu + 11")], "a.d a.f a.g"),
            (&[(2, "# In between.")], "a.c a.e a.f a.g"),
            (&[(7, "a.h = hinv.ncpu + 1")], "a.f a.g a.h"),
            (&[(0, "a.b = disk.dev.read")], "a.b a.c a.e a.f a.g"),
            (&[(0, "")], "a.c a.e a.f a.g"),
            (&[(7, "disk.dev.totl = 1")], "a.f a.g disk.dev.totl"),
        ] {
            let mut edited = lines;
            edits.iter().for_each(|(line, text)| edited[*line] = text);
            let analysis = read(&edited.join("\n"), language);
            let now = DefinitionCache::following(cache.as_mut(), &analysis, edition);
            let missing: Vec<_> = now.missing().iter().map(|one| one.name.to_string()).collect();
            assert_eq!(missing.join(" "), again, "{edited:?}");
            // Back in the first state, everything is in the cache.
            checked(&mut thread, &before);
            cache = thread.0.caches.pop_back();
        }
    }
}
