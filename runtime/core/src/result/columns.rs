//! Value sets as typed columns, in the machine's byte order.
//!
//! Each set has its instances and a column of lanes. Both follow those of the
//! set before:
//!
//! | form       | lane                                                      | form on the wire       |
//! |------------|-----------------------------------------------------------|------------------------|
//! | `Words`    | 4 bytes: integers of 32 bits, whatever their metric's type | values in place        |
//! | `Numbers`  | 4 bytes (FLOAT) or 8 (64, U64, DOUBLE), all of one type    | a block for each       |
//! | `Bytes`    | 8 bytes: type code, length, and start in the arena         | a block for each       |
//!
//! Texts, aggregates and event records are `Bytes`, with all bytes of their
//! blocks (including the NUL of a text). A set is also `Bytes` if its values
//! have several types, or lengths that do not fit their types.
//!
//! This module never looks at descriptors.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::{InstId, PmStatus, Pmid, RawValue, RawValueRef, ValueType};

/// Largest number of bytes of a value. A longer one cannot be encoded: a
/// block's length has 24 bits and includes 4 bytes of its header.
const MAX_BYTES: usize = 0xff_ffff - 4;

/// Value sets, each with its instances and a column. A
/// [`ResultWriter`](crate::result::ResultWriter) fills it.
#[derive(Debug, Default)]
pub struct Columns {
    sets: Vec<Set>,
    ids: Vec<InstId>,
    lanes: Vec<u8>,
    arena: Vec<u8>,
    layout: Option<LayoutId>,
}

#[derive(Clone, Copy, Debug)]
struct Set {
    pmid: Pmid,
    /// Number of values, or a status when negative.
    numval: i32,
    form: Form,
    /// Position of the first instance.
    id: usize,
    /// Offset of the first lane.
    lane: usize,
}

/// The form of a column's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Words,
    Numbers(ValueType),
    Bytes,
}

/// Identity of everything in a part except its numbers. Parts with the same
/// identity have equally many numbers in the same forms, so conclusions about
/// one such part hold for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LayoutId(u64);

impl LayoutId {
    /// An identity that no layout of this process had before.
    pub fn fresh() -> LayoutId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        LayoutId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The values of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnValues<'a> {
    ids: &'a [InstId],
    form: Form,
    lanes: &'a [u8],
    arena: &'a [u8],
}

impl Form {
    fn of(value: &RawValueRef<'_>) -> Form {
        match value {
            RawValueRef::InPlace(_) => Form::Words,
            RawValueRef::Number { value_type, .. } => Form::Numbers(*value_type),
            RawValueRef::Block { .. } => Form::Bytes,
        }
    }

    /// Size of a lane in bytes.
    #[inline]
    pub(crate) fn width(self) -> usize {
        match self {
            Form::Words | Form::Numbers(ValueType::F32) => 4,
            Form::Numbers(_) | Form::Bytes => 8,
        }
    }
}

impl Set {
    /// Number of values; 0 for a status.
    #[inline]
    fn count(&self) -> usize {
        usize::try_from(self.numval).unwrap_or(0)
    }

    /// Size in bytes of the set's lanes, which follow those of the set before.
    #[inline]
    fn lane_bytes(&self) -> usize {
        self.count() * self.form.width()
    }
}

/// The lane of a value in the arena.
fn pack(code: u8, start: u32, length: usize) -> u64 {
    u64::from(code) << 56 | (length as u64 & 0xff_ffff) << 32 | u64::from(start)
}

impl Columns {
    /// Removes all sets but keeps the buffers.
    pub(super) fn clear(&mut self) {
        self.sets.clear();
        self.ids.clear();
        self.lanes.clear();
        self.arena.clear();
        self.layout = None;
    }

    /// Drops the lanes, to keep the rest as a model of other columns.
    pub(super) fn drop_lanes(&mut self) {
        self.lanes = Vec::new();
        self.sets.shrink_to_fit();
        self.ids.shrink_to_fit();
    }

    /// Copies the sets of columns whose lanes were dropped and had `lane_bytes`
    /// bytes. The caller must write the numbers afterwards.
    pub(super) fn become_like(&mut self, model: &Columns, lane_bytes: usize) {
        self.sets.clone_from(&model.sets);
        self.ids.clone_from(&model.ids);
        self.lanes.resize(lane_bytes, 0);
        self.arena.clear();
        self.layout = None;
    }

    /// The lanes of all sets.
    pub(super) fn lanes_mut(&mut self) -> &mut [u8] {
        &mut self.lanes
    }

    /// Number of value sets.
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// True without value sets.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Identity of the layout, if the source tracks it.
    pub fn layout(&self) -> Option<LayoutId> {
        self.layout
    }

    /// Sets the identity of the layout.
    pub fn set_layout(&mut self, layout: LayoutId) {
        self.layout = Some(layout);
    }

    #[inline]
    fn values(&self, set: &Set) -> ColumnValues<'_> {
        ColumnValues {
            ids: &self.ids[set.id..][..set.count()],
            form: set.form,
            lanes: &self.lanes[set.lane..][..set.lane_bytes()],
            arena: &self.arena,
        }
    }

    /// The value set at a position: its metric, its own count or status, and
    /// its values.
    pub(super) fn set(&self, at: usize) -> Option<(Pmid, i32, ColumnValues<'_>)> {
        let set = self.sets.get(at)?;
        Some((set.pmid, set.numval, self.values(set)))
    }

    /// The lanes of each value set, in order. A set of bytes gives no lanes.
    pub(crate) fn number_lanes(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.lanes[..];
        self.sets.iter().map(move |set| {
            let lanes = rest.split_off(..set.lane_bytes()).unwrap_or_default();
            if set.form == Form::Bytes { &[] } else { lanes }
        })
    }

    /// Like `Columns::number_lanes`, to overwrite the numbers.
    pub fn number_lanes_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let mut rest = &mut self.lanes[..];
        self.sets.iter().map(move |set| {
            let lanes = rest.split_off_mut(..set.lane_bytes()).unwrap_or_default();
            if set.form == Form::Bytes { &mut [] } else { lanes }
        })
    }

    /// Begins a set without values.
    pub(super) fn begin(&mut self, pmid: Pmid, numval: i32) {
        let (id, lane) = (self.ids.len(), self.lanes.len());
        self.sets.push(Set { pmid, numval, form: Form::Words, id, lane });
    }

    /// Number of values in the current set.
    pub(super) fn count(&self) -> usize {
        self.sets.last().map_or(0, Set::count)
    }

    /// Turns the current set into one whose metric failed. Earlier values are
    /// removed, later ones dropped.
    pub(super) fn fail(&mut self, status: PmStatus) {
        let Some(set) = self.sets.last_mut() else { return };
        // A status that is not an error makes a set without values.
        set.numval = status.0.min(0);
        self.ids.truncate(set.id);
        self.lanes.truncate(set.lane);
    }

    /// Adds a value to the current set. A value that is too long makes the
    /// metric fail with `PM_ERR_TOOBIG`.
    pub(super) fn push(&mut self, instance: InstId, value: RawValueRef<'_>) {
        let value = value.as_number();
        let form = Form::of(&value);
        let Some(set) = self.sets.last_mut().filter(|set| set.numval >= 0) else { return };
        if set.numval == 0 {
            set.form = form;
        }
        let Some(numval) = set.numval.checked_add(1) else { return self.fail(PmStatus::TOOBIG) };
        if set.form != form && set.form != Form::Bytes {
            self.spell_out();
        }
        let Some(set) = self.sets.last_mut() else { return };
        match (set.form, value) {
            (Form::Words, RawValueRef::InPlace(word)) => {
                self.lanes.extend_from_slice(&word.to_ne_bytes());
            }
            (Form::Numbers(ValueType::F32), RawValueRef::Number { bits, .. }) => {
                self.lanes.extend_from_slice(&(bits as u32).to_ne_bytes());
            }
            (Form::Numbers(_), RawValueRef::Number { bits, .. }) => {
                self.lanes.extend_from_slice(&bits.to_ne_bytes());
            }
            (_, value) => {
                let mut room = [0; 8];
                let word;
                let (code, bytes) = match value.encoded(&mut room) {
                    Ok(block) => block,
                    // A word among blocks becomes a block.
                    Err(bits) => {
                        word = bits.to_be_bytes();
                        (U32, &word[..])
                    }
                };
                return self.push_bytes(instance, code, &[bytes]);
            }
        }
        set.numval = numval;
        self.ids.push(instance);
    }

    /// Adds a value that consists of pieces of bytes to the current set. A
    /// value that is too long for a block makes the metric fail with
    /// `PM_ERR_TOOBIG`.
    pub(super) fn push_bytes(&mut self, instance: InstId, code: u8, pieces: &[&[u8]]) {
        let Some(set) = self.sets.last_mut().filter(|set| set.numval >= 0) else { return };
        if set.numval == 0 {
            set.form = Form::Bytes;
        }
        if set.form != Form::Bytes {
            self.spell_out();
        }
        let Some(set) = self.sets.last_mut() else { return };
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        let numval = set.numval.checked_add(1);
        let (Some(numval), Ok(start), true) =
            (numval, u32::try_from(self.arena.len()), length <= MAX_BYTES)
        else {
            return self.fail(PmStatus::TOOBIG);
        };
        set.numval = numval;
        pieces.iter().for_each(|piece| self.arena.extend_from_slice(piece));
        self.lanes.extend_from_slice(&pack(code, start, length).to_ne_bytes());
        self.ids.push(instance);
    }

    /// Turns the current set into one of bytes.
    fn spell_out(&mut self) {
        let Some(at) = self.sets.len().checked_sub(1) else { return };
        let values = self.values(&self.sets[at]);
        let values: Vec<(InstId, RawValue)> = (0..values.len())
            .filter_map(|at| Some((values.ids[at], values.value(at)?.to_owned())))
            .collect();
        let set = &mut self.sets[at];
        (set.numval, set.form) = (0, Form::Bytes);
        self.ids.truncate(set.id);
        self.lanes.truncate(set.lane);
        for (instance, value) in values {
            match value {
                RawValue::InPlace(word) => {
                    self.push_bytes(instance, U32, &[&word.to_be_bytes()]);
                }
                RawValue::Block { code, bytes } => self.push_bytes(instance, code, &[&bytes]),
            }
        }
    }

    /// Replaces all values of the current set by values in one form, and
    /// returns the lanes to write. Returns no lanes if the set has failed or
    /// there are too many values.
    pub(super) fn fill(
        &mut self,
        form: Form,
        ids: impl ExactSizeIterator<Item = InstId>,
    ) -> &mut [u8] {
        let Some(set) = self.sets.last_mut().filter(|set| set.numval >= 0) else {
            return &mut [];
        };
        let Ok(numval) = i32::try_from(ids.len()) else {
            self.fail(PmStatus::TOOBIG);
            return &mut [];
        };
        (set.numval, set.form) = (numval, form);
        let end = set.lane + ids.len() * form.width();
        self.ids.truncate(set.id);
        self.ids.extend(ids);
        self.lanes.resize(end, 0);
        &mut self.lanes[set.lane..]
    }

    /// Removes the values that `keep` refuses.
    pub(super) fn retain(&mut self, keep: impl Fn(Pmid, InstId) -> bool) {
        self.layout = None;
        let (mut to_id, mut to_lane) = (0, 0);
        for set in &mut self.sets {
            let (count, width) = (set.count(), set.form.width());
            let (from_id, from_lane) = (set.id, set.lane);
            (set.id, set.lane) = (to_id, to_lane);
            for at in 0..count {
                let instance = self.ids[from_id + at];
                if !keep(set.pmid, instance) {
                    set.numval -= 1;
                    continue;
                }
                let lane = from_lane + at * width;
                self.ids[to_id] = instance;
                self.lanes.copy_within(lane..lane + width, to_lane);
                (to_id, to_lane) = (to_id + 1, to_lane + width);
            }
        }
        self.ids.truncate(to_id);
        self.lanes.truncate(to_lane);
    }
}

/// Type code of unsigned 32-bit integers.
const U32: u8 = 1;

impl<'a> ColumnValues<'a> {
    #[inline]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The instances.
    #[inline]
    pub(crate) fn ids(&self) -> &'a [InstId] {
        self.ids
    }

    /// The form of the lanes.
    #[inline]
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// The lanes, in the machine's byte order.
    #[inline]
    pub(crate) fn lanes(&self) -> &'a [u8] {
        self.lanes
    }

    pub(super) fn is_in_place(&self) -> bool {
        self.form == Form::Words
    }

    fn word(&self, at: usize) -> Option<u32> {
        self.lanes.as_chunks().0.get(at).map(|lane| u32::from_ne_bytes(*lane))
    }

    fn long(&self, at: usize) -> Option<u64> {
        self.lanes.as_chunks().0.get(at).map(|lane| u64::from_ne_bytes(*lane))
    }

    #[inline]
    pub(super) fn value(&self, at: usize) -> Option<RawValueRef<'a>> {
        Some(match self.form {
            Form::Words => RawValueRef::InPlace(self.word(at)?),
            Form::Numbers(value_type @ ValueType::F32) => {
                RawValueRef::Number { value_type, bits: self.word(at)?.into() }
            }
            Form::Numbers(value_type) => RawValueRef::Number { value_type, bits: self.long(at)? },
            Form::Bytes => {
                let lane = self.long(at)?;
                let start = (lane & 0xffff_ffff) as usize;
                let length = (lane >> 32 & 0xff_ffff) as usize;
                let bytes = self.arena.get(start..start + length)?;
                RawValueRef::Block { code: (lane >> 56) as u8, bytes }
            }
        })
    }

    /// See [`ValueSet::numbers`](crate::result::ValueSet::numbers). `None` if
    /// each value must be examined.
    pub(super) fn numbers(&self, value_type: ValueType, bits: &mut Vec<u64>) -> Option<bool> {
        use ValueType::{I32, U32};
        let are_numbers = match self.form {
            Form::Words => matches!(value_type, I32 | U32),
            Form::Numbers(own) => own == value_type,
            Form::Bytes => return None,
        };
        if are_numbers && self.form.width() == 4 {
            let lanes = self.lanes.as_chunks().0.iter();
            bits.extend(lanes.map(|lane| u64::from(u32::from_ne_bytes(*lane))));
        } else if are_numbers {
            bits.extend(self.lanes.as_chunks().0.iter().map(|lane| u64::from_ne_bytes(*lane)));
        }
        Some(are_numbers || self.ids.is_empty())
    }
}
