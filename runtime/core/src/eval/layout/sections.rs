//! The division of a program into sections: one for all single values, and one
//! for each instance domain.
//!
//! Lanes are instances, so a change of instances in one domain does not affect
//! other sections. Each section has its own columns, plan and previous samples.
//! Only single values pass between sections. Their offsets depend on the
//! program alone and precede all columns.
//!
//! Input: a program. This module knows no instances, no statuses and no hosts.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::ops::Index;

use rustc_hash::FxHashMap;

use crate::kernel::Body;
use crate::program::{
    HistoryId, InputSlot, Lists, NodeId, Op, OutputId, Placement, PreviousLanes, Program, StepId,
    StepOperand,
};

crate::positions! {
    /// Position in [`Sections::all`].
    pub SectionId;
}

impl SectionId {
    /// The section of single values.
    pub const SINGLES: SectionId = SectionId(0);
}

/// The sections of a program, and the place of each part of the program in
/// them.
#[derive(Debug, PartialEq, Eq)]
pub struct Sections {
    /// The sections; the first is [that of single values](SectionId::SINGLES).
    pub all: Box<[Section]>,
    /// Places of the program's nodes.
    pub nodes: Box<[Home]>,
    /// Places of the program's inputs.
    pub inputs: Box<[Home]>,
    /// Places of the program's histories.
    pub histories: Box<[Home]>,
    /// Places of the program's outputs.
    pub outputs: Box<[Home]>,
    /// Offset of the lane of each single node with its own column, parallel to
    /// the program's nodes.
    fixed: Box<[u32]>,
    /// Offset of the lane of each single input, parallel to the program's inputs.
    fixed_inputs: Box<[u32]>,
    /// Offset of the previous lanes of single histories. They are copied there
    /// in the order of their section's block.
    pub previous: u32,
    /// Offsets of the lanes of first instances.
    firsts: FxHashMap<StepOperand, u32>,
    /// Bytes before the first column.
    pub fixed_size: u32,
    /// The outputs that depend on each step, without the users of other such
    /// outputs. Parallel to the program's steps; empty for a step whose kernel has
    /// no flags.
    pub dependents: Lists<OutputId>,
    /// Number of phases of kernel calls. One more phase of copies follows.
    pub levels: u32,
}

/// A place in the sections: a section, and a position in one of its lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Home {
    /// The section.
    pub section: SectionId,
    /// Position in the section's list.
    pub at: u32,
}

/// The parts of a program that are laid out together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Nodes, ascending.
    pub nodes: Box<[NodeId]>,
    /// Inputs, ascending.
    pub inputs: Box<[InputSlot]>,
    /// Steps that read or write its columns, by level.
    pub steps: Box<[StepId]>,
    /// Histories, ascending.
    pub histories: Box<[HistoryId]>,
    /// Outputs whose roots are here, ascending.
    pub outputs: Box<[OutputId]>,
    /// Outputs with nodes here, ascending.
    pub touching: Box<[OutputId]>,
    /// Nodes that count instances of nodes in this section. They are single
    /// values.
    pub counts: Box<[NodeId]>,
    /// Lanes of first instances in this section that other sections need.
    pub firsts: Box<[First]>,
    /// Nodes of other sections that are operands of nodes here, ascending.
    pub imports: Box<[NodeId]>,
    /// Sections that import from this one, ascending.
    pub users: Box<[SectionId]>,
    /// True if this section depends on names of instances, or on domains that
    /// come with fetches.
    pub needs_domains: bool,
}

/// A lane of a first instance that becomes a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct First {
    /// The lane.
    pub operand: StepOperand,
    /// The phase before which the lane is needed.
    pub level: u32,
    /// Its offset as a single value.
    pub offset: u32,
}

impl Index<SectionId> for Sections {
    type Output = Section;

    fn index(&self, section: SectionId) -> &Section {
        &self.all[section.index()]
    }
}

impl Hash for Sections {
    /// Hashes only the fields that usually differ.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.nodes, &self.outputs, self.fixed_size).hash(state);
    }
}

impl Sections {
    /// The sections with their positions.
    pub fn numbered(&self) -> impl Iterator<Item = (SectionId, &Section)> {
        (0..).map(SectionId).zip(&self.all)
    }

    /// The sections of a program.
    pub fn of(program: &Program) -> Sections {
        let (homes, lists) = group(program);
        let mut all: Vec<Section> = lists.into_iter().map(section_of).collect();
        let home_of = |node: NodeId| homes[node.index()].section;
        let mut inputs = vec![Home::default(); program.inputs.len()];
        let slots = spread(&mut inputs, all.len(), input_sections(program, &homes).into_iter());
        let mut histories = vec![Home::default(); program.histories.len()];
        let of = program.histories.iter().map(|history| home_of(history.operand));
        let history_lists = spread(&mut histories, all.len(), of);
        let mut outputs = vec![Home::default(); program.outputs.len()];
        let of = program.outputs.iter().map(|output| home_of(output.root));
        let output_lists = spread(&mut outputs, all.len(), of);
        let lists = slots.into_iter().zip(history_lists).zip(output_lists);
        for (section, ((slots, histories), outputs)) in all.iter_mut().zip(lists) {
            section.inputs = slots.into_iter().map(InputSlot).collect();
            section.histories = histories.into_iter().map(HistoryId).collect();
            section.outputs = outputs.into_iter().map(OutputId).collect();
        }
        let levels = program.steps.iter().map(|step| step.level + 1).max().unwrap_or(0);
        let mut sections = Sections {
            all: all.into(),
            nodes: homes.into(),
            inputs: inputs.into(),
            histories: histories.into(),
            outputs: outputs.into(),
            fixed: Box::default(),
            fixed_inputs: Box::default(),
            previous: 0,
            firsts: FxHashMap::default(),
            fixed_size: 0,
            dependents: dependents(program),
            levels,
        };
        sections.connect(program);
        sections.give_steps(program);
        sections.place_single_values(program);
        sections
    }

    /// Offset of the seconds since a history's sample.
    pub fn elapsed(&self, history: HistoryId) -> u32 {
        history.0 * 8
    }

    /// Offset of the lane of a single node that has a column.
    pub fn fixed(&self, node: NodeId) -> u32 {
        self.fixed[node.index()]
    }

    /// Offset of the lane of a single input.
    pub fn fixed_input(&self, slot: InputSlot) -> u32 {
        self.fixed_inputs[slot.index()]
    }

    /// Offset of the previous lane of a single history.
    pub fn fixed_previous(&self, history: HistoryId) -> u32 {
        self.previous + self.histories[history.index()].at * 8
    }

    /// Offset of the lane of a first instance.
    pub fn fixed_first(&self, operand: &StepOperand) -> u32 {
        self.firsts.get(operand).copied().unwrap_or_default()
    }

    /// Section of a node.
    pub fn section_of(&self, node: NodeId) -> SectionId {
        self.nodes[node.index()].section
    }

    /// Determines the values that pass between sections.
    fn connect(&mut self, program: &Program) {
        let mut imports = vec![BTreeSet::new(); self.all.len()];
        let mut users = vec![BTreeSet::new(); self.all.len()];
        let mut counts = vec![Vec::new(); self.all.len()];
        for (id, node) in (0u32..).map(NodeId).zip(&program.nodes) {
            let section = self.section_of(id);
            node.op.operands(|operand| {
                let of = self.section_of(operand);
                if of != section {
                    imports[section.index()].insert(operand);
                    users[of.index()].insert(section);
                }
            });
            match &node.op {
                Op::Count(operand) => counts[self.section_of(*operand).index()].push(id),
                Op::Named { .. } | Op::Matching { .. } | Op::ConstantPerInstance { .. } => {
                    self.all[section.index()].needs_domains = true;
                }
                _ => {}
            }
        }
        let mut touching = vec![Vec::new(); self.all.len()];
        for (output, nodes) in (0..).map(OutputId).zip(program.needs.nodes.iter()) {
            for node in nodes {
                let touching: &mut Vec<OutputId> = &mut touching[self.section_of(*node).index()];
                if touching.last() != Some(&output) {
                    touching.push(output);
                }
            }
            for base in program.needs.bases.get(output.index()) {
                for touching in &mut touching {
                    let touches = touching.binary_search(base).is_ok();
                    if touches && touching.last() != Some(&output) {
                        touching.push(output);
                    }
                }
            }
        }
        let lists = imports.into_iter().zip(users).zip(counts).zip(touching);
        for (section, (((imports, users), counts), touching)) in self.all.iter_mut().zip(lists) {
            section.touching = touching.into();
            section.imports = imports.into_iter().collect();
            section.users = users.into_iter().collect();
            section.counts = counts.into();
        }
    }

    /// Assigns each step to the section of its columns.
    fn give_steps(&mut self, program: &Program) {
        let mut lists = vec![Vec::new(); self.all.len()];
        for (id, step) in (0..).map(StepId).zip(&program.steps) {
            let column = step.operands.iter().find_map(|operand| match operand {
                StepOperand::Column(node) => Some(self.section_of(*node)),
                StepOperand::Previous { history, lanes: PreviousLanes::Column } => {
                    Some(self.histories[history.index()].section)
                }
                _ => None,
            });
            let section = column.unwrap_or_else(|| self.section_of(step.output));
            lists[section.index()].push(id);
        }
        for (section, mut steps) in self.all.iter_mut().zip(lists) {
            steps.sort_by_key(|id| program.steps[id.index()].level);
            section.steps = steps.into();
        }
    }

    /// Assigns each single value its offset.
    fn place_single_values(&mut self, program: &Program) {
        let mut size = program.histories.len() as u32 * 8;
        let mut next = |count: u32| {
            size += count * 8;
            size - count * 8
        };
        self.previous = next(self.all[0].histories.len() as u32);
        let fixed_inputs = self.inputs.iter().map(|home| match home.section {
            SectionId::SINGLES => next(1),
            _ => 0,
        });
        self.fixed_inputs = fixed_inputs.collect();
        let nodes = program.nodes.iter().zip(&program.placements);
        let fixed = nodes.map(|(node, placement)| match placement {
            Some(Placement::Input(slot)) if !node.is_set => self.fixed_inputs[slot.index()],
            Some(Placement::Fill | Placement::Step(_)) if !node.is_set => next(1),
            _ => 0,
        });
        self.fixed = fixed.collect();
        let mut firsts: Vec<Vec<First>> = vec![Vec::new(); self.all.len()];
        let operands = program
            .steps
            .iter()
            .flat_map(|step| step.operands.iter().map(|operand| (*operand, step.level)));
        let views = program.placements.iter().filter_map(|placement| match placement {
            Some(Placement::View(operand)) => Some((*operand, self.levels)),
            _ => None,
        });
        for (operand, level) in operands.chain(views) {
            let of = match operand {
                StepOperand::First { node, .. } => self.section_of(node),
                StepOperand::Previous { history, lanes: PreviousLanes::First(_) } => {
                    self.histories[history.index()].section
                }
                _ => continue,
            };
            let offset = *self.firsts.entry(operand).or_insert_with(|| next(1));
            let list = &mut firsts[of.index()];
            match list.iter_mut().find(|first| first.operand == operand) {
                Some(first) => first.level = first.level.min(level),
                None => list.push(First { operand, level, offset }),
            }
        }
        for (section, firsts) in self.all.iter_mut().zip(firsts) {
            section.firsts = firsts.into();
        }
        self.fixed_size = next(0).next_multiple_of(64);
    }
}

fn section_of(nodes: Vec<NodeId>) -> Section {
    Section { nodes: nodes.into(), ..Section::default() }
}

/// Groups the nodes into sections. A node over instances has lanes of its
/// operands over instances. Inputs over one domain probably have the same
/// lanes.
fn group(program: &Program) -> (Vec<Home>, Vec<Vec<NodeId>>) {
    // Disjoint sets: each node points towards the representative of its set.
    let mut leads: Vec<u32> = (0..program.nodes.len() as u32).collect();
    fn root(leads: &mut [u32], mut of: u32) -> u32 {
        while leads[of as usize] != of {
            leads[of as usize] = leads[leads[of as usize] as usize];
            of = leads[of as usize];
        }
        of
    }
    let mut by_domain: FxHashMap<u32, u32> = FxHashMap::default();
    for (id, node) in (0u32..).zip(&program.nodes) {
        if !node.is_set {
            continue;
        }
        let join = |leads: &mut [u32], other: u32| {
            let (a, b) = (root(leads, id), root(leads, other));
            leads[a.max(b) as usize] = a.min(b);
        };
        if let Op::Input(slot) = node.op
            && let Some(domain) = program.inputs[slot.index()].domain
        {
            let first = *by_domain.entry(domain).or_insert(id);
            join(&mut leads, first);
        }
        node.op.operands(|operand| {
            if program.nodes[operand.index()].is_set {
                join(&mut leads, operand.0);
            }
        });
    }
    let mut homes = Vec::with_capacity(program.nodes.len());
    let mut lists: Vec<Vec<NodeId>> = vec![Vec::new()];
    let mut numbers: Vec<Option<SectionId>> = vec![None; program.nodes.len()];
    for (id, node) in (0u32..).zip(&program.nodes) {
        let section = match node.is_set {
            false => SectionId::SINGLES,
            true => *numbers[root(&mut leads, id) as usize].get_or_insert_with(|| {
                lists.push(Vec::new());
                SectionId(lists.len() as u32 - 1)
            }),
        };
        let list = &mut lists[section.index()];
        homes.push(Home { section, at: list.len() as u32 });
        list.push(NodeId(id));
    }
    (homes, lists)
}

/// The section of each input: that of its node. An input without a node has no
/// column and goes to the single values.
fn input_sections(program: &Program, homes: &[Home]) -> Vec<SectionId> {
    let mut sections = vec![SectionId::SINGLES; program.inputs.len()];
    for (home, node) in homes.iter().zip(&program.nodes) {
        if let Op::Input(slot) = node.op {
            sections[slot.index()] = home.section;
        }
    }
    sections
}

/// Distributes items over sections, given the section of each. Writes their
/// places to `homes`.
fn spread(
    homes: &mut [Home],
    sections: usize,
    of: impl Iterator<Item = SectionId>,
) -> Vec<Vec<u32>> {
    let mut lists: Vec<Vec<u32>> = vec![Vec::new(); sections];
    for ((at, home), section) in (0u32..).zip(homes).zip(of) {
        let list = &mut lists[section.index()];
        *home = Home { section, at: list.len() as u32 };
        list.push(at);
    }
    lists
}

/// The outputs that depend on each step whose kernel has flags.
fn dependents(program: &Program) -> Lists<OutputId> {
    let has_flags = |at: usize| {
        let body = &program.steps[at].kernel.ir().body;
        matches!(body, Body::Map { flags, .. } if !flags.is_empty())
    };
    let with_flags: Vec<bool> = (0..program.steps.len()).map(has_flags).collect();
    let mut dependents: Vec<Vec<OutputId>> = vec![Vec::new(); program.steps.len()];
    for (output, nodes) in (0..).map(OutputId).zip(program.needs.nodes.iter()) {
        for node in nodes {
            if let Some(Placement::Step(step)) = program.placements[node.index()]
                && with_flags[step.index()]
            {
                dependents[step.index()].push(output);
            }
        }
    }
    dependents.into_iter().collect()
}
