//! Tests all codecs with recorded exchanges with pmcd, intact and damaged.

use pmderive_core::model::Pmid;

use super::fuzz::for_each_structure;
use super::*;

/// A PDU from a file of recorded exchanges.
struct CapturedPdu {
    file: String,
    pdu: Vec<u8>,
}

fn captures() -> Vec<CapturedPdu> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/pdu");
    let mut captured = Vec::new();
    for entry in std::fs::read_dir(folder).expect("captures") {
        let path = entry.expect("entry").path();
        let text = std::fs::read_to_string(&path).expect("text");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let digits = line[1..].trim();
            let pdu = (0..digits.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hexadecimal"))
                .collect();
            let file = path.file_name().expect("name").to_string_lossy().into_owned();
            captured.push(CapturedPdu { file, pdu });
        }
    }
    assert!(captured.len() > 100, "{} PDUs", captured.len());
    captured
}

/// Decodes a PDU according to its type and encodes it again.
fn recode(pdu: &[u8]) -> Result<Vec<u8>, DecodeError> {
    fn again<'a, P: Pdu<'a>>(pdu: &'a [u8]) -> Result<Vec<u8>, DecodeError> {
        let mut out = Vec::new();
        P::decode(pdu)?.encode(&mut out);
        Ok(out)
    }
    fn result(pdu: &[u8], resolution: Resolution) -> Result<Vec<u8>, DecodeError> {
        let mut out = Vec::new();
        let frame = ResultFrame::decode(pdu, resolution, None)?;
        encode_result(&frame.into_part(pdu.to_vec()), resolution, &mut out);
        Ok(out)
    }
    let header = Header::peek(pdu, usize::MAX)?.expect("a header");
    let kind = PduType::from_code(header.code).expect("a known type");
    match kind {
        PduType::Error if pdu.len() == 20 => return again::<Hello>(pdu),
        PduType::Result => return result(pdu, Resolution::Micro),
        PduType::HighresResult => return result(pdu, Resolution::Nano),
        _ => {}
    }
    macro_rules! recode {
        ($($structure:ident)*) => {$(
            if $structure::TYPES.contains(&kind) {
                return again::<$structure>(pdu);
            }
        )*};
    }
    for_each_structure!(recode);
    panic!("no structure of type {kind:?}");
}

/// Writes both formats of values in blocks as one, because they mean the same.
fn forget_static_blocks(pdu: &mut [u8]) {
    for resolution in [Resolution::Micro, Resolution::Nano] {
        let Ok(frame) = ResultFrame::decode(pdu, resolution, None) else { continue };
        let part = frame.into_part(pdu.to_vec());
        let mut offset = frame.first_set;
        for set in part.sets() {
            let lanes = set.len();
            if lanes == 0 {
                offset += 8;
                continue;
            }
            pdu[offset + 11] = pdu[offset + 11].min(1);
            offset += 12 + 8 * lanes;
        }
    }
}

#[test]
fn captures_are_encoded_as_they_were_sent() {
    for CapturedPdu { file, mut pdu } in captures() {
        let again = recode(&pdu).unwrap_or_else(|error| panic!("{file}: {error}\n{pdu:02x?}"));
        // The sender's identity has no consequence and is always written as zero.
        pdu[8..12].fill(0);
        forget_static_blocks(&mut pdu);
        assert_eq!(again, pdu, "{file}");
    }
}

/// The PDU with another length, also in its header.
fn resized(pdu: &[u8], len: usize) -> Vec<u8> {
    let mut pdu = pdu.to_vec();
    pdu.resize(len, b'~');
    if len >= 4 {
        pdu[..4].copy_from_slice(&u32::try_from(len).expect("small").to_be_bytes());
    }
    pdu
}

#[test]
fn captures_cut_short_anywhere_are_refused() {
    for CapturedPdu { file, pdu } in captures() {
        let code = u32::from_be_bytes([pdu[4], pdu[5], pdu[6], pdu[7]]);
        let kind = PduType::from_code(code);
        for len in HEADER_BYTES..pdu.len() {
            let cut = resized(&pdu, len);
            // A shorter greeting is a status, a shorter attribute is another attribute,
            // and the padding of a text may be anything.
            let may_decode = match kind {
                Some(PduType::Error) => len == 16,
                Some(PduType::Attr) => len >= 16,
                Some(PduType::Text) => len + 4 > pdu.len(),
                _ => false,
            };
            if !may_decode {
                assert!(recode(&cut).is_err(), "{file}: {kind:?} of {len} of {} bytes", pdu.len());
            }
            assert!(recode(&pdu[..len]).is_err(), "{file}: length without its bytes");
        }
        if !matches!(kind, Some(PduType::Attr | PduType::Text | PduType::Error)) {
            assert!(recode(&resized(&pdu, pdu.len() + 4)).is_err(), "{file}: {kind:?} extended");
        }
    }
}

#[test]
fn damaged_captures_are_refused_or_mean_something() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for CapturedPdu { pdu, .. } in captures() {
        for _ in 0..200 {
            let mut damaged = pdu.clone();
            for _ in 0..3 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let bit = usize::try_from(random >> 32).expect("32 bits") % (damaged.len() * 8);
                damaged[bit / 8] ^= 1 << (bit % 8);
            }
            let len = damaged.len();
            fuzz_pdu(&resized(&damaged, len));
        }
    }
}

/// A HIGHRES_RESULT of two sets; the words are the sets and blocks.
fn nano_result(words: &[u32]) -> Vec<u8> {
    let mut pdu = Vec::new();
    let mut writer = Writer::begin(&mut pdu, PduType::HighresResult);
    writer.u32(2);
    writer.i64(1_700_000_000);
    writer.i64(5);
    for word in words {
        writer.u32(*word);
    }
    writer.finish();
    pdu
}

#[test]
fn results_that_do_not_fit_are_refused_with_the_field_and_its_place() {
    const MINUS_1: u32 = 0xffff_ffff;
    let none = [2, 0];
    let one_block = |position, header: u32, data: &[u32]| {
        let set = [1, 1, 1, MINUS_1, position];
        [&set[..], &none, &[header], data].concat()
    };
    let cases: &[(Vec<u32>, &str)] = &[
        (vec![3, 0, 2, 0], "result.pmid at byte 32: 3 where 1 is due"),
        (vec![2, 0, 1, 0], "result.pmid at byte 32: 2 where 1 is due"),
        (vec![1, 0, 2, 0, 0], "result.end at byte 48: 4 bytes too many"),
        (vec![1, 1, 3, MINUS_1, 7, 2, 0], "result.valfmt at byte 40: 3 is not between 0 and 2"),
        (
            vec![1, 0x7fff_ffff, 0, 2, 0],
            "result.numval at byte 36: 2147483647 entries do not fit into the 8 bytes left",
        ),
        (
            vec![1, 0x2000_0001, 0, MINUS_1, 7, 2, 0],
            "result.numval at byte 36: 536870913 entries do not fit into the 16 bytes left",
        ),
        (one_block(0, 0x0600_0004, &[]), "result.position at byte 48: 0 where 15 is due"),
        (one_block(14, 0x0600_0004, &[]), "result.position at byte 48: 14 where 15 is due"),
        (
            one_block(0x4000_000f, 0x0600_0004, &[]),
            "result.position at byte 48: 1073741839 where 15 is due",
        ),
        (
            one_block(15, 0x0600_0003, &[]),
            "result.vlen at byte 60: 3 is not between 4 and 16777215",
        ),
        (one_block(15, 0x0600_0009, &[0]), "result.vlen at byte 64: 5 bytes needed, 4 left"),
        (
            one_block(15, 0x0300_0004, &[]),
            "result.vlen at byte 60: 4 is not between 12 and 16777215",
        ),
        (one_block(15, 0x0600_0004, &[0]), "result.end at byte 64: 4 bytes too many"),
        // Both values refer to one block.
        (
            vec![1, 2, 1, 0, 17, 1, 17, 2, 0, 0x0600_0005, 0],
            "result.position at byte 56: 17 where 19 is due",
        ),
        (
            one_block(15, 0x0a00_0008, &[1]),
            "event_array.nrecords at byte 64: 1 entries do not fit into the 0 bytes left",
        ),
        (
            one_block(15, 0x0900_0018, &[1, 0, 0, 0, 0x1000_0000]),
            "event_array.nparams at byte 80: 268435456 entries do not fit into the 0 bytes left",
        ),
        (
            one_block(15, 0x0900_0020, &[1, 0, 0, 0, 1, 7, 0x0200_0008]),
            "event_array.len at byte 88: 8 is not between 12 and 16777215",
        ),
        // A record of lost records has no parameters, whatever its number says.
        (
            one_block(15, 0x0900_001c, &[1, 0, 0, 0x8000_0000, 9, 0]),
            "event_array.end at byte 84: 4 bytes too many",
        ),
    ];
    let requested = [Pmid(1), Pmid(2)];
    for (words, message) in cases {
        let error = ResultFrame::decode(&nano_result(words), Resolution::Nano, Some(&requested));
        assert_eq!(error.expect_err(message).to_string(), *message);
    }
    let good = nano_result(&one_block(15, 0x0900_0018, &[1, 0, 0, 0x8000_0000, 9]));
    assert!(ResultFrame::decode(&good, Resolution::Nano, Some(&requested)).is_ok());
    let micro = ResultFrame::decode(&good, Resolution::Micro, None).expect_err("another type");
    assert_eq!(micro.to_string(), "result.type at byte 4: 0x7015 is not the type that is due");
    let fewer = ResultFrame::decode(&good, Resolution::Nano, Some(&requested[..1]));
    assert_eq!(fewer.expect_err("one").to_string(), "result.numpmid at byte 12: 2 where 1 is due");
}
