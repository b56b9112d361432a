//! Notices of pmcd that something changed besides values.

/// What changed at pmcd since this connection's previous fetch, as bits of
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

    /// The changes that bits of pmcd's notices stand for. Bits without a
    /// meaning are left out: version 6.0 passes on whatever an agent sends.
    pub const fn of_bits(bits: i32) -> StateChange {
        StateChange(bits & StateChange::KNOWN)
    }

    /// The changes of both.
    #[must_use]
    pub const fn with(self, other: StateChange) -> StateChange {
        StateChange(self.0 | other.0)
    }

    /// True when names, descriptors or instance domains may be others now.
    /// A change of labels alone is not among these, nor is one of the host name.
    pub const fn concerns_metadata(self) -> bool {
        const BITS: i32 = StateChange::AGENT_ADDED
            | StateChange::AGENT_RESTARTED
            | StateChange::AGENT_DROPPED
            | StateChange::NAMES_CHANGED;
        self.0 & BITS != 0
    }

    /// True when labels may be others now.
    pub const fn concerns_labels(self) -> bool {
        self.0 & StateChange::LABELS_CHANGED != 0 || self.concerns_metadata()
    }

    /// True when nothing changed.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// True when an agent was started.
    pub const fn agent_added(self) -> bool {
        self.0 & StateChange::AGENT_ADDED != 0
    }

    /// True when an agent is gone.
    pub const fn agent_dropped(self) -> bool {
        self.0 & StateChange::AGENT_DROPPED != 0
    }

    /// True when the name space is another one.
    pub const fn names_changed(self) -> bool {
        self.0 & StateChange::NAMES_CHANGED != 0
    }

    /// True when the host has another name.
    pub const fn host_name_changed(self) -> bool {
        self.0 & StateChange::HOST_NAME_CHANGED != 0
    }

    /// True when the counters of some agent began anew.
    pub const fn agent_restarted(self) -> bool {
        self.0 & StateChange::AGENT_RESTARTED != 0
    }
}
