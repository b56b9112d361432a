//! Classes of hosts: a class has the same metrics on all its hosts. A class tells which metric
//! an operand is there, and how its values are converted. The first class with an operand
//! decides about its metadata, as long as some host has it like that.

use std::sync::Arc;

use pmderive_runtime::position::Per;
use rustc_hash::{FxHashMap, FxHashSet};

use super::carry::carry;
use super::definitions::FleetDefinitions;
use super::hosts::{ClassId, Host, HostId, HostSlot, State};
use super::operand::{Action, OperandId, Reference, References};
use super::reading::Operand;
use crate::fleet::frame::{ExportedId, ExportedMetric, Schema};

/// All classes of hosts in use.
#[derive(Debug, Default)]
pub struct Classes {
    all: Per<ClassId, Class>,
    by_schema: FxHashMap<usize, ClassId>,
    /// Number of consecutive slots in which all hosts with the operand were left out.
    forsaken: Per<OperandId, u32>,
}

/// After this many slots without a value from any host of the deciding class, the other hosts
/// decide about an operand's metadata. Hosts that are down for a while thus come back as they
/// were.
const MAX_FORSAKEN: u32 = 3;

/// Hosts with the same metrics.
#[derive(Debug)]
struct Class {
    schema: Arc<Schema>,
    /// The metric of each operand.
    columns: Per<OperandId, Option<ExportedId>>,
    /// What is done with its values; `None` until decided.
    actions: Per<OperandId, Option<Action>>,
    /// True once all actions are decided.
    is_decided: bool,
}

impl Class {
    /// The metric that an operand is.
    fn metric(&self, operand: OperandId) -> Option<&ExportedMetric> {
        self.columns[operand].map(|column| &self.schema.metrics[column])
    }

    /// True if its values of an operand are left out.
    fn leaves_out(&self, operand: OperandId) -> bool {
        self.actions[operand] == Some(Action::LeaveOut)
    }
}

impl Classes {
    /// What is done with the values of an operand; `None` until decided.
    pub fn action(&self, class: ClassId, operand: OperandId) -> Option<Action> {
        self.all.get(class)?.actions[operand]
    }

    /// The metrics of a class that are operands, by operand.
    pub fn columns(&self, class: ClassId) -> &Per<OperandId, Option<ExportedId>> {
        &self.all[class].columns
    }

    /// Changes to other definitions. `operands` are the old positions of operands.
    pub fn follow(
        &mut self,
        definitions: &FleetDefinitions,
        operands: &Per<OperandId, Option<OperandId>>,
    ) {
        for class in self.all.iter_mut() {
            class.columns = columns(&class.schema, definitions);
            class.actions = carry(std::mem::take(&mut class.actions), operands);
            class.is_decided = false;
        }
        self.forsaken = Per::default();
    }

    /// The class of hosts with these metrics.
    pub fn class(&mut self, schema: &Arc<Schema>, definitions: &FleetDefinitions) -> ClassId {
        let address = Arc::as_ptr(schema).addr();
        if let Some(at) = self.by_schema.get(&address) {
            return *at;
        }
        let columns = columns(schema, definitions);
        let actions = Per::all(columns.len(), None);
        let schema = Arc::clone(schema);
        let class = self.all.push(Class { schema, columns, actions, is_decided: false });
        // The class holds the schema, so no other gets its address.
        self.by_schema.insert(address, class);
        class
    }

    /// Forgets classes without a host, once there are many.
    pub fn forget<'s>(&mut self, slots: impl Iterator<Item = &'s mut HostSlot>, hosts: usize) {
        if self.all.len() <= 64 + 2 * hosts {
            return;
        }
        let slots: Vec<&mut HostSlot> = slots.collect();
        let used: FxHashSet<ClassId> = slots.iter().map(|slot| slot.class).collect();
        let mut moved: Per<ClassId, ClassId> = Per::default();
        let mut kept: Per<ClassId, Class> = Per::default();
        for (at, class) in self.all.positions().zip(std::mem::take(&mut self.all)) {
            moved.push(match used.contains(&at) {
                true => kept.push(class),
                false => ClassId(0),
            });
        }
        self.all = kept;
        let address = |(at, class): (ClassId, &Class)| (Arc::as_ptr(&class.schema).addr(), at);
        self.by_schema = self.all.enumerate().map(address).collect();
        slots.into_iter().for_each(|slot| slot.class = moved[slot.class]);
    }

    /// Forgets the metadata of operands that no host has had like that for a while.
    pub fn give_up(
        &mut self,
        slots: &Per<HostId, HostSlot>,
        references: &mut References,
        warnings: &mut Vec<String>,
    ) {
        let Classes { all, forsaken, .. } = self;
        forsaken.resize_with(references.len(), u32::default);
        for (operand, forsaken) in references.positions().zip(forsaken.iter_mut()) {
            let leaves_out = |class: &Class| class.leaves_out(operand);
            let Some(reference) = references[operand].filter(|_| all.iter().any(leaves_out)) else {
                *forsaken = 0;
                continue;
            };
            let present = slots.iter().filter(|slot| slot.state == State::Present);
            let mut had = present.filter_map(|slot| all[slot.class].metric(operand)).peekable();
            let Some(name) = had.peek().map(|metric| Arc::clone(&metric.name)) else { continue };
            match had.all(|metric| reference.action(metric) == Action::LeaveOut) {
                true => *forsaken += 1,
                false => *forsaken = 0,
            }
            if *forsaken >= MAX_FORSAKEN {
                *forsaken = 0;
                warnings.push(format!(
                    "{name} is {reference} on no host any more: the next host that has it decides"
                ));
                references[operand] = None;
                for class in all.iter_mut() {
                    class.actions[operand] = None;
                    class.is_decided = false;
                }
            }
        }
    }

    /// Decides about the metadata of operands, by the first host that has one. Then it decides
    /// for each class of hosts what is done with the values.
    pub fn decide(
        &mut self,
        (hosts, slots): (&Per<HostId, Host>, &Per<HostId, HostSlot>),
        references: &mut References,
        warnings: &mut Vec<String>,
    ) {
        if self.all.iter().all(|class| class.is_decided) {
            return;
        }
        for operand in references.positions() {
            let left_out = self.all.iter().filter(|class| class.leaves_out(operand));
            let mut told: FxHashSet<Reference> =
                left_out.filter_map(|class| class.metric(operand)).map(Reference::of).collect();
            for (host, slot) in hosts.iter().zip(slots) {
                if slot.state != State::Present {
                    continue;
                }
                let class = &mut self.all[slot.class];
                if class.actions[operand].is_some() {
                    continue;
                }
                let Some(metric) = class.metric(operand) else { continue };
                let own = Reference::of(metric);
                let reference = *references[operand].get_or_insert(own);
                let action = reference.action(metric);
                if action == Action::LeaveOut && told.insert(own) {
                    warnings.push(format!(
                        "{} of {} and hosts like it is {own}, which cannot become {reference}: \
                         left out of the fleet's aggregates",
                        metric.name, host.name,
                    ));
                }
                class.actions[operand] = Some(action);
            }
        }
        for class in self.all.iter_mut() {
            let mut all = class.columns.iter().zip(&class.actions);
            class.is_decided = all.all(|(column, action)| column.is_none() || action.is_some());
        }
    }
}

/// The metric of a schema that each operand is.
fn columns(schema: &Schema, definitions: &FleetDefinitions) -> Per<OperandId, Option<ExportedId>> {
    let column = |operand: &Operand| schema.find(&operand.name).map(|(at, _)| at);
    definitions.operands.iter().map(column).collect()
}
