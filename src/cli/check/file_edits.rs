//! Applies edits to definition files (`--fix`), or prints them as patches (`--diff`).

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::cli::definitions::CommandDefinitions;
use crate::cli::exit_status::ExitStatus;
use crate::cli::messages::Messages;
use crate::cli::rewrite::{changed_meanwhile, replace};
use crate::cli::stop::Stop;
use crate::cli::terminal::Purpose;
use crate::diag::Diagnostics;
use crate::diag::fixes::applied;
use crate::escape;
use crate::syntax::{BYTE_ORDER_MARK, STANDARD_INPUT, counted, mark_of, may_be_rewritten};
use crate::text::patch;
use crate::text::{SourceMap, stray};

use super::CheckArguments;

/// Rounds of checking and editing, at most: applied edits may make others possible.
const MAX_ROUNDS: usize = 50;

/// The warning after the last round.
const MORE: &str = "there may be more to edit: run this again";

/// Edited texts of files, not yet written.
#[derive(Default)]
pub struct FileEdits {
    /// Map from the name of a file to its edited text.
    texts: HashMap<Arc<str>, Arc<str>>,
    /// Map from the name of a file to its original text.
    before: HashMap<Arc<str>, Arc<str>>,
    /// Map from the name of a file to the number of its edits.
    counts: HashMap<Arc<str>, usize>,
    rounds: usize,
    /// True if edits were left after the last round.
    is_cut_short: bool,
    /// True if there are edits for a text that is no file.
    are_left_out: bool,
    /// True if there are edits for files of a directory that have no good definition.
    are_passed_over: bool,
}

impl FileEdits {
    /// A source map that holds the edited texts in place of the files.
    pub fn sources(&self) -> SourceMap {
        SourceMap::with_unsaved(self.texts.clone())
    }

    /// Keeps the text of the standard input, which can be read only once.
    pub fn keep_standard_input(&mut self, definitions: &CommandDefinitions) {
        let texts = definitions.own_texts();
        let texts = texts.iter().map(|text| definitions.sources.get(*text));
        let given = texts.into_iter().filter(|text| &*text.name == STANDARD_INPUT);
        self.texts.extend(given.map(|text| (Arc::clone(&text.name), Arc::clone(&text.text))));
    }

    /// The original texts.
    pub fn undone(&self) -> FileEdits {
        let given = self.texts.get_key_value(STANDARD_INPUT);
        let before =
            |(name, text)| (Arc::clone(name), self.before.get(name).unwrap_or(text).clone());
        FileEdits { texts: given.into_iter().map(before).collect(), ..FileEdits::default() }
    }

    /// Applies the edits that diagnostics offer for the texts of the arguments. Returns false
    /// without any, or after the last round.
    pub fn apply(
        &mut self,
        found: &Diagnostics,
        arguments: &CheckArguments,
        definitions: &CommandDefinitions,
    ) -> bool {
        let sources = &definitions.sources;
        let good = definitions.good_texts();
        let mut is_changed = false;
        for text in definitions.own_texts() {
            if definitions.is_argument(text) {
                continue;
            }
            let file = sources.get(text);
            let Some((after, count)) = applied(found, text, sources) else { continue };
            let path = Path::new(&*file.name);
            let is_standard_input = &*file.name == STANDARD_INPUT;
            // `--diff` can still show a patch of it.
            if is_standard_input && !arguments.diff || !is_standard_input && !path.is_file() {
                self.are_left_out = true;
                continue;
            }
            // It may be the source of a program.
            let is_meant = good.contains(&text) && may_be_rewritten(path);
            if !is_meant && is_of_directory(path, arguments) {
                self.are_passed_over = true;
                continue;
            }
            if self.rounds >= MAX_ROUNDS {
                self.is_cut_short = true;
                return false;
            }
            self.before.entry(Arc::clone(&file.name)).or_insert_with(|| Arc::clone(&file.text));
            self.texts.insert(Arc::clone(&file.name), after.into());
            *self.counts.entry(Arc::clone(&file.name)).or_default() += count;
            is_changed = true;
        }
        self.rounds += 1;
        is_changed
    }

    /// Lists changed files by name, each with its text before and after.
    fn changes(&self) -> Vec<(&Arc<str>, String, String)> {
        let mut changes: Vec<_> = self
            .before
            .iter()
            .filter_map(|(name, before)| Some((name, before, self.texts.get(name)?)))
            .filter(|(_, before, after)| before != after)
            .map(|(name, before, after)| {
                // The mark was not checked, and stays.
                let mark = mark_before(before, Path::new(&**name));
                (name, mark.to_owned() + before, mark.to_owned() + after)
            })
            .collect();
        changes.sort();
        changes
    }

    /// Writes the files and reports the number of edits.
    pub fn write(&self, messages: &Messages) -> ExitStatus {
        let changes = self.changes();
        let (mut outcome, mut written, mut edits) = (ExitStatus::Good, 0, 0);
        for (name, before, after) in &changes {
            let count = self.counts.get(*name).copied().unwrap_or_default();
            match replace(Path::new(&***name), &stray::encoded(before), &stray::encoded(after)) {
                Ok(true) => {
                    written += 1;
                    edits += count;
                }
                Ok(false) => {
                    messages.error(&changed_meanwhile(name));
                    outcome = ExitStatus::SourceFailed;
                }
                Err(error) => {
                    let lost = counted(count, "edit");
                    let trouble = format_args!("cannot write {name}, which lacks {lost}: {error}");
                    messages.error(&trouble);
                    outcome = ExitStatus::SourceFailed;
                }
            }
        }
        if written > 0 {
            let (edits, files) = (counted(edits, "edit"), counted(written, "file"));
            messages.note(&format_args!("{edits} in {files}"));
        }
        self.warn(messages);
        outcome
    }

    /// Prints the edits as patches and writes nothing.
    pub fn show(&self, messages: &Messages) -> Result<ExitStatus, Stop> {
        let changes = self.changes();
        for (name, before, after) in &changes {
            let name = escape::line(name.as_bytes());
            let patch = patch::unified(&name, before, after);
            messages.output(Purpose::Exact).print(stray::encoded(&patch))?;
        }
        self.warn(messages);
        Ok(if changes.is_empty() { ExitStatus::Good } else { ExitStatus::Failed })
    }

    /// Warns about edits that were not applied.
    fn warn(&self, messages: &Messages) {
        if self.are_left_out {
            messages.warning(&"standard input has no file to edit: name the file instead of `-`");
        }
        if self.are_passed_over {
            messages.warning(
                &"of a directory only files such as `a.conf` with a good definition are changed; \
                  name the others",
            );
        }
        if self.is_cut_short {
            messages.warning(&MORE);
        }
    }
}

/// True for a file that the arguments name only through its directory.
fn is_of_directory(path: &Path, arguments: &CheckArguments) -> bool {
    let lists = arguments.definitions.configs.iter().flat_map(|list| list.split(':'));
    let positional = arguments.positional.arguments.iter().map(String::as_str);
    let mut given = positional.chain(lists).map(Path::new);
    !given.clone().any(|given| given == path)
        && given.any(|given| given.is_dir() && path.starts_with(given))
}

/// The byte order mark before the text of a file, unless the text includes it.
fn mark_before(text: &str, path: &Path) -> &'static str {
    if text.starts_with(BYTE_ORDER_MARK) {
        return "";
    }
    let mut bytes = [0; BYTE_ORDER_MARK.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_or("", |()| mark_of(&bytes))
}
