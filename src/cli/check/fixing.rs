//! Applies edits to definition files, or shows them as patches.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::cli::definitions::Definitions;
use crate::cli::messages::Messages;
use crate::cli::patch;
use crate::cli::rewrite::replace;
use crate::cli::terminal::Purpose;
use crate::cli::{Outcome, Stop};
use crate::diag::Diagnostics;
use crate::diag::fixes::applied;
use crate::escape;
use crate::syntax::{STANDARD_INPUT, counted};
use crate::text::{SourceId, SourceMap, stray};

/// How often edits are looked for again once others are applied.
const MAX_ROUNDS: usize = 50;

/// What is said where that was not enough.
const MORE: &str = "there may be more to edit: run this again";

/// What files are to become.
#[derive(Default)]
pub struct Fixing {
    /// Texts with edits, by the names of their files.
    texts: HashMap<Arc<str>, Arc<str>>,
    /// Texts before.
    before: HashMap<Arc<str>, Arc<str>>,
    /// Edits so far.
    count: usize,
    rounds: usize,
}

impl Fixing {
    /// An empty map of texts in which files have their edits already.
    pub fn sources(&self) -> SourceMap {
        SourceMap::with_unsaved(self.texts.clone())
    }

    /// Keeps the text of the standard input, which can be read only once.
    pub fn keep_standard_input(&mut self, definitions: &Definitions) {
        let texts = definitions.own_texts();
        let texts = texts.iter().map(|text| definitions.sources.get(*text));
        let given = texts.into_iter().filter(|text| &*text.name == STANDARD_INPUT);
        self.texts.extend(given.map(|text| (Arc::clone(&text.name), Arc::clone(&text.text))));
    }

    /// The same without edits.
    pub fn undone(&self) -> Fixing {
        let is_given = |(name, _): &(&Arc<str>, &Arc<str>)| &***name == STANDARD_INPUT;
        let given = self.texts.iter().filter(is_given);
        let texts = given.map(|(name, text)| (Arc::clone(name), Arc::clone(text))).collect();
        Fixing { texts, ..Fixing::default() }
    }

    /// Applies what is offered for these texts. False if nothing is, or too often.
    pub fn apply(&mut self, found: &Diagnostics, texts: &[SourceId], sources: &SourceMap) -> bool {
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return false;
        }
        let mut is_changed = false;
        for text in texts {
            let file = sources.get(*text);
            // What stands on standard input cannot be written there.
            if &*file.name == STANDARD_INPUT || !Path::new(&*file.name).is_file() {
                continue;
            }
            let Some((after, count)) = applied(found, *text, sources) else { continue };
            self.before.entry(Arc::clone(&file.name)).or_insert_with(|| Arc::clone(&file.text));
            self.texts.insert(Arc::clone(&file.name), after.into());
            self.count += count;
            is_changed = true;
        }
        is_changed
    }

    /// The files that change, in the order of their names.
    fn changes(&self) -> Vec<(&Arc<str>, &Arc<str>, &Arc<str>)> {
        let mut changes: Vec<_> = self
            .before
            .iter()
            .filter_map(|(name, before)| Some((name, before, self.texts.get(name)?)))
            .filter(|(_, before, after)| before != after)
            .collect();
        changes.sort();
        changes
    }

    /// Writes the files, and says how many edits there were.
    pub fn write(&self, messages: &Messages) -> Outcome {
        let changes = self.changes();
        let mut outcome = Outcome::Good;
        for (name, _, after) in &changes {
            if let Err(error) = replace(Path::new(&***name), &stray::encoded(after)) {
                messages.error(&format_args!("cannot write {name}: {error}"));
                outcome = Outcome::SourceFailed;
            }
        }
        if !changes.is_empty() {
            let (edits, files) = (counted(self.count, "edit"), counted(changes.len(), "file"));
            messages.line(&format_args!("{edits} in {files}"));
        }
        if self.rounds > MAX_ROUNDS {
            messages.warning(&MORE);
        }
        outcome
    }

    /// Prints patches; nothing is written.
    pub fn show(&self, messages: &Messages) -> Result<Outcome, Stop> {
        let changes = self.changes();
        for (name, before, after) in &changes {
            let name = escape::line(name.as_bytes());
            let patch = patch::unified(&name, before, after);
            messages.output(Purpose::Exact).print(stray::encoded(&patch))?;
        }
        if self.rounds > MAX_ROUNDS {
            messages.warning(&MORE);
        }
        Ok(if changes.is_empty() { Outcome::Good } else { Outcome::Failed })
    }
}
