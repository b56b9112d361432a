//! Frames of hosts, slot by slot, and the partial aggregates of each virtual shard
//! at a slot's end. A process has one for the shards that it watches.
//!
//! Most decisions happen only on a change: the column and the conversion of an operand in a
//! class of hosts, the order of a host's instances, the group of a host. A frame like the one
//! before costs only a copy of its values.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use pmderive_runtime::position::Per;
use pmderive_runtime::program::Status;
use rustc_hash::FxHashMap;

use super::MAX_GRACE;
use super::aggregate::GroupingId;
use super::carry::{CarriedPositions, carry};
use super::classes::Classes;
use super::definitions::FleetDefinitions;
use super::hosts::{Host, HostId, HostSlot, Keys, State, placement};
use super::operand::{OperandId, Reference, References};
use super::shard::{Scratch, Shard, ShardPartials};
use crate::fleet::frame::columns::Column;
use crate::fleet::frame::{Frame, Schema};
use crate::fleet::numbers::FleetNumbers;
use crate::fleet::slot::Slot;
use crate::fleet::targets::target::{GroupId, SHARDS, Target};

/// Most slots that are open at once: one, those that begin in its grace time, and the one that
/// begins when that is over.
const MAX_OPEN: usize = MAX_GRACE as usize + 2;

/// Collects the frames of hosts.
#[derive(Debug)]
pub struct Collector {
    definitions: Arc<FleetDefinitions>,
    references: References,
    /// The operands that the hosts of each group have.
    had: Per<GroupId, Per<OperandId, bool>>,
    /// The hosts, by shard and name.
    hosts: Per<HostId, Host>,
    /// The hosts of each shard.
    shards: Vec<Range<HostId>>,
    by_name: FxHashMap<Arc<str>, HostId>,
    classes: Classes,
    keys: Per<GroupingId, Keys>,
    open: VecDeque<OpenSlot>,
    /// A slot that is over; the next one reuses its memory.
    spare: Option<OpenSlot>,
    finished: Option<Slot>,
    /// Counts dropped frames.
    pub numbers: Arc<FleetNumbers>,
    warnings: Vec<String>,
    scratch: Scratch,
    /// True if no other process decides about the metadata of operands.
    is_alone: bool,
}

#[derive(Debug)]
struct OpenSlot {
    slot: Slot,
    hosts: Per<HostId, HostSlot>,
}

impl OpenSlot {
    /// The number of frames.
    fn frames(&self) -> u64 {
        self.hosts.iter().filter(|host| host.state == State::Present).count() as u64
    }
}

impl Collector {
    /// A collector for a fleet without hosts.
    pub fn new(definitions: Arc<FleetDefinitions>) -> Collector {
        Collector {
            references: Per::all(definitions.operands.len(), None),
            had: Per::default(),
            hosts: Per::default(),
            shards: vec![HostId(0)..HostId(0); SHARDS],
            by_name: FxHashMap::default(),
            classes: Classes::default(),
            keys: definitions.groupings.iter().map(|_| Keys::default()).collect(),
            open: VecDeque::new(),
            spare: None,
            finished: None,
            numbers: Arc::default(),
            warnings: Vec::new(),
            scratch: Scratch::default(),
            is_alone: false,
            definitions,
        }
    }

    /// A collector that sees all hosts. It can therefore tell when no host has an operand as it
    /// was.
    pub fn alone(definitions: Arc<FleetDefinitions>) -> Collector {
        Collector { is_alone: true, ..Collector::new(definitions) }
    }

    /// Changes to other definitions and hosts. State of operands that both have stays, with
    /// their values of open slots.
    pub fn follow(&mut self, definitions: Arc<FleetDefinitions>, targets: &[Arc<Target>]) {
        let CarriedPositions { operands, .. } =
            CarriedPositions::between(&self.definitions, &definitions);
        self.references = carry(std::mem::take(&mut self.references), &operands);
        for host in self.hosts.iter_mut() {
            host.members = carry(std::mem::take(&mut host.members), &operands);
        }
        self.classes.follow(&definitions, &operands);
        for slot in self.open.iter_mut().flat_map(|open| open.hosts.iter_mut()) {
            slot.columns = carry(std::mem::take(&mut slot.columns), &operands);
        }
        self.keys = definitions.groupings.iter().map(|_| Keys::default()).collect();
        self.definitions = definitions;
        self.had = Per::default();
        self.set_targets(targets);
    }

    /// Sets the operands that the hosts of each group have, until the definitions change. Other
    /// operands are not expected of them. A group that is not listed has all operands.
    pub fn set_operands(&mut self, had: Per<GroupId, Per<OperandId, bool>>) {
        self.had = had;
    }

    /// Sets the expected hosts. State of hosts that were expected before stays, with their
    /// frames of open slots.
    pub fn set_targets(&mut self, targets: &[Arc<Target>]) {
        let mut targets: Vec<&Arc<Target>> = targets.iter().collect();
        targets.sort_by(|a, b| (a.shard(), &a.name).cmp(&(b.shard(), &b.name)));
        targets.dedup_by(|a, b| a.name == b.name);
        let mut former: Per<HostId, Option<Host>> =
            std::mem::take(&mut self.hosts).into_iter().map(Some).collect();
        let by_name = std::mem::take(&mut self.by_name);
        let origin: Vec<Option<HostId>> =
            targets.iter().map(|target| by_name.get(&*target.name).copied()).collect();
        self.keys.iter_mut().for_each(|keys| *keys = Keys::default());
        self.shards.fill(HostId(0)..HostId(0));
        for (target, at) in targets.iter().zip(&origin) {
            let position = HostId::at(self.hosts.len());
            let known = at.and_then(|at| former[at].take());
            let mut host = known.unwrap_or_else(|| Host::new(target, self.references.len()));
            host.target = Arc::clone(target);
            host.placement = placement(&host, &self.definitions, &mut self.keys);
            self.by_name.insert(Arc::clone(&host.name), position);
            self.hosts.push(host);
            let shard = &mut self.shards[usize::from(target.shard())];
            if shard.start == shard.end {
                shard.start = position;
            }
            shard.end = HostId::at(self.hosts.len());
        }
        self.spare = None;
        for open in &mut self.open {
            let mut former: Per<HostId, Option<HostSlot>> =
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

    /// Adds the metadata of a class of hosts. It decides about metrics that no earlier class
    /// has.
    pub fn announce(&mut self, schema: &Schema) {
        for (at, operand) in self.definitions.operands.enumerate() {
            if self.references[at].is_none() {
                let found = schema.find(&operand.name);
                self.references[at] = found.map(|(_, metric)| Reference::of(metric));
            }
        }
    }

    /// Metadata of the values of each operand, as far as they are known. Processes that share a
    /// fleet must use the same.
    pub fn references(&self) -> &References {
        &self.references
    }

    /// Adds the frame of a host.
    pub fn frame(&mut self, frame: &Frame) {
        let Some(&at) = self.by_name.get(&*frame.target.name) else {
            self.numbers.unexpected.add(1);
            return;
        };
        let Some(open) = self.open_at(frame.slot) else {
            self.numbers.late.add(1);
            return;
        };
        let class = self.classes.class(&frame.schema, &self.definitions);
        let host = &mut self.hosts[at];
        if host.own_labels.as_ref() != Some(&frame.host_labels) {
            host.own_labels = Some(frame.host_labels.clone());
            host.placement = placement(host, &self.definitions, &mut self.keys);
        }
        let slot = &mut self.open[open].hosts[at];
        slot.state = State::Present;
        slot.class = class;
        slot.gaps = frame.gaps;
        if slot.placement.as_ref().is_none_or(|one| !Arc::ptr_eq(one, &host.placement)) {
            slot.placement = Some(Arc::clone(&host.placement));
        }
        slot.values.clear();
        slot.columns.resize_with(host.members.len(), Default::default);
        let columns = self.classes.columns(class);
        for ((operand, column), kept) in columns.enumerate().zip(slot.columns.iter_mut()) {
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
    }

    /// Notes that a host failed in a slot: it gave no correct answer before the deadline.
    pub fn failed(&mut self, target: &Target, slot: Slot) {
        if let Some(&at) = self.by_name.get(&*target.name)
            && let Some(open) = self.open_at(slot)
        {
            self.open[open].hosts[at].state = State::Failed;
        }
    }

    /// Notes that a slot of a host was never started. This opens no slot, as a slot without any
    /// note means the same, and a host that overslept reports many.
    pub fn missed(&mut self, target: &Target, slot: Slot) {
        if let Some(&at) = self.by_name.get(&*target.name)
            && let Some(open) = self.open.iter_mut().find(|open| open.slot == slot)
        {
            open.hosts[at].state = State::Missed;
        }
    }

    /// Bytes of memory for the values of hosts, and for their instances.
    pub fn bytes(&self) -> usize {
        let slots = self.open.iter().chain(&self.spare).flat_map(|open| &open.hosts);
        let of_slots: usize = slots.map(HostSlot::bytes).sum();
        of_slots + self.hosts.iter().map(Host::bytes).sum::<usize>()
    }

    /// Forgets all slots, as slots have other numbers from now on.
    pub fn forget_slots(&mut self) {
        self.finished = None;
        self.open.clear();
    }

    /// Warnings about hosts whose values are left out, once for each metadata.
    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Ends a slot and all before it. Passes on the partial aggregates of each shard with
    /// hosts, in the order of shards, with the metadata of the operands.
    pub fn finish(
        &mut self,
        slot: Slot,
        mut take: impl FnMut(&References, &ShardPartials),
    ) -> &References {
        self.finished = Some(self.finished.map_or(slot, |finished| finished.max(slot)));
        let mut ended = None;
        while let Some(open) = self.open.pop_front_if(|open| open.slot <= slot) {
            match open.slot == slot {
                true => ended = Some(open),
                false => self.numbers.late.add(open.frames()),
            }
        }
        let mut ended = ended.unwrap_or_else(|| self.make_open(slot));
        if self.is_alone {
            self.classes.give_up(&ended.hosts, &mut self.references, &mut self.warnings);
        }
        let hosts = (&self.hosts, &ended.hosts);
        self.classes.decide(hosts, &mut self.references, &mut self.warnings);
        let mut out = ShardPartials::default();
        // There are 256 shards.
        for (number, range) in (0u8..=u8::MAX).zip(&self.shards) {
            if range.start == range.end {
                continue;
            }
            let shard = Shard {
                number,
                definitions: &self.definitions,
                references: &self.references,
                had: &self.had,
                classes: &self.classes,
                keys: &self.keys,
                hosts: self.hosts.range(range),
                slots: ended.hosts.range(range),
            };
            shard.partials(&mut self.scratch, &mut out);
            take(&self.references, &out);
        }
        ended.hosts.iter_mut().for_each(|host| host.state = State::Missed);
        self.spare = Some(ended);
        let slots = self.open.iter_mut().chain(&mut self.spare);
        let slots = slots.flat_map(|open| open.hosts.iter_mut());
        self.classes.forget(slots, self.hosts.len());
        let most = 1024 + 2 * self.hosts.len();
        if self.keys.iter().any(|keys| keys.keys.len() > most) {
            let targets: Vec<_> = self.hosts.iter().map(|host| Arc::clone(&host.target)).collect();
            // Hosts change their labels; groups of the old ones are forgotten.
            self.set_targets(&targets);
        }
        &self.references
    }

    /// Position of a slot among the open ones; it is opened if needed. `None` if it is over.
    fn open_at(&mut self, slot: Slot) -> Option<usize> {
        if self.finished.is_some_and(|finished| slot <= finished) {
            return None;
        }
        let at = self.open.partition_point(|open| open.slot < slot);
        if self.open.get(at).is_some_and(|open| open.slot == slot) {
            return Some(at);
        }
        let is_full = self.open.len() == MAX_OPEN;
        if is_full {
            // A caller that ends slots in time never comes here. The oldest slot is over.
            let skipped = self.open.pop_front_if(|_| at > 0);
            self.numbers.late.add(skipped.as_ref().map_or(0, OpenSlot::frames));
            let ended = Some(skipped.map_or(slot, |open| open.slot));
            self.finished = self.finished.max(ended);
        }
        let at = if is_full { at.checked_sub(1)? } else { at };
        let new = self.make_open(slot);
        self.open.insert(at, new);
        Some(at)
    }

    fn make_open(&mut self, slot: Slot) -> OpenSlot {
        let mut new = self.spare.take().unwrap_or(OpenSlot { slot, hosts: Per::default() });
        new.slot = slot;
        new.hosts.resize_with(self.hosts.len(), HostSlot::default);
        new
    }
}

/// True for a column with at least one value, and as many values as instances.
fn has_values(column: &Column<'_>) -> bool {
    let count = column.bits.len();
    column.status == Status::Values && count > 0 && count == column.instances.ids.len()
}
