//! Decodes value sets into lanes.
//!
//! The fast way ([`decode_column`]) writes a column and at the same time checks
//! that the value set has the form that the layout expects. If the value set is
//! a column already, this is a copy. The slow way ([`survey`]) determines the
//! form of a value set, so that a layout can be made for it. If the source says
//! that only numbers changed, nothing is checked ([`Copied`]).

use std::sync::Arc;

use super::layout::{Expected, SectionId};
use crate::kernel::interp::write;
use crate::model::{InstId, PmStatus, RawValueRef, ValueType, until_nul};
use crate::program::{Input, InputSlot, Reason, Status, scalar_of};
use crate::result::{Columns, Content, Form, LayoutId, ValueSet};

/// The layout of the columns that were last as expected and all numbers, and
/// the stamp that the frame had then. Other columns of the same layout are as
/// expected too.
#[derive(Debug, Default)]
pub struct Copied(Option<(LayoutId, u64)>);

impl Copied {
    /// Copies the columns of a program's inputs into a frame with that stamp.
    /// Returns false if it is not known that the columns are as expected.
    pub fn copy(
        &self,
        columns: &Columns,
        inputs: &[Expected],
        stamp: u64,
        arena: &mut [u8],
    ) -> bool {
        if columns.layout().is_none_or(|layout| self.0 != Some((layout, stamp))) {
            return false;
        }
        for (input, lanes) in inputs.iter().zip(columns.number_lanes()) {
            if !input.has_values {
                continue;
            }
            let column = &mut arena[input.offset as usize..];
            match *lanes {
                // Most metrics have a single value.
                [a, b, c, d, e, f, g, h] => column[..8].copy_from_slice(&[a, b, c, d, e, f, g, h]),
                [a, b, c, d] => column[..4].copy_from_slice(&[a, b, c, d]),
                _ => column[..lanes.len()].copy_from_slice(lanes),
            }
        }
        true
    }

    /// Remembers columns that were decoded into a frame as expected. They must
    /// be those of a program's inputs.
    pub fn learn(&mut self, columns: &Columns, inputs: &[Expected], specs: &[Input], stamp: u64) {
        let is_copied = |((input, spec), lanes): ((&Expected, &Input), &[u8])| {
            // If a value set has more lanes than its column, each is decoded by
            // itself. So is a value that is not a number.
            let count = usize::try_from(input.raw_count).unwrap_or(0);
            let is_whole = input.section != SectionId::SINGLES || count <= 1;
            let are_numbers = scalar_of(spec.value_type).is_some()
                && lanes.len() == count * spec.value_type.lane_bytes();
            !input.has_values || is_whole && are_numbers
        };
        let mut inputs = inputs.iter().zip(specs).zip(columns.number_lanes());
        let layout = columns.layout().filter(|_| inputs.all(is_copied));
        self.0 = layout.map(|layout| (layout, stamp));
    }
}

/// The form of a value set, without the values.
#[derive(Debug, PartialEq)]
pub struct Survey {
    /// The status: values, or the reason why there are none.
    pub status: Status,
    /// The value set's own count or status.
    pub raw_count: i32,
    /// Instances of the values.
    pub ids: Arc<[InstId]>,
    /// False if a value could not be decoded. Then `status` says more than the
    /// value set's count does.
    pub sound: bool,
}

/// Surveys of some of a program's inputs.
#[derive(Debug, Default)]
pub struct Surveys(Vec<(InputSlot, Survey)>);

impl Surveys {
    /// Adds the survey of an input. Inputs come in ascending order.
    pub fn push(&mut self, slot: InputSlot, survey: Survey) {
        self.0.push((slot, survey));
    }

    /// The survey of an input, if there is one.
    pub fn get(&self, slot: InputSlot) -> Option<&Survey> {
        let at = self.0.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        Some(&self.0[at].1)
    }

    /// Instances of an input's values.
    pub fn ids(&self, slot: InputSlot) -> &[InstId] {
        self.get(slot).map_or(&[], |survey| &*survey.ids)
    }
}

/// The count word of a value set: the number of values, or a status.
pub fn raw_count(set: &ValueSet<'_>) -> i32 {
    match set.count {
        Ok(count) => i32::try_from(count).unwrap_or(i32::MAX),
        Err(status) => status.0,
    }
}

/// Determines the form of a value set of a metric of type `value_type`. If its
/// instances equal one of the lists in `known`, the survey shares that list.
pub fn survey<'l>(
    set: &ValueSet<'_>,
    value_type: ValueType,
    known: impl IntoIterator<Item = &'l Arc<[InstId]>>,
) -> Survey {
    let raw_count = raw_count(set);
    let without = |status, sound| Survey { status, raw_count, ids: Arc::default(), sound };
    match set.count {
        Err(status) => return without(Status::Failed(status), true),
        Ok(0) => return without(Status::Empty(Reason::OperandEmpty), true),
        Ok(_) => {}
    }
    let is_plain = match &set.content {
        Content::Columns(columns) => is_column_of(columns.form(), value_type),
        Content::Wire(wire) => match (value_type, wire.in_blocks) {
            (ValueType::I32 | ValueType::U32 | ValueType::F32, false) => true,
            (ValueType::I64 | ValueType::U64 | ValueType::F64, true) => {
                wire.lanes().all(|lane| wire.block_of_8(lane.word).is_some())
            }
            _ => false,
        },
    };
    for (_, value) in set.values().filter(|_| !is_plain) {
        if let Err(status) = decoded(value, &mut [0; 8], value_type) {
            return without(Status::Failed(status), false);
        }
    }
    let known = known.into_iter().find(|ids| set.has_instances(ids));
    let ids = known.map_or_else(|| set.instance_list(), Arc::clone);
    Survey { status: Status::Values, raw_count, ids, sound: true }
}

/// True if the lanes of a delivered column can be lanes of type `value_type`.
/// Only their size matters: the writer may have meant another type of that
/// size, but the metric's descriptor decides.
fn is_column_of(form: Form, value_type: ValueType) -> bool {
    match value_type {
        // Old archives have single-precision values in place.
        ValueType::I32 | ValueType::U32 | ValueType::F32 => {
            matches!(form, Form::Words | Form::Numbers(_)) && form.width() == 4
        }
        ValueType::I64 | ValueType::U64 | ValueType::F64 => {
            matches!(form, Form::Numbers(_)) && form.width() == 8
        }
        _ => false,
    }
}

/// A value as a lane: its bits, or the bytes of text and aggregates.
enum Decoded<'a> {
    Bits(u64),
    Bytes(&'a [u8]),
}

/// Decodes a value. `room` holds the bytes of a number, if bytes are needed.
fn decoded<'a>(
    value: Option<RawValueRef<'a>>,
    room: &'a mut [u8; 8],
    value_type: ValueType,
) -> Result<Decoded<'a>, PmStatus> {
    let data = match value.ok_or(PmStatus::LOGREC)?.encoded(room) {
        Err(word) => {
            return match value_type {
                // Old archives have single-precision values in place.
                ValueType::I32 | ValueType::U32 | ValueType::F32 => {
                    Ok(Decoded::Bits(u64::from(word)))
                }
                ValueType::NoSupport | ValueType::Unknown | ValueType::Other(_) => {
                    Err(PmStatus::TYPE)
                }
                _ => Err(PmStatus::LOGREC),
            };
        }
        Ok((_, data)) => data,
    };
    match value_type {
        ValueType::I32 | ValueType::U32 | ValueType::F32 => {
            let data: [u8; 4] = data.try_into().map_err(|_| PmStatus::CONV)?;
            Ok(Decoded::Bits(u64::from(u32::from_be_bytes(data))))
        }
        ValueType::I64 | ValueType::U64 | ValueType::F64 => {
            let data: [u8; 8] = data.try_into().map_err(|_| PmStatus::CONV)?;
            Ok(Decoded::Bits(u64::from_be_bytes(data)))
        }
        // Old archives pad texts with several NULs.
        ValueType::String => Ok(Decoded::Bytes(until_nul(data))),
        ValueType::NoSupport | ValueType::Unknown | ValueType::Other(_) => Err(PmStatus::TYPE),
        _ => Ok(Decoded::Bytes(data)),
    }
}

/// The place of bytes in an arena, as the bits of a lane.
fn pack_range(start: usize, len: usize) -> u64 {
    (start as u64) << 32 | len as u64 & 0xffff_ffff
}

/// The inverse of [`pack_range`].
pub fn unpack_range(bits: u64) -> std::ops::Range<usize> {
    let start = (bits >> 32) as usize;
    start..start + (bits & 0xffff_ffff) as usize
}

/// Decodes the lanes of a value set into the column at `column`. Its first
/// instances must be `ids`. Bytes go to `blobs`. Returns false if the value set
/// is not as expected; then the column is unspecified.
pub fn decode_column(
    set: &ValueSet<'_>,
    value_type: ValueType,
    ids: &[InstId],
    column: &mut [u8],
    blobs: &mut Vec<u8>,
) -> bool {
    match &set.content {
        Content::Columns(columns) => {
            if columns.ids().get(..ids.len()) != Some(ids) {
                return false;
            }
            if is_column_of(columns.form(), value_type) {
                column.copy_from_slice(&columns.lanes()[..column.len()]);
                return true;
            }
        }
        Content::Wire(wire) => {
            if wire.len() < ids.len() {
                return false;
            }
            // The first instance usually shows whether an instance has come or
            // gone.
            if wire.lanes().next().map(|lane| lane.instance) != ids.first().copied() {
                return false;
            }
            let lanes = wire.lanes().zip(ids);
            let mut same = true;
            match (value_type, wire.in_blocks) {
                (ValueType::I32 | ValueType::U32 | ValueType::F32, false) => {
                    for ((lane, id), out) in lanes.zip(column.chunks_exact_mut(4)) {
                        same &= lane.instance == *id;
                        out.copy_from_slice(&lane.word.to_ne_bytes());
                    }
                    return same;
                }
                (ValueType::I64 | ValueType::U64 | ValueType::F64, true) => {
                    for ((lane, id), out) in lanes.zip(column.chunks_exact_mut(8)) {
                        let Some(data) = wire.block_of_8(lane.word) else { return false };
                        same &= lane.instance == *id;
                        out.copy_from_slice(&u64::from_be_bytes(data).to_ne_bytes());
                    }
                    return same;
                }
                _ => {}
            }
        }
    }
    decode_any(set, value_type, ids, column, blobs)
}

/// Like [`decode_column`], value by value.
fn decode_any(
    set: &ValueSet<'_>,
    value_type: ValueType,
    ids: &[InstId],
    column: &mut [u8],
    blobs: &mut Vec<u8>,
) -> bool {
    let width = value_type.lane_bytes();
    for (at, ((instance, value), id)) in set.values().zip(ids).enumerate() {
        let mut room = [0; 8];
        let Ok(decoded) = decoded(value, &mut room, value_type) else { return false };
        if instance != *id {
            return false;
        }
        match (decoded, scalar_of(value_type)) {
            (Decoded::Bits(bits), Some(scalar)) => write(scalar, column, at * width, bits),
            (Decoded::Bytes(bytes), _) => {
                let bits = pack_range(blobs.len(), bytes.len());
                blobs.extend_from_slice(bytes);
                column[at * width..][..8].copy_from_slice(&bits.to_ne_bytes());
            }
            (Decoded::Bits(_), None) => return false,
        }
    }
    true
}
