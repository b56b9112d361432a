//! The thread that asks the source of metrics: it checks texts against it, and
//! finds out what hovering shows. Only this thread waits for a source; the
//! server goes on without it when it hangs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use lsp_server::RequestId;
use pmderive_runtime::context::Context;
use pmderive_runtime::source::{MetadataSource, SourceError};

use super::analysis::Analysis;
use super::files::path_of;
use super::hover::{hover, instances_of};
use super::outcome::{Answer, Outcome};
use crate::bind::equivalent_domains::EquivalentDomains;
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::engine::{Backend, Engine, Registered, Session, SharedRegistry, report_cycles};
use crate::lint::{apply_allowances, lint_definitions, lint_expressions, missing_instances};
use crate::project::levels_of;

/// Definitions that are checked before somebody who waits is served.
const CHUNK: usize = 500;

/// How long a source that cannot be opened is left alone.
const PAUSE: Duration = Duration::from_secs(10);

/// What metrics are checked against.
pub enum Source {
    /// Metadata without values.
    Metadata(Box<dyn MetadataSource + Send>),
    /// A host, archives, or this machine.
    Context(Box<Context>),
}

/// Opens the source, or says why it cannot be opened.
pub type Opener = Box<dyn FnMut() -> Result<Source, SourceError> + Send>;

/// What the thread is asked.
pub enum Question {
    /// What is wrong with a text.
    Check(Arc<Analysis>),
    /// What stands at an offset of a text.
    Hover(RequestId, Arc<Analysis>, usize),
    /// Names of a metric's instances, for completion.
    Instances(RequestId, Arc<Analysis>, String),
}

/// The source as the thread has it.
pub struct Asked {
    engine: Arc<Engine>,
    shared: Arc<SharedRegistry>,
    opener: Option<Opener>,
    open: Option<Opened>,
    /// When opening failed last.
    failed: Option<Instant>,
    trouble: Option<String>,
}

/// A source that is open.
pub enum Opened {
    /// Metadata only.
    Metadata(Box<dyn MetadataSource + Send>),
    /// With values.
    Session(Box<Session<Context>>),
}

impl Opened {
    /// Who knows the metadata.
    pub fn metadata(&mut self) -> &mut dyn MetadataSource {
        match self {
            Opened::Metadata(source) => &mut **source,
            Opened::Session(session) => session.source(),
        }
    }
}

impl Asked {
    /// Without a source if there is no `opener`.
    pub fn new(language: Language, opener: Option<Opener>) -> Asked {
        let engine = Engine::new(language, Backend::Interp).without_threads();
        Asked {
            engine: Arc::new(engine.with_equivalent_domains(EquivalentDomains::of_this_machine())),
            shared: Arc::new(SharedRegistry::new(language)),
            opener,
            open: None,
            failed: None,
            trouble: None,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The source, opened if it has to be. A failure is kept for
    /// [`Asked::take_trouble`].
    pub fn source(&mut self) -> Option<&mut Opened> {
        if self.open.is_none() && self.failed.is_none_or(|failed| failed.elapsed() > PAUSE) {
            match (self.opener.as_mut()?)() {
                Ok(source) => self.open = Some(self.opened(source)),
                Err(error) => self.fails(&error),
            }
        }
        self.open.as_mut()
    }

    fn opened(&self, source: Source) -> Opened {
        match source {
            Source::Metadata(source) => Opened::Metadata(source),
            Source::Context(context) => {
                let (engine, shared) = (Arc::clone(&self.engine), Arc::clone(&self.shared));
                Opened::Session(Box::new(Session::new(engine, shared, *context)))
            }
        }
    }

    /// Lets sessions see the definitions of a text.
    pub fn define(&self, analysis: &Analysis) {
        self.shared.replace_all(analysis.registry.clone(), analysis.sources.clone());
    }

    /// Takes note that the source failed: it is opened again, but not at once.
    pub fn fails(&mut self, error: &SourceError) {
        self.open = None;
        self.failed = Some(Instant::now());
        self.trouble = Some(error.to_string());
    }

    /// Why the source cannot be used, if nobody was told yet.
    pub fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}

/// Starts the thread. It ends when nobody asks any more.
pub fn start(
    mut asked: Asked,
    questions: Receiver<Question>,
    outcomes: Sender<Outcome>,
) -> std::io::Result<()> {
    let run = move || {
        names_of_source(&mut asked, &outcomes);
        let mut thread = Thread { asked, checks: VecDeque::new(), outcomes };
        while let Some(question) = thread.next(&questions) {
            thread.answer(question, &questions);
        }
    };
    thread::Builder::new().name("metrics".to_owned()).spawn(run).map(|_| ())
}

/// Tells the names of all metrics, for completion.
fn names_of_source(asked: &mut Asked, outcomes: &Sender<Outcome>) {
    let Some(source) = asked.source() else { return tell_trouble(asked, outcomes) };
    match source.metadata().traverse("") {
        Ok(mut names) => {
            names.sort_unstable();
            // Nobody is left when this fails.
            let _ = outcomes.send(Outcome::Names(names.into()));
        }
        Err(error) => {
            asked.fails(&error);
            tell_trouble(asked, outcomes);
        }
    }
}

fn tell_trouble(asked: &mut Asked, outcomes: &Sender<Outcome>) {
    if let Some(trouble) = asked.take_trouble() {
        let _ = outcomes.send(Outcome::Trouble(trouble));
    }
}

struct Thread {
    asked: Asked,
    /// Texts to be checked when nobody waits; one for each URI.
    checks: VecDeque<Arc<Analysis>>,
    outcomes: Sender<Outcome>,
}

impl Thread {
    /// What is to be done next: those who wait come first.
    fn next(&mut self, questions: &Receiver<Question>) -> Option<Question> {
        loop {
            let question = match self.checks.is_empty() {
                true => questions.recv().ok()?,
                false => match questions.try_recv() {
                    Ok(question) => question,
                    Err(_) => return self.checks.pop_front().map(Question::Check),
                },
            };
            match question {
                Question::Check(analysis) => {
                    self.checks.retain(|other| other.uri != analysis.uri);
                    self.checks.push_back(analysis);
                }
                other => return Some(other),
            }
        }
    }

    fn answer(&mut self, question: Question, questions: &Receiver<Question>) {
        match question {
            Question::Check(analysis) => self.check(&analysis, questions),
            Question::Hover(id, analysis, offset) => {
                let found = hover(&analysis, offset, Some(&mut self.asked));
                self.send(Outcome::Answered(id, Answer::Hover(found)));
            }
            Question::Instances(id, analysis, metric) => {
                let found = instances_of(&analysis, &metric, &mut self.asked);
                self.send(Outcome::Answered(id, Answer::Instances(found)));
            }
        }
        tell_trouble(&mut self.asked, &self.outcomes);
    }

    fn send(&self, outcome: Outcome) {
        // When nobody is left, the questions end as well.
        let _ = self.outcomes.send(outcome);
    }

    /// Checks a text. Serves those who come meanwhile, and stops when the text
    /// is checked again later anyway.
    fn check(&mut self, analysis: &Arc<Analysis>, questions: &Receiver<Question>) {
        let definitions: Vec<Arc<Registered>> = analysis.definitions().cloned().collect();
        let mut found = Diagnostics::default();
        let mut is_checked = true;
        let mut chunks = definitions.chunks(CHUNK);
        // Also without definitions: what is wrong with the text is to be shown.
        let mut next = chunks.next();
        while let Some(chunk) = next {
            is_checked &= self.check_some(analysis, chunk, &mut found);
            next = chunks.next();
            while next.is_some()
                && let Ok(question) = questions.try_recv()
            {
                match question {
                    Question::Check(newer) if newer.uri == analysis.uri => {
                        self.checks.push_back(newer);
                        return;
                    }
                    Question::Check(other) => {
                        self.checks.retain(|one| one.uri != other.uri);
                        self.checks.push_back(other);
                    }
                    other => self.answer(other, questions),
                }
            }
        }
        let selection: Vec<&Registered> = definitions.iter().map(|one| &**one).collect();
        if !is_checked {
            report_cycles(&analysis.registry, &mut found);
            lint_expressions(&selection, None, &analysis.sources, &mut found);
        }
        lint_definitions(&analysis.registry, &selection, &[], &mut found);
        found.extend(analysis.diagnostics.clone());
        found.retain(|one| one.span.source == analysis.own);
        let mut found = found.without_consequences();
        let (language, sources) = (analysis.registry.language(), &analysis.sources);
        apply_allowances([analysis.own], language, is_checked, sources, &mut found);
        if let Some(path) = path_of(&analysis.uri) {
            levels_of(&path).apply(&mut found);
        }
        found.sort();
        let (uri, version) = (analysis.uri.clone(), analysis.version);
        self.send(Outcome::Checked { uri, version, diagnostics: without_repeats(found) });
    }

    /// Checks some of a text's definitions; false without a source.
    fn check_some(
        &mut self,
        analysis: &Analysis,
        definitions: &[Arc<Registered>],
        found: &mut Diagnostics,
    ) -> bool {
        let engine = Arc::clone(&self.asked.engine);
        let Some(opened) = self.asked.source() else { return false };
        let selection: Vec<&Registered> = definitions.iter().map(|one| &**one).collect();
        let mut of_chunk = Diagnostics::default();
        let source = opened.metadata();
        let examined = engine
            .examine(&analysis.registry, &selection, source, &mut of_chunk)
            .and_then(|examination| {
                let sources = &analysis.sources;
                missing_instances(&selection, &examination, sources, source, &mut of_chunk)?;
                Ok(examination)
            });
        match examined {
            Ok(examination) => {
                let sources = &analysis.sources;
                lint_expressions(&selection, Some(&examination), sources, &mut of_chunk);
                found.extend(of_chunk);
                true
            }
            Err(error) => {
                self.asked.fails(&error);
                false
            }
        }
    }
}

/// What definitions of several chunks need is checked with each.
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
