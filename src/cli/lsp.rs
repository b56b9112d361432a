//! `pmderive lsp` serves an editor over standard input and output. [`crate::lsp`] is the
//! server; this module chooses its source and language.

use std::time::Duration;

use clap::Args;
use pmderive_runtime::source::SourceError;

use super::args::{LanguageArguments, MetadataArguments, SourceArguments};
use super::exit_status::ExitStatus;
use super::messages::Messages;
use super::stop::Stop;
use super::terminal::protocol_output;
use crate::lsp::{End, Opener, Options, Source, connect, serve};
use crate::metadata::RecordedMetadata;

/// How long diagnostics of the text wait for those of the source.
const GRACE: Duration = Duration::from_millis(100);

/// Help text after the options.
const NOTES: &str = "\
Editors start it by themselves; it speaks the language server protocol over standard input and
output. Without a source it checks what the texts alone tell.";

/// Arguments of `lsp`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct LspArguments {
    /// Where metrics come from; without it, what needs their metadata is not checked.
    #[command(flatten)]
    source: SourceArguments,
    /// Metadata in place of a source.
    #[command(flatten)]
    metadata: MetadataArguments,
    /// Language of the files.
    #[command(flatten)]
    language: LanguageArguments,
    /// Speak over standard input and output, as always.
    #[arg(long, hide = true)]
    stdio: bool,
}

/// Runs the command.
pub fn run(arguments: &LspArguments, messages: &Messages) -> Result<ExitStatus, Stop> {
    let language = arguments.language.chosen();
    let (client, streams) = connect(std::io::stdin(), protocol_output())?;
    let max_shown = messages.left();
    let options = Options { language, opener: opener(arguments), grace: GRACE, max_shown };
    // A client that is not understood may keep the input open for ever.
    let end = serve(&client, options).map_err(|error| Stop::Usage(error.to_string()))?;
    // The writing thread ends once the last handle of the client is gone.
    drop(client);
    // The process does not wait for a thread whose source hangs.
    streams.join().map_err(|error| Stop::Usage(no_client(&error)))?;
    match end {
        End::Agreed => Ok(ExitStatus::Good),
        End::WithoutShutdown => {
            messages.error(&"the client said `exit` without `shutdown` before it");
            Ok(ExitStatus::Failed)
        }
    }
}

fn no_client(problem: &dyn std::fmt::Display) -> String {
    format!("the client does not speak the language server protocol: {problem}")
}

/// The function that opens the chosen source, again and again if needed.
fn opener(arguments: &LspArguments) -> Option<Opener> {
    let dialect = arguments.language.compat.unwrap_or_default();
    if let Some(file) = arguments.metadata.metadata.clone() {
        return Some(Box::new(move || {
            Ok::<_, SourceError>(Source::Metadata(Box::new(RecordedMetadata::open(&file)?)))
        }));
    }
    let source = arguments.source.clone();
    source.is_given().then(|| -> Opener {
        Box::new(move || {
            let messages = Messages::to_standard_error();
            Ok(Source::Context(Box::new(source.open(dialect, &messages)?)))
        })
    })
}
