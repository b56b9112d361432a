//! Describes a program in words: its operations, previous samples and steps.
//!
//! An operation is written as in its expression, with `n1` and the like for
//! other operations. If no expression contains the operation, its effect is
//! described.

use std::collections::HashMap;
use std::sync::Arc;

use pmderive_runtime::eval::Binding;
use pmderive_runtime::kernel::{Body, Inst, KernelIr, KernelRef, Scalar, interp};
use pmderive_runtime::model::{ValueType, write_exact_double, write_exact_float};
use pmderive_runtime::program::{
    Baseline, DefinitionKey, History, HistoryId, HistoryKey, InputSlot, NodeId, OnFailure, Op,
    Placement, PreviousLanes, Program, Step, StepOperand, scalar_of,
};

use super::explained::{
    ExplainedInput, ExplainedKernel, ExplainedProgram, ExplainedStep, Operation,
};
use crate::syntax::ast::{Expr, ExprId};
use crate::syntax::print_node;

/// Words for operations, taken from the expressions.
#[derive(Default)]
pub struct Words {
    nodes: HashMap<NodeId, Template>,
}

/// A node's text with [`GAP`] for each operand, and the operations of operands
/// that have one.
struct Template {
    text: String,
    operands: Vec<Option<NodeId>>,
}

/// Stands for an operand. A text that contains it by itself gives wrong words, but does no other
/// harm.
const GAP: char = '\0';

impl Template {
    /// The text with operands: the given ones if their number is right, else
    /// the operations of the template.
    fn fill(&self, operands: &[NodeId]) -> String {
        let own = self.operands.iter().map(|operand| operand.map_or("…".to_owned(), name));
        let mut names: Vec<String> = match operands.len() == self.operands.len() {
            true => operands.iter().map(|operand| name(*operand)).collect(),
            false => own.collect(),
        };
        names.reverse();
        let mut out = String::new();
        for character in self.text.chars() {
            match character {
                GAP => out.push_str(&names.pop().unwrap_or_default()),
                other => out.push(other),
            }
        }
        out
    }
}

/// The name of an operation, such as `n1`.
fn name(id: NodeId) -> String {
    format!("n{}", id.0)
}

/// The value of a node that is a constant.
pub fn constant(program: &Program, id: NodeId) -> Option<String> {
    let node = program.nodes.get(id.index())?;
    match node.op {
        Op::Constant(bits) | Op::ConstantPerInstance { bits, .. } => {
            Some(value(scalar_of(node.value_type)?, bits))
        }
        _ => None,
    }
}

/// Text of a lane.
fn value(scalar: Scalar, bits: u64) -> String {
    // A lane of four bytes has its bits in the low half.
    let low = (bits & 0xffff_ffff) as u32;
    let mut out = String::new();
    match scalar {
        Scalar::I32 => out = low.cast_signed().to_string(),
        Scalar::U32 => out = low.to_string(),
        Scalar::I64 => out = bits.cast_signed().to_string(),
        Scalar::U64 => out = bits.to_string(),
        Scalar::F32 => write_exact_float(&mut out, f32::from_bits(low)),
        Scalar::F64 => write_exact_double(&mut out, f64::from_bits(bits)),
    }
    out
}

impl Words {
    /// Reads an expression. `of_node` gives the operation of each node.
    pub fn read(&mut self, expr: &Expr, of_node: impl Fn(ExprId) -> Option<NodeId>) {
        for (id, _) in expr.nodes() {
            let Some(node) = of_node(id) else { continue };
            self.nodes.entry(node).or_insert_with(|| {
                let mut operands = Vec::new();
                let text = print_node(expr, id, |operand| {
                    operands.push(of_node(operand));
                    GAP.to_string()
                });
                Template { text, operands }
            });
        }
    }

    /// Describes a program in words. `names` are those of its inputs, `outputs`
    /// those of its outputs. `keys` are parallel to `outputs`: the keys of
    /// their definitions.
    pub fn program(
        &self,
        program: &Program,
        binding: &Binding,
        names: Vec<Box<str>>,
        outputs: &[&str],
        keys: &[DefinitionKey],
    ) -> ExplainedProgram {
        let users = users(program, outputs);
        let fused = fused(program, &users);
        let mut used = vec![false; program.inputs.len()];
        let mut nodes = Vec::new();
        for (id, users) in users {
            let node = &program.nodes[id.index()];
            if let Op::Input(slot) = node.op {
                used[slot.index()] = true;
            }
            nodes.push(Operation {
                id,
                text: self.operation(program, id, &names),
                value_type: node.value_type,
                is_set: node.is_set,
                users,
                place: place(program, id, fused[id.index()]),
            });
        }
        let inputs = inputs(program, binding, names, &used);
        let kept = kept(program, &inputs, outputs, keys);
        let roots = program.outputs.iter().map(|output| output.root);
        let places = roots.map(|root| format!("{} ({})", name(root), place(program, root, false)));
        let mut kernels: Vec<u32> =
            program.steps.iter().map(|step| number(program, &step.kernel)).collect();
        kernels.sort_unstable();
        kernels.dedup();
        let ir = |id: u32| program.kernels[id as usize].ir().clone();
        ExplainedProgram {
            kept,
            steps: program.steps.iter().map(|step| explain_step(program, step)).collect(),
            outputs: places.collect(),
            kernels: kernels.into_iter().map(|id| ExplainedKernel { id, ir: ir(id) }).collect(),
            inputs,
            nodes,
        }
    }

    fn operation(&self, program: &Program, id: NodeId, names: &[Box<str>]) -> String {
        let op = &program.nodes[id.index()].op;
        match op {
            Op::Input(slot) => names.get(slot.index()).map_or(name(id), |name| name.to_string()),
            Op::Constant(_) => constant(program, id).unwrap_or_default(),
            Op::ConstantPerInstance { .. } => {
                format!("{} for each instance", constant(program, id).unwrap_or_default())
            }
            Op::Nothing => "never a value".to_owned(),
            Op::NoValue => "no value where it is chosen".to_owned(),
            op => {
                let mut operands = Vec::new();
                op.operands(|operand| operands.push(operand));
                match self.nodes.get(&id) {
                    Some(template) => template.fill(&operands),
                    None => {
                        let operands: Vec<String> = operands.into_iter().map(name).collect();
                        format!("{} of {}", verb(op), operands.join(", "))
                    }
                }
            }
        }
    }
}

/// Describes an operation that no expression contains.
fn verb(op: &Op) -> String {
    if let Op::Map { kernel, .. } = op
        && let Body::Map { insts, result, .. } = &kernel.ir().body
        && let Some(Inst::Binary(op, ..)) = insts.get(usize::from(result.0))
    {
        return format!("{op:?}").to_lowercase();
    }
    "computed".to_owned()
}

/// The operations that outputs need, each with its users.
fn users(program: &Program, outputs: &[&str]) -> Vec<(NodeId, Vec<String>)> {
    let mut needed: Vec<NodeId> = program.needs.nodes.iter().flatten().copied().collect();
    needed.sort_unstable();
    needed.dedup();
    let mut users: HashMap<NodeId, Vec<String>> = HashMap::new();
    for id in &needed {
        program.nodes[id.index()].op.operands(|operand| {
            let users = users.entry(operand).or_default();
            // An operation may use another one twice.
            if users.last() != Some(&name(*id)) {
                users.push(name(*id));
            }
        });
    }
    for (output, title) in program.outputs.iter().zip(outputs) {
        users.entry(output.root).or_default().push((*title).to_owned());
    }
    needed.into_iter().map(|id| (id, users.remove(&id).unwrap_or_default())).collect()
}

/// The way to an operation's values in the regular case.
fn place(program: &Program, id: NodeId, is_fused: bool) -> String {
    let node = &program.nodes[id.index()];
    match program.placements.get(id.index()).and_then(Option::as_ref) {
        Some(Placement::Input(_)) => "as fetched".to_owned(),
        Some(Placement::Fill) if matches!(node.op, Op::Count(_)) => "counted".to_owned(),
        Some(Placement::Fill) => "filled in".to_owned(),
        Some(Placement::View(operand)) => format!("read from {}", operand_words(program, operand)),
        Some(Placement::Step(step)) => format!("step {}", step.0),
        None => match node.op {
            Op::Constant(_) | Op::ConstantPerInstance { .. } => "constant of a kernel".to_owned(),
            Op::Nothing | Op::NoValue => "nothing to compute".to_owned(),
            _ if is_fused => "within a kernel".to_owned(),
            _ => "one operation at a time".to_owned(),
        },
    }
}

/// Marks operations that are parts of other operations' kernels: those without
/// a column of their own that a step, or another marked operation, uses.
fn fused(program: &Program, needed: &[(NodeId, Vec<String>)]) -> Vec<bool> {
    let mut fused = vec![false; program.nodes.len()];
    let placement = |id: NodeId| program.placements.get(id.index()).and_then(Option::as_ref);
    for (id, _) in needed.iter().rev() {
        if fused[id.index()] || placement(*id).is_some() {
            program.nodes[id.index()].op.operands(|operand| {
                fused[operand.index()] |= placement(operand).is_none();
            });
        }
    }
    fused
}

fn operand_words(program: &Program, operand: &StepOperand) -> String {
    let previous = |history: HistoryId| {
        let operand = program.histories.get(history.index()).map(|history| history.operand);
        operand
            .map_or(String::new(), |operand| format!("{} before (h{})", name(operand), history.0))
    };
    match operand {
        StepOperand::Column(node) => format!("{}, each instance", name(*node)),
        StepOperand::Single(node) => format!("{}, a single value", name(*node)),
        StepOperand::First { node, of } if node == of => {
            format!("the first instance of {}", name(*node))
        }
        StepOperand::First { node, of } => {
            format!("{} of the first instance of {}", name(*node), name(*of))
        }
        StepOperand::Previous { history, lanes } => match lanes {
            PreviousLanes::Column => format!("{}, each instance", previous(*history)),
            PreviousLanes::Single => format!("{}, a single value", previous(*history)),
            PreviousLanes::First(of) => {
                format!("{} of the first instance of {}", previous(*history), name(*of))
            }
        },
        StepOperand::Elapsed(history) => format!("seconds since h{}", history.0),
    }
}

/// Words for the identity of a window.
fn identity(key: &HistoryKey, owner: &str) -> String {
    format!("{}, found again while its text and metrics are the same", ordinal(key, owner))
}

/// Words for a position within a definition.
fn ordinal(key: &HistoryKey, owner: &str) -> String {
    format!("number {} of `{owner}`", key.ordinal)
}

fn history_words(history: &History, identities: &[String], clock: &str) -> String {
    let operand = name(history.operand);
    let failure = match history.on_failure {
        OnFailure::Forget => "forgotten when",
        OnFailure::Keep => "kept when",
        OnFailure::Repeat => "replaced by the failure when",
    };
    let whose = if identities.len() == 1 { "its text" } else { "their texts" };
    let identities = identities.join(" and ");
    format!(
        "{operand} before, with the time of {clock}; {identities}, found again while {whose} and \
         metrics are the same; {failure} {operand} fails"
    )
}

/// Position of a kernel among those of its program.
fn number(program: &Program, kernel: &KernelRef) -> u32 {
    let at = program.kernels.iter().position(|one| Arc::ptr_eq(one, &kernel.0));
    at.unwrap_or_default() as u32
}

fn explain_step(program: &Program, step: &Step) -> ExplainedStep {
    let kernel = step.kernel.ir();
    let operands = step.operands.iter().map(|operand| operand_words(program, operand));
    ExplainedStep {
        level: step.level,
        output: step.output,
        kernel: number(program, &step.kernel),
        operands: operands.collect(),
        constants: constants(kernel, &program.constants, step.constants),
    }
}

/// Values of a kernel's constants, which are stored together from `offset` on.
fn constants(kernel: &KernelIr, bytes: &[u8], offset: u32) -> Vec<String> {
    let Body::Map { .. } = &kernel.body else { return Vec::new() };
    let start = offset as usize;
    let scalars = kernel.constants.iter().enumerate();
    scalars
        .map(|(at, scalar)| value(*scalar, interp::read(*scalar, bytes, start + at * 8)))
        .collect()
}

/// Words for the type and shape of values, in lists.
pub fn shape(value_type: ValueType, is_set: bool) -> String {
    let shape = if is_set { "by instance" } else { "single" };
    format!("{value_type}, {shape}")
}

/// The inputs with their names. `used` has for each whether a node reads it.
fn inputs(
    program: &Program,
    binding: &Binding,
    names: Vec<Box<str>>,
    used: &[bool],
) -> Vec<ExplainedInput> {
    let inputs = names.into_iter().zip(&program.inputs).zip(&binding.pmids).zip(used);
    let inputs = inputs.map(|(((name, input), pmid), used)| ExplainedInput {
        name,
        pmid: *pmid,
        value_type: input.value_type,
        is_set: input.is_set,
        is_mentioned_only: !used,
    });
    inputs.collect()
}

/// The previous samples that the program keeps: the histories, then the
/// windows. `keys` are those of the outputs' definitions.
fn kept(
    program: &Program,
    inputs: &[ExplainedInput],
    outputs: &[&str],
    keys: &[DefinitionKey],
) -> Vec<(String, String)> {
    let owner = |key: &HistoryKey| {
        let owner = keys.iter().position(|one| *one == key.definition);
        owner.and_then(|at| outputs.get(at)).map_or("another definition", |title| title)
    };
    let clock = |below: &[InputSlot]| {
        let input = below.first().and_then(|slot| inputs.get(slot.index()));
        input.map_or("the fetch", |input| &*input.name)
    };
    let mut kept: Vec<(String, String)> = Vec::new();
    for (at, history) in program.histories.iter().enumerate() {
        let of = |baseline: &&Baseline| baseline.history.index() == at;
        let identities = program.baselines.iter().filter(of);
        let identities = identities.map(|one| ordinal(&one.key, owner(&one.key)));
        let identities: Vec<String> = identities.collect();
        let words = history_words(history, &identities, clock(&history.inputs));
        let gap = if program.forget_at_gap { ", and forgotten at a gap in the data" } else { "" };
        kept.push((format!("h{at}"), words + gap));
    }
    for (at, window) in program.windows.iter().enumerate() {
        let words = format!(
            "samples of the last {} seconds, with the time of {}; {}",
            window.seconds,
            clock(&window.inputs),
            identity(&window.key, owner(&window.key)),
        );
        kept.push((format!("w{at}"), words));
    }
    kept
}
