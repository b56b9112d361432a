//! The expected hosts: their groups, the instances of each operand in the order of names, and
//! their values in a slot.

use std::ops::Range;
use std::sync::Arc;

use pmderive_runtime::position::Per;
use pmderive_runtime::positions;
use rustc_hash::FxHashMap;

use super::aggregate::GroupingId;
use super::definitions::FleetDefinitions;
use super::groups::GroupKey;
use super::operand::OperandId;
use crate::fleet::frame::Instances;
use crate::fleet::labels::Labels;
use crate::fleet::slot::hash_of;
use crate::fleet::targets::target::Target;

positions! {
    /// Position of a host in a list by shard and name.
    pub HostId;
    /// Position of a class, whose hosts have the same metrics, in a list of these.
    pub ClassId;
    /// Position of a group in [`Keys::keys`].
    pub KeyId;
}

/// The group of a host in each grouping; `None` while its labels are unknown.
pub type Placement = Per<GroupingId, Option<KeyId>>;

/// An expected host.
#[derive(Debug)]
pub struct Host {
    /// Its address and labels.
    pub target: Arc<Target>,
    /// Its name.
    pub name: Arc<str>,
    /// Its own labels. None before its first frame.
    pub own_labels: Option<Labels>,
    /// Its groups.
    pub placement: Arc<Placement>,
    /// The instances of each operand, as of its last frame.
    pub members: Per<OperandId, Option<Arc<Members>>>,
}

/// Instances of one operand on one host.
#[derive(Debug)]
pub struct Members {
    instances: Arc<Instances>,
    /// Positions in the order of names; `None` if that is the order of the instances.
    pub order: Option<Box<[u32]>>,
    /// The sum of a hash of each instance, by the names of host and instance.
    pub hash: u128,
}

/// The groups of one grouping.
#[derive(Debug, Default)]
pub struct Keys {
    positions: FxHashMap<GroupKey, KeyId>,
    /// The groups, each once.
    pub keys: Per<KeyId, GroupKey>,
}

/// Instances of an operand with values, and the range of these in [`HostSlot::values`].
type InValues = (Arc<Members>, Range<usize>);

/// A host in one slot.
#[derive(Debug, Default)]
pub struct HostSlot {
    /// Whether it has values.
    pub state: State,
    /// The class of the host.
    pub class: ClassId,
    /// Its groups. None before its first frame.
    pub placement: Option<Arc<Placement>>,
    /// Number of gaps before its values ([`Frame::gaps`](crate::fleet::frame::Frame::gaps)).
    pub gaps: u32,
    /// Instances and values of each operand that has any.
    pub columns: Per<OperandId, Option<InValues>>,
    /// Values, ordered by operand and name of instance, as bits of the host's type.
    pub values: Vec<u64>,
}

/// State of a host in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Its slot was never begun.
    #[default]
    Missed,
    /// It gave no correct answer before the deadline.
    Failed,
    /// It has answered.
    Present,
}

impl HostSlot {
    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.len() * size_of::<Option<InValues>>();
        size_of::<HostSlot>() + columns + self.values.capacity() * size_of::<u64>()
    }
}

impl Host {
    /// Bytes of memory. Operands with the same instances share them; frames do not hold them.
    pub fn bytes(&self) -> usize {
        let mut members: Vec<&Arc<Members>> = self.members.iter().flatten().collect();
        members.dedup_by_key(|one| Arc::as_ptr(one));
        let of = |one: &&Arc<Members>| one.order.as_ref().map_or(0, |order| size_of_val(&**order));
        size_of::<Host>()
            + self.members.len() * size_of::<Option<Arc<Members>>>()
            + members.iter().map(|one| size_of::<Members>() + of(one)).sum::<usize>()
    }

    /// A host before its first frame.
    pub fn new(target: &Arc<Target>, operands: usize) -> Host {
        Host {
            target: Arc::clone(target),
            name: Arc::from(&*target.name),
            own_labels: None,
            placement: Arc::default(),
            members: Per::all(operands, None),
        }
    }

    /// The instances of an operand, remembered. Operands share them if the frame does.
    pub fn members_of(&mut self, operand: OperandId, instances: &Arc<Instances>) -> &Arc<Members> {
        let Host { target, members, .. } = self;
        let is_it = |one: &&Arc<Members>| Arc::ptr_eq(&one.instances, instances);
        if members[operand].as_ref().filter(is_it).is_none() {
            members[operand] = members.iter().flatten().find(is_it).map(Arc::clone);
        }
        members[operand].get_or_insert_with(|| Arc::new(Members::new(target, instances)))
    }
}

/// The groups of a host, by the target's labels and then by the host's own.
pub fn placement(
    host: &Host,
    definitions: &FleetDefinitions,
    keys: &mut Per<GroupingId, Keys>,
) -> Arc<Placement> {
    let value = |label: &str| -> Option<Box<str>> {
        match (host.target.labels.get(label), &host.own_labels) {
            (Some(value), _) => Some(value.into()),
            (None, Some(own)) => Some(own.get(label).unwrap_or_default().into()),
            (None, None) => None,
        }
    };
    let groupings = definitions.groupings.iter().zip(keys.iter_mut());
    let placed = groupings.map(|(labels, keys)| {
        let key: Option<Vec<Box<str>>> = labels.iter().map(|label| value(label)).collect();
        Some(keys.position(key?.into()))
    });
    Arc::new(placed.collect())
}

impl Keys {
    fn position(&mut self, key: GroupKey) -> KeyId {
        *self.positions.entry(key).or_insert_with_key(|key| self.keys.push(Arc::clone(key)))
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
    pub fn name(&self, lane: usize) -> Arc<str> {
        let at = self.order.as_ref().map_or(lane, |order| order[lane] as usize);
        self.instances.names.get(at).cloned().unwrap_or_default()
    }
}

/// Mixes bits, so that each depends on all.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}
