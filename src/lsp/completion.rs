//! What may be typed next: metrics of the source and of the definitions,
//! functions, keywords, units, instances.

use lsp_types::{CompletionItem, CompletionItemKind, CompletionList, Documentation};

use super::cursor::{Call, Cursor, Within};
use crate::diag::{Code, page};
use crate::engine::Registry;
use crate::functions::signature;
use crate::project::is_warning;
use crate::syntax::keywords::{SEMANTICS, TYPES};

/// Metrics that are offered at most; typing on narrows them down.
const MAX_METRICS: usize = 200;

/// Units that are offered in quotes.
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

/// Intervals that are offered in quotes.
const INTERVALS: [&str; 8] =
    ["10 sec", "30 sec", "1 min", "5 min", "10 min", "30 min", "1 hour", "1 day"];

/// Keywords of `mkconst()` and `novalue()`.
const KEYWORDS: [&str; 5] = ["type=", "semantics=", "units=", "indom=", "meta="];

/// What completion knows.
pub struct Vocabulary<'v> {
    /// Names of the source's metrics, in the order of their bytes.
    pub metrics: &'v [String],
    /// The definitions.
    pub registry: Option<&'v Registry>,
    /// Whether functions that libpcp does not have are offered.
    pub extensions: bool,
    /// Names of labels of hosts.
    pub labels: Vec<String>,
}

/// What may stand at a cursor, but for instances, which the source knows.
pub fn completions(cursor: &Cursor<'_>, vocabulary: &Vocabulary<'_>) -> CompletionList {
    let mut items = Vec::new();
    let mut is_incomplete = false;
    match &cursor.within {
        Within::Word(word) => {
            is_incomplete = add_words(word, cursor.call, vocabulary, &mut items);
        }
        Within::Quotes(_) => {
            let takes_interval = |call: Call<'_>| {
                let usage = signature::named(call.name).map_or("", |function| function.usage);
                ["\"interval\"", "\"half-life\""].iter().any(|one| usage.contains(one))
            };
            match cursor.call.is_some_and(takes_interval) {
                true => add_all(&INTERVALS, "", CompletionItemKind::VALUE, &mut items),
                false => add_all(&UNITS, "", CompletionItemKind::UNIT, &mut items),
            }
        }
        Within::Value { key, typed } => {
            let types = TYPES.iter().map(|(name, _)| *name);
            let semantics = SEMANTICS.iter().map(|(name, _)| *name);
            let values: Vec<&str> = match *key {
                "type" => types.collect(),
                _ => semantics.collect(),
            };
            add_all(&values, typed, CompletionItemKind::ENUM_MEMBER, &mut items);
        }
        Within::Label(typed) => {
            let labels: Vec<&str> = vocabulary.labels.iter().map(String::as_str).collect();
            add_all(&labels, typed, CompletionItemKind::PROPERTY, &mut items);
        }
        Within::Attribute(typed) => {
            add_all(&["oneline", "helptext"], typed, CompletionItemKind::KEYWORD, &mut items);
        }
        Within::Code(typed) => add_codes(typed, &mut items),
        Within::Instance { .. } | Within::Elsewhere => {}
    }
    CompletionList { is_incomplete, items }
}

/// Adds those of some words that begin with what was typed.
fn add_all(words: &[&str], typed: &str, kind: CompletionItemKind, items: &mut Vec<CompletionItem>) {
    let words = words.iter().filter(|word| word.starts_with(typed));
    items.extend(words.map(|word| item(word, kind, None)));
}

/// Adds the codes of warnings, each with what it is about.
fn add_codes(typed: &str, items: &mut Vec<CompletionItem>) {
    for code in Code::ALL.iter().filter(|code| is_warning(**code)) {
        let label = code.to_string();
        if label.starts_with(typed) {
            let title = page(*code).lines().next().and_then(|line| line.split_once(": "));
            let title = title.map(|(_, words)| words);
            items.push(item(&label, CompletionItemKind::CONSTANT, title));
        }
    }
}

fn item(label: &str, kind: CompletionItemKind, detail: Option<&str>) -> CompletionItem {
    CompletionItem {
        label: label.to_owned(),
        kind: Some(kind),
        detail: detail.map(str::to_owned),
        ..CompletionItem::default()
    }
}

/// Adds what begins with a word; true if there are more metrics than are
/// offered.
fn add_words(
    word: &str,
    call: Option<Call<'_>>,
    vocabulary: &Vocabulary<'_>,
    items: &mut Vec<CompletionItem>,
) -> bool {
    for function in signature::all() {
        if function.name.starts_with(word)
            && (function.extension.is_none() || vocabulary.extensions)
        {
            let documentation = Some(Documentation::String(function.words.to_owned()));
            let item = item(function.name, CompletionItemKind::FUNCTION, Some(function.usage));
            items.push(CompletionItem { documentation, ..item });
        }
    }
    if call.is_some_and(|call| matches!(call.name, "mkconst" | "novalue")) {
        let keywords = KEYWORDS.iter().filter(|keyword| keyword.starts_with(word));
        items.extend(keywords.map(|one| item(one, CompletionItemKind::KEYWORD, None)));
    }
    let derived = vocabulary.registry.map_or(&[][..], |registry| registry.beginning_with(word));
    let first = vocabulary.metrics.partition_point(|name| name.as_str() < word);
    let own = vocabulary.metrics[first..].iter().take_while(|name| name.starts_with(word));
    let own: Vec<&String> = own.take(MAX_METRICS + 1).collect();
    let count = derived.len() + own.len();
    let derived =
        derived.iter().map(|one| item(&one.name, CompletionItemKind::VARIABLE, Some("derived")));
    let own = own.into_iter().map(|name| item(name, CompletionItemKind::FIELD, None));
    items.extend(derived.chain(own).take(MAX_METRICS));
    count > MAX_METRICS
}

/// Instances as they are offered behind `[`.
pub fn instances(names: Vec<String>) -> CompletionList {
    let item = |name: String| CompletionItem {
        // A bracket would end the name.
        insert_text: Some(name.replace('\\', "\\\\").replace(']', "\\]")),
        label: name,
        kind: Some(CompletionItemKind::VALUE),
        ..CompletionItem::default()
    };
    CompletionList { is_incomplete: false, items: names.into_iter().map(item).collect() }
}
