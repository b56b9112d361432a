//! Merging sets of labels: what holds for a metric or instance in the end.
//!
//! Input: sets from the most general level to the most special one. Output: one set
//! in the form that `pmMergeLabelSets(3)` gives: names in order of their bytes,
//! each once, without white space between them. Where sets come from is not
//! known here.

use std::collections::BTreeMap;

use super::{InstId, Label, LabelFlags, LabelPlace, LabelSet, LabelTextError};

/// Labels by name, each with its value as JSON and its flags.
pub type LabelMap = BTreeMap<Box<str>, (Box<str>, LabelFlags)>;

impl LabelSet {
    /// The labels of all sets; of two with one name, that of the later set
    /// (`pmMergeLabelSets(3)`). The sets of a value are those of the context,
    /// the domain, the instance domain, the cluster, the item and the
    /// instance, in this order. Sets that failed count as empty.
    ///
    /// The instance is that of the last set that has one.
    pub fn merged<'s>(sets: impl IntoIterator<Item = &'s LabelSet>) -> LabelSet {
        LabelSet::merged_where(sets, |_| true)
    }

    /// The labels of texts, each a JSON object, of two with one name that of
    /// the later text (`pmMergeLabels(3)`).
    ///
    /// # Errors
    /// One of the texts cannot be read; see [`LabelSet::parse`].
    pub fn merged_texts<'t>(
        texts: impl IntoIterator<Item = &'t str>,
    ) -> Result<LabelSet, LabelTextError> {
        let parse = |text| LabelSet::parse(text, LabelFlags::default());
        let sets = texts.into_iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        Ok(LabelSet::merged(&sets))
    }

    /// As [`LabelSet::merged`], of the labels only that `wanted` says yes to
    /// (the filter of `pmMergeLabelSets(3)`). A label that is not wanted leaves
    /// the one of an earlier set with its name in place.
    pub fn merged_where<'s>(
        sets: impl IntoIterator<Item = &'s LabelSet>,
        mut wanted: impl FnMut(&Label<'_>) -> bool,
    ) -> LabelSet {
        let mut labels = LabelMap::new();
        let mut instance = -1;
        for set in sets {
            if set.instance() != -1 {
                instance = set.instance();
            }
            for label in set.labels().filter(|label| wanted(label)) {
                labels.insert(label.name.into(), (compact(label.value), label.flags));
            }
        }
        LabelSet::from_map(instance, &labels)
    }

    /// Writes a set from labels.
    pub fn from_map(instance: InstId, labels: &LabelMap) -> LabelSet {
        if labels.is_empty() {
            return LabelSet::empty(instance);
        }
        let mut json = String::new();
        let mut places = Vec::with_capacity(labels.len());
        // Texts are far from as long as that.
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        for (name, (value, flags)) in labels {
            json.push_str(if json.is_empty() { "{\"" } else { ",\"" });
            let at_name = offset(json.len());
            json.push_str(name);
            json.push_str("\":");
            let at_value = offset(json.len());
            json.push_str(value);
            places.push(LabelPlace {
                name: at_name,
                name_len: offset(name.len()),
                flags: *flags,
                value: at_value,
                value_len: offset(value.len()),
            });
        }
        json.push('}');
        LabelSet::new(instance, json, places).unwrap_or_else(|_| LabelSet::empty(instance))
    }
}

/// A text as JSON, in quotes.
pub fn json_string(text: &str) -> String {
    use std::fmt::Write;
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            // Writing to a string cannot fail.
            '\0'..' ' => drop(write!(json, "\\u{:04x}", u32::from(c))),
            _ => json.push(c),
        }
    }
    json.push('"');
    json
}

/// JSON without the white space outside of its strings.
pub(super) fn compact(json: &str) -> Box<str> {
    let (mut in_string, mut escaped) = (false, false);
    let kept = json.chars().filter(|c| {
        let keep = in_string || !matches!(c, ' ' | '\t' | '\n' | '\r');
        if !escaped && *c == '"' {
            in_string = !in_string;
        }
        escaped = in_string && !escaped && *c == '\\';
        keep
    });
    kept.collect::<String>().into()
}
