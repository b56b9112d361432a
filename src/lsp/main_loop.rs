//! The main loop of the server: messages of the client in, answers and diagnostics out. It
//! waits only for the next message or event.

mod requests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, never, select, unbounded};
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{
    Cancel, DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument,
    DidOpenTextDocument, Exit, Initialized, LogMessage, Notification as _, PublishDiagnostics,
    ShowMessage,
};
use lsp_types::request::{RegisterCapability, Request as _};
use lsp_types::{
    DidChangeWatchedFilesRegistrationOptions, FileSystemWatcher, GlobPattern, LogMessageParams,
    MessageType, NumberOrString, Position, PublishDiagnosticsParams, Range, Registration,
    RegistrationParams, ShowMessageParams, Uri,
};
use serde::Serialize;

use super::actions::shown;
use super::analysis::Analysis;
use super::completion::{instances, nothing_yet};
use super::events::{Answer, Event};
use super::files::ENDINGS;
use super::framing::{Client, Outgoing};
use super::options::{End, Options};
use super::positions::{Encoding, LineIndex, apply};
use super::source_thread::{self, Sources, Turn, textual};
use super::text_thread::{self, Reader, SourceNames, Task, Wish};
use crate::diag::Diagnostics;

/// Time for the source to answer a request. Then the loop answers without it.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Longest text that is accepted, in bytes. Spans have 32 bits, and an editor sends the whole
/// text.
const MAX_TEXT: usize = 64 << 20;

/// The running server.
pub struct MainLoop<'c> {
    client: &'c Client,
    encoding: Encoding,
    tasks: Sender<Task>,
    events: Receiver<Event>,
    /// Events of threads with a single task. The other channel closes when a thread ends that all
    /// others need.
    single: (Sender<Event>, Receiver<Event>),
    texts: HashMap<String, Text>,
    /// The last revision of any text.
    last: u64,
    /// Names of the metrics of sources.
    metrics: SourceNames,
    /// How long diagnostics of the text wait for those of the source.
    grace: Duration,
    /// Requests in progress in a thread, by identifier.
    waiting: HashMap<RequestId, PendingRequest>,
    /// True once trouble with the source was shown; until the source is back it is only logged.
    is_trouble_shown: bool,
    /// True if the client must be asked to watch files, once it is ready.
    watches_files: bool,
    /// Diagnostics of one text that are shown, at most.
    max_shown: usize,
    is_shut_down: bool,
}

/// The agreement between a client and the server.
pub struct Agreement {
    /// Unit of columns.
    pub encoding: Encoding,
    /// Open folders in the editor.
    pub folders: Vec<PathBuf>,
    /// True if the client watches files on request.
    pub watches_files: bool,
}

/// An open text.
struct Text {
    /// The editor's version number. A text that is opened again may have the same.
    version: i32,
    /// The number of this state, which no other state of any text has.
    revision: u64,
    text: String,
    /// The lines of the text.
    lines: LineIndex,
    /// Its last analysis.
    read: Option<Arc<Analysis>>,
    /// Revision and mistakes of its last check with the source.
    checked: Option<(u64, Arc<Diagnostics>)>,
    /// Time at which diagnostics are shown without the source's answer.
    due: Option<Instant>,
    /// Time of the last analysis.
    read_at: Instant,
    /// Duration of the last check with the source.
    took: Duration,
    /// Requests for edits that wait until this state is checked.
    edits_asked: Vec<(RequestId, Wish)>,
}

impl Text {
    fn is_checked(&self) -> bool {
        self.checked.as_ref().is_some_and(|(revision, _)| *revision == self.revision)
    }
}

/// A request in progress in a thread.
struct PendingRequest {
    kind: PendingKind,
    /// Time at which it is answered without the source, if it needs the source.
    due: Option<Instant>,
}

/// Kind of a request in progress; it decides about the answer without the source.
enum PendingKind {
    /// The hover text at a place.
    Hover(Uri, Position),
    /// Instances that begin with the typed text in a range.
    Instances(String, Range),
    /// Any request without need of a source: it is answered in its turn.
    Other,
}

impl<'c> MainLoop<'c> {
    /// Starts the threads.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        client: &'c Client,
        agreed: Agreement,
        options: Options,
    ) -> std::io::Result<MainLoop<'c>> {
        let Agreement { encoding, folders, watches_files } = agreed;
        let Options { language, opener, grace, max_shown } = options;
        let (tell, events) = unbounded();
        let (ask, questions) = unbounded();
        let (tasks, given) = unbounded();
        let metrics = SourceNames { is_chosen: opener.is_some(), ..SourceNames::default() };
        let turn = Turn::default();
        source_thread::start(
            Sources::new(opener),
            language,
            questions,
            tell.clone(),
            turn.clone(),
        )?;
        let reader = Reader { language, encoding, folders, asker: ask, turn, events: tell };
        text_thread::start(reader, given)?;
        Ok(MainLoop {
            client,
            encoding,
            tasks,
            events,
            single: unbounded(),
            texts: HashMap::new(),
            last: 0,
            metrics,
            grace,
            waiting: HashMap::new(),
            is_trouble_shown: false,
            watches_files,
            max_shown,
            is_shut_down: false,
        })
    }

    /// Asks the client to watch the files that texts depend on: settings, metadata, and other
    /// definitions. Most clients do so only on request.
    fn watch_files(&self) {
        let definitions = ENDINGS.map(|ending| format!("**/*.{ending}"));
        let others = ["**/pmderive.toml", "**/*.json"].map(str::to_owned);
        let watchers = others
            .into_iter()
            .chain(definitions)
            .map(|glob| FileSystemWatcher { glob_pattern: GlobPattern::String(glob), kind: None });
        let options = DidChangeWatchedFilesRegistrationOptions { watchers: watchers.collect() };
        let registration = Registration {
            id: "files".to_owned(),
            method: DidChangeWatchedFiles::METHOD.to_owned(),
            register_options: serde_json::to_value(options).ok(),
        };
        let params = RegistrationParams { registrations: vec![registration] };
        let params = serde_json::to_value(params).unwrap_or_default();
        let (id, method) = (RequestId::from(1), RegisterCapability::METHOD.to_owned());
        self.client.send(Request { id, method, params });
    }

    /// Serves until the client sends `exit`, or is gone.
    pub fn run(mut self) -> End {
        loop {
            let next = self.next_due();
            let due = match next {
                Some(due) => crossbeam_channel::at(due),
                None => never(),
            };
            select! {
                recv(self.client.receiver) -> message => match message {
                    Ok(Message::Request(request)) => self.request(request),
                    Ok(Message::Notification(note)) if note.method == Exit::METHOD => {
                        return match self.is_shut_down {
                            true => End::Agreed,
                            false => End::WithoutShutdown,
                        };
                    }
                    Ok(Message::Notification(note)) => self.notification(note),
                    // For a client that cannot watch files, only its own edits are checked.
                    Ok(Message::Response(_)) => {}
                    Err(_) => return End::Agreed,
                },
                recv(self.events) -> event => match event {
                    Ok(event) => self.handle_event(event),
                    // A thread has ended, so no answers are possible any more.
                    Err(_) => return End::Agreed,
                },
                recv(self.single.1) -> event => if let Ok(event) = event {
                    self.handle_event(event);
                },
                recv(due) -> _ => self.overdue(),
            }
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let texts = self.texts.values().filter_map(|text| text.due);
        texts.chain(self.waiting.values().filter_map(|one| one.due)).min()
    }

    fn answer(&self, id: RequestId, result: impl Serialize) {
        // Results of the protocol always serialise.
        let result = serde_json::to_value(result).unwrap_or_default();
        self.client.send(Response { id, response_result: Ok(result) });
    }

    fn refuse(&self, id: RequestId, code: ErrorCode, words: impl Into<String>) {
        self.client.send(Response::new_err(id, code as i32, words.into()));
    }

    fn notification(&mut self, note: Notification) {
        match &*note.method {
            DidOpenTextDocument::METHOD => {
                let Some(opened) = self.read::<DidOpenTextDocument>(note) else { return };
                let opened = opened.text_document;
                let lines = LineIndex::new(&opened.text, self.encoding);
                self.set(opened.uri, opened.version, opened.text, lines);
            }
            DidChangeTextDocument::METHOD => {
                let Some(changed) = self.read::<DidChangeTextDocument>(note) else { return };
                let (uri, version) = (changed.text_document.uri, changed.text_document.version);
                let Some(open) = self.texts.get_mut(uri.as_str()) else {
                    let uri = uri.as_str();
                    return self.log(format!("`{uri}` was changed without having been opened"));
                };
                let mut text = std::mem::take(&mut open.text);
                let mut lines =
                    std::mem::replace(&mut open.lines, LineIndex::new("", self.encoding));
                apply(&mut text, &mut lines, changed.content_changes);
                self.set(uri, version, text, lines);
            }
            DidCloseTextDocument::METHOD => {
                let Some(closed) = self.read::<DidCloseTextDocument>(note) else { return };
                let uri = closed.text_document.uri;
                if let Some(text) = self.texts.remove(uri.as_str()) {
                    self.publish(uri.clone(), None, Vec::new());
                    self.tell(Task::Close(uri.clone()));
                    for (id, wish) in text.edits_asked {
                        self.tell(Task::Ask(id, uri.clone(), wish));
                    }
                }
            }
            DidChangeWatchedFiles::METHOD => self.tell(Task::Changed),
            Initialized::METHOD if self.watches_files => self.watch_files(),
            Cancel::METHOD => {
                let Some(cancelled) = self.read::<Cancel>(note) else { return };
                let id = match cancelled.id {
                    NumberOrString::Number(id) => RequestId::from(id),
                    NumberOrString::String(id) => RequestId::from(id),
                };
                if self.waiting.remove(&id).is_some() {
                    self.refuse(id, ErrorCode::RequestCanceled, "cancelled");
                }
            }
            // Other notifications do not concern definitions.
            _ => {}
        }
    }

    /// The parameters of a notification; wrong ones are logged.
    fn read<N: lsp_types::notification::Notification>(
        &self,
        note: Notification,
    ) -> Option<N::Params> {
        match serde_json::from_value(note.params) {
            Ok(parameters) => Some(parameters),
            Err(error) => {
                self.log(format!("`{}` cannot be read: {error}", N::METHOD));
                None
            }
        }
    }

    fn set(&mut self, uri: Uri, version: i32, mut text: String, mut lines: LineIndex) {
        if text.len() > MAX_TEXT {
            self.log(format!("`{}` is too large to be checked", uri.as_str()));
            text.clear();
            lines = LineIndex::new(&text, self.encoding);
        }
        self.last += 1;
        let revision = self.last;
        self.tell(Task::Set(uri.clone(), revision, text.as_str().into()));
        let before = self.texts.remove(uri.as_str());
        let took = before.as_ref().map(|one| one.took).unwrap_or_default();
        let before = before.map(|one| (one.read, one.checked, one.edits_asked));
        let (read, checked, edits_asked) = before.unwrap_or_default();
        let key = uri.as_str().to_owned();
        let read_at = Instant::now();
        let due = None;
        let text =
            Text { version, revision, text, lines, read, checked, due, read_at, took, edits_asked };
        self.texts.insert(key, text);
    }

    fn tell(&self, task: Task) {
        // The thread ends only after this loop.
        let _ = self.tasks.send(task);
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Names(file, names) => {
                self.metrics.by_file.insert(file, names);
            }
            Event::Settings(uri, mistakes) => self.publish(uri, None, mistakes),
            Event::Read(analysis) => {
                if let Some(text) = self.texts.get_mut(analysis.uri.as_str()) {
                    // Checking a long text needs more time, even if nothing hangs.
                    let usual = (2 * text.took).min(PATIENCE);
                    text.read_at = Instant::now();
                    text.due = Some(text.read_at + self.grace.max(usual));
                    text.read = Some(analysis);
                }
                if self.grace.is_zero() {
                    self.overdue();
                }
            }
            Event::Checked { uri, revision, diagnostics } => {
                if let Some(text) = self.texts.get_mut(uri.as_str()) {
                    text.took = text.read_at.elapsed();
                }
                self.checked(&uri, revision, diagnostics);
            }
            Event::Textual { uri, revision, diagnostics } => {
                // The source's answer has come meanwhile, and is better.
                let text = self.texts.get(uri.as_str());
                if !text.is_some_and(|text| text.revision == revision && text.is_checked()) {
                    self.checked(&uri, revision, diagnostics);
                }
            }
            Event::Answered(id, answer) => {
                // Otherwise it was answered before, or cancelled.
                let Some(waiting) = self.waiting.remove(&id) else { return };
                match answer {
                    Answer::Written(contents) => {
                        self.client.send_written(Outgoing::Answer(id, contents));
                    }
                    Answer::Refused(words) => self.refuse(id, ErrorCode::RequestFailed, words),
                    Answer::Hover(hover) => self.answer(id, hover),
                    Answer::Instances(names) => match waiting.kind {
                        PendingKind::Instances(typed, range) => {
                            self.answer(id, instances(&names, &typed, range));
                        }
                        _ => self.answer(id, ()),
                    },
                }
            }
            Event::Trouble(words) => {
                let words = format!("checked without metrics: {words}");
                match std::mem::replace(&mut self.is_trouble_shown, true) {
                    true => self.log(words),
                    false => self.show(words),
                }
            }
            Event::SourceIsBack => {
                if std::mem::take(&mut self.is_trouble_shown) {
                    self.log("the source answers again".to_owned());
                }
            }
            Event::Notice(words) => self.show(words),
        }
    }

    /// Shows the mistakes of a text, if they belong to the newest state.
    fn checked(&mut self, uri: &Uri, revision: u64, diagnostics: Diagnostics) {
        let Some(text) = self.texts.get_mut(uri.as_str()) else { return };
        let Some(read) = text.read.clone().filter(|read| read.revision == revision) else { return };
        text.due = None;
        if text.revision != revision {
            return;
        }
        let list = shown(&read, &diagnostics, self.max_shown);
        text.checked = Some((revision, Arc::new(diagnostics)));
        let version = text.version;
        self.publish(uri.clone(), Some(version), list);
        self.answer_edits(uri);
    }

    fn publish(&self, uri: Uri, version: Option<i32>, diagnostics: Vec<lsp_types::Diagnostic>) {
        let parameters = PublishDiagnosticsParams { uri, diagnostics, version };
        self.notify::<PublishDiagnostics>(parameters);
    }

    /// Continues without the source if it does not answer in time.
    fn overdue(&mut self) {
        let now = Instant::now();
        let late = self.texts.values_mut().filter(|text| text.due.is_some_and(|due| due <= now));
        let late: Vec<Arc<Analysis>> = late
            .filter_map(|text| {
                text.due = None;
                text.read.clone()
            })
            .collect();
        for read in late {
            self.tell_textual(read);
        }
        let late = self.waiting.iter().filter(|(_, one)| one.due.is_some_and(|due| due <= now));
        let late: Vec<RequestId> = late.map(|(id, _)| id.clone()).collect();
        for id in late {
            let Some(waiting) = self.waiting.remove(&id) else { continue };
            match waiting.kind {
                PendingKind::Hover(uri, position) => {
                    self.wish(id, uri, Wish::HoverOffline(position));
                }
                PendingKind::Instances(..) => self.answer(id, nothing_yet()),
                // It is never overdue.
                PendingKind::Other => {}
            }
        }
    }

    /// Shows the mistakes that the text alone shows. This has a thread of its own, as no user
    /// waits for it and the other threads serve requests.
    fn tell_textual(&mut self, read: Arc<Analysis>) {
        let (tell, analysis) = (self.single.0.clone(), Arc::clone(&read));
        let run = move || {
            let (uri, revision) = (analysis.uri.clone(), analysis.revision);
            let diagnostics = textual(&analysis);
            // The send fails only if the loop has ended.
            let _ = tell.send(Event::Textual { uri, revision, diagnostics });
        };
        if thread::Builder::new().name("mistakes".to_owned()).spawn(run).is_err() {
            self.checked(&read.uri, read.revision, textual(&read));
        }
    }

    fn show(&self, message: String) {
        let parameters = ShowMessageParams { typ: MessageType::WARNING, message };
        self.notify::<ShowMessage>(parameters);
    }

    fn log(&self, message: String) {
        let parameters = LogMessageParams { typ: MessageType::INFO, message };
        self.notify::<LogMessage>(parameters);
    }

    fn notify<N: lsp_types::notification::Notification>(&self, parameters: N::Params) {
        // Parameters of the protocol always serialise.
        let contents = serde_json::to_string(&parameters).unwrap_or_default().into();
        self.client.send_written(Outgoing::Notification(N::METHOD, contents));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dialect::Dialect;
    use crate::lsp::connect;

    /// An editor may count from 1 again when it opens a text again.
    #[test]
    fn a_text_that_is_opened_again_has_no_mistakes_of_its_former_state() {
        let (client, _) = connect(std::io::empty(), std::io::sink()).expect("streams");
        let agreed =
            Agreement { encoding: Encoding::Utf8, folders: Vec::new(), watches_files: false };
        let language = Dialect::Fixed.into();
        let grace = Duration::from_secs(600);
        let options = Options { language, opener: None, grace, max_shown: 100 };
        let mut server = MainLoop::start(&client, agreed, options).expect("threads");
        let open = |server: &mut MainLoop<'_>, text: &str| {
            let item = json!({ "uri": "a:b", "languageId": "", "version": 1, "text": text });
            let method = DidOpenTextDocument::METHOD.to_owned();
            server.notification(Notification { method, params: json!({ "textDocument": item }) });
        };
        let found = |server: &MainLoop<'_>| {
            server.texts["a:b"].checked.as_ref().map(|(_, found)| found.len())
        };
        // The threads report on a text in two events.
        let told = |server: &MainLoop<'_>| [(); 2].map(|()| server.events.recv().expect("told"));
        open(&mut server, "a.b = 1 +\n");
        let late = told(&server);
        let closed = json!({ "textDocument": { "uri": "a:b" } });
        let method = DidCloseTextDocument::METHOD.to_owned();
        server.notification(Notification { method, params: closed });
        open(&mut server, "a.b = 1\n");
        late.into_iter().for_each(|event| server.handle_event(event));
        assert_eq!(found(&server), None);
        told(&server).into_iter().for_each(|event| server.handle_event(event));
        assert_eq!(found(&server), Some(0));
    }
}
