//! Notices from pmcd that something other than values changed.

/// The changes at pmcd since this connection's previous fetch, as the bits of
/// `pmFetch(3)`'s positive results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateChange(pub i32);

impl StateChange {
    const AGENT_ADDED: i32 = 1;
    const AGENT_RESTARTED: i32 = 2;
    const AGENT_DROPPED: i32 = 4;
    const LABELS_CHANGED: i32 = 8;
    const NAMES_CHANGED: i32 = 16;
    const HOST_NAME_CHANGED: i32 = 32;
    const KNOWN: i32 = 63;

    /// Names, descriptors or instance domains changed (`PMCD_NAMES_CHANGE`).
    pub const NAMES: StateChange = StateChange(StateChange::NAMES_CHANGED);

    /// The changes in the bits of pmcd's notices. Bits without a meaning are
    /// dropped: version 6.0 passes on everything that an agent sends.
    pub const fn of_bits(bits: i32) -> StateChange {
        StateChange(bits & StateChange::KNOWN)
    }

    /// The changes in either.
    #[must_use]
    pub const fn with(self, other: StateChange) -> StateChange {
        StateChange(self.0 | other.0)
    }

    /// True if names, descriptors or instance domains may have changed. Changes
    /// of labels or of the host name do not count.
    pub const fn concerns_metadata(self) -> bool {
        const BITS: i32 = StateChange::AGENT_ADDED
            | StateChange::AGENT_RESTARTED
            | StateChange::AGENT_DROPPED
            | StateChange::NAMES_CHANGED;
        self.0 & BITS != 0
    }

    /// True if labels may have changed.
    pub const fn concerns_labels(self) -> bool {
        self.0 & StateChange::LABELS_CHANGED != 0 || self.concerns_metadata()
    }

    /// True if nothing changed.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// True if the host's name changed.
    pub const fn host_name_changed(self) -> bool {
        self.0 & StateChange::HOST_NAME_CHANGED != 0
    }

    /// True if there is an agent that was not there before.
    pub const fn agent_added(self) -> bool {
        self.0 & StateChange::AGENT_ADDED != 0
    }

    /// True if the counters of some agent started again.
    pub const fn agent_restarted(self) -> bool {
        self.0 & StateChange::AGENT_RESTARTED != 0
    }
}
