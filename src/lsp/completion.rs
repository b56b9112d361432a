//! Completion: metrics of the source and of the definitions, functions, keywords, units, and
//! instances.

use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionList, CompletionTextEdit, Documentation, Range,
    TextEdit,
};

use super::analysis::Analysis;
use super::cursor::{Call, Cursor, Within};
use super::matching::{Match, RANKS, matched};
use crate::diag::{Code, page};
use crate::functions::signature;
use crate::project::is_warning;
use crate::syntax::keywords::{SEMANTICS, TYPES};

/// Items that are offered at once, at most. Further typing leaves fewer.
const MAX_OFFERED: usize = 300;

/// Units that are offered, in quotes.
const UNITS: [&str; 22] = [
    "byte",
    "Kbyte",
    "Mbyte",
    "Gbyte",
    "Tbyte",
    "nanosec",
    "microsec",
    "millisec",
    "sec",
    "min",
    "hour",
    "count",
    "count x 10^3",
    "count x 10^6",
    "byte / sec",
    "Kbyte / sec",
    "Mbyte / sec",
    "Gbyte / sec",
    "count / sec",
    "count / min",
    "millisec / count",
    "byte / count",
];

/// Intervals that are offered, in quotes.
const INTERVALS: [&str; 8] =
    ["10 sec", "30 sec", "1 min", "5 min", "10 min", "30 min", "1 hour", "1 day"];

/// Keywords of `mkconst()` and `novalue()`.
const KEYWORDS: [&str; 5] = ["type=", "semantics=", "units=", "indom=", "meta="];

/// Names for completion.
pub struct Vocabulary<'v> {
    /// Names of the source's metrics, ascending by bytes; `None` until the source answers.
    pub metrics: Option<&'v [String]>,
    /// The last analysis of the text.
    pub read: Option<&'v Analysis>,
}

/// Completions at a cursor, except instances, which only the source knows. They replace the
/// typed text in `range`.
pub fn completions(
    cursor: &Cursor<'_>,
    range: Range,
    vocabulary: &Vocabulary<'_>,
) -> CompletionList {
    let mut offers = Offers::new(cursor.within.typed(), range);
    match &cursor.within {
        Within::Word(_) => offers.add_words(cursor.call, vocabulary),
        Within::Quotes { key: Some(key), .. } | Within::Value { key, .. } => match *key {
            "type" => offers.add_all(TYPES.map(|(name, _)| name), CompletionItemKind::ENUM_MEMBER),
            "semantics" => {
                offers.add_all(SEMANTICS.map(|(name, _)| name), CompletionItemKind::ENUM_MEMBER);
            }
            "units" if matches!(cursor.within, Within::Quotes { .. }) => {
                offers.add_all(UNITS, CompletionItemKind::UNIT);
            }
            // Units are written in quotes.
            "units" => {
                let quoted = UNITS.map(|units| format!("\"{units}\""));
                offers.add_all(quoted.each_ref().map(String::as_str), CompletionItemKind::UNIT);
            }
            _ => {}
        },
        Within::Quotes { key: None, .. } => {
            let usage = cursor.call.and_then(|call| signature::named(call.name));
            let takes = |what: &str| usage.is_some_and(|function| function.usage.contains(what));
            if takes("\"interval\"") || takes("\"half-life\"") {
                offers.add_all(INTERVALS, CompletionItemKind::VALUE);
            } else if takes("\"units\"") {
                offers.add_all(UNITS, CompletionItemKind::UNIT);
            }
        }
        Within::Label(_) => {
            let labels = vocabulary.read.map(Analysis::labels).unwrap_or_default();
            offers.add_all(labels.iter().map(String::as_str), CompletionItemKind::PROPERTY);
        }
        Within::Attribute(_) => {
            offers.add_all(["oneline", "helptext"], CompletionItemKind::KEYWORD);
        }
        Within::Code(_) => offers.add_codes(),
        Within::Instance { .. } | Within::Elsewhere => {}
    }
    offers.list()
}

/// Completions for instances behind `[`. They replace the typed part of a name.
pub fn instances(names: &[String], typed: &str, range: Range) -> CompletionList {
    let mut offers = Offers::new(typed, range);
    for name in names {
        // A bracket would end the name.
        let written = name.replace('\\', "\\\\").replace(']', "\\]");
        offers.add_written(name, &written, CompletionItemKind::VALUE);
    }
    offers.list()
}

/// An empty list that is marked as incomplete.
pub fn nothing_yet() -> CompletionList {
    CompletionList { is_incomplete: true, items: Vec::new() }
}

/// Items for a typed text.
struct Offers<'t> {
    typed: &'t str,
    /// The range of the typed text.
    range: Range,
    found: Vec<(Match, CompletionItem)>,
    /// Number of items of each rank.
    counts: [usize; RANKS],
    /// True if there are, or may be, further items.
    is_incomplete: bool,
}

impl<'t> Offers<'t> {
    fn new(typed: &'t str, range: Range) -> Offers<'t> {
        Offers { typed, range, found: Vec::new(), counts: [0; RANKS], is_incomplete: false }
    }

    /// Adds those of some words that match.
    fn add_all<'w>(&mut self, words: impl IntoIterator<Item = &'w str>, kind: CompletionItemKind) {
        words.into_iter().for_each(|word| self.add_written(word, word, kind));
    }

    /// Adds a word whose written form differs from the shown one, if it matches.
    fn add_written(&mut self, shown: &str, written: &str, kind: CompletionItemKind) {
        if let Some(how) = self.wanted(written) {
            let item = self.item(how, shown, written, kind);
            self.found.push((how, item));
        }
    }

    /// Adds a word with an explanation, if it matches.
    fn add_explained(
        &mut self,
        word: &str,
        kind: CompletionItemKind,
        detail: Option<&str>,
        words: Option<&str>,
    ) {
        if let Some(how) = self.wanted(word) {
            let item = CompletionItem {
                detail: detail.map(str::to_owned),
                documentation: words.map(|words| Documentation::String(words.to_owned())),
                ..self.item(how, word, word, kind)
            };
            self.found.push((how, item));
        }
    }

    /// The match of a word; `None` if it does not match, or enough items match as well.
    fn wanted(&mut self, word: &str) -> Option<Match> {
        let how = matched(word, self.typed)?;
        let rank = usize::from(how.rank);
        if self.counts[..=rank].iter().sum::<usize>() >= MAX_OFFERED {
            self.is_incomplete = true;
            return None;
        }
        self.counts[rank] += 1;
        Some(how)
    }

    fn item(
        &self,
        how: Match,
        shown: &str,
        written: &str,
        kind: CompletionItemKind,
    ) -> CompletionItem {
        // Editors compare it with the typed text, many of them from its beginning.
        let rest = &written[how.at + self.typed.len()..];
        let filter = (how.rank > 0 || shown != written).then(|| format!("{}{rest}", self.typed));
        let edit = TextEdit { range: self.range, new_text: written.to_owned() };
        CompletionItem {
            label: shown.to_owned(),
            kind: Some(kind),
            filter_text: filter,
            text_edit: Some(CompletionTextEdit::Edit(edit)),
            ..CompletionItem::default()
        }
    }

    /// Adds the codes of warnings, each with its headline.
    fn add_codes(&mut self) {
        for code in Code::ALL.iter().filter(|code| is_warning(**code)) {
            let title = page(*code).lines().next().and_then(|line| line.split_once(": "));
            let title = title.map(|(_, words)| words);
            self.add_explained(&code.to_string(), CompletionItemKind::CONSTANT, title, None);
        }
    }

    /// Adds functions, keywords and names of metrics.
    fn add_words(&mut self, call: Option<Call<'_>>, vocabulary: &Vocabulary<'_>) {
        let Vocabulary { metrics, read } = vocabulary;
        self.is_incomplete = metrics.is_none() || read.is_none();
        let has_extensions = read.is_some_and(|read| read.settings.language.extensions);
        for function in signature::all() {
            if function.extension.is_none() || has_extensions {
                let (usage, words) = (Some(function.usage), Some(function.words));
                self.add_explained(function.name, CompletionItemKind::FUNCTION, usage, words);
            }
        }
        if call.is_some_and(|call| matches!(call.name, "mkconst" | "novalue")) {
            self.add_all(KEYWORDS, CompletionItemKind::KEYWORD);
        }
        let registered = read.map_or(&[][..], |read| read.registry.beginning_with(""));
        let refused = read.iter().flat_map(|read| read.refused());
        let refused = refused.map(|one| &*one.name);
        // A definition for a name that is taken adds no item.
        let refused =
            refused.filter(|name| read.is_some_and(|read| read.registry.get(name).is_none()));
        let mut derived: Vec<&str> =
            registered.iter().map(|one| &*one.name).chain(refused).collect();
        derived.sort_unstable();
        derived.dedup();
        for name in derived {
            self.add_explained(name, CompletionItemKind::VARIABLE, Some("derived"), None);
        }
        let names = metrics.unwrap_or_default().iter().map(String::as_str);
        self.add_all(names, CompletionItemKind::FIELD);
    }

    /// The best items, in order.
    fn list(mut self) -> CompletionList {
        self.found.sort_by_key(|(how, _)| how.rank);
        // An editor compares in its own way, and would not find all parts of a name.
        let has_parts = self.found.last().is_some_and(|(how, _)| how.rank > 0);
        let is_incomplete = self.is_incomplete || has_parts || self.found.len() > MAX_OFFERED;
        self.found.truncate(MAX_OFFERED);
        let items = self
            .found
            .into_iter()
            .enumerate()
            .map(|(at, (_, item))| CompletionItem { sort_text: Some(format!("{at:03}")), ..item });
        CompletionList { is_incomplete, items: items.collect() }
    }
}
