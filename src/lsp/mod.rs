//! A language server: it shows mistakes and completions while a user types (`pmderive lsp`).
//!
//! ```text
//!  client ◄──► loop ──tasks──► reader ──questions──► asker ◄──► source of metrics
//!               ▲                │ analysis             │ metadata, values
//!               └──────news──────┴──────────────────────┘
//! ```
//!
//! The loop applies edits. It answers at once if the characters around the cursor suffice. The
//! reader parses texts. Only the asker waits for a source; if that takes too long, the loop
//! answers without it. The command chooses the source and the language.

mod actions;
mod analysis;
mod completion;
mod cursor;
mod definition_cache;
mod events;
mod files;
mod formatting;
mod framing;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod hover;
mod main_loop;
mod matching;
mod names;
mod options;
mod positions;
mod settings;
mod source;
mod source_thread;
mod symbols;
mod text_cache;
mod text_thread;
mod tokens;
mod tree;
mod unregistered_names;
mod uris;

use std::path::PathBuf;

use lsp_server::{ErrorCode, Message, Request, RequestId, Response};
use lsp_types::notification::{Exit, Notification as _};
use lsp_types::request::{Initialize, Request as _};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CompletionOptions, HoverProviderCapability,
    InitializeParams, OneOf, RenameOptions, SemanticTokensFullOptions, SemanticTokensOptions,
    ServerCapabilities, SignatureHelpOptions, TextDocumentSyncCapability, TextDocumentSyncKind,
};

use self::main_loop::{Agreement, MainLoop};
use self::positions::Encoding;

pub use self::framing::{Client, Streams, connect};
#[cfg(any(test, feature = "fuzz"))]
pub use self::fuzz::fuzz_lsp;
pub use self::options::{End, Options};
pub use self::source::{Opener, Source};

/// Serves one client until it sends `shutdown` and `exit`, or is gone.
///
/// # Errors
/// A thread cannot be started.
pub fn serve(client: &Client, options: Options) -> std::io::Result<End> {
    let (id, parameters) = match first_request(client) {
        Ok(first) => first,
        Err(end) => return Ok(end),
    };
    let general = parameters.capabilities.general.as_ref();
    let encoding = Encoding::chosen(general.and_then(|one| one.position_encodings.as_deref()));
    let answer = serde_json::json!({
        "capabilities": capabilities(encoding),
        "serverInfo": { "name": "pmderive", "version": env!("CARGO_PKG_VERSION") },
    });
    client.send(Response::new_ok(id, answer));
    let agreed = Agreement {
        encoding,
        folders: folders(&parameters),
        watches_files: registers_watchers(&parameters),
    };
    Ok(MainLoop::start(client, agreed, options)?.run())
}

/// Waits for `initialize`. Earlier messages are refused.
///
/// # Errors
/// The client ended instead.
fn first_request(client: &Client) -> Result<(RequestId, InitializeParams), End> {
    for message in &client.receiver {
        let (id, code, words) = match message {
            Message::Request(request) if request.method == Initialize::METHOD => {
                match serde_json::from_value(request.params) {
                    Ok(parameters) => return Ok((request.id, parameters)),
                    Err(error) => (request.id, ErrorCode::InvalidParams, error.to_string()),
                }
            }
            Message::Request(Request { id, method, .. }) => {
                let words = format!("`{method}` comes before `initialize`");
                (id, ErrorCode::ServerNotInitialized, words)
            }
            Message::Notification(note) if note.method == Exit::METHOD => {
                return Err(End::WithoutShutdown);
            }
            Message::Notification(_) | Message::Response(_) => continue,
        };
        client.send(Response::new_err(id, code as i32, words));
    }
    Err(End::Agreed)
}

/// True if the client watches files on request.
fn registers_watchers(parameters: &InitializeParams) -> bool {
    let workspace = parameters.capabilities.workspace.as_ref();
    let watched = workspace.and_then(|workspace| workspace.did_change_watched_files.as_ref());
    watched.and_then(|watched| watched.dynamic_registration).unwrap_or_default()
}

/// Open folders in the editor.
fn folders(parameters: &InitializeParams) -> Vec<PathBuf> {
    let folders = parameters.workspace_folders.iter().flatten();
    let folders: Vec<PathBuf> = folders.filter_map(|folder| files::path_of(&folder.uri)).collect();
    if !folders.is_empty() {
        return folders;
    }
    #[allow(deprecated, reason = "older clients have nothing else")]
    let (uri, path) = (&parameters.root_uri, &parameters.root_path);
    let path = path.as_ref().map(PathBuf::from).filter(|path| path.is_absolute());
    uri.as_ref().and_then(files::path_of).or(path).into_iter().collect()
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    let texts = |of: &[&str]| Some(of.iter().map(|one| (*one).to_owned()).collect());
    ServerCapabilities {
        position_encoding: Some(encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Kind(
            TextDocumentSyncKind::INCREMENTAL,
        )),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: texts(&[".", "[", "\"", "(", "="]),
            ..CompletionOptions::default()
        }),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: texts(&["(", ","]),
            ..SignatureHelpOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        document_range_formatting_provider: Some(OneOf::Left(true)),
        workspace_symbol_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: Default::default(),
        })),
        code_action_provider: Some(
            CodeActionOptions {
                code_action_kinds: Some(vec![
                    CodeActionKind::QUICKFIX,
                    CodeActionKind::SOURCE_FIX_ALL,
                ]),
                ..CodeActionOptions::default()
            }
            .into(),
        ),
        semantic_tokens_provider: Some(
            SemanticTokensOptions {
                legend: tokens::legend(),
                full: Some(SemanticTokensFullOptions::Bool(true)),
                ..SemanticTokensOptions::default()
            }
            .into(),
        ),
        ..ServerCapabilities::default()
    }
}
