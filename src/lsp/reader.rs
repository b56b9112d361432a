//! The thread that reads texts as they change, and answers what the texts alone
//! can tell. What needs a source it hands to the asker.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender};
use lsp_server::RequestId;
use lsp_types::{Position, Range, TextEdit, Uri};
use serde::Serialize;
use serde_json::Value;

use super::actions::actions;
use super::analysis::Analysis;
use super::asker::Question;
use super::files::OpenTexts;
use super::hover::hover;
use super::outcome::{Answer, Outcome};
use super::positions::{Encoding, LineIndex};
use super::{names, tokens};
use crate::diag::Diagnostics;
use crate::dialect::Language;
use crate::format::format_definitions;

/// What the thread is told and asked.
pub enum Task {
    /// A text was opened or changed.
    Set(Uri, i32, Arc<str>),
    /// A text was closed.
    Close(Uri),
    /// A file changed on disk.
    Changed,
    /// The client asks for something of a text.
    Ask(RequestId, Uri, Wish),
}

/// What a client asks for.
pub enum Wish {
    /// What stands at a place.
    Hover(Position),
    /// The same without a source, which does not answer.
    HoverOffline(Position),
    /// Names of the instances of an expression.
    Instances(String),
    /// The outline.
    Symbols,
    /// The definition of a name.
    Definition(Position),
    /// All places of a name; with its definition or without.
    References(Position, bool),
    /// What renaming at a place would replace.
    PrepareRename(Position),
    /// Another name.
    Rename(Position, String),
    /// The usual form.
    Formatting,
    /// What each word is.
    Tokens,
    /// What fixes these mistakes, which were found in this state of the text.
    Actions(Range, i32, Diagnostics),
}

/// The thread's own.
pub struct Reader {
    /// Language of the definitions.
    pub language: Language,
    /// Unit of columns.
    pub encoding: Encoding,
    /// Folders that are open in the editor.
    pub folders: Vec<PathBuf>,
    /// Who asks the source.
    pub asker: Sender<Question>,
    /// Who is told.
    pub outcomes: Sender<Outcome>,
}

/// Starts the thread. It ends when nobody asks any more.
pub fn start(reader: Reader, tasks: Receiver<Task>) -> std::io::Result<()> {
    let run = move || {
        let mut thread = Thread { reader, open: OpenTexts::default(), read: HashMap::new() };
        while let Ok(task) = tasks.recv() {
            thread.take(task);
            // A text is read when nothing newer of it waits.
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
    /// What the texts said when they were read last; by URI. Without a reading
    /// for those that changed since.
    read: HashMap<String, Option<Arc<Analysis>>>,
}

impl Thread {
    fn take(&mut self, task: Task) {
        match task {
            Task::Set(uri, version, text) => {
                self.open.set(&uri, version, text);
                self.read.insert(uri.as_str().to_owned(), None);
                // Other texts may mention what it defines.
                self.forget_others(&uri);
            }
            Task::Close(uri) => {
                self.open.close(&uri);
                self.read.remove(uri.as_str());
                self.forget_others(&uri);
            }
            Task::Changed => self.read.values_mut().for_each(|one| *one = None),
            Task::Ask(id, uri, wish) => self.answer(id, &uri, wish),
        }
    }

    /// Forgets what texts of the same folder said.
    fn forget_others(&mut self, uri: &Uri) {
        let folder = |uri: &str| uri.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        let changed = folder(uri.as_str());
        for (other, read) in &mut self.read {
            if other != uri.as_str() && folder(other) == changed {
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
    }

    /// What a text says now; it is read if it changed.
    fn analysis(&mut self, uri: &Uri) -> Option<Arc<Analysis>> {
        let read = self.read.get_mut(uri.as_str())?;
        if read.is_none() {
            let Reader { language, encoding, asker, outcomes, .. } = &self.reader;
            let analysis = Arc::new(Analysis::new(uri, &self.open, *language, *encoding)?);
            *read = Some(Arc::clone(&analysis));
            // Whoever is gone needs no answer.
            let _ = outcomes.send(Outcome::Read(Arc::clone(&analysis)));
            let _ = asker.send(Question::Check(analysis));
        }
        read.clone()
    }

    fn answer(&mut self, id: RequestId, uri: &Uri, wish: Wish) {
        let Some(analysis) = self.analysis(uri) else {
            let words = "this text is not open".to_owned();
            let _ = self.reader.outcomes.send(Outcome::Answered(id, Answer::Refused(words)));
            return;
        };
        let offset = |position| analysis.lines.offset(analysis.text(), position);
        let Reader { language, folders, asker, outcomes, .. } = &self.reader;
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
            Wish::Symbols => value(&names::symbols(&analysis)),
            Wish::Definition(position) => value(&names::definition(&analysis, offset(position))),
            Wish::References(position, with_definition) => {
                value(&names::mentions(&analysis, offset(position), with_definition))
            }
            Wish::PrepareRename(position) => {
                let defined = |name: &str| analysis.registry.get(name).is_some();
                let found = analysis.name_at(offset(position));
                let found = found.filter(|(name, _)| defined(name));
                value(&found.map(|(_, span)| analysis.range(span)))
            }
            Wish::Rename(position, name) => {
                let at = offset(position);
                match names::rename(&analysis, at, &name, folders, &self.open, *language) {
                    Ok(edit) => value(&edit),
                    Err(words) => Answer::Refused(words),
                }
            }
            Wish::Formatting => value(&formatted(analysis.text(), &analysis.lines, *language)),
            Wish::Tokens => {
                let data = tokens::semantic_tokens(analysis.text(), &analysis.lines, *language);
                value(&lsp_types::SemanticTokens { result_id: None, data })
            }
            Wish::Actions(range, version, diagnostics) => match version == analysis.version {
                true => value(&actions(&analysis, &diagnostics, range)),
                false => Answer::Value(Value::Array(Vec::new())),
            },
        };
        let _ = outcomes.send(Outcome::Answered(id, answer));
    }
}

/// The edit that brings a text into its usual form, from the first line that
/// changes.
fn formatted(text: &str, lines: &LineIndex, language: Language) -> Vec<TextEdit> {
    let new = format_definitions(text, language).text;
    if new == text {
        return Vec::new();
    }
    let same = text.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    let start = text[..text.floor_char_boundary(same)].rfind('\n').map_or(0, |at| at + 1);
    let range = lines.range(text, start..text.len());
    vec![TextEdit { range, new_text: new[start..].to_owned() }]
}

fn value(answer: &impl Serialize) -> Answer {
    // Values of the protocol always serialise.
    Answer::Value(serde_json::to_value(answer).unwrap_or_default())
}
