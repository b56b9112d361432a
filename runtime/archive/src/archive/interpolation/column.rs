//! The decoded values of one value set.
//!
//! Input: a record, the bytes of a set in it, and the type of the metric. Output: the
//! instances, and bits or bytes by position. A few decoded sets are kept for all metrics together,
//! because all lanes of a metric ask for the same sets one after the other.

use pmderive_core::model::{InstId, Pmid, ValueType};

use crate::archive::framing::LENGTH_WORD;
use crate::archive::interpolation::coverage::Ordinal;
use crate::archive::untyped::{UNTYPED, UntypedOrder};
use crate::archive::values::{BLOCK_ORIGIN, regular_blocks};

/// Number of decoded sets that are kept: those around a time, and a spare one.
const COLUMNS: usize = 3;

/// The value sets that were decoded last.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// The set that was used last comes first.
    list: [Column; COLUMNS],
}

impl Columns {
    /// The decoded set of a metric in a record. If it is not there, the error is the
    /// column that the caller must decode it into.
    pub(super) fn find(&mut self, of: (Pmid, Ordinal)) -> Result<&Column, &mut Column> {
        let known = self.list.iter().position(|one| one.of == Some(of));
        self.list[..=known.unwrap_or(COLUMNS - 1)].rotate_right(1);
        let [column, ..] = &mut self.list;
        match known {
            Some(_) => Ok(column),
            None => {
                column.of = Some(of);
                Err(column)
            }
        }
    }

    /// A column for a set that no later call will find.
    pub(super) fn spare(&mut self) -> &mut Column {
        let [.., column] = &mut self.list;
        column.of = None;
        column
    }

    /// Forgets all sets.
    pub(super) fn forget(&mut self) {
        self.list.iter_mut().for_each(Column::forget);
    }
}

/// The values of one set by position.
#[derive(Debug, Default)]
pub(super) struct Column {
    /// The metric and the record of the set.
    of: Option<(Pmid, Ordinal)>,
    /// Numbers as bits. For other values, the start in `bytes` in the high half and the
    /// end in the low half.
    pub(super) bits: Vec<u64>,
    pub(super) bytes: Vec<u8>,
}

/// The instances of a value set.
pub(super) fn instances(set: &[u8]) -> impl ExactSizeIterator<Item = InstId> + Clone {
    let (lanes, _) = set.get(12..).unwrap_or_default().as_chunks::<8>();
    lanes.iter().map(|[a, b, c, d, ..]| i32::from_be_bytes([*a, *b, *c, *d]))
}

impl Column {
    /// Marks this column as not decoded.
    pub(super) fn forget(&mut self) {
        self.of = None;
    }

    /// Decodes the values of a set, or none of them if one does not fit the type. True
    /// if they are in blocks.
    pub(super) fn decode(
        &mut self,
        record: &[u8],
        set: &[u8],
        (value_type, untyped_order): (ValueType, UntypedOrder),
    ) -> bool {
        self.bits.clear();
        self.bytes.clear();
        let word = |at: usize| {
            let bytes = set.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_be_bytes(*bytes))
        };
        let count = word(4).unwrap_or_default() as usize;
        let in_blocks = word(8) != Some(0);
        let lanes = set.get(12..).unwrap_or_default().as_chunks::<8>().0;
        let lanes = &lanes[..count.min(lanes.len())];
        if in_blocks
            && matches!(value_type, ValueType::I64 | ValueType::U64 | ValueType::F64)
            && let Some(blocks) = regular_blocks(record, lanes)
        {
            self.take(blocks, untyped_order);
            return in_blocks;
        }
        for [_, _, _, _, a, b, c, d] in lanes {
            let word = u32::from_be_bytes([*a, *b, *c, *d]);
            let bits = match in_blocks {
                false => in_place(word, value_type),
                true => block(record, word).and_then(|block| {
                    let order =
                        if block.0 == UNTYPED { untyped_order } else { UntypedOrder::Network };
                    self.in_block(block.1, value_type, order)
                }),
            };
            let Some(bits) = bits else {
                self.bits.clear();
                break;
            };
            self.bits.push(bits);
        }
        in_blocks
    }

    /// Takes the numbers of blocks that have one type and 8 bytes of data.
    fn take(&mut self, blocks: &[[u8; 12]], untyped_order: UntypedOrder) {
        let is_untyped = blocks.first().is_some_and(|[code, ..]| *code == UNTYPED);
        let order = if is_untyped { untyped_order } else { UntypedOrder::Network };
        self.bits.extend(blocks.iter().map(|[_, _, _, _, data @ ..]| order.bits(*data)));
    }

    fn in_block(&mut self, data: &[u8], value_type: ValueType, order: UntypedOrder) -> Option<u64> {
        match value_type {
            ValueType::I64 | ValueType::U64 | ValueType::F64 => {
                data.try_into().ok().map(|data| order.bits(data))
            }
            ValueType::F32 => data.try_into().ok().map(|bits| u64::from(u32::from_be_bytes(bits))),
            ValueType::I32 | ValueType::U32 => None,
            _ => {
                let start = self.bytes.len() as u64;
                self.bytes.extend_from_slice(data);
                Some(start << 32 | self.bytes.len() as u64 & 0xffff_ffff)
            }
        }
    }
}

fn in_place(word: u32, value_type: ValueType) -> Option<u64> {
    use ValueType::{F32, I32, U32};
    matches!(value_type, I32 | U32 | F32).then_some(u64::from(word))
}

/// The type code and the data of a block, if it lies within the record.
fn block(record: &[u8], position: u32) -> Option<(u8, &[u8])> {
    let start = usize::try_from(4 * i64::from(position) + BLOCK_ORIGIN).ok()?;
    let body = record.get(..record.len().checked_sub(LENGTH_WORD)?)?;
    let rest = body.get(start..)?;
    let [code, length @ ..] = *rest.first_chunk::<4>()?;
    let length = u32::from_be_bytes([0, length[0], length[1], length[2]]) as usize;
    Some((code, rest.get(4..length)?))
}
