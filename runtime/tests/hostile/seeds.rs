//! Whole lives of connections with random faults, the same in every run.
//! Whatever comes first, all is right once the peer behaves.

use crate::choices::Choices;
use crate::conversations::{Conversation, TIMEOUT, all};
use crate::times;
use pmderive_runtime::source::SourceError;
use pmderive_runtime::transport::ready;
use pmderive_testkit::fake_pmcd::{Direct, Fault, Garble, Rule};
use std::time::Duration;

/// Lives unless the environment asks for more.
const LIVES: usize = 400;

fn fault(choices: &mut Choices, is_honest: bool) -> Fault {
    let after = choices.below(120);
    let piece = vec![[0, 1, 8, 0xff][choices.below(4)]; 1 + choices.below(300)];
    let word = |choices: &mut Choices| 4 * choices.below(40);
    match choices.below(if is_honest { 6 } else { 12 }) {
        0 => Fault::Close { after },
        1 => Fault::Reset { after },
        2 => Fault::Stall { after },
        3 => Fault::Late { after, by: Duration::from_millis(choices.below(12_000) as u64) },
        4 => Fault::Drip { every: Duration::from_millis(choices.below(200) as u64) },
        5 => Fault::Append(piece),
        6 => Fault::Endless { after, piece },
        7 => Fault::Garble(Garble::Word { at: word(choices), value: 1 << choices.below(32) }),
        8 => Fault::Garble(Garble::ExchangeWords(word(choices), word(choices))),
        9 => Fault::Garble(Garble::Flip { at: after, bits: 1 << choices.below(8) }),
        10 => Fault::Garble(Garble::Truncate(after)),
        _ => Fault::Replace(piece),
    }
}

/// The text without the time of a fetch, which advances.
fn without_time(text: &str) -> &str {
    text.split_once("} ").map_or(text, |(_, values)| values)
}

#[test]
fn whatever_comes_first_all_is_right_once_the_peer_behaves() {
    let conversations = all();
    let rights: Vec<String> = conversations.iter().map(|one| one.right().0).collect();
    let of = |conversation: &Conversation| {
        let mut pairs = conversations.iter().zip(&rights);
        pairs.find(|(one, _)| one.name == conversation.name).map(|(_, right)| without_time(right))
    };
    for seed in 0..LIVES * times() {
        let mut choices = Choices(seed as u64);
        let is_honest = choices.below(2) == 0;
        let first = &conversations[choices.below(conversations.len())];
        let (host, mut client) = first.begin();
        // A store would make other values right, and questions depend on the features of the peer.
        let fits = |one: &&Conversation| one.features == first.features && one.name != "a store";
        let questions: Vec<&Conversation> = conversations.iter().filter(fits).collect();
        for step in 0..12 {
            if choices.below(3) == 0 {
                let rule = Rule::new(fault(&mut choices, is_honest));
                let rule = if choices.below(4) == 0 { rule.on_greeting() } else { rule };
                host.inject(rule.after(choices.below(2) as u32));
            }
            let Some(asked) = questions.get(choices.below(questions.len())) else { break };
            let before = Direct::passed();
            let found = asked.ask(&mut client);
            let shown = format!("seed {seed}, step {step}, {}: {found:?}", asked.name);
            // The handshake of a new connection, and some replies.
            assert!(Direct::passed() - before <= TIMEOUT * 4, "{shown}");
            match &found {
                Ok(answer) if is_honest => {
                    assert_eq!(Some(without_time(answer)), of(asked), "{shown}")
                }
                Err(SourceError::Specification { .. }) => panic!("{shown}"),
                _ => {}
            }
        }
        host.behave();
        // The client forgets wrong facts with the connection.
        ready(client.reconnect()).expect("a peer that behaves");
        for asked in questions {
            let answer = asked.ask(&mut client);
            let shown = format!("seed {seed}, {} in the end: {answer:?}", asked.name);
            assert_eq!(answer.as_deref().ok().map(without_time), of(asked), "{shown}");
        }
    }
}
