//! Events from the threads of the server to its main loop.

use std::path::PathBuf;
use std::sync::Arc;

use lsp_server::RequestId;
use lsp_types::{Hover, Uri};

use super::analysis::Analysis;
use crate::diag::Diagnostics;

/// An event for the main loop.
pub enum Event {
    /// The names of a source's metrics, ascending by bytes. The source is a file of metadata,
    /// or without one the source that options choose.
    Names(Option<PathBuf>, Arc<[String]>),
    /// Mistakes of a file of settings.
    Settings(Uri, Vec<lsp_types::Diagnostic>),
    /// A text was analysed.
    Read(Arc<Analysis>),
    /// A text was checked with the source.
    Checked {
        /// The text.
        uri: Uri,
        /// Revision of the text.
        revision: u64,
        /// All mistakes, in the order of the text.
        diagnostics: Diagnostics,
    },
    /// A text was checked without the source.
    Textual {
        /// The text.
        uri: Uri,
        /// Revision of the text.
        revision: u64,
        /// The mistakes that the text alone shows, in the order of the text.
        diagnostics: Diagnostics,
    },
    /// The answer to a request.
    Answered(RequestId, Answer),
    /// A message for users about a folder.
    Notice(String),
    /// The source cannot be used.
    Trouble(String),
    /// A source that failed can be used again.
    SourceIsBack,
}

/// The result of a request.
pub enum Answer {
    /// An encoded result, in JSON.
    Written(Arc<str>),
    /// A refusal, with its reason in words.
    Refused(String),
    /// The hover text at a place.
    Hover(Option<Hover>),
    /// Names of instances.
    Instances(Vec<String>),
}
