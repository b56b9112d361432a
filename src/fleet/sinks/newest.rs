//! The newest frame of every host, for those who ask for it later. How it is
//! shown is not known here.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pmderive_runtime::model::InstId;

use crate::fleet::frame::{Event, Frame, Stale, StaleReason};

/// The newest frames.
#[derive(Debug, Default)]
pub struct Newest {
    hosts: Mutex<Hosts>,
}

/// By name of the target, and for each of the groups that it is in.
type Hosts = HashMap<Box<str>, Vec<(usize, Shown)>>;

/// The newest frame of a host, and series in it that have ended since.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Is an [`Event::Frame`].
    frame: Arc<Event>,
    /// Are [`Event::Stale`].
    ended: Vec<Arc<Event>>,
}

impl Newest {
    /// Takes note of what happened on a host.
    pub fn tell(&self, event: &Arc<Event>) {
        let target = event.target();
        let mut hosts = self.lock();
        match &**event {
            Event::Frame(_) => {
                let shown = Shown { frame: Arc::clone(event), ended: Vec::new() };
                let groups = match hosts.get_mut(&target.name) {
                    Some(groups) => groups,
                    None => hosts.entry(target.name.clone()).or_default(),
                };
                match groups.iter_mut().find(|(group, _)| *group == target.group) {
                    Some((_, kept)) => *kept = shown,
                    None => groups.push((target.group, shown)),
                }
            }
            Event::Stale(stale) => {
                let Some(groups) = hosts.get_mut(&target.name) else { return };
                match stale.reason {
                    StaleReason::Failed(_) | StaleReason::Missed | StaleReason::TargetRemoved => {
                        groups.retain(|(group, _)| *group != target.group);
                    }
                    StaleReason::Vanished | StaleReason::DefinitionChanged => {
                        if let Some((_, kept)) =
                            groups.iter_mut().find(|(group, _)| *group == target.group)
                        {
                            kept.ended.push(Arc::clone(event));
                        }
                    }
                }
                if groups.is_empty() {
                    hosts.remove(&target.name);
                }
            }
        }
    }

    /// The frames of a host, one for each of the groups that it is in; none if it
    /// is not known or has none now.
    pub fn of(&self, target: &str) -> Vec<Shown> {
        let hosts = self.lock();
        let groups = hosts.get(target).into_iter().flatten();
        let mut groups: Vec<_> = groups.cloned().collect();
        groups.sort_by_key(|(group, _)| *group);
        groups.into_iter().map(|(_, shown)| shown).collect()
    }

    /// Bytes of the frames.
    pub fn bytes(&self) -> usize {
        self.lock().values().flatten().map(|(_, shown)| shown.frame.bytes()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
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
        let newest = Newest::default();
        let target = samples::target("web1:44321", Labels::default());
        let metric = samples::exported("n", ValueType::U64, Semantics::Instant, 1);
        let schema = Arc::new(crate::fleet::frame::Schema { metrics: [metric].into() });
        let frame = |slot| {
            let column = samples::column(&samples::named(&["a", "b"]), &[1, 2]);
            Arc::new(samples::frame(&target, slot, &schema, vec![column]))
        };
        let stale = |slot, reason, names: &[&str]| {
            let series = vec![(0, samples::named(names))];
            Arc::new(samples::stale(&target, slot, reason, &schema, series))
        };
        let ended = || {
            let shown = newest.of("web1:44321");
            shown.iter().map(|shown| shown.ended().len()).collect::<Vec<_>>()
        };
        newest.tell(&stale(0, StaleReason::Missed, &["a"]));
        assert_eq!(ended(), [] as [usize; 0]);
        newest.tell(&frame(1));
        assert_eq!(ended(), [0]);
        newest.tell(&stale(2, StaleReason::Vanished, &["a"]));
        assert_eq!(ended(), [1]);
        newest.tell(&frame(2));
        assert_eq!(ended(), [0]);
        newest.tell(&stale(3, StaleReason::Failed("no answer".into()), &["a", "b"]));
        assert_eq!(ended(), [] as [usize; 0]);
        assert_eq!(newest.bytes(), 0);
    }
}
