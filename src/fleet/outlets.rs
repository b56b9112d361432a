//! The way from hosts to sinks: each sink gets the events that it wants, and a host
//! waits for none.

use std::fmt;
use std::sync::Arc;

use super::frame::Event;

/// The end of a sink that events go into.
pub trait Outlet: Send + Sync {
    /// Takes an event, and returns at once. Where there is no room, older events
    /// go, and are counted.
    fn push(&self, event: Arc<Event>);
}

/// All sinks, in the order of the configuration.
#[derive(Clone, Default)]
pub struct Outlets(Arc<[Arc<dyn Outlet>]>);

impl Outlets {
    /// Sinks in the order of the configuration.
    pub fn new(outlets: Vec<Arc<dyn Outlet>>) -> Outlets {
        Outlets(outlets.into())
    }

    /// Gives an event to the sinks whose bits are set.
    pub fn offer(&self, event: Event, sinks: u64) {
        let event = Arc::new(event);
        for (at, outlet) in self.0.iter().enumerate() {
            if sinks >> at & 1 == 1 {
                outlet.push(Arc::clone(&event));
            }
        }
    }
}

impl fmt::Debug for Outlets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sinks", self.0.len())
    }
}
