//! The newest frame of every host, for later requests, within a number of bytes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use pmderive_runtime::locks::lock;
use pmderive_runtime::model::InstId;

use super::numbers::SinkNumbers;
use super::outlets::Outlet;
use crate::fleet::frame::{Event, Frame, Stale, StaleReason};

/// The newest frames.
///
/// If there is no room for a host's frame, no frame of the host is shown, and a dropped event
/// is counted: a frame that is shown is never old. The frame of the fleet itself always has
/// room.
#[derive(Debug, Default)]
pub struct NewestFrames(Mutex<State>);

#[derive(Debug)]
struct State {
    hosts: Hosts,
    bytes: usize,
    limit: usize,
    numbers: Arc<SinkNumbers>,
}

impl Default for State {
    fn default() -> State {
        let (hosts, numbers) = Default::default();
        State { hosts, bytes: 0, limit: usize::MAX, numbers }
    }
}

/// Frames by name of the target.
type Hosts = HashMap<Box<str>, HostFrame>;

/// The newest frame of a host, and the series in it that have ended since.
#[derive(Clone, Debug)]
pub struct HostFrame {
    /// Always an [`Event::Frame`].
    frame: Arc<Event>,
    /// Always [`Event::Stale`].
    ended: Vec<Arc<Event>>,
    /// Bytes of all these events.
    bytes: usize,
}

impl NewestFrames {
    /// Sets a limit in bytes ([`Event::bytes`]), and the counters of delivered and dropped
    /// events. Before this call there is no limit.
    pub fn limit(&self, bytes: usize, numbers: Arc<SinkNumbers>) {
        let mut state = self.lock();
        state.limit = bytes;
        state.numbers = numbers;
        state.tell();
    }

    /// Forgets all frames, as no listener shows them any more. It keeps no others until there
    /// is a limit again.
    pub fn clear(&self) {
        let mut state = self.lock();
        (state.hosts, state.bytes, state.limit) = (Hosts::default(), 0, 0);
        state.tell();
    }

    /// The frame of a host. `None` if the host is unknown, or has no frame now.
    pub fn frame_of(&self, target: &str) -> Option<HostFrame> {
        self.lock().hosts.get(target).cloned()
    }

    /// The counts of the sink that shows the frames.
    pub fn numbers(&self) -> Arc<SinkNumbers> {
        Arc::clone(&self.lock().numbers)
    }

    /// Bytes of the frames.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

impl Outlet for NewestFrames {
    fn push(&self, event: &Arc<Event>) {
        let state = &mut *self.lock();
        state.numbers.events.add(1);
        match &**event {
            Event::Frame(_) => state.keep(event),
            Event::Stale(stale) => match stale.reason {
                StaleReason::Failed(_) | StaleReason::Missed | StaleReason::TargetRemoved => {
                    state.forget(event);
                }
                StaleReason::Vanished | StaleReason::DefinitionChanged => state.end(event),
            },
        }
        state.tell();
    }
}

impl State {
    /// Keeps a frame in place of the one before, if there is room.
    fn keep(&mut self, event: &Arc<Event>) {
        self.forget(event);
        let (target, bytes) = (event.target(), event.bytes());
        if self.bytes.saturating_add(bytes) > self.limit && !target.is_fleet() {
            self.numbers.dropped_overflow.add(1);
            return;
        }
        self.bytes += bytes;
        let shown = HostFrame { frame: Arc::clone(event), ended: Vec::new(), bytes };
        self.hosts.insert(target.name.clone(), shown);
    }

    /// Forgets the frame of an event's host.
    fn forget(&mut self, event: &Event) {
        if let Some(shown) = self.hosts.remove(&event.target().name) {
            self.bytes -= shown.bytes;
        }
    }

    /// Notes series that have ended.
    fn end(&mut self, event: &Arc<Event>) {
        if let Some(kept) = self.hosts.get_mut(&event.target().name) {
            kept.ended.push(Arc::clone(event));
            kept.bytes += event.bytes();
            self.bytes += event.bytes();
        }
    }

    fn tell(&self) {
        self.numbers.ring_bytes.set(self.bytes as u64);
        self.numbers.ring_events.set(self.hosts.len() as u64);
        self.numbers.ring_limit.set(u64::try_from(self.limit).unwrap_or(u64::MAX));
    }
}

impl HostFrame {
    /// The frame.
    pub fn frame(&self) -> &Frame {
        match &*self.frame {
            Event::Frame(frame) => frame,
            Event::Stale(_) => unreachable!("only frames are kept"),
        }
    }

    /// Names of metrics and instances in the frame that have ended since.
    pub fn ended(&self) -> HashSet<(&str, InstId)> {
        let stale = self.ended.iter().filter_map(|event| match &**event {
            Event::Stale(stale) => Some(stale),
            Event::Frame(_) => None,
        });
        stale.flat_map(series).collect()
    }
}

fn series(stale: &Stale) -> impl Iterator<Item = (&str, InstId)> {
    stale.series.iter().flat_map(|(metric, instances)| {
        let name = stale.schema.metrics.get(*metric).map(|exported| &*exported.name);
        name.into_iter().flat_map(|name| instances.ids.iter().map(move |id| (name, *id)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::labels::Labels;
    use crate::fleet::sinks::samples;
    use pmderive_runtime::model::{Semantics, ValueType};

    #[test]
    fn what_ended_is_not_there_until_it_is_again() {
        let newest = NewestFrames::default();
        let target = samples::target("web1:44321", Labels::default());
        let metric =
            samples::exported("n", ValueType::U64, Semantics::Instant, samples::sinks(&[0]));
        let schema = Arc::new(crate::fleet::frame::Schema { metrics: [metric].into() });
        let frame = |slot| {
            let column = samples::column(&samples::named(&["a", "b"]), &[1, 2]);
            Arc::new(samples::frame(&target, slot, &schema, &[column]))
        };
        let stale = |slot, reason, names: &[&str]| {
            let series = vec![(0, samples::named(names))];
            Arc::new(samples::stale(&target, slot, reason, &schema, series))
        };
        let ended = || {
            let shown = newest.frame_of("web1:44321");
            shown.map(|shown| shown.ended().len())
        };
        newest.push(&stale(0, StaleReason::Missed, &["a"]));
        assert_eq!(ended(), None);
        newest.push(&frame(1));
        assert_eq!(ended(), Some(0));
        newest.push(&stale(2, StaleReason::Vanished, &["a"]));
        assert_eq!(ended(), Some(1));
        newest.push(&frame(2));
        assert_eq!(ended(), Some(0));
        newest.push(&stale(3, StaleReason::Failed("no answer".into()), &["a", "b"]));
        assert_eq!(ended(), None);
        assert_eq!(newest.bytes(), 0);
    }

    #[test]
    fn what_has_no_room_is_not_shown_and_counted() {
        let (newest, numbers) = (NewestFrames::default(), Arc::<SinkNumbers>::default());
        let schema = || {
            let metric =
                samples::exported("n", ValueType::U64, Semantics::Instant, samples::sinks(&[0]));
            Arc::new(crate::fleet::frame::Schema { metrics: [metric].into() })
        };
        let of = |target: &Arc<crate::fleet::targets::target::Target>, values: usize| {
            let column = samples::column(&samples::single(), &vec![1; values]);
            Arc::new(samples::frame(target, 1, &schema(), &[column]))
        };
        let hosts = ["a", "b", "c"].map(|name| samples::target(name, Labels::default()));
        let one = of(&hosts[0], 1).bytes();
        newest.limit(2 * one, Arc::clone(&numbers));
        hosts.iter().for_each(|host| newest.push(&of(host, 1)));
        let shown =
            || ["a", "b", "c", "fleet"].map(|name| usize::from(newest.frame_of(name).is_some()));
        assert_eq!(shown(), [1, 1, 0, 0]);
        let counted = || (numbers.dropped_overflow.get(), numbers.ring_bytes.get() as usize);
        assert_eq!(counted(), (1, 2 * one));
        // A host whose frame has become too large keeps no old one, and makes room.
        newest.push(&of(&hosts[1], 100));
        newest.push(&of(&hosts[2], 1));
        assert_eq!((shown(), counted()), ([1, 0, 1, 0], (2, 2 * one)));
        let fleet = Arc::new(crate::fleet::targets::target::Target::fleet());
        newest.push(&of(&fleet, 1));
        assert_eq!((shown(), newest.bytes()), ([1, 0, 1, 1], 3 * one));
    }
}
