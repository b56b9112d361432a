//! The way from hosts to sinks: each sink gets the events that it wants, and no host waits for
//! a sink.

use std::fmt;
use std::sync::Arc;

use super::inlet::{Inlet, Message};
use super::sink_set::{SinkPlace, SinkSet};
use crate::fleet::frame::Event;

/// The inlet of a sink.
pub trait Outlet: Send + Sync {
    /// Accepts an event and returns at once. Without room, older events are dropped and
    /// counted.
    fn push(&self, event: &Arc<Event>);
}

/// All sinks with their places, and the thread that computes over the fleet.
#[derive(Clone, Default)]
pub struct Outlets {
    sinks: Arc<[(SinkPlace, Arc<dyn Outlet>)]>,
    fleet: Option<Arc<Inlet>>,
}

impl Outlets {
    /// Sinks with their places.
    pub fn new(outlets: Vec<(SinkPlace, Arc<dyn Outlet>)>) -> Outlets {
        Outlets { sinks: outlets.into(), fleet: None }
    }

    /// Adds the thread that computes over the fleet.
    #[must_use]
    pub fn with(self, fleet: Option<Arc<Inlet>>) -> Outlets {
        Outlets { fleet, ..self }
    }

    /// Passes an event to these sinks, and with [`SinkSet::FLEET`] to the fleet's thread.
    pub fn offer(&self, event: Event, sinks: SinkSet) {
        let event = Arc::new(event);
        for (place, outlet) in &*self.sinks {
            if sinks.contains(*place) {
                outlet.push(&event);
            }
        }
        if sinks.overlaps(SinkSet::FLEET) {
            self.tell(Message::Event(event));
        }
    }

    /// Passes a message of a host to the fleet's thread, if there is one.
    pub fn tell(&self, message: Message) {
        if let Some(fleet) = &self.fleet {
            fleet.tell(message);
        }
    }
}

impl fmt::Debug for Outlets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sinks", self.sinks.len())
    }
}
