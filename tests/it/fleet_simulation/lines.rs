//! Lines of JSON, as a reader parses them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use pmderive_runtime::model::Timestamp;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::world::BEGINNING;

/// A line.
#[derive(Deserialize)]
pub struct Line<'l> {
    t: &'l str,
    pub target: &'l str,
    pub slot: u64,
    stamp: Option<&'l str>,
    #[serde(borrow)]
    pub labels: BTreeMap<&'l str, Cow<'l, str>>,
    #[serde(borrow)]
    pub host: BTreeMap<&'l str, Cow<'l, str>>,
    /// Of a frame.
    #[serde(borrow)]
    pub metrics: Option<Columns<'l>>,
    /// Of a line that says which series ended, and why.
    #[serde(borrow)]
    pub reason: Option<Cow<'l, str>>,
    #[serde(borrow)]
    pub stale: Option<Columns<'l>>,
}

/// The text of a line, among others that came with it.
#[derive(Clone)]
pub struct Text {
    pub lines: Rc<String>,
    pub place: Range<usize>,
}

impl Text {
    /// Reads it.
    pub fn read(&self) -> Line<'_> {
        let text = &self.lines[self.place.clone()];
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// Columns by metric, in the order of their names.
pub struct Columns<'l> {
    /// Each with the end of its cells.
    metrics: Vec<(&'l str, usize)>,
    cells: Vec<Cell<'l>>,
}

impl<'l> Columns<'l> {
    /// The instances of a metric; none if it is not there.
    pub fn get(&self, metric: &str) -> Option<&[Cell<'l>]> {
        let at = self.metrics.binary_search_by(|(name, _)| (*name).cmp(metric)).ok()?;
        Some(&self.cells[self.begin(at)..self.metrics[at].1])
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&'l str, &[Cell<'l>])> {
        let all = self.metrics.iter().enumerate();
        all.map(|(at, (name, end))| (*name, &self.cells[self.begin(at)..*end]))
    }

    /// Where the cells of a metric begin.
    fn begin(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.metrics[before].1)
    }
}

impl<'de: 'l, 'l> Deserialize<'de> for Columns<'l> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Columns<'l>, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Columns<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("metrics by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Columns<'de>, A::Error> {
                let mut metrics = Vec::with_capacity(64);
                let mut cells = Vec::with_capacity(128);
                while let Some(metric) = map.next_key()? {
                    map.next_value_seed(Column(&mut cells))?;
                    metrics.push((metric, cells.len()));
                }
                Ok(Columns { metrics, cells })
            }
        }
        let columns = deserializer.deserialize_map(Members)?;
        assert!(columns.metrics.is_sorted_by(|(a, _), (b, _)| a < b), "names have an order");
        Ok(columns)
    }
}

/// Identifier and name of an instance, with its value, if it is not about its end.
pub type Cell<'l> = (i32, Cow<'l, str>, f64);

/// Reads a metric into cells; a single value has the identifier -1 and no name.
struct Column<'c, 'l>(&'c mut Vec<Cell<'l>>);

impl Column<'_, '_> {
    fn single<E>(self, value: f64) -> Result<(), E> {
        self.0.push((-1, Cow::Borrowed(""), value));
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Column<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Column<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, or a list of instances")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.single(0.0)
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.single(value as f64)
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.single(value as f64)
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.single(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(Instance(cell)) = list.next_element()? {
            self.0.push(cell);
        }
        Ok(())
    }
}

struct Instance<'l>(Cell<'l>);

impl<'de: 'l, 'l> Deserialize<'de> for Instance<'l> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Instance<'l>, D::Error> {
        struct Cells;
        impl<'de> Visitor<'de> for Cells {
            type Value = Cell<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an instance")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Cell<'de>, A::Error> {
                let missing =
                    || serde::de::Error::custom("an instance has an identifier and a name");
                let id = list.next_element()?.ok_or_else(missing)?;
                let Name(name) = list.next_element()?.ok_or_else(missing)?;
                Ok((id, name, list.next_element()?.unwrap_or_default()))
            }
        }
        deserializer.deserialize_seq(Cells).map(Instance)
    }
}

/// Borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Name<'t>(#[serde(borrow)] Cow<'t, str>);

impl Line<'_> {
    /// The engine's time, since the beginning of its clock.
    pub fn clock(&self) -> Duration {
        Duration::from_nanos(nanoseconds(self.t) - BEGINNING)
    }

    /// The engine's time in milliseconds since 1970.
    pub fn milliseconds(&self) -> i64 {
        (nanoseconds(self.t) / 1_000_000) as i64
    }

    /// The time of the host.
    pub fn stamp(&self) -> Timestamp {
        let (seconds, rest) = self.stamp.and_then(|text| text.split_once('.')).expect("a time");
        let number = |text: &str| text.parse().expect("digits");
        Timestamp::new(number(seconds), number(rest))
    }

    /// The number of the host; nothing for the fleet itself.
    pub fn number(&self) -> Option<u32> {
        let number = self.target.strip_prefix("host")?.split(':').next()?;
        number.parse().ok()
    }
}

fn nanoseconds(text: &str) -> u64 {
    let (seconds, rest) = text.split_once('.').expect("a time");
    let number = |text: &str| text.parse::<u64>().expect("digits");
    assert_eq!(rest.len(), 9);
    number(seconds) * 1_000_000_000 + number(rest)
}
