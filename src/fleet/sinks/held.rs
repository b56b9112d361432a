//! How many bytes events hold that wait together. Instances that several of them have
//! count once, for as long as one of them is there.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::fleet::frame::{Event, Instances};

/// The bytes of events.
#[derive(Debug, Default)]
pub struct Held {
    bytes: usize,
    /// How often instances are held, by their address.
    instances: FxHashMap<usize, usize>,
}

impl Held {
    /// Bytes of all events, with their instances.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Something else is there, of so many bytes.
    pub fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Something else is not there any more.
    pub fn remove_bytes(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    /// An event is there.
    pub fn add(&mut self, event: &Event) {
        self.bytes += event.bytes();
        for (instances, times) in runs(event) {
            let known = self.instances.entry(Arc::as_ptr(instances).addr()).or_default();
            if *known == 0 {
                self.bytes += instances.bytes();
            }
            *known += times;
        }
    }

    /// An event that was there is not any more.
    pub fn remove(&mut self, event: &Event) {
        self.bytes -= event.bytes();
        for (instances, times) in runs(event) {
            let address = Arc::as_ptr(instances).addr();
            let Some(known) = self.instances.get_mut(&address) else { continue };
            *known -= times;
            if *known == 0 {
                self.instances.remove(&address);
                self.bytes -= instances.bytes();
            }
        }
    }
}

/// The instances of an event, and how many of its metrics with the same ones follow
/// each other: those of one domain often do.
fn runs(event: &Event) -> impl Iterator<Item = (&Arc<Instances>, usize)> {
    let mut all = event.instances().peekable();
    std::iter::from_fn(move || {
        let first = all.next()?;
        let mut times = 1;
        while all.next_if(|next| Arc::ptr_eq(first, next)).is_some() {
            times += 1;
        }
        Some((first, times))
    })
}
