//! Counts the bytes of waiting events. A part that several events share counts once, as long
//! as one of them waits.

use rustc_hash::FxHashMap;

use crate::fleet::frame::{Event, Part};

/// Bytes of waiting events.
#[derive(Debug, Default)]
pub struct HeldBytes {
    bytes: usize,
    /// Number of holders of each part, by its address.
    parts: FxHashMap<usize, usize>,
}

impl HeldBytes {
    /// Bytes of all events, with their parts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds other data of this size.
    pub fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Removes other data of this size.
    pub fn remove_bytes(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    /// Adds an event.
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

    /// Removes an event that was added.
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

/// Runs of equal parts of an event, with their lengths: metrics of one domain often share their
/// instances.
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
