//! Each word of each reply, replaced by values that an attacker would choose.
//!
//! `data/hostile/words.txt` records each outcome for review. A word that gives
//! a length, a count or a place must not be believed when it is wrong.
//! `UPDATE_GOLDEN=1` writes the file.

use std::fmt::Write;

use crate::conversations::{Conversation, TIMEOUT, all};
use pmderive_runtime::proto::ProtocolError;
use pmderive_runtime::source::SourceError;
use pmderive_testkit::fake_pmcd::{Direct, Fault, Garble};

/// The replacements of a word, with their names in the file.
fn replacements(word: u32, len: usize) -> [(&'static str, u32); 10] {
    let len = u32::try_from(len).expect("a short reply");
    [
        ("0", 0),
        ("1", 1),
        ("ones", u32::MAX),
        ("max", 0x7fff_ffff),
        ("min", 0x8000_0000),
        ("inc", word.wrapping_add(1)),
        ("dec", word.wrapping_sub(1)),
        ("len", len),
        ("len/4", len / 4),
        ("flip", word ^ 0x00ff_ffff),
    ]
}

/// The outcome of a changed reply.
fn outcome(right: &str, found: &Result<String, SourceError>) -> String {
    match found {
        Ok(answer) if answer == right => "unnoticed".to_owned(),
        Ok(_) => "believed".to_owned(),
        Err(SourceError::Malformed { source, .. }) => {
            let message = source.to_string();
            let is_decoded = message.starts_with("malformed reply: ");
            let is_undecodable = matches!(
                source.downcast_ref(),
                Some(ProtocolError::Decode(cause)) if !cause.structure.is_empty()
            );
            assert_eq!(is_decoded, is_undecodable, "{message}");
            let message = message.strip_prefix("malformed reply: ").unwrap_or(&message);
            match message.split_once(": ") {
                // The numbers themselves do not matter.
                Some((place, _)) if place.contains(" at byte ") => place.to_owned(),
                _ => message.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default().into(),
            }
        }
        Err(SourceError::Timeout { .. }) => "time-out".to_owned(),
        Err(SourceError::Status { .. }) => "a status".to_owned(),
        Err(error) => panic!("{error:?}"),
    }
}

fn table(conversation: &Conversation) -> String {
    let (right, reply) = conversation.right();
    let mut table = format!("{}, {} bytes\n", conversation.name, reply.len());
    for at in (0..reply.len() / 4 * 4).step_by(4) {
        let word = u32::from_be_bytes([reply[at], reply[at + 1], reply[at + 2], reply[at + 3]]);
        let mut outcomes: Vec<(String, Vec<&str>)> = Vec::new();
        for (name, value) in replacements(word, reply.len()) {
            if value == word {
                continue;
            }
            let before = Direct::passed();
            let fault = Fault::Garble(Garble::Word { at, value });
            let (found, host, mut client) = conversation.struck(fault);
            assert!(Direct::passed() - before <= TIMEOUT, "{}: {at}", conversation.name);
            let outcome = outcome(&right, &found);
            // Afterwards everything works again, after errors on a new
            // connection.
            host.behave();
            let again = conversation.ask(&mut client);
            let gave_up = !matches!(found, Ok(_) | Err(SourceError::Status { .. }));
            assert_eq!(host.connections(), if gave_up { 2 } else { 1 }, "{outcome} at {at}");
            if gave_up {
                let again = again.expect("a good answer");
                let without_time = |text: &str| text.split_once("} ").map(|(_, v)| v.to_owned());
                assert_eq!(without_time(&again), without_time(&right), "{}", conversation.name);
            }
            match outcomes.iter_mut().find(|(known, _)| *known == outcome) {
                Some((_, names)) => names.push(name),
                None => outcomes.push((outcome, vec![name])),
            }
        }
        write!(table, "{at:5} {word:08x}").expect("a string");
        for (outcome, names) in outcomes {
            write!(table, "  {outcome} [{}]", names.join(" ")).expect("a string");
        }
        table.push('\n');
    }
    table
}

#[test]
fn no_word_of_a_reply_is_believed_that_contradicts_the_others() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/hostile/words.txt");
    let tables: Vec<String> = all().iter().map(table).collect();
    let found = tables.join("\n");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &found).expect("a file to write");
    }
    let expected = std::fs::read_to_string(path).expect("a golden file");
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}
