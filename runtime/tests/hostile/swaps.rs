//! Words and replies that change places.

use crate::conversations::{Conversation, TIMEOUT, all};
use crate::times;
use pmderive_runtime::source::SourceError;
use pmderive_testkit::fake_pmcd::{Direct, Fault, Garble};

/// Asks the question. A fault must lead to an answer or to an error of the
/// peer, within the time-out.
fn try_fault(conversation: &Conversation, fault: Fault, what: &str) -> Result<String, SourceError> {
    let before = Direct::passed();
    let (found, host, mut client) = conversation.struck(fault);
    let name = conversation.name;
    assert!(Direct::passed() - before <= TIMEOUT, "{name}, {what}: {:?}", Direct::passed());
    match &found {
        Ok(_) | Err(SourceError::Status { .. }) => {}
        Err(SourceError::Malformed { .. } | SourceError::Timeout { .. }) => {
            host.behave();
            // On a new connection, which knows nothing of the old one.
            assert!(conversation.ask(&mut client).is_ok(), "{name}, {what}");
            assert_eq!(host.connections(), 2, "{name}, {what}");
        }
        Err(error) => panic!("{name}, {what}: {error:?}"),
    }
    found
}

/// Neighbours, and with `PMDERIVE_HOSTILE` those farther and farther apart.
#[test]
fn words_that_change_places() {
    for conversation in all() {
        let words = conversation.right().1.len() / 4;
        for distance in 1..words.min(1 + 3 * times()) {
            for first in 0..words - distance {
                let (one, other) = (4 * first, 4 * (first + distance));
                let what = format!("{one} and {other}");
                let fault = Fault::Garble(Garble::ExchangeWords(one, other));
                drop(try_fault(&conversation, fault, &what));
            }
        }
    }
}

#[test]
fn a_reply_in_the_place_of_another_is_refused() {
    let replies: Vec<_> = all().iter().map(Conversation::right).collect();
    for (asked, (right, own)) in all().iter().zip(&replies) {
        for (given, (_, bytes)) in all().iter().zip(&replies) {
            let found = try_fault(asked, Fault::Replace(bytes.clone()), given.name);
            // A reply of the same type may belong to another question.
            let is_same = bytes[4..8] == own[4..8];
            match found {
                Ok(answer) => assert!(is_same, "{} by {}: {answer}", asked.name, given.name),
                Err(error) => assert!(
                    asked.name != given.name && matches!(error, SourceError::Malformed { .. }),
                    "{} by {}: {error}, not {right}",
                    asked.name,
                    given.name
                ),
            }
        }
    }
}
