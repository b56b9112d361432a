//! Labels: names with values that describe a source, an agent, a metric or an
//! instance.
//!
//! A [`LabelSet`] is the text of one JSON object, with the places of names and
//! values in it, as `pmGetContextLabels(3)` and its kin deliver it. The places
//! are checked when a set is made, so reading one cannot fail.

use std::borrow::Cow;
use std::str::Chars;

use super::{InDom, InstId, PmStatus, Pmid};

/// The level of labels. A label on a later level replaces one with the same
/// name on an earlier level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelLevel {
    /// The whole source (`pmGetContextLabels(3)`).
    Context,
    /// The agent with this number (`pmGetDomainLabels(3)`).
    Domain(u32),
    /// An instance domain (`pmGetInDomLabels(3)`).
    InDom(InDom),
    /// The cluster of a metric; the metric's item does not matter
    /// (`pmGetClusterLabels(3)`).
    Cluster(Pmid),
    /// A metric (`pmGetItemLabels(3)`).
    Item(Pmid),
    /// Every instance of a domain, with one set for each
    /// (`pmGetInstancesLabels(3)`).
    Instances(InDom),
}

impl LabelLevel {
    /// The bit of the level in requests, in records and in [`LabelFlags`].
    pub const fn bit(self) -> u8 {
        match self {
            LabelLevel::Context => 1,
            LabelLevel::Domain(_) => 2,
            LabelLevel::InDom(_) => 4,
            LabelLevel::Cluster(_) => 8,
            LabelLevel::Item(_) => 16,
            LabelLevel::Instances(_) => 32,
        }
    }

    /// Number of the labels' subject; all ones for [`LabelLevel::Context`].
    pub const fn ident(self) -> u32 {
        match self {
            LabelLevel::Context => 0xffff_ffff,
            LabelLevel::Domain(domain) => domain,
            LabelLevel::InDom(indom) | LabelLevel::Instances(indom) => indom.0,
            LabelLevel::Cluster(pmid) | LabelLevel::Item(pmid) => pmid.0,
        }
    }

    /// The level with the item of a cluster's metric set to zero, so that equal
    /// clusters are equal.
    #[must_use]
    pub const fn of_cluster(self) -> LabelLevel {
        match self {
            LabelLevel::Cluster(pmid) => {
                LabelLevel::Cluster(Pmid::new(pmid.domain(), pmid.cluster(), 0))
            }
            other => other,
        }
    }

    /// The level with a bit and a number. `None` if `bit` is not the bit of a
    /// level.
    pub const fn from_wire(bit: u32, ident: u32) -> Option<LabelLevel> {
        match bit {
            1 => Some(LabelLevel::Context),
            2 => Some(LabelLevel::Domain(ident)),
            4 => Some(LabelLevel::InDom(InDom(ident))),
            8 => Some(LabelLevel::Cluster(Pmid(ident))),
            16 => Some(LabelLevel::Item(Pmid(ident))),
            32 => Some(LabelLevel::Instances(InDom(ident))),
            _ => None,
        }
    }
}

/// The kind of a label: the bit of its level, and two flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelFlags(pub u8);

impl LabelFlags {
    /// The name has several components, separated by dots.
    pub const COMPOUND: LabelFlags = LabelFlags(0x40);
    /// A remark that does not identify the source: two sources that differ only
    /// in it are the same (`PM_LABEL_OPTIONAL`).
    pub const OPTIONAL: LabelFlags = LabelFlags(0x80);

    /// True when every bit of `other` is set.
    pub const fn has(self, other: LabelFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Place of a label in the text of its set; offsets and lengths in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LabelPlace {
    /// Offset of the name, after its quote.
    pub name: u32,
    /// Length of the name.
    pub name_len: u32,
    /// The kind of label.
    pub flags: LabelFlags,
    /// Offset of the value; for a string, of its opening quote.
    pub value: u32,
    /// Length of the value, quotes included.
    pub value_len: u32,
}

/// One label of a set.
///
/// ```
/// use pmderive_core::model::{LabelFlags, LabelSet};
///
/// let set = LabelSet::parse(r#"{"os":"Debian \"sid\"","cpus":4}"#, LabelFlags::default())?;
/// let labels: Vec<_> = set.labels().map(|label| (label.name, label.text())).collect();
/// assert_eq!(labels, [("cpus", "4".into()), ("os", r#"Debian "sid""#.into())]);
/// # Ok::<(), pmderive_core::model::LabelTextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'s> {
    /// Name: letters, digits, `_` and `.`.
    pub name: &'s str,
    /// Value as JSON; a string has its quotes and escapes, see [`Label::text`].
    pub value: &'s str,
    /// The kind of label.
    pub flags: LabelFlags,
}

impl<'s> Label<'s> {
    /// The value as text: a string without its quotes and escapes, anything else as it is.
    pub fn text(&self) -> Cow<'s, str> {
        unquoted(self.value).unwrap_or(Cow::Borrowed(self.value))
    }
}

/// The text of a JSON string. `None` for anything else.
fn unquoted(json: &str) -> Option<Cow<'_, str>> {
    let inside = json.trim_matches([' ', '\t', '\n', '\r']);
    let inside = inside.strip_prefix('"')?.strip_suffix('"')?;
    if !inside.contains(['"', '\\']) && !inside.contains(|c| c < ' ') {
        return Some(Cow::Borrowed(inside));
    }
    let (mut text, mut rest) = (String::with_capacity(inside.len()), inside.chars());
    while let Some(c) = rest.next() {
        text.push(match c {
            '\\' => escaped(&mut rest)?,
            '"' | '\0'..' ' => return None,
            c => c,
        });
    }
    Some(Cow::Owned(text))
}

/// The character of an escape, after its backslash.
fn escaped(rest: &mut Chars<'_>) -> Option<char> {
    Some(match rest.next()? {
        c @ ('"' | '\\' | '/') => c,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => match utf16_unit(rest)? {
            high @ 0xd800..0xdc00 => {
                let low = rest.as_str().strip_prefix("\\u")?;
                *rest = low.chars();
                char::decode_utf16([high, utf16_unit(rest)?]).next()?.ok()?
            }
            unit => char::from_u32(unit.into())?,
        },
        _ => return None,
    })
}

/// The number in four hexadecimal digits.
fn utf16_unit(rest: &mut Chars<'_>) -> Option<u16> {
    let mut unit = 0;
    for _ in 0..4 {
        unit = (unit << 4) | rest.next()?.to_digit(16)?;
    }
    u16::try_from(unit).ok()
}

/// The labels of one subject on one level.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelSet {
    instance: InstId,
    outcome: Result<Box<[LabelPlace]>, PmStatus>,
    json: Box<str>,
}

/// A place outside the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {field} of label {label}, {len} bytes at {offset}, \
     is not within the {text} bytes of the set's text"
)]
pub struct LabelPlaceError {
    /// Position of the label in its set.
    pub label: usize,
    /// `name` or `value`.
    pub field: &'static str,
    /// Offset of the field.
    pub offset: u32,
    /// Its length.
    pub len: u32,
    /// Length of the text.
    pub text: usize,
}

impl LabelSet {
    /// A set over a text. `instance` is -1 (`PM_IN_NULL`), except on
    /// [`LabelLevel::Instances`].
    ///
    /// # Errors
    /// A name or value is not within the text, or it begins or ends inside a
    /// character.
    pub fn new(
        instance: InstId,
        json: impl Into<Box<str>>,
        places: Vec<LabelPlace>,
    ) -> Result<LabelSet, LabelPlaceError> {
        let json = json.into();
        for (label, place) in places.iter().enumerate() {
            let fields =
                [("name", place.name, place.name_len), ("value", place.value, place.value_len)];
            for (field, offset, len) in fields {
                if slice(&json, offset, len).is_none() {
                    let text = json.len();
                    return Err(LabelPlaceError { label, field, offset, len, text });
                }
            }
        }
        Ok(LabelSet { instance, outcome: Ok(places.into()), json })
    }

    /// A set without labels.
    pub fn empty(instance: InstId) -> LabelSet {
        LabelSet { instance, outcome: Ok(Box::default()), json: Box::default() }
    }

    /// The same labels for another instance.
    #[must_use]
    pub fn of_instance(self, instance: InstId) -> LabelSet {
        LabelSet { instance, ..self }
    }

    /// A set that the source could not deliver, with the reason.
    pub fn failed(instance: InstId, status: PmStatus) -> LabelSet {
        LabelSet { instance, outcome: Err(status), json: Box::default() }
    }

    /// The instance; -1 (`PM_IN_NULL`) if the labels are not an instance's.
    pub fn instance(&self) -> InstId {
        self.instance
    }

    /// The reason why the source could not deliver the set, if so.
    pub fn failure(&self) -> Option<PmStatus> {
        self.outcome.as_ref().err().copied()
    }

    /// The JSON object as the source wrote it; empty when there are no labels.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The labels in the order of the source, which is usually that of their
    /// names.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = Label<'_>> {
        let places: &[LabelPlace] = self.outcome.as_deref().unwrap_or_default();
        places.iter().map(|place| Label {
            name: slice(&self.json, place.name, place.name_len).unwrap_or_default(),
            value: slice(&self.json, place.value, place.value_len).unwrap_or_default(),
            flags: place.flags,
        })
    }

    /// Places of the labels in the text, parallel to [`LabelSet::labels`].
    pub fn places(&self) -> &[LabelPlace] {
        self.outcome.as_deref().unwrap_or_default()
    }
}

/// The text of a set from the bytes of a peer or file. Each byte that is not
/// UTF-8 becomes `?`, so places stay right.
pub fn label_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

fn slice(text: &str, offset: u32, len: u32) -> Option<&str> {
    let start = usize::try_from(offset).ok()?;
    text.get(start..start.checked_add(usize::try_from(len).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_labels_are_those_of_json() {
        let text = |value| Label { name: "a", value, flags: LabelFlags::default() }.text();
        for (value, expected) in [
            (r#""vda""#, "vda"),
            (r#" "vda" "#, "vda"),
            (r#""""#, ""),
            (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r#""\u00e9 \uD83D\uDE00""#, "\u{e9} \u{1f600}"),
            ("4", "4"),
            (r#"["a"]"#, r#"["a"]"#),
            // What is no JSON stays as it is.
            (r#"""#, r#"""#),
            (r#""a\""#, r#""a\""#),
            (r#""a"b""#, r#""a"b""#),
            (r#""\x""#, r#""\x""#),
            (r#""\ud83d""#, r#""\ud83d""#),
            (r#""\ud83d\u0041""#, r#""\ud83d\u0041""#),
            ("\"a\nb\"", "\"a\nb\""),
        ] {
            assert_eq!(text(value), expected, "{value}");
        }
    }
}
