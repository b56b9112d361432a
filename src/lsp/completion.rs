//! What may be typed next: metrics of the source and of the definitions,
//! functions, keywords, units, instances.

use lsp_types::{CompletionItem, CompletionItemKind, CompletionList, Documentation};

use super::calls;
use super::cursor::{Call, Cursor, Within};
use crate::engine::Registry;
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
            let kind = Some(CompletionItemKind::UNIT);
            let unit = |label: &&str| CompletionItem {
                label: (*label).to_owned(),
                kind,
                ..CompletionItem::default()
            };
            items.extend(UNITS.iter().map(unit));
        }
        Within::Instance { .. } | Within::Elsewhere => {}
    }
    CompletionList { is_incomplete, items }
}

/// Adds what begins with a word; true if there are more metrics than are
/// offered.
fn add_words(
    word: &str,
    call: Option<Call<'_>>,
    vocabulary: &Vocabulary<'_>,
    items: &mut Vec<CompletionItem>,
) -> bool {
    let item = |label: &str, kind, detail: Option<&str>| CompletionItem {
        label: label.to_owned(),
        kind: Some(kind),
        detail: detail.map(str::to_owned),
        ..CompletionItem::default()
    };
    for function in calls::all() {
        if function.name.starts_with(word) && (function.is_of_libpcp || vocabulary.extensions) {
            let documentation = Some(Documentation::String(function.words.to_owned()));
            let item = item(function.name, CompletionItemKind::FUNCTION, Some(function.usage));
            items.push(CompletionItem { documentation, ..item });
        }
    }
    if call.is_some_and(|call| matches!(call.name, "mkconst" | "novalue")) {
        let keywords = KEYWORDS.iter().filter(|keyword| keyword.starts_with(word));
        items.extend(keywords.map(|one| item(one, CompletionItemKind::KEYWORD, None)));
        let types = TYPES.iter().map(|(name, _)| *name);
        let values = types.chain(SEMANTICS.iter().map(|(name, _)| *name));
        let values = values.filter(|value| value.starts_with(word));
        items.extend(values.map(|one| item(one, CompletionItemKind::ENUM_MEMBER, None)));
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
