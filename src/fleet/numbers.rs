//! The counts that the engine keeps about itself.

use super::counting::{Histogram, Number};

/// Reason for which a slot failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No connection could be made.
    Connect,
    /// The latest attempt to connect failed, and the next one is not yet due.
    BackOff,
    /// The host did not answer before the deadline.
    Timeout,
    /// The connection broke.
    Lost,
    /// The host's reply is not PCP's protocol.
    Malformed,
    /// The host refused the login, or answered with a status for the whole fetch.
    Refused,
    /// There would be too many kinds of hosts.
    Kinds,
}

impl Reason {
    /// All reasons in the order of their numbers, each with its value of the label `reason`.
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

/// Counts of all hosts.
#[derive(Debug, Default)]
pub struct HostNumbers {
    /// Slots that were begun.
    pub started: Number,
    /// Slots that were answered and evaluated.
    pub answered: Number,
    /// Slots that were never begun.
    pub missed: Number,
    /// Missed slots that were over before this process came to them.
    pub missed_late: Number,
    /// Slots that failed, parallel to [`Reason::ALL`].
    pub failed: [Number; Reason::ALL.len()],
    /// Connections that were made.
    pub connects: Number,
    /// Connections to hosts that were connected before.
    pub reconnects: Number,
    /// Times that definitions were bound to a host.
    pub binds: Number,
    /// Metrics in frames with too many instances.
    pub too_many_instances: Number,
    /// Delays of slots at their start.
    pub lateness: Histogram,
    /// Durations of fetches, from the request to the reply.
    pub fetch: Histogram,
    /// Durations of evaluations.
    pub evaluate: Histogram,
    /// Differences between hosts' clocks and ours at replies, without sign.
    pub skew: Histogram,
}

impl HostNumbers {
    /// Counts a failed slot.
    pub fn failed(&self, reason: Reason) {
        self.failed[reason as usize].add(1);
    }
}

/// Counts of what is computed over the fleet.
#[derive(Debug, Default)]
pub struct FleetNumbers {
    /// Slots that were computed.
    pub slots: Number,
    /// Frames that came after their slot's grace time, or whose slot was skipped.
    pub late: Number,
    /// Frames of hosts that are no longer targets.
    pub unexpected: Number,
    /// Frames for which there was no room.
    pub overflow: Number,
    /// Aggregates without a value: too many values for a quantile, or a sum that overflowed.
    pub refused: Number,
    /// Bytes of hosts' values that are kept for slots.
    pub kept_bytes: Number,
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
