//! Counts the bytes of waiting events. A part that several events share counts once, as long
//! as one of them waits.

use rustc_hash::FxHashMap;

use crate::fleet::frame::{Event, Part};

/// The bytes of events.
#[derive(Debug, Default)]
pub struct Held {
    bytes: usize,
    /// How often each part is held, by its address.
    parts: FxHashMap<usize, usize>,
}

impl Held {
    /// Bytes of all events, with their parts.
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
        for (part, times) in runs(event) {
            let known = self.parts.entry(part.address()).or_default();
            if *known == 0 {
                self.bytes += part.bytes();
            }
            *known += times;
        }
    }

    /// An event that was there is not any more.
    pub fn remove(&mut self, event: &Event) {
        self.bytes -= event.bytes();
        for (part, times) in runs(event) {
            let Some(known) = self.parts.get_mut(&part.address()) else { continue };
            *known -= times;
            if *known == 0 {
                self.parts.remove(&part.address());
                self.bytes -= part.bytes();
            }
        }
    }
}

/// The parts of an event, and how often each follows itself: metrics of one domain often
/// have the same instances.
fn runs(event: &Event) -> impl Iterator<Item = (Part<'_>, usize)> {
    let mut all = event.parts().peekable();
    std::iter::from_fn(move || {
        let first = all.next()?;
        let mut times = 1;
        while all.next_if(|next| next.address() == first.address()).is_some() {
            times += 1;
        }
        Some((first, times))
    })
}
