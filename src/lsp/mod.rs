//! A language server: what is wrong and what might be written, while one types
//! (`pmderive lsp`).
//!
//! ```text
//!  client ◄──► loop ──tasks──► reader ──questions──► asker ◄──► source of metrics
//!               ▲                │ analysis             │ metadata, values
//!               └────outcomes────┴──────────────────────┘
//! ```
//!
//! The loop applies edits and answers at once what needs only the characters
//! around the cursor. The reader parses texts. The asker alone waits for a
//! source; where that takes too long, the loop answers without it. The command
//! chooses the source and the language.

mod actions;
mod analysis;
mod asker;
mod before;
mod completion;
mod cursor;
mod files;
mod framing;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod hover;
mod kept;
mod names;
mod outcome;
mod positions;
mod reader;
mod running;
mod settings;
mod tokens;
mod tree;

use std::path::PathBuf;
use std::time::Duration;

use lsp_server::ProtocolError;
use lsp_types::{
    CodeActionKind, CodeActionOptions, CompletionOptions, HoverProviderCapability,
    InitializeParams, OneOf, RenameOptions, SemanticTokensFullOptions, SemanticTokensOptions,
    ServerCapabilities, SignatureHelpOptions, TextDocumentSyncCapability, TextDocumentSyncKind,
};

use self::positions::Encoding;
use self::running::Running;
use crate::dialect::Language;

pub use self::asker::{Opener, Source};
pub use self::framing::{Client, Kind, Streams, Written, connect};
#[cfg(any(test, feature = "fuzz"))]
pub use self::fuzz::fuzz_lsp;

/// What the command chooses.
pub struct Options {
    /// Language of the definitions.
    pub language: Language,
    /// Opens the source of metrics; without one, only texts are checked.
    pub opener: Option<Opener>,
    /// How long mistakes that the text alone tells wait for those that the source
    /// tells.
    pub grace: Duration,
}

/// Why a server ends before its client says so.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// What came is no message of the protocol.
    #[error("the client does not speak the language server protocol: {0}")]
    Protocol(#[from] ProtocolError),
    /// Parameters of `initialize` that cannot be read.
    #[error("the client's `initialize` cannot be read: {0}")]
    Initialize(#[source] serde_json::Error),
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(#[source] std::io::Error),
}

/// Serves one client until it says `shutdown` and `exit`, or is gone.
///
/// # Errors
/// The client does not speak the protocol.
pub fn serve(client: &Client, options: Options) -> Result<(), ServerError> {
    let connection = &client.connection;
    let (id, parameters) = match connection.initialize_start() {
        Ok(start) => start,
        // It was gone before it said anything.
        Err(error) if error.channel_is_disconnected() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let parameters: InitializeParams =
        serde_json::from_value(parameters).map_err(ServerError::Initialize)?;
    let general = parameters.capabilities.general.as_ref();
    let encoding = Encoding::chosen(general.and_then(|one| one.position_encodings.as_deref()));
    let answer = serde_json::json!({
        "capabilities": capabilities(encoding),
        "serverInfo": { "name": "pmderive", "version": env!("CARGO_PKG_VERSION") },
    });
    match connection.initialize_finish(id, answer) {
        Ok(()) => {}
        Err(error) if error.channel_is_disconnected() => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let folders = folders(&parameters);
    let running = Running::start(client, encoding, folders, options);
    let running = running.map_err(ServerError::Thread)?;
    if registers_watchers(&parameters) {
        running.watch_files();
    }
    running.run();
    Ok(())
}

/// True for a client that watches files if it is asked to.
fn registers_watchers(parameters: &InitializeParams) -> bool {
    let workspace = parameters.capabilities.workspace.as_ref();
    let watched = workspace.and_then(|workspace| workspace.did_change_watched_files.as_ref());
    watched.and_then(|watched| watched.dynamic_registration).unwrap_or_default()
}

/// The folders that are open in the editor.
fn folders(parameters: &InitializeParams) -> Vec<PathBuf> {
    let folders = parameters.workspace_folders.iter().flatten();
    folders.filter_map(|folder| files::path_of(&folder.uri)).collect()
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
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: Default::default(),
        })),
        code_action_provider: Some(
            CodeActionOptions {
                code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
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
