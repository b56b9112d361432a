//! What the engine counts about itself. How it is shown is decided elsewhere.

use super::counting::{Histogram, Number};

/// Why a slot failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No connection came about.
    Connect,
    /// An attempt to connect failed not long ago, and the next one is not due.
    BackOff,
    /// No answer before the deadline.
    Timeout,
    /// The connection broke.
    Lost,
    /// What the host sent is not PCP's protocol.
    Malformed,
    /// The host refused: who logs in, or a status for the whole.
    Refused,
    /// It is one kind of host too many.
    Kinds,
}

impl Reason {
    /// All of them at their numbers, with the words for them, values of the label `reason`.
    pub const ALL: [(Reason, &str); 7] = [
        (Reason::Connect, "connect"),
        (Reason::BackOff, "back-off"),
        (Reason::Timeout, "timeout"),
        (Reason::Lost, "lost"),
        (Reason::Malformed, "malformed"),
        (Reason::Refused, "refused"),
        (Reason::Kinds, "kinds"),
    ];
}

/// All that hosts count.
#[derive(Debug, Default)]
pub struct HostNumbers {
    /// Slots that were begun.
    pub started: Number,
    /// Slots that were answered and evaluated.
    pub answered: Number,
    /// Slots that were never begun.
    pub missed: Number,
    /// Those of them that this process came to when they were over.
    pub missed_late: Number,
    /// Slots that failed, parallel to [`Reason::ALL`].
    pub failed: [Number; Reason::ALL.len()],
    /// Connections that came about.
    pub connects: Number,
    /// Those of them that were made to hosts that had been connected before.
    pub reconnects: Number,
    /// Times that definitions were bound to a host.
    pub binds: Number,
    /// Metrics of frames that had too many instances.
    pub too_many_instances: Number,
    /// How late slots began.
    pub lateness: Histogram,
    /// How long fetches took, from the request to the reply.
    pub fetch: Histogram,
    /// How long evaluating took.
    pub evaluate: Histogram,
    /// How far hosts' clocks were from ours when they answered, whichever way.
    pub skew: Histogram,
}

impl HostNumbers {
    /// Counts a failed slot.
    pub fn failed(&self, reason: Reason) {
        self.failed[reason as usize].add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_stand_at_their_numbers() {
        for (at, (reason, _)) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
    }
}
