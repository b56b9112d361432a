//! The promises of PDUs about any bytes, for fuzzers.

use pmderive_core::model::{Pmid, RawValueRef};
use pmderive_core::result::{ResultBatch, ResultPart, ResultWriter, ValueSet};

use super::*;

/// Calls a macro with the structures of all PDUs except results, for tests.
macro_rules! for_each_structure {
    ($do:ident) => {
        $do! {
            Attr Creds Desc DescIds DescRequest Descs ErrorPdu Fetch Hello InstanceRequest
            Instances LabelRequest Labels PmnsChild PmnsIds PmnsNames PmnsTraverse Profile Text
            TextRequest
        }
    };
}

#[cfg(test)]
pub(super) use for_each_structure;

/// Decodes `data` as every kind of PDU. A decoded PDU must mean the same after
/// encoding.
pub fn fuzz_pdu(data: &[u8]) {
    macro_rules! check {
        ($($structure:ident)*) => {$(
            if let Ok(value) = $structure::decode(data) {
                let mut again = Vec::new();
                value.encode(&mut again);
                let copy = $structure::decode(&again).expect("what was encoded decodes");
                assert_eq!(copy, value);
            }
        )*};
    }
    for_each_structure!(check);
    fuzz_result(data);
}

/// A result that decodes must be readable to its end, and must mean the same after it
/// was encoded again.
fn fuzz_result(data: &[u8]) {
    for resolution in [Resolution::Micro, Resolution::Nano] {
        let Ok(frame) = ResultFrame::decode(data, resolution, None) else { continue };
        let part = frame.into_part(data.to_vec());
        let pmids: Vec<Pmid> = part.sets().map(|set| set.pmid).collect();
        assert_eq!(pmids.len(), frame.set_count);
        fuzz_known(data, resolution, &pmids);
        let mut again = Vec::new();
        encode_result(&part, resolution, &mut again);
        let copy = ResultFrame::decode(&again, resolution, Some(&pmids));
        let copy = copy.expect("what was encoded decodes").into_part(again);
        for (set, twin) in part.sets().zip(copy.sets()) {
            assert_eq!(set.count, twin.count);
            for ((instance, value), (other, same)) in set.values().zip(twin.values()) {
                assert_eq!(instance, other);
                assert!(value.is_some());
                assert_eq!(value, same);
            }
        }
        // The same values in columns, and encoded from columns.
        let mut columns = ResultPart::default();
        let mut writer = ResultWriter::new(&mut columns, part.timestamp);
        part.sets().for_each(|set| writer.copy(&set));
        let owned = |set: ValueSet<'_>| -> Vec<_> {
            let value = |value: Option<RawValueRef<'_>>| value.map(RawValueRef::to_owned);
            set.values().map(|(instance, raw)| (instance, value(raw))).collect()
        };
        for is_encoded in [false, true] {
            if is_encoded {
                columns.encode();
            }
            assert_eq!(part.set_count(), columns.set_count());
            for (set, twin) in part.sets().zip(columns.sets()) {
                assert_eq!((set.pmid, set.count), (twin.pmid, twin.count));
                assert_eq!(owned(set), owned(twin));
            }
        }
    }
}

/// A PDU that differs from another in a few bits comes in columns only if it
/// decodes, and then with the same values.
fn fuzz_known(data: &[u8], resolution: Resolution, pmids: &[Pmid]) {
    let Ok(frame) = ResultFrame::decode(data, resolution, Some(pmids)) else { return };
    let mut batch = ResultBatch::default();
    (0..2).for_each(|_| frame.notice(1, data, &mut batch));
    let mut other = data.to_vec();
    // The bytes themselves say which of them are changed.
    let bits = data.iter().fold(7usize, |all, byte| all.rotate_left(5) ^ usize::from(*byte));
    let at = bits / 8 % data.len();
    for flipped in [0, 1 << (bits % 8)] {
        other[at] ^= flipped;
        batch.clear();
        if !ResultFrame::add_as_before(&other, (1, resolution), pmids, &mut batch) {
            continue;
        }
        let twin = ResultFrame::decode(&other, resolution, Some(pmids)).expect("it is like one");
        let twin = twin.into_part(other.clone());
        assert_eq!(twin.timestamp, batch.timestamp());
        for (set, other) in twin.sets().zip(batch.sets()) {
            assert_eq!((set.pmid, set.count), (other.pmid, other.count));
            for ((instance, value), (id, same)) in set.values().zip(other.values()) {
                let [value, same] = [value, same].map(|value| value.map(|value| value.to_owned()));
                assert_eq!((instance, value), (id, same));
            }
        }
    }
}
