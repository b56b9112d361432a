//! The partial aggregates of the hosts of one virtual shard in one slot.

use std::sync::Arc;

use pmderive_runtime::position::Per;
use rustc_hash::FxHashMap;

use super::aggregate::{AggregateId, Function, GroupingId};
use super::classes::Classes;
use super::definitions::FleetDefinitions;
use super::groups::GroupKey;
use super::hosts::{Host, HostSlot, KeyId, Keys, Members, State};
use super::operand::{Action, Kind, OperandId, References, convert, kind_of};
use super::partial::{Hosts, Partial, Ranked, Ranking, Values};
use super::reading::Operand;
use crate::fleet::targets::target::GroupId;

/// Partial aggregates of one virtual shard in one slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardPartials {
    /// The shard.
    pub shard: u8,
    /// The groups of its hosts; `None` is for hosts whose labels are unknown.
    pub groups: Per<GroupingId, Vec<Option<GroupKey>>>,
    /// Partial results of each aggregate, parallel to the groups of its labels.
    pub partials: Per<AggregateId, Vec<Partial>>,
}

/// The hosts of a shard in one slot, and the definitions for them.
pub struct Shard<'s> {
    /// The shard.
    pub number: u8,
    /// The definitions.
    pub definitions: &'s FleetDefinitions,
    /// Metadata of operands.
    pub references: &'s References,
    /// The operands that the hosts of each group have.
    pub had: &'s Per<GroupId, Per<OperandId, bool>>,
    /// Treatment of the values of hosts.
    pub classes: &'s Classes,
    /// Groups.
    pub keys: &'s Per<GroupingId, Keys>,
    /// The hosts.
    pub hosts: &'s [Host],
    /// Their values, parallel to the hosts.
    pub slots: &'s [HostSlot],
}

/// Memory that is reused for each shard.
#[derive(Debug, Default)]
pub struct Scratch {
    lanes: Vec<u64>,
    rankings: Vec<Ranking>,
    /// The groups of the hosts, as positions in [`ShardPartials::groups`].
    positions: Per<GroupingId, Vec<usize>>,
    known: FxHashMap<Option<KeyId>, usize>,
}

impl Shard<'_> {
    /// Computes the partial aggregates.
    pub fn partials(&self, scratch: &mut Scratch, out: &mut ShardPartials) {
        let Shard { number, definitions, references, classes, keys, .. } = *self;
        let (hosts, slots) = (self.hosts, self.slots);
        out.shard = number;
        out.groups.resize_with(keys.len(), Vec::new);
        scratch.positions.resize_with(keys.len(), Vec::new);
        for (grouping, keys) in keys.enumerate() {
            let (groups, positions) = (&mut out.groups[grouping], &mut scratch.positions[grouping]);
            groups.clear();
            positions.clear();
            scratch.known.clear();
            for (host, slot) in hosts.iter().zip(slots) {
                let placement = match (slot.state, &slot.placement) {
                    (State::Present, Some(placement)) => placement,
                    _ => &host.placement,
                };
                let key = placement[grouping];
                positions.push(*scratch.known.entry(key).or_insert_with(|| {
                    groups.push(key.map(|key| Arc::clone(&keys.keys[key])));
                    groups.len() - 1
                }));
            }
        }
        let aggregates = &definitions.aggregates;
        out.partials.resize_with(aggregates.len(), Vec::new);
        for (operand, Operand { aggregates: its_aggregates, .. }) in
            definitions.operands.enumerate()
        {
            let kind = kind_of(references, operand);
            for at in its_aggregates {
                let Function::Ranked { k, top } = aggregates[*at].function else { continue };
                let groups = out.groups[aggregates[*at].grouping].len();
                scratch.rankings.resize_with(groups.max(scratch.rankings.len()), Ranking::default);
                rank(
                    &mut out.partials[*at],
                    (k, top, kind),
                    (hosts, slots),
                    &scratch.positions[aggregates[*at].grouping],
                    &mut scratch.rankings[..groups],
                    |slot, lanes| values(slot, operand, classes, kind, lanes),
                );
            }
            for at in its_aggregates {
                let aggregate = &aggregates[*at];
                if !aggregate.function.is_ranked() {
                    let groups = out.groups[aggregate.grouping].len();
                    out.partials[*at].clear();
                    out.partials[*at]
                        .resize_with(groups, || Partial::new(aggregate.function, kind));
                }
            }
            for (at, (host, slot)) in hosts.iter().zip(slots).enumerate() {
                let had = self.had.get(host.target.group).and_then(|had| had.get(operand));
                if had == Some(&false) {
                    continue;
                }
                let found = values(slot, operand, classes, kind, &mut scratch.lanes);
                for one in its_aggregates {
                    let aggregate = &aggregates[*one];
                    let group = scratch.positions[aggregate.grouping][at];
                    let partial = &mut out.partials[*one][group];
                    partial.hosts.add(&found.hosts);
                    if let Some(members) = found.members {
                        // A member behind a gap is another one for rates.
                        let since_gap = members.hash.wrapping_mul(u128::from(slot.gaps) * 2 + 1);
                        partial.members = partial.members.wrapping_add(since_gap);
                        let lanes = match found.is_converted {
                            true => &scratch.lanes[..],
                            false => found.lanes,
                        };
                        partial.add(aggregate.function, kind, lanes);
                    }
                }
            }
        }
    }
}

/// Values of an operand on a host in a slot.
struct OperandValues<'s> {
    /// The instances; `None` without values.
    members: Option<&'s Members>,
    /// Values by name of the instance; converted ones are in another buffer.
    lanes: &'s [u64],
    is_converted: bool,
    /// The count of one host: present, or the reason for having no values.
    hosts: Hosts,
}

/// The values of an operand on a host. Converted values go into `into`.
fn values<'s>(
    slot: &'s HostSlot,
    operand: OperandId,
    classes: &Classes,
    kind: Kind,
    into: &mut Vec<u64>,
) -> OperandValues<'s> {
    let none = |hosts: Hosts| OperandValues {
        members: None,
        lanes: &[],
        is_converted: false,
        hosts: Hosts { expected: 1, ..hosts },
    };
    let no_value = Hosts { no_value: 1, ..Hosts::default() };
    match slot.state {
        State::Missed => return none(Hosts { missed: 1, ..Hosts::default() }),
        State::Failed => return none(Hosts { failed: 1, ..Hosts::default() }),
        State::Present => {}
    }
    let action = classes.action(slot.class, operand);
    let Some(Some((members, lanes))) = slot.columns.get(operand) else { return none(no_value) };
    let lanes = &slot.values[lanes.clone()];
    let is_converted = match action {
        None => return none(no_value),
        Some(Action::Nothing) => false,
        Some(Action::Convert { from, conversion }) => {
            into.clear();
            if !convert(lanes, from, &conversion, kind, into) {
                return none(Hosts { left_out: 1, ..Hosts::default() });
            }
            true
        }
        Some(Action::LeaveOut) => return none(Hosts { left_out: 1, ..Hosts::default() }),
    };
    let hosts = Hosts { expected: 1, present: 1, ..Hosts::default() };
    OperandValues { members: Some(members), lanes, is_converted, hosts }
}

/// The rankings of a shard, for each group.
fn rank<'s>(
    partials: &mut Vec<Partial>,
    (k, top, kind): (u32, bool, Kind),
    (hosts, slots): (&[Host], &'s [HostSlot]),
    positions: &[usize],
    rankings: &mut [Ranking],
    values: impl Fn(&'s HostSlot, &mut Vec<u64>) -> OperandValues<'s>,
) {
    let mut lanes = Vec::new();
    let mut members: Vec<Option<&Members>> = Vec::with_capacity(slots.len());
    for (at, slot) in slots.iter().enumerate() {
        let found = values(slot, &mut lanes);
        members.push(found.members);
        let lanes = if found.is_converted { &lanes[..] } else { found.lanes };
        rankings[positions[at]].add(k, top, kind, lanes, (at as u64) << 32);
    }
    partials.clear();
    for ranking in rankings {
        let ranked = ranking.take().into_iter().filter_map(|(key, place, bits)| {
            let (host, lane) = ((place >> 32) as usize, place as u32 as usize);
            let instance = members[host]?.name(lane);
            Some(Ranked { key, bits, host: Arc::clone(&hosts[host].name), instance })
        });
        let mut partial = Partial::new(Function::Ranked { k, top }, kind);
        partial.values = Values::Ranked(ranked.collect());
        partials.push(partial);
    }
}
