//! What the threads of the server tell its loop.

use std::path::PathBuf;
use std::sync::Arc;

use lsp_server::RequestId;
use lsp_types::{Hover, Uri};

use super::analysis::Analysis;
use crate::diag::Diagnostics;

/// What the loop is told.
pub enum News {
    /// The names of a source's metrics, in the order of their bytes; of the
    /// source that options choose, or of the metadata in a file.
    Names(Option<PathBuf>, Arc<[String]>),
    /// What is wrong with a file of settings.
    Settings(Uri, Vec<lsp_types::Diagnostic>),
    /// A text was read.
    Read(Arc<Analysis>),
    /// What is wrong with a text.
    Checked {
        /// The text.
        uri: Uri,
        /// Its state.
        version: i32,
        /// What is wrong, in the order of the text.
        diagnostics: Diagnostics,
    },
    /// What is wrong with a text, as far as the text alone tells.
    Textual {
        /// The text.
        uri: Uri,
        /// Its state.
        version: i32,
        /// What is wrong, in the order of the text.
        diagnostics: Diagnostics,
    },
    /// The answer to a request.
    Answered(RequestId, Answer),
    /// Something that people should know of a folder.
    Notice(String),
    /// The source cannot be used.
    Trouble(String),
}

/// What a request is answered by.
pub enum Answer {
    /// As it goes to the client, in JSON.
    Written(Arc<str>),
    /// A refusal, in words for people.
    Refused(String),
    /// What stands at a place.
    Hover(Option<Hover>),
    /// Names of instances.
    Instances(Vec<String>),
}
