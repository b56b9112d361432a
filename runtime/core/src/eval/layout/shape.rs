//! What a section looks like at a fetch, instances and numbers apart: which
//! metrics and nodes have values, which of them have the same instances, and
//! which fail. Sections that look alike share a plan, whoever's they are.
//!
//! [`Analysis`] finds that out. It applies the rules of
//! [`super::super::general`] to instances alone: it takes those that were
//! delivered, looks at names of instances for filters, and at no value.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Domain, Plan, Sections, State, Taken};
use crate::eval::decode::Surveys;
use crate::eval::history::HistoryStore;
use crate::eval::lanes::{align, are_same, has_repeats, intersection};
use crate::eval::shared_layouts::SharedLayouts;
use crate::eval::verdicts::{Filter, Verdicts};
use crate::model::{InstId, PmStatus};
use crate::pattern::TooMuchWork;
use crate::program::{InputSlot, Node, NodeId, Op, Program, Reason, Status};

/// A set of instances of a section, by the order in which sets appear in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetId(pub u32);

impl SetId {
    /// The one lane of a single value.
    pub const SINGLE: SetId = SetId(u32::MAX);

    /// As an index of the section's sets.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a section looks like at a fetch. Equal shapes have one plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Parallel to the section's inputs.
    pub inputs: Vec<InputShape>,
    /// Parallel to the section's nodes.
    pub nodes: Vec<NodeShape>,
    /// Instances of previous samples that are not those of the operand now,
    /// parallel to the section's histories.
    pub before: Vec<Option<SetId>>,
    /// Parallel to the section's imports: status, and whether values of it
    /// are regular.
    pub imports: Vec<(Status, bool)>,
    /// Number of sets.
    pub sets: usize,
}

impl Shape {
    /// Gives back memory that was there for what did not come.
    pub fn shrink_to_fit(&mut self) {
        self.inputs.shrink_to_fit();
        self.nodes.shrink_to_fit();
        self.before.shrink_to_fit();
        self.imports.shrink_to_fit();
    }
}

/// What came of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputShape {
    /// Whether there are values.
    pub status: Status,
    /// Its instances.
    pub set: SetId,
    /// The value set's own count or status where that is not the number of the
    /// set's instances.
    pub raw_count: i32,
    /// The instance of a single value: old archives have others than -1.
    pub instance: InstId,
}

/// What a node has in the regular case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeShape {
    /// Whether there are values.
    pub status: Status,
    /// Its lanes.
    pub set: SetId,
    /// False when instances or failures of this node depend on values.
    pub regular: bool,
}

impl NodeShape {
    /// True for a node that has a column, if it has a place.
    pub fn is_column(&self) -> bool {
        self.regular && self.status == Status::Values
    }

    fn without(status: Status, regular: bool) -> NodeShape {
        NodeShape { status, set: SetId::SINGLE, regular }
    }
}

/// A section's shape, with the instances that its sets stand for.
#[derive(Debug)]
pub struct Draft {
    /// Its position.
    pub section: u32,
    /// Its shape.
    pub shape: Shape,
    /// The plan for it, if it need not be looked for. Then the shape is known
    /// as far as the inputs.
    pub plan: Option<Arc<Plan>>,
    /// The sets.
    pub sets: Vec<Arc<[InstId]>>,
    /// What filters take.
    pub taken: Taken,
    /// False if it serves one fetch: a value could not be decoded, so that the
    /// same counts may mean something else next time, or a previous sample has
    /// other lanes than its operand has now.
    pub lasting: bool,
    /// Sets of which it is known whether they name an instance twice.
    repeats: Vec<Option<bool>>,
    /// Sets by their instances, once there are many.
    index: HashMap<Arc<[InstId]>, SetId>,
    /// The set that was met last: inputs over one domain follow each other.
    latest: Option<SetId>,
    /// Sets in which two others meet; `None` where they do in no instance.
    meetings: HashMap<(SetId, SetId), Option<SetId>>,
}

/// Sets that are looked through one by one.
const FEW: usize = 16;

/// The shapes of sections in which something is not as before.
pub struct Analysis<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its sections.
    pub sections: &'a Sections,
    /// What sections were like before; those not analysed still are.
    pub states: &'a [Option<Arc<State>>],
    /// What was delivered for the inputs of the sections to be analysed.
    pub surveys: &'a Surveys,
    /// Previous samples.
    pub history: &'a HistoryStore,
    /// Domains that names are looked up in.
    pub names: &'a [Domain],
    /// Domains that came with the fetch.
    pub fetched: &'a [Domain],
    /// What patterns have said.
    pub verdicts: &'a mut Verdicts,
    /// Sections analysed.
    pub drafts: Vec<Draft>,
    /// Where they are in `drafts`, parallel to the program's sections.
    pub draft_of: Vec<Option<u32>>,
}

impl Analysis<'_> {
    /// Analyses sections, and those in which something changes thereby. Drafts
    /// of what others began with have the plan that was made for them. True if
    /// what came of it is new and holds for whoever begins with the like.
    pub fn run(&mut self, mut dirty: Vec<u32>, shared: &SharedLayouts) -> bool {
        loop {
            self.begin(&dirty);
            let is_start = self.is_start();
            if is_start && shared.begins_as_others(&mut self.drafts) {
                return false;
            }
            self.analyse_nodes(&dirty);
            let before = dirty.len();
            for at in 0..self.drafts.len() {
                for user in &self.sections.all[self.drafts[at].section as usize].users {
                    if self.draft_of[*user as usize].is_none()
                        && !dirty.contains(user)
                        && self.imports_of(*user) != self.imports_before(*user)
                    {
                        dirty.push(*user);
                    }
                }
            }
            if dirty.len() == before {
                return is_start;
            }
        }
    }

    /// Drafts with what was delivered.
    fn begin(&mut self, dirty: &[u32]) {
        self.drafts.clear();
        self.draft_of.clear();
        self.draft_of.resize(self.sections.all.len(), None);
        for section in dirty {
            self.draft_of[*section as usize] = Some(self.drafts.len() as u32);
            self.drafts.push(Draft::new(*section));
        }
        for at in 0..self.drafts.len() {
            self.inputs(at);
        }
    }

    /// True for a host's first layout if it follows from the inputs' shapes,
    /// whatever their instances are.
    fn is_start(&mut self) -> bool {
        let sections = self.sections;
        let is_plain = |draft: &mut Draft| {
            let one_set = match draft.sets.len() {
                0 => true,
                1 => !draft.has_repeats(SetId(0)),
                _ => false,
            };
            one_set && !sections.all[draft.section as usize].needs_domains
        };
        self.drafts.len() == sections.all.len()
            && self.states.iter().all(Option::is_none)
            && !self.history.has_resident()
            && self.drafts.iter_mut().all(is_plain)
    }

    fn analyse_nodes(&mut self, dirty: &[u32]) {
        // In the order of the program, whatever their sections are.
        if dirty.len() == self.sections.all.len() {
            for id in (0..self.program.nodes.len() as u32).map(NodeId) {
                self.analyse_node(id);
            }
        } else {
            let lists =
                dirty.iter().flat_map(|section| &self.sections.all[*section as usize].nodes);
            let mut nodes: Vec<NodeId> = lists.copied().collect();
            nodes.sort_unstable();
            nodes.into_iter().for_each(|id| self.analyse_node(id));
        }
        for at in 0..self.drafts.len() {
            let imports = self.imports_of(self.drafts[at].section);
            let draft = &mut self.drafts[at];
            draft.shape.imports = imports;
            let histories = self.sections.all[draft.section as usize].histories.len();
            draft.shape.before.resize(histories, None);
            draft.shape.sets = draft.sets.len();
        }
    }

    /// What a section imports, as it is now.
    fn imports_of(&self, section: u32) -> Vec<(Status, bool)> {
        let import = |node: &NodeId| {
            let shape = self.node(*node);
            (shape.status, shape.regular)
        };
        self.sections.all[section as usize].imports.iter().map(import).collect()
    }

    fn imports_before(&self, section: u32) -> &[(Status, bool)] {
        let state = self.states[section as usize].as_deref();
        state.map_or(&[], |state| &state.plan.shape.imports)
    }

    fn node(&self, id: NodeId) -> NodeShape {
        let home = self.sections.nodes[id.index()];
        let nodes = match self.draft_of[home.section as usize] {
            Some(draft) => &self.drafts[draft as usize].shape.nodes,
            None => match &self.states[home.section as usize] {
                Some(state) => &state.plan.shape.nodes,
                None => return NodeShape::without(Status::Failed(PmStatus::BOTCH), true),
            },
        };
        nodes[home.at as usize]
    }

    fn inputs(&mut self, at: usize) {
        let draft = &mut self.drafts[at];
        let section = &self.sections.all[draft.section as usize];
        let before = self.states[draft.section as usize].as_deref();
        for (position, slot) in section.inputs.iter().enumerate() {
            let Some(survey) = self.surveys.get(*slot) else {
                // Only what it imports has changed.
                let Some(state) = before else { continue };
                let mut input = state.plan.shape.inputs[position];
                if let Some(ids) = state.sets.get(input.set.index()) {
                    input.set = draft.intern(Arc::clone(ids), before);
                }
                draft.shape.inputs.push(input);
                continue;
            };
            draft.lasting &= survey.sound;
            let has_values = survey.status == Status::Values;
            let is_single = draft.section == 0;
            let set = match has_values && !is_single {
                true => draft.intern(Arc::clone(&survey.ids), before),
                false => SetId::SINGLE,
            };
            let is_count = has_values && !is_single;
            draft.shape.inputs.push(InputShape {
                status: survey.status,
                set,
                raw_count: if is_count { 0 } else { survey.raw_count },
                instance: survey.ids.first().copied().filter(|_| is_single).unwrap_or(-1),
            });
        }
    }

    fn analyse_node(&mut self, id: NodeId) {
        let program = self.program;
        let Some(at) = self.draft_of[self.sections.section_of(id) as usize] else { return };
        let at = at as usize;
        let shape = self.shape_of(at, id, &program.nodes[id.index()]);
        self.drafts[at].shape.nodes.push(shape);
    }

    fn is_placed(&self, id: NodeId) -> bool {
        self.program.placements[id.index()].is_some()
    }

    fn input(&self, at: usize, slot: InputSlot) -> InputShape {
        self.drafts[at].shape.inputs[self.sections.inputs[slot.index()].at as usize]
    }

    /// Shape of a node from those of its operands; the same rules as
    /// [`super::super::general`] applies to values.
    fn shape_of(&mut self, at: usize, id: NodeId, node: &Node) -> NodeShape {
        let mut regular = !node.op.is_general();
        node.op.operands(|operand| regular &= self.node(operand).regular);
        let without = |status| NodeShape::without(status, regular);
        let with = |set: SetId| NodeShape { status: Status::Values, set, regular };
        let with_some = |set: Option<SetId>| match set {
            Some(set) => with(set),
            None => without(Status::Empty(Reason::InstanceMissing)),
        };
        match &node.op {
            Op::Input(slot) => {
                let input = self.input(at, *slot);
                match (input.status, node.is_set) {
                    (Status::Values, true) => {
                        // Lanes are found by instance here, so what names an
                        // instance twice is left to the general path.
                        let regular = !self.drafts[at].has_repeats(input.set);
                        NodeShape { regular, ..with(input.set) }
                    }
                    (Status::Values, false) => with(SetId::SINGLE),
                    (status, _) => without(status),
                }
            }
            Op::Constant(_) => with(SetId::SINGLE),
            Op::ConstantPerInstance { domain, .. } => match &self.fetched[domain.index()] {
                Err(status) => without(Status::Failed(*status)),
                Ok(domain) => {
                    let ids: Vec<InstId> = domain.instances().map(|(id, _)| id).collect();
                    let regular = !has_repeats(&ids);
                    NodeShape { regular, ..with_some(self.intern(at, ids)) }
                }
            },
            Op::Nothing | Op::NoValue => without(Status::Empty(Reason::NoValue)),
            Op::Map { operands, .. } => match **operands {
                [operand] => self.node(operand),
                [left, right] => match self.meeting(at, left, right) {
                    Ok(set) => with_some(set),
                    Err(status) => without(status),
                },
                _ => without(Status::Failed(PmStatus::BOTCH)),
            },
            Op::Change { operand, history, .. } => {
                let now = NodeShape {
                    regular: regular && self.is_placed(*operand),
                    ..self.node(*operand)
                };
                let before = self.previous_set(at, *history);
                let home = self.sections.histories[history.index()].at as usize;
                let kept = &mut self.drafts[at].shape.before;
                if kept.len() <= home {
                    kept.resize(home + 1, None);
                }
                match before {
                    Some(before) if now.status == Status::Values && before != now.set => {
                        kept[home] = Some(before);
                        self.drafts[at].lasting = false;
                        match self.common(at, now.set, before) {
                            Some(set) => NodeShape { set, ..now },
                            None => without(Status::Empty(Reason::FirstSample)),
                        }
                    }
                    _ => now,
                }
            }
            Op::Choose { guard, yes, no } => {
                let never = |id: &NodeId| matches!(self.program.nodes[id.index()].op, Op::NoValue);
                let branches = [(yes, never(yes)), (no, never(no))];
                let statuses = [guard, yes, no].map(|id| match never(id) && id != guard {
                    true => Status::Values,
                    false => self.node(*id).status,
                });
                if let Some(status) = first_failed(&statuses).or(first_without(&statuses)) {
                    return without(status);
                }
                let sets = |id: &NodeId| self.node(*id).set != SetId::SINGLE;
                let chooser = std::iter::once(guard)
                    .chain(branches.iter().filter(|(_, never)| !never).map(|(id, _)| *id))
                    .find(|id| sets(id));
                let set = chooser.map_or(SetId::SINGLE, |id| self.node(*id).set);
                for (branch, never) in branches {
                    let have = self.node(*branch).set;
                    if !never && sets(branch) && have != set && self.lacks(at, have, set) {
                        regular = false;
                    }
                }
                NodeShape { status: Status::Values, set, regular }
            }
            Op::Chosen { guard, branch } => {
                let statuses = [guard, branch].map(|id| self.node(*id).status);
                match first_without(&statuses) {
                    Some(status) => without(status),
                    None => NodeShape { regular, ..self.node(*branch) },
                }
            }
            Op::Reduce { op, operand } => match self.node(*operand).status {
                Status::Failed(status) => without(Status::Failed(status)),
                Status::Values => {
                    let regular = regular && self.is_placed(*operand);
                    NodeShape { regular, ..with(SetId::SINGLE) }
                }
                Status::Empty(reason) if !op.has_value_of_nothing() => {
                    without(Status::Empty(reason))
                }
                // Zero of no lanes: rare, and there is no column to reduce.
                Status::Empty(_) => NodeShape { regular: false, ..with(SetId::SINGLE) },
            },
            Op::Count(_) => with(SetId::SINGLE),
            Op::Named { operand, domain, name } => {
                let operand = self.node(*operand);
                if operand.status != Status::Values || operand.set == SetId::SINGLE {
                    return without(empty_or(operand.status));
                }
                let domain = self.names[domain.index()].as_ref().ok();
                let named = domain.and_then(|domain| domain.lookup(name));
                let ids = &self.drafts[at].sets[operand.set.index()];
                let ids = ids.iter().copied().filter(|have| Some(*have) == named);
                let ids: Vec<InstId> = ids.collect();
                with_some(self.intern(at, ids))
            }
            Op::Matching { operand, domain, pattern, negated } => {
                let operand = self.node(*operand);
                if operand.status != Status::Values || operand.set == SetId::SINGLE {
                    return without(empty_or(operand.status));
                }
                let filter = Filter {
                    node: id,
                    pattern: &self.program.patterns[*pattern as usize],
                    negated: *negated,
                    verdicts_stay: self.program.verdicts_stay,
                };
                let domain = self.names[domain.index()].as_ref().ok();
                let ids = Arc::clone(&self.drafts[at].sets[operand.set.index()]);
                let verdicts = &mut *self.verdicts;
                let taken = |id: &InstId| -> Option<Result<InstId, TooMuchWork>> {
                    let name = domain.and_then(|domain| domain.name(*id));
                    let takes = verdicts.takes(filter, *id, name);
                    takes.map(|takes| takes.then_some(*id)).transpose()
                };
                let taken: Result<Vec<InstId>, _> = ids.iter().filter_map(taken).collect();
                match taken {
                    Ok(taken) => {
                        let taken: Arc<[InstId]> = taken.into();
                        let set = self.intern(at, Arc::clone(&taken));
                        self.drafts[at].taken.insert(id, Ok(taken));
                        with_some(set)
                    }
                    Err(TooMuchWork) => {
                        let status = PmStatus::BADDERIVE;
                        self.drafts[at].taken.insert(id, Err(status));
                        without(Status::Failed(status))
                    }
                }
            }
            Op::First(operand) => match self.node(*operand).status {
                Status::Values => with(SetId::SINGLE),
                status => without(status),
            },
            Op::TextEqual { left, right, .. } => match self.meeting(at, *left, *right) {
                Ok(set) => with_some(set),
                Err(status) => without(status),
            },
            // Which of the instances are taken is for the values to say.
            Op::Ranked { operand, .. }
            | Op::Window { operand, .. }
            | Op::TextIs { operand, .. }
            | Op::TextMatch { operand, .. } => NodeShape { regular, ..self.node(*operand) },
        }
    }

    /// Lanes in which two operands meet, `None` for no instance, or the status
    /// of one without values.
    fn meeting(&mut self, at: usize, left: NodeId, right: NodeId) -> Result<Option<SetId>, Status> {
        let (a, b) = (self.node(left), self.node(right));
        if let Some(status) = first_without(&[a.status, b.status]) {
            return Err(status);
        }
        Ok(match (a.set, b.set) {
            (SetId::SINGLE, set) | (set, SetId::SINGLE) => Some(set),
            (a, b) if a == b => Some(a),
            (a, b) => self.common(at, a, b),
        })
    }

    /// The set of the instances of `a` that `b` has as well.
    fn common(&mut self, at: usize, a: SetId, b: SetId) -> Option<SetId> {
        if let Some(known) = self.drafts[at].meetings.get(&(a, b)) {
            return *known;
        }
        let sets = &self.drafts[at].sets;
        let ids = match (sets.get(a.index()), sets.get(b.index())) {
            (Some(a), Some(b)) => intersection(a, b),
            _ => Vec::new(),
        };
        let met = self.intern(at, ids);
        self.drafts[at].meetings.insert((a, b), met);
        met
    }

    /// True if not all instances of `wanted` are in `have`.
    fn lacks(&self, at: usize, have: SetId, wanted: SetId) -> bool {
        let sets = &self.drafts[at].sets;
        match (sets.get(have.index()), sets.get(wanted.index())) {
            (Some(have), Some(wanted)) => align(have, wanted).is_none(),
            _ => true,
        }
    }

    /// The set of instances; `None` of none.
    fn intern(
        &mut self,
        at: usize,
        ids: impl AsRef<[InstId]> + Into<Arc<[InstId]>>,
    ) -> Option<SetId> {
        let draft = &mut self.drafts[at];
        let before = self.states[draft.section as usize].as_deref();
        if ids.as_ref().is_empty() { None } else { Some(draft.intern(ids, before)) }
    }

    /// The set of a history's previous sample, if it lies where kernels read it.
    fn previous_set(&mut self, at: usize, history: crate::program::HistoryId) -> Option<SetId> {
        if !self.history.is_resident(history) {
            return None;
        }
        let home = self.sections.histories[history.index()];
        let state = self.states[home.section as usize].as_deref()?;
        let had = state.plan.histories[home.at as usize].as_ref().ok()?;
        if had.set == SetId::SINGLE {
            return Some(SetId::SINGLE);
        }
        let ids = Arc::clone(&state.sets[had.set.index()]);
        self.intern(at, ids)
    }
}

impl Draft {
    fn new(section: u32) -> Draft {
        Draft {
            section,
            shape: Shape::default(),
            plan: None,
            sets: Vec::new(),
            taken: Taken::default(),
            lasting: true,
            repeats: Vec::new(),
            index: HashMap::new(),
            latest: None,
            meetings: HashMap::new(),
        }
    }

    /// True if a set names an instance twice.
    fn has_repeats(&mut self, set: SetId) -> bool {
        let at = set.index();
        if self.repeats.len() <= at {
            self.repeats.resize(at + 1, None);
        }
        *self.repeats[at].get_or_insert_with(|| has_repeats(&self.sets[at]))
    }

    /// The set of these instances, which are some. `before` is what the section
    /// was like, whose lists are taken over.
    fn intern(
        &mut self,
        ids: impl AsRef<[InstId]> + Into<Arc<[InstId]>>,
        before: Option<&State>,
    ) -> SetId {
        let wanted = ids.as_ref();
        if let Some(latest) = self.latest
            && are_same(&self.sets[latest.index()], wanted)
        {
            return latest;
        }
        // Long lists that are alike for long are compared only if need be.
        let find = |is_meant: fn(&[InstId], &[InstId]) -> bool| {
            let at = self.sets.iter().position(|set| is_meant(set, wanted));
            at.map(|at| SetId(at as u32))
        };
        let known = match self.sets.len() {
            0..=FEW => find(|a, b| std::ptr::eq(a, b)).or_else(|| find(are_same)),
            _ => self.index.get(wanted).copied(),
        };
        let set = known.unwrap_or_else(|| {
            let had =
                before.and_then(|state| state.sets.iter().find(|set| are_same(set, ids.as_ref())));
            let ids: Arc<[InstId]> = had.map_or_else(|| ids.into(), Arc::clone);
            self.sets.push(Arc::clone(&ids));
            let set = SetId(self.sets.len() as u32 - 1);
            if self.sets.len() == FEW + 1 {
                let all = (0..).map(SetId).zip(&self.sets);
                self.index = all.map(|(set, ids)| (Arc::clone(ids), set)).collect();
            } else if self.sets.len() > FEW {
                self.index.insert(ids, set);
            }
            set
        });
        self.latest = Some(set);
        set
    }
}

/// The first status that is not `Values`, in the order in which operands count.
pub fn first_without(statuses: &[Status]) -> Option<Status> {
    first_failed(statuses)
        .or_else(|| statuses.iter().copied().find(|status| matches!(status, Status::Empty(_))))
}

/// The first failure.
pub fn first_failed(statuses: &[Status]) -> Option<Status> {
    statuses.iter().copied().find(|status| matches!(status, Status::Failed(_)))
}

/// The status of a filter over an operand that is no set with values.
pub fn empty_or(status: Status) -> Status {
    match status {
        Status::Values => Status::Empty(Reason::InstanceMissing),
        other => other,
    }
}
