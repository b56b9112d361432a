//! The loop of the server: messages of the client in, answers and diagnostics
//! out. It never waits for anything but the next message.

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
use lsp_types::request::{
    CodeActionRequest, Completion, DocumentSymbolRequest, Formatting, GotoDefinition, HoverRequest,
    Initialize, PrepareRenameRequest, RangeFormatting, References, RegisterCapability, Rename,
    Request as _, SemanticTokensFullRequest, Shutdown, SignatureHelpRequest,
    WorkspaceSymbolRequest,
};
use lsp_types::{
    DidChangeWatchedFilesRegistrationOptions, FileSystemWatcher, GlobPattern, LogMessageParams,
    MessageType, NumberOrString, ParameterInformation, ParameterLabel, Position,
    PublishDiagnosticsParams, Range, Registration, RegistrationParams, ShowMessageParams,
    SignatureHelp, SignatureInformation, TextDocumentPositionParams, Uri,
};
use serde::Serialize;
use serde_json::Value;

use super::actions::shown;
use super::analysis::Analysis;
use super::completion::{Vocabulary, completions, instances, nothing_yet};
use super::cursor::{Within, cursor};
use super::events::{Answer, News};
use super::files::ENDINGS;
use super::framing::{Client, Outgoing};
use super::options::{End, Options};
use super::positions::{Encoding, LineIndex, apply, number};
use super::source_thread::{self, Sources, Turn, textual};
use super::text_thread::{self, Reader, SourceNames, Task, Wish, is_settings};
use crate::diag::Diagnostics;
use crate::functions::signature;

/// How long a request may wait for the source before it is answered without.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Longest text that is kept, in bytes. Spans have 32 bits, and an editor
/// sends all of it.
const MAX_TEXT: usize = 64 << 20;

/// The server while it serves.
pub struct Running<'c> {
    client: &'c Client,
    encoding: Encoding,
    tasks: Sender<Task>,
    news: Receiver<News>,
    /// What threads tell that do a single task. The other channel ends
    /// when a thread falls that all depends on.
    single: (Sender<News>, Receiver<News>),
    texts: HashMap<String, Text>,
    /// Names of the metrics of sources.
    metrics: SourceNames,
    /// How long mistakes that the text alone tells wait for the source.
    grace: Duration,
    /// Requests that a thread has, by identifier.
    waiting: HashMap<RequestId, Waiting>,
    /// Trouble with the source was shown, and not only logged.
    is_trouble_shown: bool,
    /// The client is asked to watch files once it says that it is ready.
    watches_files: bool,
    /// Diagnostics of a text that are shown at most.
    max_shown: usize,
    is_shut_down: bool,
}

/// What a client and the server agree on.
pub struct Agreed {
    /// Unit of columns.
    pub encoding: Encoding,
    /// Folders that are open in the editor.
    pub folders: Vec<PathBuf>,
    /// The client watches files if it is asked to.
    pub watches_files: bool,
}

/// A text that is open.
struct Text {
    version: i32,
    text: String,
    /// The lines of the text.
    lines: LineIndex,
    /// What it said when it was read last.
    read: Option<Arc<Analysis>>,
    /// What was wrong with that state, once the source was asked.
    checked: Option<(i32, Arc<Diagnostics>)>,
    /// When the reading is shown without the source's answer.
    due: Option<Instant>,
    /// When it was read last.
    read_at: Instant,
    /// How long it took to check it with the source.
    took: Duration,
    /// Requests for edits that wait until this state is checked.
    edits_asked: Vec<(RequestId, Wish)>,
}

impl Text {
    fn is_checked(&self) -> bool {
        self.checked.as_ref().is_some_and(|(version, _)| *version == self.version)
    }
}

/// A request that waits for a thread.
struct Waiting {
    kind: WaitingFor,
    /// When it is answered without the source, if it needs that.
    due: Option<Instant>,
}

/// What a request waits for, and so what it is answered if the source does not answer.
enum WaitingFor {
    /// What stands at a place.
    Hover(Uri, Position),
    /// Instances that begin with what is typed in a range.
    Instances(String, Range),
    /// Anything that needs no source: it is answered when its turn comes.
    Other,
}

impl<'c> Running<'c> {
    /// Starts the threads.
    ///
    /// # Errors
    /// One cannot be started.
    pub fn start(
        client: &'c Client,
        agreed: Agreed,
        options: Options,
    ) -> std::io::Result<Running<'c>> {
        let Agreed { encoding, folders, watches_files } = agreed;
        let Options { language, opener, grace, max_shown } = options;
        let (tell, news) = unbounded();
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
        let reader = Reader { language, encoding, folders, asker: ask, turn, news: tell };
        text_thread::start(reader, given)?;
        Ok(Running {
            client,
            encoding,
            tasks,
            news,
            single: unbounded(),
            texts: HashMap::new(),
            metrics,
            grace,
            waiting: HashMap::new(),
            is_trouble_shown: false,
            watches_files,
            max_shown,
            is_shut_down: false,
        })
    }

    /// Asks the client to tell when files change that texts depend on: settings,
    /// metadata, and other definitions. Most clients tell only if they are asked.
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

    /// Serves until the client says `exit`, or is gone.
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
                    // A client that cannot watch files has only its own edits checked.
                    Ok(Message::Response(_)) => {}
                    Err(_) => return End::Agreed,
                },
                recv(self.news) -> told => match told {
                    Ok(told) => self.told(told),
                    // A thread fell: nothing can be answered any more.
                    Err(_) => return End::Agreed,
                },
                recv(self.single.1) -> told => if let Ok(told) = told {
                    self.told(told);
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
            // Others have nothing to do with definitions.
            _ => {}
        }
    }

    /// The parameters of a notification; what cannot be read is logged.
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
        self.tell(Task::Set(uri.clone(), version, text.as_str().into()));
        let before = self.texts.remove(uri.as_str());
        let took = before.as_ref().map(|one| one.took).unwrap_or_default();
        let before = before.map(|one| (one.read, one.checked, one.edits_asked));
        let (read, checked, edits_asked) = before.unwrap_or_default();
        let key = uri.as_str().to_owned();
        let read_at = Instant::now();
        let due = None;
        let text = Text { version, text, lines, read, checked, due, read_at, took, edits_asked };
        self.texts.insert(key, text);
    }

    fn tell(&self, task: Task) {
        // The thread ends after this one only.
        let _ = self.tasks.send(task);
    }

    fn request(&mut self, request: Request) {
        let id = request.id.clone();
        if self.is_shut_down {
            return self.refuse(id, ErrorCode::InvalidRequest, "the server is shut down");
        }
        if let Err(error) = self.take(request) {
            self.refuse(id, ErrorCode::InvalidParams, error.to_string());
        }
    }

    /// Does what a request asks for, or lets a thread do it.
    ///
    /// # Errors
    /// Its parameters cannot be read.
    fn take(&mut self, request: Request) -> serde_json::Result<()> {
        let Request { id, method, params } = request;
        match &*method {
            Shutdown::METHOD => {
                self.is_shut_down = true;
                self.answer(id, ());
            }
            Completion::METHOD => {
                self.complete(id, read::<Completion>(params)?.text_document_position);
            }
            Initialize::METHOD => {
                self.refuse(id, ErrorCode::InvalidRequest, "`initialize` was said before");
            }
            WorkspaceSymbolRequest::METHOD => {
                let query = read::<WorkspaceSymbolRequest>(params)?.query;
                self.wait(id.clone(), WaitingFor::Other);
                self.tell(Task::Symbols(id, query));
            }
            SignatureHelpRequest::METHOD => {
                let asked = read::<SignatureHelpRequest>(params)?;
                let help = self.signature(&asked.text_document_position_params);
                self.answer(id, help);
            }
            _ => match self.wish_of(&method, params)? {
                Some((uri, wish)) => self.wish(id, uri, wish),
                None => {
                    let words = format!("this server does not know `{method}`");
                    self.refuse(id, ErrorCode::MethodNotFound, words);
                }
            },
        }
        Ok(())
    }

    /// What a request wishes of a thread, and the text that it is about. `None` if there is
    /// no such method.
    ///
    /// # Errors
    /// Its parameters cannot be read.
    fn wish_of(&self, method: &str, params: Value) -> serde_json::Result<Option<(Uri, Wish)>> {
        let (document, wish) = match method {
            HoverRequest::METHOD => {
                let at = read::<HoverRequest>(params)?.text_document_position_params;
                (at.text_document, Wish::Hover(at.position))
            }
            GotoDefinition::METHOD => {
                let at = read::<GotoDefinition>(params)?.text_document_position_params;
                (at.text_document, Wish::Definition(at.position))
            }
            References::METHOD => {
                let asked = read::<References>(params)?;
                let at = asked.text_document_position;
                let wish = Wish::References(at.position, asked.context.include_declaration);
                (at.text_document, wish)
            }
            PrepareRenameRequest::METHOD => {
                let at = read::<PrepareRenameRequest>(params)?;
                (at.text_document, Wish::PrepareRename(at.position))
            }
            Rename::METHOD => {
                let asked = read::<Rename>(params)?;
                let at = asked.text_document_position;
                let wish = Wish::Rename(at.position, asked.new_name, self.metrics.clone());
                (at.text_document, wish)
            }
            DocumentSymbolRequest::METHOD => {
                (read::<DocumentSymbolRequest>(params)?.text_document, Wish::Symbols)
            }
            Formatting::METHOD => (read::<Formatting>(params)?.text_document, Wish::Formatting),
            RangeFormatting::METHOD => {
                let asked = read::<RangeFormatting>(params)?;
                (asked.text_document, Wish::RangeFormatting(asked.range))
            }
            SemanticTokensFullRequest::METHOD => {
                (read::<SemanticTokensFullRequest>(params)?.text_document, Wish::Tokens)
            }
            CodeActionRequest::METHOD => {
                let asked = read::<CodeActionRequest>(params)?;
                let (range, only) = (asked.range, asked.context.only);
                (asked.text_document, Wish::Actions { range, only, checked: None })
            }
            _ => return Ok(None),
        };
        Ok(Some((document.uri, wish)))
    }

    /// Lets a thread answer.
    fn wish(&mut self, id: RequestId, uri: Uri, wish: Wish) {
        let kind = match &wish {
            Wish::Hover(position) => WaitingFor::Hover(uri.clone(), *position),
            _ => WaitingFor::Other,
        };
        self.wait(id.clone(), kind);
        match wish {
            // Files of settings are not checked.
            Wish::Actions { .. }
                if !is_settings(&uri)
                    && let Some(text) = self.texts.get_mut(uri.as_str()) =>
            {
                text.edits_asked.push((id, wish));
                self.answer_edits(&uri);
            }
            _ => self.tell(Task::Ask(id, uri, wish)),
        }
    }

    /// Has requests for edits answered if the newest state of a text is checked.
    fn answer_edits(&mut self, uri: &Uri) {
        let Some(text) = self.texts.get_mut(uri.as_str()).filter(|text| text.is_checked()) else {
            return;
        };
        let found = text.checked.clone();
        for (id, mut wish) in std::mem::take(&mut text.edits_asked) {
            if let Wish::Actions { checked, .. } = &mut wish {
                checked.clone_from(&found);
            }
            self.tell(Task::Ask(id, uri.clone(), wish));
        }
    }

    /// Takes note that a request waits for a thread.
    fn wait(&mut self, id: RequestId, kind: WaitingFor) {
        let needs_source = !matches!(kind, WaitingFor::Other);
        let due = needs_source.then(|| Instant::now() + PATIENCE);
        self.waiting.insert(id, Waiting { kind, due });
    }

    fn complete(&mut self, id: RequestId, at: TextDocumentPositionParams) {
        let uri = at.text_document.uri;
        let Some(open) = self.texts.get(uri.as_str()) else { return self.answer(id, ()) };
        let Text { text, lines, read, .. } = open;
        let offset = lines.offset(text, at.position);
        let cursor = cursor(text, offset);
        let typed = cursor.within.typed();
        // A range of a completion is within a line.
        let in_line = typed.rsplit(['\r', '\n']).next().unwrap_or_default();
        let range = lines.range(text, offset - in_line.len()..offset);
        if let Within::Instance { operand, typed } = cursor.within {
            let wish = Wish::Instances(operand.to_owned());
            let kind = WaitingFor::Instances(typed.to_owned(), range);
            self.wait(id.clone(), kind);
            return self.tell(Task::Ask(id, uri, wish));
        }
        let file = read.as_ref().and_then(|read| read.settings.metadata.as_ref());
        let metrics = self.metrics.of(file);
        let vocabulary = Vocabulary { metrics: metrics.as_deref(), read: read.as_deref() };
        self.answer(id, completions(&cursor, range, &vocabulary));
    }

    fn signature(&self, at: &TextDocumentPositionParams) -> Option<SignatureHelp> {
        let Text { text, lines, .. } = self.texts.get(at.text_document.uri.as_str())?;
        let call = cursor(text, lines.offset(text, at.position)).call?;
        let function = signature::named(call.name)?;
        let arguments = function.arguments();
        let argument = |text: &&str| ParameterInformation {
            label: ParameterLabel::Simple((*text).to_owned()),
            documentation: None,
        };
        // Keywords may be any number, in any order.
        let last = arguments.len().saturating_sub(1);
        let information = SignatureInformation {
            label: function.usage.to_owned(),
            documentation: Some(lsp_types::Documentation::String(function.words.to_owned())),
            parameters: Some(arguments.iter().map(argument).collect()),
            active_parameter: Some(number(call.argument.min(last))),
        };
        let signatures = vec![information];
        Some(SignatureHelp { signatures, active_signature: Some(0), active_parameter: None })
    }

    fn told(&mut self, told: News) {
        match told {
            News::Names(file, names) => {
                self.metrics.told.insert(file, names);
            }
            News::Settings(uri, mistakes) => self.publish(uri, None, mistakes),
            News::Read(analysis) => {
                if let Some(text) = self.texts.get_mut(analysis.uri.as_str()) {
                    // A long text takes its time, also if nothing hangs.
                    let usual = (2 * text.took).min(PATIENCE);
                    text.read_at = Instant::now();
                    text.due = Some(text.read_at + self.grace.max(usual));
                    text.read = Some(analysis);
                }
                if self.grace.is_zero() {
                    self.overdue();
                }
            }
            News::Checked { uri, version, diagnostics } => {
                if let Some(text) = self.texts.get_mut(uri.as_str()) {
                    text.took = text.read_at.elapsed();
                }
                self.checked(&uri, version, diagnostics);
            }
            News::Textual { uri, version, diagnostics } => {
                // What the source told meanwhile is better.
                let text = self.texts.get(uri.as_str());
                if !text.is_some_and(|text| text.version == version && text.is_checked()) {
                    self.checked(&uri, version, diagnostics);
                }
            }
            News::Answered(id, answer) => {
                // Otherwise it was answered before, or cancelled.
                let Some(waiting) = self.waiting.remove(&id) else { return };
                match answer {
                    Answer::Written(contents) => {
                        self.client.send_written(Outgoing::Answer(id, contents));
                    }
                    Answer::Refused(words) => self.refuse(id, ErrorCode::RequestFailed, words),
                    Answer::Hover(hover) => self.answer(id, hover),
                    Answer::Instances(names) => match waiting.kind {
                        WaitingFor::Instances(typed, range) => {
                            self.answer(id, instances(&names, &typed, range));
                        }
                        _ => self.answer(id, ()),
                    },
                }
            }
            News::Trouble(words) => {
                let words = format!("checked without metrics: {words}");
                match std::mem::replace(&mut self.is_trouble_shown, true) {
                    true => self.log(words),
                    false => self.show(words),
                }
            }
            News::Notice(words) => self.show(words),
        }
    }

    /// Shows what is wrong with a text, if it is still the newest state.
    fn checked(&mut self, uri: &Uri, version: i32, diagnostics: Diagnostics) {
        let Some(text) = self.texts.get_mut(uri.as_str()) else { return };
        let Some(read) = text.read.clone().filter(|read| read.version == version) else { return };
        text.due = None;
        if text.version != version {
            return;
        }
        let list = shown(&read, &diagnostics, self.max_shown);
        text.checked = Some((version, Arc::new(diagnostics)));
        self.publish(uri.clone(), Some(version), list);
        self.answer_edits(uri);
    }

    fn publish(&self, uri: Uri, version: Option<i32>, diagnostics: Vec<lsp_types::Diagnostic>) {
        let parameters = PublishDiagnosticsParams { uri, diagnostics, version };
        self.notify::<PublishDiagnostics>(parameters);
    }

    /// Goes on without the source where it does not answer.
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
                WaitingFor::Hover(uri, position) => {
                    self.wish(id, uri, Wish::HoverOffline(position));
                }
                WaitingFor::Instances(..) => self.answer(id, nothing_yet()),
                // It is never overdue.
                WaitingFor::Other => {}
            }
        }
    }

    /// Shows what is wrong with a text as far as the text tells. Nobody waits for
    /// that, and the other threads have those to serve who do.
    fn tell_textual(&mut self, read: Arc<Analysis>) {
        let (tell, analysis) = (self.single.0.clone(), Arc::clone(&read));
        let run = move || {
            let (uri, version) = (analysis.uri.clone(), analysis.version);
            let diagnostics = textual(&analysis);
            // Nobody is left when this fails.
            let _ = tell.send(News::Textual { uri, version, diagnostics });
        };
        if thread::Builder::new().name("mistakes".to_owned()).spawn(run).is_err() {
            self.checked(&read.uri, read.version, textual(&read));
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

/// The parameters of a request.
fn read<R: lsp_types::request::Request>(params: Value) -> serde_json::Result<R::Params> {
    serde_json::from_value(params)
}
