//! 64-bit numbers in blocks without a type, which pmlogger wrote in 1995 and 1996.
//!
//! Input: the value sets of a record. Output: the same sets with blocks that have the
//! type of their metric. No other module needs to know about such archives.

use pmderive_core::model::{Pmid, ValueType};
use pmderive_core::result::Wire;

/// The type code of a block without a type.
pub(super) const UNTYPED: u8 = 0;

/// Size in bytes of a block's header.
const HEADER: usize = 4;

/// The assumed byte order of numbers in blocks without a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum UntypedOrder {
    /// The order of all other numbers in an archive. This is right.
    #[default]
    Network,
    /// The order of this machine. libpcp uses it because it does not convert untyped
    /// blocks.
    Native,
}

impl UntypedOrder {
    /// The bits of a number.
    pub(super) fn bits(self, data: [u8; 8]) -> u64 {
        match self {
            UntypedOrder::Network => u64::from_be_bytes(data),
            UntypedOrder::Native => u64::from_ne_bytes(data),
        }
    }
}

/// Gives untyped blocks the type of their metric if that is a 64-bit number. All blocks
/// of a set are assumed to be alike.
pub(super) fn give_types(
    wire: &mut Wire,
    order: UntypedOrder,
    type_of: impl Fn(Pmid) -> Option<ValueType>,
) {
    let mut untyped = Vec::new();
    for (pmid, values) in wire.sets().filter(|(_, values)| values.in_blocks) {
        let first = values.lanes().next().and_then(|lane| wire.block(lane.word));
        if first.is_none_or(|(code, _)| code != UNTYPED) {
            continue;
        }
        if let Some(value_type @ (ValueType::I64 | ValueType::U64 | ValueType::F64)) = type_of(pmid)
        {
            untyped.extend(values.lanes().map(|lane| (lane.word, value_type)));
        }
    }
    for (position, value_type) in untyped {
        give_type(wire, position, value_type, order);
    }
}

fn give_type(wire: &mut Wire, position: u32, value_type: ValueType, order: UntypedOrder) {
    let Some((UNTYPED, data)) = wire.block(position) else { return };
    let Ok(data) = <[u8; 8]>::try_from(data) else { return };
    let Ok(code) = u8::try_from(value_type.code()) else { return };
    let Ok(start) = usize::try_from(wire.block_origin + 4 * i64::from(position)) else { return };
    wire.bytes[start] = code;
    let data = order.bits(data).to_be_bytes();
    wire.bytes[start + HEADER..][..data.len()].copy_from_slice(&data);
}
