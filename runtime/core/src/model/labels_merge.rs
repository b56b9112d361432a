//! Merges label sets into the labels that finally apply to a metric or
//! instance.
//!
//! Input: sets from the most general level to the most specific. Output: one
//! set in the form of `pmMergeLabelSets(3)`: each name once, in byte order,
//! without white space between.

use std::collections::BTreeMap;

use super::{InstId, Label, LabelFlags, LabelPlace, LabelSet, LabelTextError};

/// Labels by name, with value (JSON) and flags.
pub type LabelMap = BTreeMap<Box<str>, (Box<str>, LabelFlags)>;

impl LabelSet {
    /// Merges sets (`pmMergeLabelSets(3)`). The later of two labels with the
    /// same name counts. The sets of a value are those of the context, the
    /// domain, the instance domain, the cluster, the item and the instance, in
    /// this order. Failed sets count as empty.
    ///
    /// The result has the instance of the last set with one.
    pub fn merged<'s>(sets: impl IntoIterator<Item = &'s LabelSet>) -> LabelSet {
        LabelSet::merged_where(sets, |_| true)
    }

    /// Merges texts, each a JSON object (`pmMergeLabels(3)`). The later of two
    /// labels with the same name counts.
    ///
    /// # Errors
    /// One of the texts is invalid; see [`LabelSet::parse`].
    pub fn merged_texts<'t>(
        texts: impl IntoIterator<Item = &'t str>,
    ) -> Result<LabelSet, LabelTextError> {
        let parse = |text| LabelSet::parse(text, LabelFlags::default());
        let sets = texts.into_iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        Ok(LabelSet::merged(&sets))
    }

    /// Like [`LabelSet::merged`], with only the labels that `wanted` accepts
    /// (the filter of `pmMergeLabelSets(3)`). An unwanted label does not
    /// replace an earlier label with its name.
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

    /// Writes labels as a set.
    pub fn from_map(instance: InstId, labels: &LabelMap) -> LabelSet {
        if labels.is_empty() {
            return LabelSet::empty(instance);
        }
        let mut json = String::new();
        let mut places = Vec::with_capacity(labels.len());
        // Texts never get that long.
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

/// A text as a JSON string, with quotes.
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

/// JSON without white space outside of strings.
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
