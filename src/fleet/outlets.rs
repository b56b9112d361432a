//! The way from hosts to sinks: each sink gets the events that it wants, and a host
//! waits for none.

use std::fmt;
use std::sync::Arc;

use super::frame::Event;
use super::sink_set::{SinkPlace, SinkSet};
use super::slot::Slot;
use super::target::Target;

/// The end of a sink that events go into.
pub trait Outlet: Send + Sync {
    /// Takes an event, and returns at once. Where there is no room, older events
    /// go, and are counted.
    fn push(&self, event: Arc<Event>);
}

/// What computes across hosts, and hears of slots without a frame, too.
pub trait Across: Outlet {
    /// A host did not answer rightly before the deadline of a slot.
    fn failed(&self, target: &Arc<Target>, slot: Slot);

    /// A slot of a host was never begun.
    fn missed(&self, target: &Arc<Target>, slot: Slot);
}

/// All sinks with their places, and what computes across hosts.
#[derive(Clone, Default)]
pub struct Outlets {
    sinks: Arc<[(SinkPlace, Arc<dyn Outlet>)]>,
    across: Option<Arc<dyn Across>>,
}

impl Outlets {
    /// Sinks with their places.
    pub fn new(outlets: Vec<(SinkPlace, Arc<dyn Outlet>)>) -> Outlets {
        Outlets { sinks: outlets.into(), across: None }
    }

    /// Adds what computes across hosts.
    #[must_use]
    pub fn with(self, across: Option<Arc<dyn Across>>) -> Outlets {
        Outlets { across, ..self }
    }

    /// Gives an event to these sinks, and with [`SinkSet::STAGE_TWO`] to what computes
    /// across hosts.
    pub fn offer(&self, event: Event, sinks: SinkSet) {
        let event = Arc::new(event);
        for (place, outlet) in &*self.sinks {
            if sinks.contains(*place) {
                outlet.push(Arc::clone(&event));
            }
        }
        if let Some(across) = self.across.as_ref().filter(|_| sinks.overlaps(SinkSet::STAGE_TWO)) {
            across.push(event);
        }
    }

    /// Says that a slot of a host failed.
    pub fn failed(&self, target: &Arc<Target>, slot: Slot) {
        if let Some(across) = &self.across {
            across.failed(target, slot);
        }
    }

    /// Says that a slot of a host was never begun.
    pub fn missed(&self, target: &Arc<Target>, slot: Slot) {
        if let Some(across) = &self.across {
            across.missed(target, slot);
        }
    }
}

impl fmt::Debug for Outlets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sinks", self.sinks.len())
    }
}
