//! Reads recorded metadata from a text. An error gives the mistake, its line
//! and, if the text is JSON, its field.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use pmderive_runtime::model::{
    ExtraUnit, InDom, InstanceDomain, MetricDesc, PmStatus, Pmid, Semantics, Units, ValueType,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{FORMAT, Recorded, RecordedMetadata, VERSION};
use crate::syntax::BYTE_ORDER_MARK;

/// Text that is not recorded metadata. Its display gives the mistake, the
/// field, the line and the column.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct MetadataError(#[from] serde_json::Error);

impl MetadataError {
    /// Line of the mistake, from 1. For a mistake in the whole text, the last
    /// line.
    pub fn line(&self) -> usize {
        self.0.line()
    }
}

impl RecordedMetadata {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first mistake in the text.
    pub fn from_json(text: &[u8]) -> Result<RecordedMetadata, MetadataError> {
        let text = text.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(text);
        let file: FileJson = serde_json::from_slice(text)?;
        let mut recorded = RecordedMetadata { source: file.source.into(), ..Self::default() };
        for metric in file.metrics.0 {
            let MetricJson { name, desc } = metric;
            recorded.names.insert(name.into(), Recorded::Metric(desc.pmid));
            recorded.descs.insert(desc.pmid, Ok(desc));
        }
        for missing in file.missing.0 {
            let MissingJson { name, pmid, err, .. } = missing;
            let mistake = match recorded.names.get(&*name) {
                Some(_) => Some(format!("`{name}` is in `metrics` as well")),
                None => pmid
                    .filter(|pmid| recorded.descs.get(pmid).is_some_and(|d| d.is_ok()))
                    .map(|pmid| {
                        format!("`{name}` has the identifier {pmid}, which has a descriptor")
                    }),
            };
            if let Some(mistake) = mistake {
                let error = format!("field `missing`: {mistake} at line {} column 1", lines(text));
                return Err(MetadataError(de::Error::custom(error)));
            }
            let what = match pmid {
                Some(pmid) => {
                    recorded.descs.insert(pmid, Err(PmStatus(err)));
                    Recorded::Metric(pmid)
                }
                None => Recorded::Missing(PmStatus(err)),
            };
            recorded.names.insert(name.into(), what);
        }
        for DomainJson { indom, instances } in file.domains.0 {
            let instances = instances.into_iter().map(|(id, name)| (id, name.into())).collect();
            recorded.domains.insert(indom, Arc::new(InstanceDomain::new(instances)));
        }
        Ok(recorded)
    }
}

/// Number of the last line that is not empty.
fn lines(text: &[u8]) -> usize {
    let text = text.trim_ascii_end();
    text.iter().filter(|byte| **byte == b'\n').count() + 1
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "one object with the metadata of metrics")]
struct FileJson {
    #[serde(rename = "format", deserialize_with = "format")]
    _format: (),
    #[serde(rename = "version", deserialize_with = "version")]
    _version: (),
    #[serde(deserialize_with = "source")]
    source: String,
    metrics: Entries<MetricJson>,
    #[serde(default)]
    missing: Entries<MissingJson>,
    #[serde(default)]
    domains: Entries<DomainJson>,
}

/// A metric with its descriptor.
struct MetricJson {
    name: String,
    desc: MetricDesc,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that describes a metric")]
struct MetricFields {
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(deserialize_with = "pmid")]
    pmid: Pmid,
    #[serde(rename = "type", deserialize_with = "value_type")]
    value_type: ValueType,
    #[serde(deserialize_with = "indom_or_null")]
    indom: Option<InDom>,
    #[serde(rename = "sem", deserialize_with = "semantics")]
    semantics: Semantics,
    #[serde(deserialize_with = "units")]
    units: String,
    #[serde(default, deserialize_with = "dim")]
    dim: Option<[i8; 3]>,
    #[serde(default, deserialize_with = "scale")]
    scale: Option<(u8, u8, i8)>,
    #[serde(default, deserialize_with = "extra")]
    extra: Option<(i8, u8)>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a name and a status")]
struct MissingJson {
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(default, deserialize_with = "pmid_given")]
    pmid: Option<Pmid>,
    #[serde(deserialize_with = "err")]
    err: i32,
    #[serde(default, rename = "errname")]
    _errname: Option<de::IgnoredAny>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a domain and its instances")]
struct DomainJson {
    #[serde(deserialize_with = "indom")]
    indom: InDom,
    #[serde(deserialize_with = "instances")]
    instances: Vec<(i32, String)>,
}

impl<'de> Deserialize<'de> for MetricJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MetricJson, D::Error> {
        let fields = MetricFields::deserialize(deserializer)?;
        let units = fields.units().map_err(de::Error::custom)?;
        let MetricFields { name, pmid, value_type, indom, semantics, .. } = fields;
        Ok(MetricJson { name, desc: MetricDesc { pmid, value_type, indom, semantics, units } })
    }
}

impl MetricFields {
    /// The units that the fields give together.
    fn units(&self) -> Result<Units, String> {
        let MetricFields { name, units: text, .. } = self;
        let (dim, scale) = match (self.dim, self.scale) {
            (Some(dim), Some(scale)) => (dim, scale),
            (None, None) if self.extra.is_none() => return parsed(name, text),
            _ => {
                let message = "only some of `dim`, `scale` and `extra` are given";
                return Err(format!("metric `{name}`: {message}"));
            }
        };
        let (quantity, unit) = self.extra.unwrap_or_default();
        let [dim_space, dim_time, dim_count] = dim;
        let (scale_space, scale_time, scale_count) = scale;
        let extra = ExtraUnit { quantity, unit };
        let units =
            Units { dim_space, dim_time, dim_count, scale_space, scale_time, scale_count, extra };
        if Units::from_wire(units.to_wire()) != units {
            let message = "`dim`, `scale` or `extra` is beyond what units can express";
            return Err(format!("metric `{name}`: {message}"));
        }
        let printed = units.to_string();
        if printed != *text {
            let message = format!("field `units`: \"{text}\", but `dim` and `scale` say");
            return Err(format!("metric `{name}`: {message} \"{printed}\""));
        }
        Ok(units)
    }
}

fn parsed(name: &str, text: &str) -> Result<Units, String> {
    if text.is_empty() {
        return Ok(Units::NONE);
    }
    let parsed = Units::parse(text)
        .map_err(|error| format!("metric `{name}`: field `units`: \"{text}\": {error}"))?;
    if parsed.multiplier != 1.0 {
        return Err(format!("metric `{name}`: field `units`: \"{text}\" has a multiplier"));
    }
    Ok(parsed.units)
}

/// A list whose entries have unique keys.
struct Entries<T>(Vec<T>);

impl<T> Default for Entries<T> {
    fn default() -> Entries<T> {
        Entries(Vec::new())
    }
}

/// An entry of a list with a unique key.
trait Keyed {
    /// Describes a conflict between an entry and those before it.
    fn conflict(&self, before: &mut EarlierEntries) -> Option<String>;
}

/// Keys of the entries so far, with the descriptors of metrics.
#[derive(Default)]
struct EarlierEntries {
    names: HashSet<String>,
    descs: HashMap<Pmid, MetricDesc>,
    indoms: HashSet<InDom>,
}

impl EarlierEntries {
    fn name(&mut self, name: &str) -> Option<String> {
        (!self.names.insert(name.to_owned()))
            .then(|| format!("field `name`: `{name}` occurs twice"))
    }
}

impl Keyed for MetricJson {
    fn conflict(&self, before: &mut EarlierEntries) -> Option<String> {
        if let Some(twice) = before.name(&self.name) {
            return Some(twice);
        }
        match before.descs.entry(self.desc.pmid) {
            Entry::Vacant(vacant) => {
                vacant.insert(self.desc);
                None
            }
            Entry::Occupied(other) if *other.get() == self.desc => None,
            Entry::Occupied(_) => Some(format!(
                "field `pmid`: `{}` has the identifier of a metric with another descriptor",
                self.name
            )),
        }
    }
}

impl Keyed for MissingJson {
    fn conflict(&self, before: &mut EarlierEntries) -> Option<String> {
        before.name(&self.name)
    }
}

impl Keyed for DomainJson {
    fn conflict(&self, before: &mut EarlierEntries) -> Option<String> {
        (!before.indoms.insert(self.indom))
            .then(|| format!("field `indom`: {} occurs twice", self.indom))
    }
}

impl<'de, T: Deserialize<'de> + Keyed> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries<T>, D::Error> {
        deserializer.deserialize_seq(List(PhantomData))
    }
}

struct List<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Keyed> Visitor<'de> for List<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entries<T>, A::Error> {
        let (mut entries, mut before) = (Vec::new(), EarlierEntries::default());
        while let Some(entry) = list.next_element_seed(EntrySeed(&mut before, PhantomData))? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

/// Reads one entry of a list. A mistake in the whole entry is reported while
/// the entry is read, so it has the line where the entry ends.
struct EntrySeed<'b, T>(&'b mut EarlierEntries, PhantomData<T>);

impl<'de, T: Deserialize<'de> + Keyed> DeserializeSeed<'de> for EntrySeed<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de> + Keyed> Visitor<'de> for EntrySeed<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let entry = T::deserialize(MapAccessDeserializer::new(map))?;
        match entry.conflict(self.0) {
            None => Ok(entry),
            Some(conflict) => Err(de::Error::custom(conflict)),
        }
    }
}

/// Reads a field as JSON and then its meaning. `wanted` describes the expected
/// value.
fn field<'de, D, J, T>(
    deserializer: D,
    field: &str,
    wanted: &str,
    meaning: impl FnOnce(J) -> Option<T>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    J: Deserialize<'de>,
{
    let json = J::deserialize(deserializer)
        .map_err(|error| de::Error::custom(format!("field `{field}`: {error}")))?;
    meaning(json).ok_or_else(|| de::Error::custom(format!("field `{field}`: {wanted}")))
}

macro_rules! fields {
    ($($function:ident: $name:literal, $json:ty => $value:ty, $wanted:expr, $meaning:expr;)*) => {$(
        fn $function<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$value, D::Error> {
            field::<D, $json, $value>(deserializer, $name, $wanted, $meaning)
        }
    )*};
}

fields! {
    format: "format", Cow<'de, str> => (), "must be \"pmderive metadata\"",
        |text| (text == FORMAT).then_some(());
    version: "version", u64 => (), "this pmderive knows only version 1",
        |version| (version == u64::from(VERSION)).then_some(());
    source: "source", String => String, "", Some;
    name: "name", String => String, "a metric's name has components with dots between them",
        |name| name.split('.').all(|component| !component.is_empty()).then_some(name);
    pmid: "pmid", Cow<'de, str> => Pmid, PMID, |text| text.parse().ok();
    pmid_given: "pmid", Cow<'de, str> => Option<Pmid>, PMID, |text| text.parse().ok().map(Some);
    value_type: "type", Cow<'de, str> => ValueType,
        "must be a type such as 32, U32, 64, U64, FLOAT, DOUBLE or STRING",
        |text| read_type(&text);
    indom: "indom", Cow<'de, str> => InDom, INDOM, |text| text.parse().ok();
    indom_or_null: "indom", Option<Cow<'de, str>> => Option<InDom>, INDOM,
        |text| match text {
            Some(text) => text.parse().ok().map(Some),
            None => Some(None),
        };
    semantics: "sem", Cow<'de, str> => Semantics, "must be counter, instant or discrete",
        |text| [Semantics::Counter, Semantics::Instant, Semantics::Discrete]
            .into_iter()
            .find(|semantics| semantics.name() == text);
    units: "units", String => String, "", Some;
    dim: "dim", [i8; 3] => Option<[i8; 3]>, "", |dim| Some(Some(dim));
    scale: "scale", (u8, u8, i8) => Option<(u8, u8, i8)>, "", |scale| Some(Some(scale));
    extra: "extra", (i8, u8) => Option<(i8, u8)>, "", |extra| Some(Some(extra));
    err: "err", i32 => i32, "a status is negative", |err| (err < 0).then_some(err);
    instances: "instances", Vec<(i32, String)> => Vec<(i32, String)>, "", Some;
}

const PMID: &str = "must be a metric identifier, DOMAIN.CLUSTER.ITEM, within 511.4095.1023";
const INDOM: &str = "must be null or an instance domain, DOMAIN.SERIAL, within 511.4194303";

fn read_type(text: &str) -> Option<ValueType> {
    let known = (-1..=10).map(ValueType::from_code).chain([ValueType::Unknown]);
    known.into_iter().find(|value_type| value_type.name() == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::fuzz_metadata;
    use pmderive_runtime::source::MetadataSource;

    const GOOD: &str = r#"{
  "format": "pmderive metadata",
  "version": 1,
  "source": "somewhere",
  "metrics": [
    {"name": "a.b", "pmid": "60.0.38", "type": "U64", "indom": "60.1", "sem": "counter", "units": "Kbyte", "dim": [1,0,0], "scale": [1,0,0]},
    {"name": "a.v", "pmid": "60.0.39", "type": "FLOAT", "indom": null, "sem": "instant", "units": "voltage (mV)", "dim": [0,0,0], "scale": [0,0,0], "extra": [2,2]}
  ],
  "missing": [
    {"name": "a.x", "err": -12357, "errname": "PM_ERR_NAME"},
    {"name": "a.y", "pmid": "61.0.1", "err": -12386, "errname": "PM_ERR_NOAGENT"}
  ],
  "domains": [
    {"indom": "60.1", "instances": [[-3,"sd \"a\""], [1,"sdb"]]}
  ]
}
"#;

    #[test]
    fn what_is_written_is_what_is_read() {
        let mut recorded = RecordedMetadata::from_json(GOOD.as_bytes()).expect("good text");
        assert_eq!(recorded.to_json(), GOOD);
        let found = recorded.lookup_names(&["a.b", "a.x", "a.y", "a", "b", ""]);
        let (known, lacking) = (Pmid::new(60, 0, 38), Pmid::new(61, 0, 1));
        let (name, nonleaf) = (Err(PmStatus::NAME), Err(PmStatus::NONLEAF));
        assert_eq!(
            found.expect("no failure"),
            [Ok(known), name, Ok(lacking), nonleaf, name, nonleaf]
        );
        let descs = recorded.lookup_descs(&[known, lacking]).expect("no failure");
        assert_eq!(descs[0].map(|desc| desc.units.to_string()), Ok("Kbyte".to_owned()));
        assert_eq!(descs[1], Err(PmStatus::NOAGENT));
        assert_eq!(recorded.traverse("a").expect("no failure"), ["a.b", "a.v", "a.y"]);
        let domain = recorded.known_instances(InDom::new(60, 1)).expect("no failure");
        assert_eq!(domain.expect("recorded").name(1), Some("sdb"));
        let other = recorded.known_instances(InDom::new(60, 2)).expect("no failure");
        assert_eq!(other, Err(PmStatus::INDOM));
    }

    #[test]
    fn a_group_is_recorded_whole() {
        let mut source = RecordedMetadata::from_json(GOOD.as_bytes()).expect("good text");
        for group in ["a", "a."] {
            let recorded = RecordedMetadata::record([group], [], &mut source).expect("no failure");
            assert_eq!(recorded.metrics().collect::<Vec<_>>(), ["a.b", "a.v", "a.y"], "{group}");
        }
        let other = RecordedMetadata::record(["other"], [], &mut source).expect("no failure");
        assert_eq!(other.metrics().next(), None);
    }

    #[test]
    fn units_may_be_text_alone() {
        let text = GOOD.replace(r#", "dim": [1,0,0], "scale": [1,0,0]"#, "");
        let recorded = RecordedMetadata::from_json(text.as_bytes()).expect("good text");
        assert_eq!(recorded.to_json(), GOOD);
    }

    /// Each mistake reports its line and its field.
    #[test]
    fn mistakes_have_their_place() {
        for (from, to, line, expected) in [
            (
                "\"version\": 1",
                "\"version\": 2",
                3,
                "field `version`: this pmderive knows only version 1",
            ),
            ("pmderive metadata", "metadata", 2, "field `format`: must be"),
            ("\"source\": \"somewhere\"", "\"source\": 4", 4, "field `source`: invalid type"),
            ("60.0.38", "60.0.1024", 6, "field `pmid`: must be a metric identifier"),
            ("60.0.38", "60.0", 6, "field `pmid`"),
            ("60.0.38", "60.0.+3", 6, "field `pmid`"),
            ("60.0.38", "60.0.39", 7, "field `pmid`: `a.v` has the identifier"),
            ("\"U64\"", "\"u64\"", 6, "field `type`: must be a type"),
            ("\"indom\": \"60.1\", \"sem\"", "\"sem\"", 6, "missing field `indom`"),
            ("\"60.1\", \"sem\"", "60, \"sem\"", 6, "field `indom`: invalid type: integer `60`"),
            ("\"counter\"", "\"gauge\"", 6, "field `sem`: must be counter"),
            ("\"Kbyte\"", "\"Mbyte\"", 6, "field `units`: \"Mbyte\", but `dim` and `scale` say"),
            ("\"dim\": [1,0,0], ", "", 6, "only some of `dim`, `scale` and `extra`"),
            ("[1,0,0], \"scale\"", "[300,0,0], \"scale\"", 6, "field `dim`: invalid value"),
            ("[1,0,0], \"scale\"", "[9,0,0], \"scale\"", 6, "beyond what units can express"),
            ("\"name\": \"a.v\"", "\"name\": \"a.b\"", 7, "field `name`: `a.b` occurs twice"),
            ("\"a.v\"", "\"a..v\"", 7, "field `name`: a metric's name"),
            ("\"a.x\"", "\"a.b\"", 16, "field `missing`: `a.b` is in `metrics`"),
            ("61.0.1", "60.0.38", 16, "field `missing`: `a.y` has the identifier 60.0.38"),
            ("-12357", "12357", 10, "field `err`: a status is negative"),
            ("[1,\"sdb\"]", "[1]", 14, "field `instances`: invalid length"),
            ("\"domains\"", "\"domain\"", 13, "unknown field `domain`"),
            ("}\n  ]\n}", "}\n  ]\n", 17, "EOF while parsing an object"),
            ("\n}\n", "\n}\n{", 17, "trailing characters"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let text = GOOD.replacen(from, to, 1);
            let error = RecordedMetadata::from_json(text.as_bytes()).expect_err(expected);
            assert!(error.to_string().contains(expected), "{error}: {expected}");
            assert_eq!(error.line(), line, "{error}");
        }
    }

    #[test]
    fn damaged_files_are_errors_or_good() {
        let text = GOOD.as_bytes();
        for end in 0..text.len() {
            fuzz_metadata(&text[..end]);
        }
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..3_000 {
            let mut bytes = text.to_vec();
            for _ in 0..2 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let at = usize::try_from(state >> 33).unwrap_or(0) % bytes.len();
                bytes[at] ^= 1 << (state >> 30 & 7);
            }
            fuzz_metadata(&bytes);
        }
    }
}
