//! Faults that a fake pmcd commits on command, and when.
//!
//! A test gives a [`Rule`] to a [`super::FakeHost`]. Before a connection sends
//! something, it asks for the rule that applies.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pmderive_client::pdu::PduType;
use pmderive_core::model::PmStatus;

/// A fault of a reply, or of the greeting.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// Only this many of its bytes are sent, and then nothing until [`super::Session::resume`] or
    /// [`super::FakeHost::resume_all`]: for a reply that is late, or never comes.
    Stall {
        /// Bytes that are sent before.
        after: usize,
    },
    /// This many of its bytes are sent, and the others after a while.
    Late {
        /// Bytes that are sent before.
        after: usize,
        /// The delay of the other bytes.
        by: Duration,
    },
    /// One byte at a time with a pause after each.
    Drip {
        /// The length of each pause.
        every: Duration,
    },
    /// Only this many of its bytes are sent, then the stream ends.
    Close {
        /// Bytes that are sent before.
        after: usize,
    },
    /// Only this many of its bytes are sent, then the connection is reset.
    Reset {
        /// Bytes that are sent before.
        after: usize,
    },
    /// Its bytes are changed.
    Garble(Garble),
    /// The host sends these bytes instead, perhaps none.
    Replace(Vec<u8>),
    /// The host sends the reply, and then these unexpected bytes.
    Append(Vec<u8>),
    /// This many of its bytes are sent, and then other bytes again and again without an end.
    Endless {
        /// Bytes that are sent before.
        after: usize,
        /// The other bytes.
        piece: Vec<u8>,
    },
    /// An ERROR with this status is sent instead. Instead of the greeting: a
    /// refusal, after which the connection is reset, as pmcd does it.
    Status(PmStatus),
    /// ERRORs with these statuses are sent first: notices of changes, if they
    /// are positive.
    Notices(Vec<i32>),
}

/// A change to the bytes of a PDU. Changes beyond its end have no effect.
#[derive(Clone)]
#[non_exhaustive]
pub enum Garble {
    /// The four bytes at an offset become this number.
    Word {
        /// Offset from the start of the PDU.
        at: usize,
        /// The new value.
        value: u32,
    },
    /// Two times four bytes change places.
    ExchangeWords(usize, usize),
    /// Bits of one byte are turned.
    Flip {
        /// Offset from the start of the PDU.
        at: usize,
        /// The bits.
        bits: u8,
    },
    /// The PDU ends after this many bytes, and its header has that length.
    Truncate(usize),
    /// Bytes follow the last field, and the header's length includes them.
    Extend(Vec<u8>),
    /// A change by a function.
    With(Change),
}

/// A function that changes the bytes of a PDU.
pub type Change = Arc<dyn Fn(&mut Vec<u8>) + Send + Sync>;

impl Garble {
    /// A change by a function.
    pub fn with(change: impl Fn(&mut Vec<u8>) + Send + Sync + 'static) -> Garble {
        Garble::With(Arc::new(change))
    }

    /// Changes the bytes of one PDU.
    pub fn apply(&self, pdu: &mut Vec<u8>) {
        match self {
            Garble::Word { at, value } => {
                if let Some(word) = word_at(pdu, *at) {
                    *word = value.to_be_bytes();
                }
            }
            Garble::ExchangeWords(one, other) => {
                let (Some(first), Some(second)) =
                    (word_at(pdu, *one).map(|w| *w), word_at(pdu, *other).map(|w| *w))
                else {
                    return;
                };
                if let Some(word) = word_at(pdu, *one) {
                    *word = second;
                }
                if let Some(word) = word_at(pdu, *other) {
                    *word = first;
                }
            }
            Garble::Flip { at, bits } => {
                if let Some(byte) = pdu.get_mut(*at) {
                    *byte ^= bits;
                }
            }
            Garble::Truncate(len) => {
                pdu.truncate(*len);
                settle_length(pdu);
            }
            Garble::Extend(bytes) => {
                pdu.extend_from_slice(bytes);
                settle_length(pdu);
            }
            Garble::With(change) => change(pdu),
        }
    }
}

impl fmt::Debug for Garble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Garble::Word { at, value } => write!(f, "Word({value:#x} at {at})"),
            Garble::ExchangeWords(one, other) => write!(f, "ExchangeWords({one}, {other})"),
            Garble::Flip { at, bits } => write!(f, "Flip({bits:#x} at {at})"),
            Garble::Truncate(len) => write!(f, "Truncate({len})"),
            Garble::Extend(bytes) => write!(f, "Extend({} bytes)", bytes.len()),
            Garble::With(_) => f.write_str("With"),
        }
    }
}

fn word_at(pdu: &mut [u8], at: usize) -> Option<&mut [u8; 4]> {
    pdu.get_mut(at..)?.first_chunk_mut()
}

/// Makes a header say how long the PDU is.
fn settle_length(pdu: &mut [u8]) {
    let len = u32::try_from(pdu.len()).unwrap_or(u32::MAX);
    if let Some(word) = word_at(pdu, 0) {
        *word = len.to_be_bytes();
    }
}

/// A fault, and the time when it strikes: by default at the next reply.
#[derive(Clone, Debug)]
#[must_use]
pub struct Rule {
    fault: Fault,
    what: Occasion,
    connection: Option<u64>,
    skip: u32,
    times: Option<u32>,
}

/// A message that a connection is about to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Utterance {
    Greeting,
    /// The reply to a request of a type.
    Reply(PduType),
    /// No message, because requests of that type have no reply.
    Nothing(PduType),
}

#[derive(Clone, Copy, Debug)]
enum Occasion {
    AnyReply,
    Greeting,
    Request(PduType),
}

impl Rule {
    /// A fault that strikes the next reply to any request, once.
    pub fn new(fault: Fault) -> Rule {
        Rule { fault, what: Occasion::AnyReply, connection: None, skip: 0, times: Some(1) }
    }

    /// Strikes only replies to this kind of request. CREDS and PROFILE have no
    /// replies; for them, only bytes that the fault adds are sent.
    pub fn on(mut self, request: PduType) -> Rule {
        self.what = Occasion::Request(request);
        self
    }

    /// Strikes greetings, not replies.
    pub fn on_greeting(mut self) -> Rule {
        self.what = Occasion::Greeting;
        self
    }

    /// Strikes on one connection of the host only; the first has the number 0.
    pub fn on_connection(mut self, number: u64) -> Rule {
        self.connection = Some(number);
        self
    }

    /// Skips the first `passes` messages that it would strike.
    pub fn after(mut self, passes: u32) -> Rule {
        self.skip = passes;
        self
    }

    /// Strikes this many times.
    pub fn times(mut self, times: u32) -> Rule {
        self.times = Some(times);
        self
    }

    /// Strikes for ever.
    pub fn always(mut self) -> Rule {
        self.times = None;
        self
    }

    fn concerns(&self, connection: u64, utterance: Utterance) -> bool {
        let what = match (self.what, utterance) {
            (Occasion::AnyReply, Utterance::Reply(_))
            | (Occasion::Greeting, Utterance::Greeting) => true,
            (Occasion::Request(due), Utterance::Reply(kind) | Utterance::Nothing(kind)) => {
                due == kind
            }
            _ => false,
        };
        what && self.connection.is_none_or(|number| number == connection)
    }
}

/// The fault of the first rule that applies now. All rules for this utterance
/// count it, and used-up rules are removed.
pub(super) fn strike(
    rules: &mut Vec<Rule>,
    connection: u64,
    utterance: Utterance,
) -> Option<Fault> {
    let mut struck = None;
    for rule in rules.iter_mut().filter(|rule| rule.concerns(connection, utterance)) {
        if rule.skip > 0 {
            rule.skip -= 1;
        } else if struck.is_none() {
            struck = Some(rule.fault.clone());
            rule.times = rule.times.map(|times| times.saturating_sub(1));
        }
    }
    rules.retain(|rule| rule.times != Some(0));
    struck
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_strike_when_they_should() {
        let status = |code| Fault::Status(PmStatus(code));
        let mut rules = vec![
            Rule::new(status(-1)).on(PduType::Fetch).after(1).times(2),
            Rule::new(status(-2)).on_connection(7),
            Rule::new(status(-3)).on_greeting().always(),
        ];
        let mut struck = |connection, utterance| match strike(&mut rules, connection, utterance) {
            Some(Fault::Status(status)) => status.0,
            _ => 0,
        };
        let fetch = Utterance::Reply(PduType::Fetch);
        let desc = Utterance::Reply(PduType::DescRequest);
        assert_eq!([0, 1].map(|connection| struck(connection, Utterance::Greeting)), [-3, -3]);
        assert_eq!(struck(0, desc), 0);
        assert_eq!([0, 1, 2, 3].map(|connection| struck(connection, fetch)), [0, -1, -1, 0]);
        assert_eq!(struck(7, Utterance::Nothing(PduType::Profile)), 0);
        assert_eq!([struck(7, desc), struck(7, desc)], [-2, 0]);
    }

    #[test]
    fn garbled_bytes() {
        let garbled = |garble: Garble| {
            let mut pdu = vec![0, 0, 0, 12, 0, 0, 0x70, 1, 0, 0, 0, 9];
            garble.apply(&mut pdu);
            pdu
        };
        let before = garbled(Garble::Word { at: 9, value: 5 });
        assert_eq!(garbled(Garble::Word { at: 8, value: 5 })[8..], [0, 0, 0, 5]);
        assert_eq!(garbled(Garble::ExchangeWords(4, 8))[4..], [0, 0, 0, 9, 0, 0, 0x70, 1]);
        assert_eq!(garbled(Garble::Flip { at: 11, bits: 1 })[11], 8);
        assert_eq!(garbled(Garble::Truncate(7)), [0, 0, 0, 7, 0, 0, 0x70]);
        assert_eq!(garbled(Garble::Truncate(3)), [0, 0, 0]);
        assert_eq!(garbled(Garble::Extend(vec![1]))[..4], [0, 0, 0, 13]);
        assert_eq!(garbled(Garble::ExchangeWords(4, 9)), before);
        assert_eq!(garbled(Garble::with(Vec::clear)), Vec::<u8>::new());
    }
}
