//! Replies that break off, stall, drip, or have something after them, and
//! greetings of the wrong form.

use std::time::Duration;

use crate::conversations::{Conversation, TIMEOUT, all, connect};
use pmderive_runtime::model::{PmStatus, Pmid};
use pmderive_runtime::source::{Question, SourceError};
use pmderive_runtime::transport::ready;
use pmderive_testkit::fake_pmcd::{Direct, Fault, Garble, Rule};

/// Runs a check on every kind of reply, with the right answer and its bytes.
fn each(check: impl Fn(&Conversation, &str, &[u8])) {
    for conversation in all() {
        let (right, reply) = conversation.right();
        check(&conversation, &right, &reply);
    }
}

#[test]
fn a_reply_cut_short_is_an_error_that_says_where() {
    each(|conversation, right, reply| {
        for len in 0..reply.len() {
            let found = conversation.struck(Fault::Garble(Garble::Truncate(len))).0;
            // Servers differ in the bytes after texts: here it is one byte of padding.
            if conversation.name == "text" && len == reply.len() - 1 {
                assert_eq!(found.expect("all of the text"), right);
                continue;
            }
            let error = found.expect_err(conversation.name).to_string();
            match len {
                // Less than a length is waited for, and less than a header refused.
                0..4 => assert!(error.contains("no answer within 10 seconds"), "{len}: {error}"),
                4..12 => assert!(error.contains("pdu.len at byte 0"), "{len}: {error}"),
                _ => {
                    let place = error.split(" at byte ").nth(1).expect(&error);
                    let place: usize =
                        place.split(':').next().expect("a place").parse().expect("a number");
                    assert!(place <= len, "{}, {len} bytes: {error}", conversation.name);
                }
            }
        }
    });
}

#[test]
fn surplus_bytes_are_found() {
    each(|conversation, right, _| {
        for count in [1, 3, 4, 8, 4096] {
            let fault = Fault::Garble(Garble::Extend(vec![0; count]));
            let found = conversation.struck(fault).0;
            // Servers differ in the bytes after texts, LABEL may have padding, and an ERROR one
            // word more.
            let free = match conversation.name {
                "text" => true,
                "a store" => count == 4,
                name => name.starts_with("labels") && count <= 3,
            };
            match found {
                Ok(answer) => assert!(free && answer == right, "{}", conversation.name),
                Err(error) => {
                    let error = error.to_string();
                    assert!(!free, "{}: {error}", conversation.name);
                    let name = conversation.name;
                    assert!(error.contains(".end at byte"), "{name} and {count}: {error}");
                }
            }
        }
    });
}

#[test]
fn a_connection_that_ends_in_a_reply_says_after_how_many_bytes() {
    each(|conversation, _, reply| {
        for after in 0..reply.len() {
            let error = conversation.struck(Fault::Close { after }).0.expect_err("the end");
            assert!(matches!(error, SourceError::Io { .. }), "{error}");
            let wording = match after {
                0 => "pmcd closed the connection".to_owned(),
                _ => format!("pmcd closed the connection after {after} bytes of a reply"),
            };
            assert!(error.to_string().ends_with(&wording), "{}: {error}", conversation.name);
            let error = conversation.struck(Fault::Reset { after }).0.expect_err("a reset");
            let SourceError::Io { source, .. } = &error else { panic!("{error}") };
            assert_eq!(source.kind(), std::io::ErrorKind::ConnectionReset);
        }
    });
}

#[test]
fn a_stall_takes_as_long_as_the_time_out_and_no_longer() {
    each(|conversation, right, reply| {
        for after in (0..reply.len()).step_by(5) {
            let before = Direct::passed();
            let error = conversation.struck(Fault::Stall { after }).0.expect_err("a stall");
            assert!(matches!(error, SourceError::Timeout { .. }), "{error}");
            assert_eq!(Direct::passed() - before, TIMEOUT);
            // In time, if only just; the answer is right.
            let by = TIMEOUT - Duration::from_nanos(1);
            let late = conversation.struck(Fault::Late { after, by }).0;
            assert_eq!(late.expect("in time"), right);
            let error = conversation.struck(Fault::Late { after, by: TIMEOUT }).0;
            assert!(matches!(error, Err(SourceError::Timeout { .. })), "{error:?}");
        }
        // The time-out is for the whole reply, even if bytes keep coming.
        let bytes = u32::try_from(reply.len()).expect("a short reply");
        let drip = |every| conversation.struck(Fault::Drip { every }).0;
        assert_eq!(drip(TIMEOUT / (bytes + 1)).expect("in time"), right);
        let before = Direct::passed();
        let error = drip(TIMEOUT / (bytes - 2));
        assert!(matches!(error, Err(SourceError::Timeout { .. })), "{error:?}");
        assert_eq!(Direct::passed() - before, TIMEOUT);
    });
}

/// A late reply must not be mistaken for that to the next question.
#[test]
fn after_a_time_out_nothing_is_read_from_that_connection() {
    each(|conversation, right, _| {
        let (found, host, mut client) = conversation.struck(Fault::Stall { after: 0 });
        assert!(matches!(found, Err(SourceError::Timeout { .. })));
        host.resume_all();
        let again = conversation.ask(&mut client).expect("another connection");
        let without_time = |text: &str| text.split_once("} ").map(|(_, v)| v.to_owned());
        assert_eq!(without_time(&again), without_time(right));
        assert_eq!(host.connections(), 2);
    });
}

#[test]
fn what_nobody_asked_for_ends_the_connection() {
    each(|conversation, right, _| {
        let notice = b"\0\0\0\x10\0\0\x70\0\0\0\0\0\0\0\0\x01".to_vec();
        for surplus in [vec![0], vec![0; 16], notice] {
            let bytes = surplus.len();
            let (found, _host, mut client) = conversation.struck(Fault::Append(surplus));
            assert_eq!(found.expect("a good answer"), right);
            // A question whose answer is never remembered.
            let lookup = ready(client.one::<Vec<Box<str>>>(Question::NamesOf(Pmid::new(60, 0, 3))));
            let error = lookup.expect_err("surplus bytes").to_string();
            let wording = format!("{bytes} bytes that answer no request");
            assert!(error.ends_with(&wording), "{}: {error}", conversation.name);
        }
    });
}

#[test]
fn notices_are_bounded_and_only_before_values() {
    each(|conversation, right, _| {
        let values = conversation.name.starts_with("values");
        for (count, good) in [(1, values), (16, values), (17, false), (100_000, false)] {
            let found = conversation.struck(Fault::Notices(vec![8; count])).0;
            match found {
                Ok(answer) => assert!(good && answer == right, "{} {count}", conversation.name),
                Err(error) => {
                    assert!(!good, "{}, {count}: {error}", conversation.name);
                    assert!(matches!(error, SourceError::Malformed { .. }), "{error}");
                }
            }
        }
        let error = conversation.struck(Fault::Status(PmStatus(7))).0;
        assert!(error.is_err(), "a notice alone, then silence");
        if conversation.name != "a store" {
            let error = conversation.struck(Fault::Status(PmStatus(0))).0.expect_err("no reply");
            assert!(error.to_string().contains("status 0 where a reply is due"), "{error}");
        }
    });
}

#[test]
fn greetings_that_are_none_are_refused_at_every_byte() {
    let outcome = |fault: Fault| {
        let host = all()[0].begin().0;
        host.inject(Rule::new(fault).on_greeting());
        connect(&host).map(drop)
    };
    for at in 0..20 {
        for bits in 1..=255u8 {
            let found = outcome(Fault::Garble(Garble::Flip { at, bits }));
            match (at, found) {
                // The sender does not matter, nor does a licence, nor do unused
                // features.
                (8..12 | 16..20, Ok(())) => {}
                (_, Err(error)) => {
                    let place = error.to_string();
                    assert!(place.contains("peer"), "{place}");
                }
                (at, Ok(())) => panic!("byte {at} with {bits:#x} turned was accepted"),
            }
        }
    }
    for len in 0..20 {
        assert!(outcome(Fault::Close { after: len }).is_err());
        assert!(outcome(Fault::Reset { after: len }).is_err());
        let stalled = outcome(Fault::Stall { after: len });
        assert!(matches!(stalled, Err(SourceError::Timeout { .. })), "{stalled:?}");
        assert!(outcome(Fault::Garble(Garble::Truncate(len))).is_err());
    }
    for noise in
        [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"SSH-2.0-OpenSSH_9.6\r\n", &[0; 64], &[0xff; 64]]
    {
        let error = outcome(Fault::Replace(noise.to_vec())).expect_err("no pmcd").to_string();
        assert!(error.contains("the peer is not a pmcd"), "{error}");
    }
    for status in [PmStatus::PERMISSION, PmStatus::CONNLIMIT, PmStatus(-13)] {
        assert_eq!(outcome(Fault::Status(status)).expect_err("refused").status(), status);
    }
}
