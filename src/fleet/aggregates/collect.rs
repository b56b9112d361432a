//! Frames of hosts, slot by slot, and the partial aggregates of each virtual shard
//! at a slot's end. A process has one for the shards that it watches.
//!
//! Much is decided only when something changes: which column of a class of hosts an
//! operand is and how it converts, the order of the instances of a host, the group of
//! a host. A frame like the one before costs a copy of its values.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use pmderive_runtime::program::Status;
use rustc_hash::{FxHashMap, FxHashSet};

use super::aggregate::Function;
use super::carry::{Carried, carry};
use super::definitions::{Definitions, Operand};
use super::groups::GroupKey;
use super::operand::{Action, Kind, Reference, convert};
use super::partial::{Hosts, Partial, Ranked, Ranking, Values};
use crate::fleet::columns::Column;
use crate::fleet::frame::{Frame, Instances, Schema};
use crate::fleet::labels::Labels;
use crate::fleet::slot::{Slot, hash_of};
use crate::fleet::target::{SHARDS, Target};

/// Most slots that are open at once. That of the grace time and the next one are
/// enough while the clock goes on as it should.
const MAX_OPEN: usize = 4;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It counts.
    Counted,
    /// Its slot is over.
    Late,
    /// Its host is none of those expected.
    Unexpected,
}

/// What has been left aside since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Frames whose slot was over.
    pub late: u64,
    /// Frames of hosts that are not expected.
    pub unexpected: u64,
}

/// Partial aggregates of one virtual shard in one slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardPartials {
    /// The shard.
    pub shard: u8,
    /// The groups of its hosts, for each grouping; `None` is for hosts whose labels
    /// are not known yet.
    pub groups: Vec<Vec<Option<GroupKey>>>,
    /// For each aggregate what is known of each group of its grouping.
    pub partials: Vec<Vec<Partial>>,
}

/// Takes frames.
#[derive(Debug)]
pub struct Collector {
    definitions: Arc<Definitions>,
    /// Aggregates of each operand.
    by_operand: Box<[Box<[usize]>]>,
    references: Vec<Option<Reference>>,
    /// By shard and name.
    hosts: Vec<Host>,
    shards: Vec<Range<usize>>,
    by_name: FxHashMap<Arc<str>, usize>,
    classes: Vec<Class>,
    by_schema: FxHashMap<usize, usize>,
    /// For each grouping, the keys of groups.
    keys: Vec<Keys>,
    open: VecDeque<OpenSlot>,
    /// A slot that is over, whose memory serves the next one.
    spare: Option<OpenSlot>,
    finished: Option<Slot>,
    dropped: Dropped,
    warnings: Vec<String>,
    scratch: Scratch,
}

#[derive(Debug)]
struct Host {
    target: Arc<Target>,
    name: Arc<str>,
    /// Nothing before its first frame.
    own_labels: Option<Labels>,
    /// Its group in each grouping, as a position in [`Keys`]; none while its labels
    /// are not known.
    placement: Arc<[Option<usize>]>,
    /// For each operand the instances that it had last.
    members: Box<[Option<Arc<Members>>]>,
}

/// Instances of one operand on one host.
#[derive(Debug)]
struct Members {
    instances: Arc<Instances>,
    /// Positions by name, unless that is the order of the instances anyway.
    order: Option<Box<[u32]>>,
    /// The sum of a hash of each, by the names of host and instance.
    hash: u128,
}

/// Hosts with the same metrics.
#[derive(Debug)]
struct Class {
    schema: Arc<Schema>,
    /// For each operand its position in the schema,
    columns: Box<[Option<usize>]>,
    /// and what is done with its values, once that is known.
    actions: Vec<Option<Action>>,
    /// All of that is known.
    is_decided: bool,
}

/// The groups of one grouping.
#[derive(Debug, Default)]
struct Keys {
    positions: FxHashMap<GroupKey, usize>,
    keys: Vec<GroupKey>,
}

#[derive(Debug)]
struct OpenSlot {
    slot: Slot,
    /// Parallel to the hosts.
    hosts: Vec<HostSlot>,
}

/// What is known of a host in a slot.
#[derive(Debug, Default)]
struct HostSlot {
    state: State,
    class: usize,
    placement: Option<Arc<[Option<usize>]>>,
    /// For each operand with values its instances, and where its values are.
    columns: Vec<Option<(Arc<Members>, Range<usize>)>>,
    /// Values by operand and name of instance, as bits of the host's type.
    values: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Missed,
    Failed,
    Present,
}

#[derive(Debug, Default)]
struct Scratch {
    lanes: Vec<u64>,
    rankings: Vec<Ranking>,
    positions: Vec<Vec<usize>>,
    known: FxHashMap<Option<usize>, usize>,
}

impl Collector {
    /// For definitions, of a fleet without hosts.
    pub fn new(definitions: Arc<Definitions>) -> Collector {
        Collector {
            by_operand: by_operand(&definitions),
            references: vec![None; definitions.operands().len()],
            hosts: Vec::new(),
            shards: vec![0..0; SHARDS],
            by_name: FxHashMap::default(),
            classes: Vec::new(),
            by_schema: FxHashMap::default(),
            keys: definitions.groupings().iter().map(|_| Keys::default()).collect(),
            open: VecDeque::new(),
            spare: None,
            finished: None,
            dropped: Dropped::default(),
            warnings: Vec::new(),
            scratch: Scratch::default(),
            definitions,
        }
    }

    /// Goes over to other definitions, and says which hosts are expected. What is known
    /// of operands that both have stays, with their values of slots that are not over.
    pub fn follow(&mut self, definitions: Arc<Definitions>, targets: &[Arc<Target>]) {
        let Carried { operands, .. } = Carried::between(&self.definitions, &definitions);
        self.by_operand = by_operand(&definitions);
        self.references = carry(std::mem::take(&mut self.references), &operands);
        for host in &mut self.hosts {
            host.members = carry(std::mem::take(&mut host.members), &operands).into();
        }
        for class in &mut self.classes {
            class.columns = columns(&class.schema, &definitions);
            class.actions = carry(std::mem::take(&mut class.actions), &operands);
            class.is_decided = false;
        }
        for slot in self.open.iter_mut().flat_map(|open| &mut open.hosts) {
            slot.columns = carry(std::mem::take(&mut slot.columns), &operands);
        }
        self.keys = definitions.groupings().iter().map(|_| Keys::default()).collect();
        self.definitions = definitions;
        self.set_targets(targets);
    }

    /// Says which hosts are expected from now on. What is known of those that were
    /// expected before stays, with their frames of slots that are not over.
    pub fn set_targets(&mut self, targets: &[Arc<Target>]) {
        let mut targets: Vec<&Arc<Target>> = targets.iter().collect();
        targets.sort_by(|a, b| (a.shard(), &a.name).cmp(&(b.shard(), &b.name)));
        targets.dedup_by(|a, b| a.name == b.name);
        let mut former: Vec<Option<Host>> =
            std::mem::take(&mut self.hosts).into_iter().map(Some).collect();
        let by_name = std::mem::take(&mut self.by_name);
        let origin: Vec<Option<usize>> =
            targets.iter().map(|target| by_name.get(&*target.name).copied()).collect();
        self.keys.iter_mut().for_each(|keys| *keys = Keys::default());
        self.shards.fill(0..0);
        for (target, at) in targets.iter().zip(&origin) {
            let position = self.hosts.len();
            let known = at.and_then(|at| former[at].take());
            let mut host = known.unwrap_or_else(|| Host::new(target, self.references.len()));
            host.target = Arc::clone(target);
            host.placement = placement(&host, &self.definitions, &mut self.keys);
            self.by_name.insert(Arc::clone(&host.name), position);
            let shard = &mut self.shards[usize::from(target.shard())];
            if shard.start == shard.end {
                *shard = position..position;
            }
            shard.end = position + 1;
            self.hosts.push(host);
        }
        self.spare = None;
        for open in &mut self.open {
            let mut former: Vec<Option<HostSlot>> =
                std::mem::take(&mut open.hosts).into_iter().map(Some).collect();
            open.hosts = origin
                .iter()
                .zip(&self.hosts)
                .map(|(at, host)| {
                    let known = at.and_then(|at| former[at].take());
                    let mut slot = known.unwrap_or_default();
                    slot.placement = Some(Arc::clone(&host.placement));
                    slot
                })
                .collect();
        }
    }

    /// Takes the metadata of hosts of one class: they decide about metrics that no
    /// class before had.
    pub fn announce(&mut self, schema: &Schema) {
        for (at, operand) in self.definitions.operands().iter().enumerate() {
            if self.references[at].is_none() {
                let metric = schema.metrics.iter().find(|metric| metric.name == operand.name);
                self.references[at] = metric.map(Reference::of);
            }
        }
    }

    /// Metadata that the values of each operand have all over the fleet, as far as
    /// that is known. Processes that share a fleet have to have the same.
    pub fn references(&self) -> &[Option<Reference>] {
        &self.references
    }

    /// Takes the values of a host.
    pub fn frame(&mut self, frame: &Frame) -> Taken {
        let Some(&at) = self.by_name.get(&*frame.target.name) else {
            self.dropped.unexpected += 1;
            return Taken::Unexpected;
        };
        if self.is_over(frame.slot) {
            self.dropped.late += 1;
            return Taken::Late;
        }
        let class = self.class(&frame.schema);
        let open = self.open_at(frame.slot);
        let host = &mut self.hosts[at];
        if host.own_labels.as_ref() != Some(&frame.host_labels) {
            host.own_labels = Some(frame.host_labels.clone());
            host.placement = placement(host, &self.definitions, &mut self.keys);
        }
        let slot = &mut self.open[open].hosts[at];
        slot.state = State::Present;
        slot.class = class;
        if slot.placement.as_ref().is_none_or(|one| !Arc::ptr_eq(one, &host.placement)) {
            slot.placement = Some(Arc::clone(&host.placement));
        }
        slot.values.clear();
        slot.columns.resize_with(host.members.len(), Default::default);
        let columns = &self.classes[class].columns;
        for (operand, (kept, column)) in slot.columns.iter_mut().zip(columns).enumerate() {
            let column = column.and_then(|column| frame.columns.get(column));
            let Some(column) = column.filter(has_values) else {
                *kept = None;
                continue;
            };
            let now = host.members_of(operand, column.instances);
            let start = slot.values.len();
            match &now.order {
                None => slot.values.extend_from_slice(column.bits),
                Some(order) => {
                    slot.values.extend(order.iter().map(|at| column.bits[*at as usize]));
                }
            }
            let lanes = start..slot.values.len();
            match kept {
                Some((members, range)) if Arc::ptr_eq(members, now) => *range = lanes,
                _ => *kept = Some((Arc::clone(now), lanes)),
            }
        }
        Taken::Counted
    }

    /// Says that a host did not answer rightly before the deadline of a slot.
    pub fn failed(&mut self, target: &Target, slot: Slot) {
        if let Some(&at) = self.by_name.get(&*target.name)
            && !self.is_over(slot)
        {
            let open = self.open_at(slot);
            self.open[open].hosts[at].state = State::Failed;
        }
    }

    /// Says that a slot of a host was never started. That is assumed as well where
    /// nothing is said, so it opens no slot: a host that overslept tells of many.
    pub fn missed(&mut self, target: &Target, slot: Slot) {
        if let Some(&at) = self.by_name.get(&*target.name)
            && let Some(open) = self.open.iter_mut().find(|open| open.slot == slot)
        {
            open.hosts[at].state = State::Missed;
        }
    }

    fn is_over(&self, slot: Slot) -> bool {
        self.finished.is_some_and(|finished| slot <= finished)
    }

    /// Bytes of the values of hosts that are kept, and of their instances.
    pub fn bytes(&self) -> usize {
        let slots = self.open.iter().chain(&self.spare).flat_map(|open| &open.hosts);
        let of_slots: usize = slots.map(HostSlot::bytes).sum();
        of_slots + self.hosts.iter().map(Host::bytes).sum::<usize>()
    }

    /// Frames that were dropped.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Forgets which slots are over, as slots have other numbers from now on, and all
    /// that is known of them.
    pub fn forget_slots(&mut self) {
        self.finished = None;
        self.open.clear();
    }

    /// What is to be told of hosts whose values are left out; each class once.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Ends a slot and all before it; gives the partial aggregates of each shard
    /// that has hosts, in their order, with the metadata of the operands.
    pub fn finish(
        &mut self,
        slot: Slot,
        mut take: impl FnMut(&[Option<Reference>], &ShardPartials),
    ) -> &[Option<Reference>] {
        self.finished = Some(self.finished.map_or(slot, |finished| finished.max(slot)));
        let mut ended = None;
        while let Some(open) = self.open.pop_front_if(|open| open.slot <= slot) {
            ended = Some(open).filter(|open| open.slot == slot);
        }
        let mut ended = ended.unwrap_or_else(|| self.make_open(slot));
        self.decide(&ended);
        let mut out = ShardPartials::default();
        for shard in 0..SHARDS {
            if self.shards[shard].start < self.shards[shard].end {
                self.shard(shard, &ended, &mut out);
                take(&self.references, &out);
            }
        }
        ended.hosts.iter_mut().for_each(|host| host.state = State::Missed);
        self.spare = Some(ended);
        self.forget_classes();
        let most = 1024 + 2 * self.hosts.len();
        if self.keys.iter().any(|keys| keys.keys.len() > most) {
            let targets: Vec<_> = self.hosts.iter().map(|host| Arc::clone(&host.target)).collect();
            // Hosts change their labels; those that they had before are forgotten.
            self.set_targets(&targets);
        }
        &self.references
    }

    /// Position of an open slot.
    fn open_at(&mut self, slot: Slot) -> usize {
        let at = self.open.partition_point(|open| open.slot < slot);
        if self.open.get(at).is_some_and(|open| open.slot == slot) {
            return at;
        }
        let new = self.make_open(slot);
        self.open.insert(at, new);
        if self.open.len() > MAX_OPEN {
            // Whoever ends slots in time never comes here.
            let ended = self.open.pop_front().map(|open| open.slot);
            self.finished = self.finished.max(ended);
            return at.saturating_sub(1);
        }
        at
    }

    fn make_open(&mut self, slot: Slot) -> OpenSlot {
        let mut new = self.spare.take().unwrap_or(OpenSlot { slot, hosts: Vec::new() });
        new.slot = slot;
        new.hosts.resize_with(self.hosts.len(), HostSlot::default);
        new
    }

    /// Position of the class of hosts with these metrics.
    fn class(&mut self, schema: &Arc<Schema>) -> usize {
        let address = Arc::as_ptr(schema) as usize;
        if let Some(at) = self.by_schema.get(&address) {
            return *at;
        }
        let columns = columns(schema, &self.definitions);
        let actions = vec![None; columns.len()];
        // The address is taken for as long as the class holds it.
        self.by_schema.insert(address, self.classes.len());
        let schema = Arc::clone(schema);
        self.classes.push(Class { schema, columns, actions, is_decided: false });
        self.classes.len() - 1
    }

    /// Forgets classes that no slot has any more, once they are many.
    fn forget_classes(&mut self) {
        let slots = self.open.iter().chain(&self.spare);
        let used: FxHashSet<usize> =
            match self.classes.len() > 64 + 2 * self.by_schema.len().min(self.hosts.len()) {
                true => slots.flat_map(|open| open.hosts.iter().map(|host| host.class)).collect(),
                false => return,
            };
        let mut moved = vec![0; self.classes.len()];
        let mut kept = Vec::new();
        for (at, class) in std::mem::take(&mut self.classes).into_iter().enumerate() {
            if used.contains(&at) {
                moved[at] = kept.len();
                kept.push(class);
            }
        }
        self.classes = kept;
        let addresses = self.classes.iter().map(|class| Arc::as_ptr(&class.schema) as usize);
        self.by_schema = addresses.enumerate().map(|(at, address)| (address, at)).collect();
        let slots = self.open.iter_mut().chain(&mut self.spare);
        slots.flat_map(|open| &mut open.hosts).for_each(|host| host.class = moved[host.class]);
    }

    /// Decides, by the first host that has an operand, about its metadata, and for
    /// each class of hosts what is done with its values.
    fn decide(&mut self, ended: &OpenSlot) {
        if self.classes.iter().all(|class| class.is_decided) {
            return;
        }
        for operand in 0..self.references.len() {
            let mut warned = false;
            for (host, slot) in self.hosts.iter().zip(&ended.hosts) {
                if slot.state != State::Present {
                    continue;
                }
                let class = &mut self.classes[slot.class];
                if class.actions[operand].is_some() {
                    continue;
                }
                let Some(column) = class.columns[operand] else { continue };
                let metric = &class.schema.metrics[column];
                let reference =
                    *self.references[operand].get_or_insert_with(|| Reference::of(metric));
                let action = reference.action(metric);
                class.actions[operand] = Some(action);
                if action == Action::LeaveOut && !warned {
                    warned = true;
                    self.warnings.push(format!(
                        "{} of {} and hosts like it is {}, which cannot become {}: left out of \
                         the fleet's aggregates",
                        metric.name,
                        host.name,
                        in_words(&Reference::of(metric)),
                        in_words(&reference),
                    ));
                }
            }
        }
        for class in &mut self.classes {
            let mut all = class.columns.iter().zip(&class.actions);
            class.is_decided = all.all(|(column, action)| column.is_none() || action.is_some());
        }
    }

    /// Partial aggregates of one shard.
    fn shard(&mut self, shard: usize, ended: &OpenSlot, out: &mut ShardPartials) {
        let Collector { definitions, by_operand, references, hosts, shards, .. } = self;
        let (classes, keys, scratch) = (&self.classes, &self.keys, &mut self.scratch);
        let range = shards[shard].clone();
        let (hosts, slots) = (&hosts[range.clone()], &ended.hosts[range]);
        // Shards are fewer than 256.
        out.shard = shard as u8;
        out.groups.resize_with(keys.len(), Vec::new);
        scratch.positions.resize_with(keys.len(), Vec::new);
        for (grouping, keys) in keys.iter().enumerate() {
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
        let aggregates = definitions.aggregates();
        out.partials.resize_with(aggregates.len(), Vec::new);
        for (operand, its_aggregates) in by_operand.iter().enumerate() {
            let kind = references[operand].map_or(Kind::Other, |reference| reference.kind());
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
            for (at, slot) in slots.iter().enumerate() {
                let found = values(slot, operand, classes, kind, &mut scratch.lanes);
                for one in its_aggregates {
                    let aggregate = &aggregates[*one];
                    let group = scratch.positions[aggregate.grouping][at];
                    let partial = &mut out.partials[*one][group];
                    partial.hosts.add(&found.hosts);
                    if let Some(members) = found.members {
                        partial.members = partial.members.wrapping_add(members.hash);
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

/// The aggregates of each operand.
fn by_operand(definitions: &Definitions) -> Box<[Box<[usize]>]> {
    let of = |operand: usize| {
        let all = definitions.aggregates().iter().enumerate();
        all.filter(|(_, one)| one.operand == operand).map(|(at, _)| at).collect()
    };
    (0..definitions.operands().len()).map(of).collect()
}

/// For each operand its position in a schema.
fn columns(schema: &Schema, definitions: &Definitions) -> Box<[Option<usize>]> {
    let column = |operand: &Operand| schema.metrics.iter().position(|one| one.name == operand.name);
    definitions.operands().iter().map(column).collect()
}

/// Values of an operand on a host in a slot.
struct Found<'s> {
    /// Nothing without values.
    members: Option<&'s Members>,
    /// By name of the instance; those that were converted are elsewhere.
    lanes: &'s [u64],
    is_converted: bool,
    /// One host, and why it has no values.
    hosts: Hosts,
}

/// The values of an operand on a host, those that have to be converted in `into`.
fn values<'s>(
    slot: &'s HostSlot,
    operand: usize,
    classes: &[Class],
    kind: Kind,
    into: &mut Vec<u64>,
) -> Found<'s> {
    let none = |hosts: Hosts| Found {
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
    let action = classes.get(slot.class).and_then(|class| class.actions[operand]);
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
    Found { members: Some(members), lanes, is_converted, hosts }
}

/// The rankings of a shard, for each group.
fn rank<'s>(
    partials: &mut Vec<Partial>,
    (k, top, kind): (u32, bool, Kind),
    (hosts, slots): (&[Host], &'s [HostSlot]),
    positions: &[usize],
    rankings: &mut [Ranking],
    values: impl Fn(&'s HostSlot, &mut Vec<u64>) -> Found<'s>,
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

impl HostSlot {
    fn bytes(&self) -> usize {
        let columns = self.columns.capacity() * size_of::<Option<(Arc<Members>, Range<usize>)>>();
        size_of::<HostSlot>() + columns + self.values.capacity() * size_of::<u64>()
    }
}

impl Host {
    /// Operands that have the same instances share them; frames do not hold them.
    fn bytes(&self) -> usize {
        let mut members: Vec<&Arc<Members>> = self.members.iter().flatten().collect();
        members.dedup_by_key(|one| Arc::as_ptr(one));
        let of = |one: &&Arc<Members>| one.order.as_ref().map_or(0, |order| size_of_val(&**order));
        size_of::<Host>()
            + size_of_val(&*self.members)
            + members.iter().map(|one| size_of::<Members>() + of(one)).sum::<usize>()
    }

    fn new(target: &Arc<Target>, operands: usize) -> Host {
        Host {
            target: Arc::clone(target),
            name: Arc::from(&*target.name),
            own_labels: None,
            placement: Arc::default(),
            members: vec![None; operands].into(),
        }
    }

    /// The instances of an operand, which are known from now on. Operands share them
    /// where the frame does.
    fn members_of(&mut self, operand: usize, instances: &Arc<Instances>) -> &Arc<Members> {
        let Host { target, members, .. } = self;
        let is_it = |one: &&Arc<Members>| Arc::ptr_eq(&one.instances, instances);
        if members[operand].as_ref().filter(is_it).is_none() {
            members[operand] = members.iter().flatten().find(is_it).map(Arc::clone);
        }
        members[operand].get_or_insert_with(|| Arc::new(Members::new(target, instances)))
    }
}

/// The groups of a host: by the target's labels, then by the host's own.
fn placement(host: &Host, definitions: &Definitions, keys: &mut [Keys]) -> Arc<[Option<usize>]> {
    let value = |label: &str| -> Option<Box<str>> {
        match (host.target.labels.get(label), &host.own_labels) {
            (Some(value), _) => Some(value.into()),
            (None, Some(own)) => Some(own.get(label).unwrap_or_default().into()),
            (None, None) => None,
        }
    };
    let groupings = definitions.groupings().iter().zip(keys);
    groupings
        .map(|(labels, keys)| {
            let key: Option<Vec<Box<str>>> = labels.iter().map(|label| value(label)).collect();
            Some(keys.position(key?.into()))
        })
        .collect()
}

impl Keys {
    fn position(&mut self, key: GroupKey) -> usize {
        *self.positions.entry(key).or_insert_with_key(|key| {
            self.keys.push(Arc::clone(key));
            self.keys.len() - 1
        })
    }
}

impl Members {
    fn new(target: &Target, instances: &Arc<Instances>) -> Members {
        let count = instances.ids.len();
        let place = |at: u32| {
            let name = instances.names.get(at as usize).map_or("", |name| name);
            (name, instances.ids[at as usize])
        };
        let positions = 0..u32::try_from(count).unwrap_or(u32::MAX);
        let is_sorted = positions.clone().is_sorted_by_key(place);
        let order = (!is_sorted).then(|| {
            let mut order: Box<[u32]> = positions.clone().collect();
            order.sort_by_key(|at| place(*at));
            order
        });
        let hash = positions.fold(0u128, |sum, at| {
            let own = hash_of(place(at).0);
            let low = mix(own ^ target.hash.rotate_left(17));
            let high = mix(own.wrapping_add(target.hash).wrapping_mul(0xc2b2_ae3d_27d4_eb4f));
            sum.wrapping_add(u128::from(high) << 64 | u128::from(low))
        });
        Members { instances: Arc::clone(instances), order, hash }
    }

    /// Name of the instance at a position by name.
    fn name(&self, lane: usize) -> Arc<str> {
        let at = self.order.as_ref().map_or(lane, |order| order[lane] as usize);
        self.instances.names.get(at).cloned().unwrap_or_default()
    }
}

/// Lets each bit depend on all.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

/// True for values that are as many as their instances, and at least one.
fn has_values(column: &Column<'_>) -> bool {
    let count = column.bits.len();
    column.status == Status::Values && count > 0 && count == column.instances.ids.len()
}

fn in_words(reference: &Reference) -> String {
    let Reference { value_type, semantics, units } = reference;
    let units = units.to_string();
    let units = if units.is_empty() { "none".to_owned() } else { units };
    format!("{value_type}, {semantics}, units {units}")
}
