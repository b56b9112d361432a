//! The memory that a peer can make the client allocate: in proportion to the
//! bytes that it sends, not to those that it announces.

use crate::conversations::all;
use crate::counting::most;
use pmderive_testkit::fake_pmcd::{Fault, Garble};

/// Memory of client and peer for a short reply, buffers included.
const LITTLE: usize = 512 << 10;

#[test]
fn announced_bytes_and_entries_cost_nothing_before_they_come() {
    for conversation in all() {
        let (_, reply) = conversation.right();
        for at in (0..reply.len() / 4 * 4).step_by(4) {
            for value in [0x03ff_fffc, 0x0400_0000, 0x00ff_ffff, 0x7fff_ffff, 0x0001_0000] {
                let mut found = None;
                let taken = most(|| {
                    let fault = Fault::Garble(Garble::Word { at, value });
                    found = Some(conversation.struck(fault).0.map_err(|error| error.to_string()));
                });
                assert!(taken < LITTLE, "{}: {taken} bytes at {at}, {found:?}", conversation.name);
            }
        }
    }
}

/// The longest reply that is accepted, in bytes.
const LONGEST: usize = 64 << 20;

/// The first bytes of a reply that announces a length.
fn announced(len: usize, code: u8) -> Vec<u8> {
    let mut bytes = u32::try_from(len).expect("a length").to_be_bytes().to_vec();
    bytes.extend([0, 0, 0x70, code]);
    bytes.resize(32 << 10, 0);
    bytes
}

#[test]
fn streams_without_an_end_are_cut_off() {
    let notice = b"\0\0\0\x10\0\0\x70\0\0\0\0\0\0\0\0\x08".to_vec();
    let pieces =
        [vec![0], vec![0xff; 4096], notice, announced(LONGEST, 0), announced(LONGEST, 0xff)];
    for conversation in all() {
        for (piece, after) in pieces.iter().flat_map(|piece| [(piece, 0), (piece, usize::MAX)]) {
            let mut found = Vec::new();
            let taken = most(|| {
                let fault = Fault::Endless { after, piece: piece.clone() };
                let (first, _host, mut client) = conversation.struck(fault);
                assert_eq!(first.is_ok(), after > 0, "{}", conversation.name);
                found.push(first.map_err(|error| error.to_string()));
                for _ in 0..3 {
                    found.push(conversation.ask(&mut client).map_err(|error| error.to_string()));
                }
            });
            let begin = &piece[..piece.len().min(12)];
            assert!(taken < LITTLE, "{}, {begin:?}: {taken} bytes, {found:?}", conversation.name);
        }
    }
}

/// The client reads only a reply of the due type to its announced end, up to
/// the longest accepted length.
#[test]
fn the_longest_reply_is_the_limit() {
    let all = all();
    let conversation = all.iter().find(|one| one.name == "values with microseconds");
    let conversation = conversation.expect("a question");
    for (len, limit) in [(LONGEST, 2 * LONGEST), (LONGEST + 4, LITTLE)] {
        let taken = most(|| {
            let fault = Fault::Endless { after: 0, piece: announced(len, 1) };
            let error = conversation.struck(fault).0.expect_err("no result");
            assert!(error.to_string().contains(" at byte "), "{error}");
        });
        assert!(taken < limit, "{taken} bytes");
    }
}

/// The bytes do come, and all of them are held: about once by the client, and
/// the fake's own copies.
#[test]
fn what_comes_is_held_a_few_times_at_most() {
    const SIZE: usize = 8 << 20;
    for conversation in all() {
        let taken = most(|| {
            let surplus = Garble::Extend(vec![0; SIZE]);
            drop(conversation.struck(Fault::Garble(surplus)));
        });
        assert!(taken < 6 * SIZE, "{}: {taken} bytes", conversation.name);
    }
}
