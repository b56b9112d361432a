//! The thread that analyses texts as they change. It answers requests for which the texts alone
//! suffice, and passes others to the asker.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;

use crossbeam_channel::{Receiver, Sender};
use lsp_server::RequestId;
use lsp_types::{CodeActionKind, Position, Range, SymbolInformation, Uri};
use serde::Serialize;

use super::actions::actions;
use super::analysis::Analysis;
use super::events::{Answer, Event};
use super::files::{OpenTexts, path_of, uri_of};
use super::hover::hover;
use super::positions::Encoding;
use super::settings::Settings;
use super::source_thread::{Question, Turn};
use super::symbols::Search;
use super::text_cache::TextCache;
use super::tree::Tree;
use super::{formatting, names, tokens};
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::project::FILE_NAME;

/// A task for the thread.
pub enum Task {
    /// A text was opened or changed; this is its new revision.
    Set(Uri, u64, Arc<str>),
    /// A text was closed.
    Close(Uri),
    /// A file changed on disk.
    Changed,
    /// The client has a request about a text.
    Ask(RequestId, Uri, Wish),
    /// The client searches definitions by a part of their names.
    Symbols(RequestId, String),
}

/// The wish behind a request.
pub enum Wish {
    /// The hover text at a place.
    Hover(Position),
    /// The hover text at a place, without the source, which does not answer.
    HoverOffline(Position),
    /// Names of the instances of an expression.
    Instances(String),
    /// The outline.
    Symbols,
    /// The definition of a name.
    Definition(Position),
    /// All places of a name, with its definition or without.
    References(Position, bool),
    /// The range that renaming at a place would replace.
    PrepareRename(Position),
    /// Renaming to another name; also the names of sources.
    Rename(Position, String, SourceNames),
    /// The edits that format the text.
    Formatting,
    /// The edits that format some lines.
    RangeFormatting(Range),
    /// The tokens of the text.
    Tokens,
    /// The edits that fix mistakes in a range.
    Actions {
        /// The range.
        range: Range,
        /// The wanted kinds; `None` for all.
        only: Option<Vec<CodeActionKind>>,
        /// Revision and mistakes of the last check of the whole text.
        checked: Option<(u64, Arc<Diagnostics>)>,
    },
}

/// The names of sources' metrics, as far as the sources have answered.
#[derive(Clone, Default)]
pub struct SourceNames {
    /// True if options choose a source.
    pub is_chosen: bool,
    /// Names by file of metadata, ascending by bytes; `None` is the source that options choose.
    pub by_file: HashMap<Option<PathBuf>, Arc<[String]>>,
}

impl SourceNames {
    /// The names for a text whose folder has a file of metadata, or none. `None` until the
    /// source answers.
    pub fn of(&self, metadata: Option<&PathBuf>) -> Option<Arc<[String]>> {
        let file = metadata.cloned();
        let told = self.by_file.get(&file).or_else(|| self.by_file.get(&None));
        match told {
            Some(names) => Some(Arc::clone(names)),
            None if self.is_chosen || file.is_some() => None,
            None => Some(Arc::from([])),
        }
    }
}

/// The thread's input: settings and channels.
pub struct Reader {
    /// Language of the definitions.
    pub language: Language,
    /// Unit of columns.
    pub encoding: Encoding,
    /// Folders that are open in the editor.
    pub folders: Vec<PathBuf>,
    /// The asker, which waits for sources.
    pub asker: Sender<Question>,
    /// The right to compute, shared with the asker.
    pub turn: Turn,
    /// The main loop.
    pub events: Sender<Event>,
}

/// Starts the thread. It ends once all senders of tasks are gone.
pub fn start(reader: Reader, tasks: Receiver<Task>) -> std::io::Result<()> {
    let run = move || {
        let mut thread = Thread {
            reader,
            open: OpenTexts::default(),
            tree: Tree::default(),
            read: HashMap::new(),
            before: HashMap::new(),
            told: HashSet::new(),
            settings: HashMap::new(),
        };
        let turn = thread.reader.turn.clone();
        while let Ok(task) = tasks.recv() {
            let _turn = turn.take();
            thread.take(task);
            // A text is analysed once no newer version waits.
            while let Ok(task) = tasks.try_recv() {
                thread.take(task);
            }
            thread.read_all();
        }
    };
    thread::Builder::new().name("texts".to_owned()).spawn(run).map(|_| ())
}

struct Thread {
    reader: Reader,
    open: OpenTexts,
    /// Other files of the texts' projects.
    tree: Tree,
    /// Folders that were reported as too large.
    told: HashSet<PathBuf>,
    /// Reported mistakes of files of settings.
    settings: HashMap<PathBuf, Vec<lsp_types::Diagnostic>>,
    /// Last analyses by URI; `None` for texts that changed since.
    read: HashMap<String, Option<Arc<Analysis>>>,
    /// Caches of the texts, by URI.
    before: HashMap<String, TextCache>,
}

impl Thread {
    fn take(&mut self, task: Task) {
        match task {
            Task::Set(uri, revision, text) => {
                // Now it belongs to the project of other texts, whatever its name is.
                if self.open.get(&uri).is_none() {
                    self.read.values_mut().for_each(|one| *one = None);
                }
                self.open.set(&uri, revision, text);
                if !is_settings(&uri) {
                    self.read.insert(uri.as_str().to_owned(), None);
                }
                // Other texts may mention its definitions.
                self.forget_others(&uri);
            }
            Task::Close(uri) => {
                self.open.close(&uri);
                self.read.remove(uri.as_str());
                self.before.remove(uri.as_str());
                self.forget_others(&uri);
            }
            Task::Changed => self.read.values_mut().for_each(|one| *one = None),
            Task::Ask(id, uri, wish) => self.answer(id, &uri, wish),
            Task::Symbols(id, query) => {
                let found = value(&self.symbols(&query));
                let _ = self.reader.events.send(Event::Answered(id, found));
            }
        }
    }

    /// Definitions by a part of their names. It searches the open texts, the files of their
    /// projects, and the open folders.
    fn symbols(&mut self, query: &str) -> Vec<SymbolInformation> {
        let mut search = Search::new(query);
        let open: Vec<Uri> = self.read.keys().filter_map(|uri| uri.parse().ok()).collect();
        let open: Vec<Arc<Analysis>> = open.iter().filter_map(|uri| self.analysis(uri)).collect();
        open.iter().for_each(|analysis| search.add_open(analysis));
        open.iter().flat_map(|analysis| &analysis.others).for_each(|one| search.add_file(one));
        let Reader { language, encoding, folders, .. } = &self.reader;
        for folder in folders {
            // It stands for any file that might be there.
            let any = folder.join("*");
            let settings = Settings::of(Some(&any), *language, &self.open, *encoding);
            let found = self.tree.all_of(folder, None, &settings, &self.open, *encoding);
            found.files.iter().for_each(|one| search.add_file(one));
        }
        search.found()
    }

    /// Forgets the analyses of other texts that depend on a file.
    fn forget_others(&mut self, uri: &Uri) {
        let Some(path) = path_of(uri) else { return };
        let is_settings = is_settings(uri);
        for read in self.read.values_mut() {
            let depends = |read: &Arc<Analysis>| {
                is_settings || read.others.iter().any(|other| other.path == path)
            };
            if read.as_ref().is_some_and(depends) {
                *read = None;
            }
        }
    }

    fn read_all(&mut self) {
        let stale = self.read.iter().filter(|(_, read)| read.is_none());
        let stale: Vec<String> = stale.map(|(uri, _)| uri.clone()).collect();
        for uri in stale.iter().filter_map(|uri| uri.parse::<Uri>().ok()) {
            self.analysis(&uri);
        }
        // Mistakes of settings that govern no text any more.
        let read = self.read.values().flatten();
        let governing: HashSet<&PathBuf> =
            read.filter_map(|one| one.settings.file.as_ref()).collect();
        let gone = self.settings.extract_if(|file, _| !governing.contains(file));
        let gone = gone.filter(|(_, mistakes)| !mistakes.is_empty());
        for uri in gone.filter_map(|(file, _)| uri_of(&file)) {
            let _ = self.reader.events.send(Event::Settings(uri, Vec::new()));
        }
    }

    /// The analysis of a text, made again if the text changed.
    fn analysis(&mut self, uri: &Uri) -> Option<Arc<Analysis>> {
        let read = self.read.get_mut(uri.as_str())?;
        if read.is_none() {
            let Reader { language, encoding, folders, asker, events, .. } = &self.reader;
            let settings = Settings::of(path_of(uri).as_deref(), *language, &self.open, *encoding);
            // Settings come before the mistakes of the text.
            if let Some((uri, mistakes)) = new_mistakes(&settings, &mut self.settings) {
                let _ = events.send(Event::Settings(uri, mistakes));
            }
            let others = (&mut self.tree, &**folders);
            let new = || TextCache::new(settings.language);
            let before = self.before.entry(uri.as_str().to_owned()).or_insert_with(new);
            let analysis = Analysis::new(uri, &self.open, settings, others, *encoding, before)?;
            let analysis = Arc::new(analysis);
            *read = Some(Arc::clone(&analysis));
            if let Some(folder) = &analysis.too_large
                && self.told.insert(folder.clone())
            {
                let _ = events.send(Event::Notice(names::too_large(folder)));
            }
            if let Some(file) = &analysis.too_long
                && self.told.insert(file.clone())
            {
                let _ = events.send(Event::Notice(names::too_long(file)));
            }
            // A client that is gone needs no answer.
            let _ = events.send(Event::Read(Arc::clone(&analysis)));
            let _ = asker.send(Question::Check(Arc::clone(&analysis)));
            return Some(analysis);
        }
        read.clone()
    }

    fn answer(&mut self, id: RequestId, uri: &Uri, wish: Wish) {
        let Some(analysis) = self.analysis(uri) else {
            let words = "this text is not open".to_owned();
            let _ = self.reader.events.send(Event::Answered(id, Answer::Refused(words)));
            return;
        };
        let offset = |position| analysis.lines.offset(analysis.text(), position);
        let Reader { asker, events, encoding, .. } = &self.reader;
        let answers = &analysis.answers;
        let language = analysis.settings.language;
        let before = self.before.entry(uri.as_str().to_owned());
        let before = before.or_insert_with(|| TextCache::new(language));
        let answer = match wish {
            Wish::Hover(position) => {
                let offset = offset(position);
                let _ = asker.send(Question::Hover(id, analysis, offset));
                return;
            }
            Wish::Instances(expression) => {
                let _ = asker.send(Question::Instances(id, analysis, expression));
                return;
            }
            Wish::HoverOffline(position) => Answer::Hover(hover(&analysis, offset(position), None)),
            Wish::Symbols => once(&answers.symbols, || names::symbols(&analysis)),
            Wish::Definition(position) => value(&names::definition(&analysis, offset(position))),
            Wish::References(position, with_definition) => {
                let around = self.tree.around(&analysis.settings, &self.open, *encoding);
                value(&names::mentions(&analysis, offset(position), with_definition, &around))
            }
            Wish::PrepareRename(position) => {
                let defined = |name: &str| analysis.defined_at(name).is_some();
                let found = analysis.name_at(offset(position));
                let found = found.filter(|(name, _)| defined(name));
                value(&found.map(|(_, span)| analysis.range(span)))
            }
            Wish::Rename(position, name, metrics) => {
                let metrics = metrics.of(analysis.settings.metadata.as_ref());
                let around = self.tree.around(&analysis.settings, &self.open, *encoding);
                let (metrics, offset) = (metrics.as_deref(), offset(position));
                match names::rename(&analysis, offset, &name, metrics, &around) {
                    Ok(edit) => value(&edit),
                    Err(words) => Answer::Refused(words),
                }
            }
            Wish::Formatting => once(&answers.format, || formatting::edits(&analysis, before)),
            Wish::RangeFormatting(range) => {
                value(&formatting::edits_within(&analysis, range, before))
            }
            Wish::Tokens => once(&answers.tokens, || {
                let (text, lines) = (analysis.text(), &analysis.lines);
                let data = tokens::semantic_tokens(text, lines, language, &mut before.tokens);
                lsp_types::SemanticTokens { result_id: None, data }
            }),
            Wish::Actions { range, only, checked } => match checked {
                Some((revision, found)) if revision == analysis.revision => {
                    value(&actions(&analysis, &found, range, only.as_deref()))
                }
                _ => value(&[(); 0]),
            },
        };
        let _ = events.send(Event::Answered(id, answer));
    }
}

/// The mistakes of a file of settings, unless they were reported.
fn new_mistakes(
    settings: &Settings,
    told: &mut HashMap<PathBuf, Vec<lsp_types::Diagnostic>>,
) -> Option<(Uri, Vec<lsp_types::Diagnostic>)> {
    let file = settings.file.as_ref()?;
    let told = told.entry(file.clone()).or_default();
    let is_new = *told != settings.mistakes;
    told.clone_from(&settings.mistakes);
    Some((uri_of(file)?, told.clone())).filter(|_| is_new)
}

/// True for a file of settings, which has no definitions.
pub fn is_settings(uri: &Uri) -> bool {
    path_of(uri).is_some_and(|path| path.ends_with(FILE_NAME))
}

/// An answer that is computed on the first request.
fn once<T: Serialize>(answer: &OnceLock<Arc<str>>, compute: impl FnOnce() -> T) -> Answer {
    Answer::Written(Arc::clone(answer.get_or_init(|| written(&compute()))))
}

fn value(answer: &impl Serialize) -> Answer {
    Answer::Written(written(answer))
}

/// Encodes an answer. Answers about a whole text are long, and would be much longer as trees of
/// values.
fn written(answer: &impl Serialize) -> Arc<str> {
    // Values of the protocol always serialise.
    serde_json::to_string(answer).unwrap_or_else(|_| "null".to_owned()).into()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn an_answer_about_all_of_a_text_is_computed_once() {
        let (answer, computed) = (OnceLock::new(), Cell::new(0));
        for _ in 0..3 {
            let compute = || {
                computed.set(computed.get() + 1);
                [1, 2]
            };
            let Answer::Written(value) = once(&answer, compute) else { panic!("an answer") };
            assert_eq!(&*value, "[1,2]");
        }
        assert_eq!(computed.get(), 1);
    }
}
