//! Partial aggregates of all shards, merged in the order of the shards.

use std::sync::Arc;

use pmderive_runtime::position::Per;
use rustc_hash::FxHashMap;

use super::aggregate::{AggregateId, GroupingId};
use super::definitions::FleetDefinitions;
use super::groups::GroupKey;
use super::operand::{Kind, References, kind_of};
use super::partial::Partial;
use super::shard::ShardPartials;

/// Aggregates of all hosts in one slot.
#[derive(Debug)]
pub struct Merged {
    definitions: Arc<FleetDefinitions>,
    /// Representation of each aggregate's values.
    kinds: Per<AggregateId, Kind>,
    groups: Per<GroupingId, Groups>,
    /// The partial results of each aggregate, parallel to the groups of its grouping.
    partials: Per<AggregateId, Vec<Partial>>,
    /// The shard that was merged last.
    last: Option<u8>,
    positions: Vec<usize>,
}

/// The groups of one grouping.
#[derive(Debug, Default)]
struct Groups {
    positions: FxHashMap<Option<GroupKey>, usize>,
    keys: Vec<Option<GroupKey>>,
}

impl Merged {
    /// Aggregates before the first shard. `references` are the metadata that all collectors use
    /// ([`Collector::references`](super::Collector::references)).
    pub fn new(definitions: Arc<FleetDefinitions>, references: &References) -> Merged {
        let aggregates = definitions.aggregates.iter();
        Merged {
            kinds: aggregates.map(|one| kind_of(references, one.operand)).collect(),
            groups: definitions.groupings.iter().map(|_| Groups::default()).collect(),
            partials: Per::all(definitions.aggregates.len(), Vec::new()),
            last: None,
            positions: Vec::new(),
            definitions,
        }
    }

    /// Merges the next shard, which is of the same definitions.
    pub fn add(&mut self, shard: &ShardPartials) {
        let aggregates = &self.definitions.aggregates;
        debug_assert!(self.last < Some(shard.shard), "the order of shards decides about the bits");
        debug_assert_eq!(shard.groups.len(), self.groups.len());
        debug_assert_eq!(shard.partials.len(), aggregates.len());
        self.last = Some(shard.shard);
        for (grouping, keys) in shard.groups.enumerate() {
            let groups = &mut self.groups[grouping];
            self.positions.clear();
            for key in keys {
                let at = match groups.positions.get(key) {
                    Some(at) => *at,
                    None => {
                        groups.positions.insert(key.clone(), groups.keys.len());
                        groups.keys.push(key.clone());
                        groups.keys.len() - 1
                    }
                };
                self.positions.push(at);
            }
            for (at, aggregate) in aggregates.enumerate() {
                if aggregate.grouping != grouping {
                    continue;
                }
                let (function, kind) = (aggregate.function, self.kinds[at]);
                let all = &mut self.partials[at];
                all.resize_with(groups.keys.len(), || Partial::new(function, kind));
                for (position, partial) in self.positions.iter().zip(&shard.partials[at]) {
                    all[*position].merge(function, kind, partial);
                }
            }
        }
    }

    /// Representation of an aggregate's values.
    pub fn kind(&self, aggregate: AggregateId) -> Kind {
        self.kinds[aggregate]
    }

    /// The groups of an aggregate with their partial results. The group without a key has the
    /// hosts whose labels are unknown.
    pub fn groups(
        &self,
        aggregate: AggregateId,
    ) -> impl Iterator<Item = (Option<&GroupKey>, &Partial)> {
        let grouping = self.definitions.aggregates[aggregate].grouping;
        self.groups[grouping].keys.iter().map(Option::as_ref).zip(&self.partials[aggregate])
    }
}
