//! The columns of a frame, in two parts. Heads tell for each metric whether it has values, and
//! of which instances. They change rarely, and slots share them. Lanes are the values; each
//! frame has its own. They need three allocations for any number of metrics.

use std::sync::{Arc, LazyLock};

use pmderive_runtime::eval::{Value, Values};
use pmderive_runtime::model::{InstId, ValueType};
use pmderive_runtime::position::Per;
use pmderive_runtime::program::Status;
use pmderive_runtime::result::ResultWriter;
use pmderive_runtime::weak_table::Interner;
use rustc_hash::FxHashMap;

use super::instances::{ExportedId, Instances};

/// Patterns in use, for sharing.
static IN_USE: LazyLock<Interner<Pattern>> = LazyLock::new(Interner::default);

/// Statuses and instances of metrics in little memory. Metrics of one domain mostly share their
/// instances, and so do similar hosts.
#[derive(Debug)]
pub struct Heads {
    /// The different sets of instances.
    sets: Box<[Arc<Instances>]>,
    pattern: Arc<Pattern>,
    /// Number of instances of all metrics.
    series_count: usize,
}

/// The set of each metric, and its status. Similar hosts share a pattern.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    heads: Per<ExportedId, Head>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Head {
    status: Status,
    /// Position in [`Heads::sets`].
    set: u32,
}

/// Values of metrics, one metric after the other, each parallel to its instances.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    /// End of each metric's range in `numbers`.
    ends: Per<ExportedId, u32>,
    /// Bits of each type; those of 32 bits are in the low half. A text is its range in `texts`:
    /// the start is in the high half, the end in the low half.
    numbers: Vec<u64>,
    texts: Vec<u8>,
}

/// Writes numbers into the current set of a result, which is empty. `bits` are parallel to the
/// instances; those of 32 bits are in the low half.
pub fn write_numbers(
    writer: &mut ResultWriter<'_>,
    value_type: ValueType,
    ids: &[InstId],
    bits: &[u64],
) {
    let lanes = writer.numbers(value_type, false, ids.iter().copied());
    match value_type.lane_bytes() {
        4 => {
            let lanes = lanes.as_chunks_mut().0.iter_mut().zip(bits);
            lanes.for_each(|(lane, bits)| *lane = (*bits as u32).to_ne_bytes());
        }
        _ => {
            let lanes = lanes.as_chunks_mut().0.iter_mut().zip(bits);
            lanes.for_each(|(lane, bits)| *lane = bits.to_ne_bytes());
        }
    }
}

/// The columns of a frame.
#[derive(Clone, Debug)]
pub struct Columns {
    heads: Arc<Heads>,
    lanes: Lanes,
}

/// Values of one metric, parallel to its instances.
#[derive(Clone, Copy, Debug)]
pub struct Column<'c> {
    /// Whether there are values, or why not.
    pub status: Status,
    /// The instances; slots share them while they are the same.
    pub instances: &'c Arc<Instances>,
    /// Numbers of the metric's type; those of 32 bits are in the low half. For texts only their
    /// number means something.
    pub bits: &'c [u64],
    texts: &'c [u8],
}

impl Heads {
    /// Heads of metrics, in the metrics' order.
    pub fn new(all: impl IntoIterator<Item = (Status, Arc<Instances>)>) -> Arc<Heads> {
        Heads::among(&IN_USE, all)
    }

    /// Heads of metrics, in the metrics' order. Their pattern comes from `patterns` if it has
    /// an equal one.
    pub(in crate::fleet) fn among(
        patterns: &Interner<Pattern>,
        all: impl IntoIterator<Item = (Status, Arc<Instances>)>,
    ) -> Arc<Heads> {
        let mut sets: Vec<Arc<Instances>> = Vec::new();
        let mut known: FxHashMap<usize, u32> = FxHashMap::default();
        let mut series_count = 0;
        let head = |(status, instances): (Status, Arc<Instances>)| {
            series_count += instances.ids.len();
            let set = *known.entry(Arc::as_ptr(&instances).addr()).or_insert_with(|| {
                sets.push(instances);
                sets.len() as u32 - 1
            });
            Head { status, set }
        };
        let heads = all.into_iter().map(head).collect();
        let pattern = patterns.intern(Pattern { heads });
        Arc::new(Heads { sets: sets.into(), pattern, series_count })
    }

    /// Status and instances of a metric.
    pub fn get(&self, metric: ExportedId) -> Option<(Status, &Arc<Instances>)> {
        let head = self.pattern.heads.get(metric)?;
        Some((head.status, &self.sets[head.set as usize]))
    }

    /// Status and instances of all metrics.
    pub fn iter(&self) -> impl Iterator<Item = (Status, &Arc<Instances>)> {
        self.pattern.heads.iter().map(|head| (head.status, &self.sets[head.set as usize]))
    }

    /// The different sets of instances.
    pub fn sets(&self) -> &[Arc<Instances>] {
        &self.sets
    }

    /// The pattern.
    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// The metrics with instances, and these.
    pub fn present(&self) -> impl Iterator<Item = (ExportedId, &Arc<Instances>)> {
        let all = self.pattern.heads.enumerate();
        let all = all.map(|(metric, head)| (metric, &self.sets[head.set as usize]));
        all.filter(|(_, instances)| !instances.ids.is_empty())
    }

    /// The number of series.
    pub fn series_count(&self) -> usize {
        self.series_count
    }

    /// Bytes of memory, without the pattern and the instances.
    pub fn bytes(&self) -> usize {
        size_of::<Heads>() + size_of_val(&*self.sets)
    }
}

impl Pattern {
    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.heads.len() * size_of::<Head>()
    }
}

impl Lanes {
    /// Empty lanes with room for this many metrics and values.
    pub fn with_room(metrics: usize, values: usize) -> Lanes {
        let ends = Vec::with_capacity(metrics).into();
        Lanes { ends, numbers: Vec::with_capacity(values), texts: Vec::new() }
    }

    /// Adds a metric with these bits; none if it has no values. Numbers beyond 2^32 are left
    /// out: no frame has that many, as a metric's instances are limited.
    pub fn push(&mut self, bits: impl Iterator<Item = u64>) {
        let before = self.numbers.len();
        self.numbers.extend(bits);
        if u32::try_from(self.numbers.len()).is_err() {
            self.numbers.truncate(before);
        }
        self.ends.push(self.numbers.len() as u32);
    }

    /// Adds a metric with the first values of an evaluation, up to a limit.
    pub fn push_values(&mut self, values: &Values<'_>, most: usize) {
        match values.numbers() {
            Some(numbers) => self.push(numbers.take(most).map(|(_, bits)| bits)),
            None => {
                self.push_texts((0..values.len().min(most)).map(|lane| match values.get(lane) {
                    Value::Text(bytes) | Value::Bytes(bytes) => bytes,
                    _ => &[],
                }))
            }
        }
    }

    /// Adds a metric with these texts or other bytes. Texts beyond 4 GiB are empty.
    pub fn push_texts<'t>(&mut self, texts: impl Iterator<Item = &'t [u8]>) {
        let mut bytes = std::mem::take(&mut self.texts);
        self.push(texts.map(|text| {
            let begin = bytes.len();
            bytes.extend_from_slice(text);
            if u32::try_from(bytes.len()).is_err() {
                bytes.truncate(begin);
            }
            (begin as u64) << 32 | bytes.len() as u64
        }));
        self.texts = bytes;
    }
}

impl Columns {
    /// Columns of parallel heads and lanes.
    pub fn new(heads: Arc<Heads>, lanes: Lanes) -> Columns {
        debug_assert_eq!(heads.pattern.heads.len(), lanes.ends.len());
        Columns { heads, lanes }
    }

    /// The heads.
    pub fn heads(&self) -> &Arc<Heads> {
        &self.heads
    }

    /// The column of a metric.
    pub fn get(&self, metric: ExportedId) -> Option<Column<'_>> {
        let (status, instances) = self.heads.get(metric)?;
        let end = *self.lanes.ends.get(metric)? as usize;
        let begin = metric.previous().map_or(0, |before| self.lanes.ends[before] as usize);
        let bits = &self.lanes.numbers[begin..end];
        Some(Column { status, instances, bits, texts: &self.lanes.texts })
    }

    /// All columns, parallel to the metrics.
    pub fn iter(&self) -> impl Iterator<Item = Column<'_>> {
        let (mut begin, texts) = (0, &*self.lanes.texts);
        self.heads.iter().zip(&self.lanes.ends).map(move |((status, instances), end)| {
            let bits = &self.lanes.numbers[begin as usize..*end as usize];
            begin = *end;
            Column { status, instances, bits, texts }
        })
    }

    /// Bytes of memory of the values.
    pub fn bytes(&self) -> usize {
        let Lanes { ends, numbers, texts } = &self.lanes;
        ends.len() * size_of::<u32>() + size_of_val(&**numbers) + texts.len()
    }
}

impl<'c> Column<'c> {
    /// The value of an instance, by its position. `value_type` must be that of the metric.
    ///
    /// # Panics
    /// The column has fewer values.
    pub fn value(&self, value_type: ValueType, lane: usize) -> Value<'c> {
        let bits = self.bits[lane];
        match value_type {
            ValueType::I32 => Value::I32(bits as i32),
            ValueType::U32 => Value::U32(bits as u32),
            ValueType::I64 => Value::I64(bits as i64),
            ValueType::U64 => Value::U64(bits),
            ValueType::F32 => Value::F32(f32::from_bits(bits as u32)),
            ValueType::F64 => Value::F64(f64::from_bits(bits)),
            ValueType::String => Value::Text(self.text(lane)),
            _ => Value::Bytes(self.text(lane)),
        }
    }

    /// The text or the bytes of an instance, by its position.
    fn text(&self, lane: usize) -> &'c [u8] {
        let bits = self.bits[lane];
        let (begin, end) = ((bits >> 32) as usize, bits as u32 as usize);
        self.texts.get(begin..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::sinks::samples::{named, single};

    #[test]
    fn hosts_that_are_alike_share_what_metrics_have() {
        let patterns = Interner::default();
        let heads = |names: &[&str]| {
            let (one, disks) = (single(), named(names));
            let all = [&one, &disks, &disks].map(|set| (Status::Values, set));
            let heads = Heads::among(&patterns, all.map(|(status, set)| (status, Arc::clone(set))));
            assert!(heads.iter().zip(all).all(|((_, a), (_, b))| Arc::ptr_eq(a, b)));
            assert_eq!((heads.sets().len(), heads.series_count()), (2, 1 + 2 * names.len()));
            assert!(heads.get(ExportedId(3)).is_none());
            heads
        };
        let (one, other) = (heads(&["a"]), heads(&["a", "b"]));
        assert!(Arc::ptr_eq(one.pattern(), other.pattern()));
        drop((one, other));
        let failed = Status::Failed(pmderive_runtime::model::PmStatus::AGAIN);
        let heads = Heads::among(&patterns, [(failed, single())]);
        assert_eq!(heads.get(ExportedId(0)).map(|(status, _)| status), Some(failed));
        assert_eq!(patterns.count(), 1, "what nobody has is forgotten");
    }

    #[test]
    fn each_metric_has_its_own_values() {
        let (two, one) = (named(&["a", "b"]), single());
        let all = [&two, &one, &two, &one].map(|set| (Status::Values, Arc::clone(set)));
        let mut lanes = Lanes::with_room(4, 5);
        lanes.push([1, u64::from(2.5f32.to_bits())].into_iter());
        lanes.push(std::iter::empty());
        lanes.push_texts([&b"one"[..], b""].into_iter());
        lanes.push_texts(std::iter::once(&b"other"[..]));
        let columns = Columns::new(Heads::new(all), lanes);
        let bits: Vec<usize> = columns.iter().map(|column| column.bits.len()).collect();
        assert_eq!(bits, [2, 0, 2, 1]);
        let value = |metric, value_type, lane| {
            let column = columns.get(ExportedId(metric)).expect("a metric");
            column.value(value_type, lane)
        };
        assert_eq!(value(0, ValueType::I32, 0), Value::I32(1));
        assert_eq!(value(0, ValueType::F32, 1), Value::F32(2.5));
        assert_eq!(value(2, ValueType::String, 0), Value::Text(b"one"));
        assert_eq!(value(2, ValueType::String, 1), Value::Text(b""));
        assert_eq!(value(3, ValueType::Aggregate, 0), Value::Bytes(b"other"));
        assert!(columns.get(ExportedId(4)).is_none());
        assert_eq!(columns.bytes(), 4 * 4 + 5 * 8 + 8);
    }
}
