//! Reads value sets in either form.

use std::fmt;
use std::sync::Arc;

use crate::model::{InstId, PmStatus, Pmid, RawValueRef, ValueType};
use crate::result::ResultPart;
use crate::result::columns::ColumnValues;
use crate::result::wire::WireValues;

/// Iterator over the value sets of a part. It ends early if the bytes end
/// early.
#[derive(Clone, Debug)]
pub struct ValueSets<'a> {
    part: &'a ResultPart,
    place: usize,
    left: usize,
}

/// The place of a value set in a batch, for [`ResultBatch::set_at`].
///
/// [`ResultBatch::set_at`]: crate::result::ResultBatch::set_at
#[derive(Clone, Copy, Debug)]
pub struct SetPlace {
    /// Position of the part.
    pub(super) part: usize,
    /// Offset of the set, or its position among columns.
    pub(super) at: usize,
}

/// One metric's values in a result.
///
/// ```
/// use pmderive_core::model::{Pmid, Timestamp, Value, ValueType};
/// use pmderive_core::result::{ResultBatch, ResultWriter};
///
/// let mut batch = ResultBatch::default();
/// let mut writer = ResultWriter::new(batch.add_part(), Timestamp::new(60, 0));
/// writer.set(Pmid::new(60, 0, 4));
/// writer.in_place(3, 7);
/// for set in batch.sets() {
///     for (instance, value) in set.values() {
///         let value = value.map(|value| value.decode(ValueType::U32));
///         assert_eq!((instance, value), (3, Some(Ok(Value::U32(7)))));
///     }
/// }
/// ```
#[derive(Clone, Copy)]
pub struct ValueSet<'a> {
    /// The metric.
    pub pmid: Pmid,
    /// Number of values, or the status if there are none.
    pub count: Result<usize, PmStatus>,
    pub(crate) content: Content<'a>,
}

/// The values of a set, for readers to whom the form matters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    Wire(WireValues<'a>),
    Columns(ColumnValues<'a>),
}

impl fmt::Debug for ValueSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ValueSet { pmid, count, .. } = self;
        write!(f, "{pmid} {count:?} ")?;
        f.debug_map().entries(self.values()).finish()
    }
}

impl<'a> ValueSets<'a> {
    pub(super) fn of(part: &'a ResultPart) -> ValueSets<'a> {
        let place = part.wire().map_or(0, |wire| wire.first_set);
        ValueSets { part, place, left: part.set_count() }
    }

    pub(super) fn at(part: &'a ResultPart, place: usize) -> ValueSets<'a> {
        ValueSets { part, place, left: 1 }
    }

    /// The sets that are left, with their places; `part` is the position of their part.
    pub(super) fn placed(
        mut self,
        part: usize,
    ) -> impl Iterator<Item = (SetPlace, ValueSet<'a>)> + use<'a> {
        std::iter::from_fn(move || {
            let at = self.place;
            self.next().map(|set| (SetPlace { part, at }, set))
        })
    }
}

impl<'a> Iterator for ValueSets<'a> {
    type Item = ValueSet<'a>;

    fn next(&mut self) -> Option<ValueSet<'a>> {
        self.left = self.left.checked_sub(1)?;
        if let Some(wire) = self.part.wire() {
            let set = wire.set_at(self.place)?;
            self.place = set.end;
            let content = Content::Wire(set.values);
            return Some(ValueSet { pmid: set.pmid, count: set.count, content });
        }
        let (pmid, numval, values) = self.part.columns()?.set(self.place)?;
        self.place += 1;
        let count = if numval < 0 { Err(PmStatus(numval)) } else { Ok(values.len()) };
        Some(ValueSet { pmid, count, content: Content::Columns(values) })
    }
}

impl<'a> ValueSet<'a> {
    /// Number of values.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.content {
            Content::Wire(wire) => wire.len(),
            Content::Columns(columns) => columns.len(),
        }
    }

    /// True if there are no values.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if the values are 32-bit words in place.
    pub fn is_in_place(&self) -> bool {
        match &self.content {
            Content::Wire(wire) => !wire.in_blocks,
            Content::Columns(columns) => columns.is_in_place(),
        }
    }

    /// The instances of the values, in the order delivered.
    pub fn instances(&self) -> impl ExactSizeIterator<Item = InstId> + use<'a> {
        let set = *self;
        (0..self.len()).map(move |at| set.instance(at))
    }

    /// True if the values have exactly these instances, in that order.
    pub(crate) fn has_instances(&self, ids: &[InstId]) -> bool {
        match &self.content {
            Content::Columns(columns) => columns.ids() == ids,
            Content::Wire(wire) => wire.has_instances(ids),
        }
    }

    /// The instances of the values, as an owned list.
    pub(crate) fn instance_list(&self) -> Arc<[InstId]> {
        match &self.content {
            Content::Columns(columns) => columns.ids().into(),
            Content::Wire(wire) => wire.lanes().map(|lane| lane.instance).collect(),
        }
    }

    /// The instances with their values, in the order delivered. A value is
    /// `None` if the result lacks it.
    pub fn values(
        &self,
    ) -> impl ExactSizeIterator<Item = (InstId, Option<RawValueRef<'a>>)> + use<'a> {
        let set = *self;
        (0..self.len()).map(move |at| (set.instance(at), set.value(at)))
    }

    /// The instance of the value at a position, or -1 if there is none.
    pub(crate) fn instance(&self, at: usize) -> InstId {
        match &self.content {
            Content::Wire(wire) => wire.lane(at).map_or(-1, |lane| lane.instance),
            Content::Columns(columns) => columns.ids().get(at).copied().unwrap_or(-1),
        }
    }

    /// The value at a position below [`ValueSet::len`]. `None` if the result
    /// lacks it: its block is not within the bytes.
    #[inline]
    pub fn value(&self, at: usize) -> Option<RawValueRef<'a>> {
        match &self.content {
            Content::Wire(wire) => wire.value(wire.lane(at)?),
            Content::Columns(columns) => columns.value(at),
        }
    }

    /// Appends the bits of all values if they are all numbers of `value_type`.
    /// 32-bit values are in the low half. Otherwise appends nothing and returns
    /// false.
    pub fn numbers(&self, value_type: ValueType, bits: &mut Vec<u64>) -> bool {
        if let Content::Columns(columns) = &self.content
            && let Some(are_numbers) = columns.numbers(value_type, bits)
        {
            return are_numbers;
        }
        let start = bits.len();
        for (_, value) in self.values() {
            let Some(number) = value.and_then(|value| value.number(value_type)) else {
                bits.truncate(start);
                return false;
            };
            bits.push(number);
        }
        true
    }
}
