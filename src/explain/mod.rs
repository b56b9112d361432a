//! Explains to people how their definitions are understood and computed, and
//! why.
//!
//! [`explain`] checks definitions against a source, as compiling does. It
//! describes the type and the decisions for each node, and then the program
//! that computes all definitions together. The result is data; words for people
//! are complete sentences in it. [`text`] and [`json`] show it.

mod graph;
pub mod json;
mod notes;
pub mod text;

use std::collections::HashMap;

use pmderive_runtime::kernel::KernelIr;
use pmderive_runtime::model::{Pmid, ValueType};
use pmderive_runtime::program::{DefinitionKey, NodeId, Program};
use pmderive_runtime::source::{MetadataSource, SourceError};

use crate::bind::{Name, Names, references};
use crate::check::Examined;
use crate::check::typed::{DefinitionId, Desc};
use crate::diag::{Code, Diagnostics, Severity};
use crate::dialect::Dialect;
use crate::engine::{Arranged, Engine, Registered, Registry, needed};
use crate::plan::Planned;
use crate::syntax::ast::{Expr, ExprId, Node, NodeKind};
use crate::syntax::{print_expr, print_node};
use crate::text::Span;
use notes::Noted;

/// The explanation of a selection of definitions.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The definitions in the order of the request, and then those that they
    /// need as operands.
    pub definitions: Vec<Explained>,
    /// The program for the definitions that can be used, if there are any.
    pub program: Option<ExplainedProgram>,
}

/// The explanation of one definition.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Name; for an expression without a name, its text.
    pub name: Box<str>,
    /// False for an expression without a name.
    pub is_named: bool,
    /// True if it is only an operand of the requested definitions.
    pub is_operand: bool,
    /// The expression as pmderive prints it.
    pub text: String,
    /// The result for the whole definition.
    pub fate: Fate,
    /// Nodes of the expression. Operands come before their users, and the last
    /// node is the whole expression.
    pub nodes: Vec<ExplainedNode>,
}

impl Explained {
    /// The name. For an expression without a name, the beginning of its text.
    pub fn short_name(&self) -> String {
        /// Number of characters that are enough to recognise a text.
        const ENOUGH: usize = 40;
        if self.is_named || self.text.chars().count() <= ENOUGH {
            return self.name.to_string();
        }
        self.text.chars().take(ENOUGH - 1).chain(['…']).collect()
    }
}

/// The result for a whole definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It can be evaluated, as the output of the program at this position.
    Output(usize),
    /// It has a mistake.
    Refused,
    /// A metric of the source has its name and takes its place, as this output
    /// of the program.
    Hidden(usize),
}

/// A node of an expression.
#[derive(Clone, Debug)]
pub struct ExplainedNode {
    /// The node's text, with `…` for each operand.
    pub title: String,
    /// Place of the node in the text.
    pub span: Span,
    /// Positions of its operands.
    pub operands: Vec<usize>,
    /// The result of checking.
    pub outcome: Outcome,
    /// What the instances are, where the number of their domain says nothing.
    pub instances: Option<String>,
    /// Mistakes, and facts that are not obvious. Each is a sentence without a
    /// full stop.
    pub notes: Vec<String>,
    /// The program's node with the same values.
    pub node: Option<NodeId>,
}

/// The result of checking a node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It has this metadata.
    Typed(Desc),
    /// It is refused for these reasons. Text that is not understood may have
    /// its reason elsewhere.
    Refused(Vec<Code>),
    /// One of its operands is refused.
    Unknown,
    /// It is in a branch that is never chosen.
    NotChosen,
}

/// A program in words.
#[derive(Clone, Debug, Default)]
pub struct ExplainedProgram {
    /// Metrics to fetch.
    pub inputs: Vec<ExplainedInput>,
    /// Operations, each once, with operands before their users.
    pub nodes: Vec<Operation>,
    /// Previous samples that are kept, each with its name and a description.
    pub kept: Vec<(String, String)>,
    /// Uses of kernels, in their order.
    pub steps: Vec<ExplainedStep>,
    /// The source of each output's values.
    pub outputs: Vec<String>,
    /// Kernels of the steps.
    pub kernels: Vec<ExplainedKernel>,
}

/// A metric to fetch.
#[derive(Clone, Debug)]
pub struct ExplainedInput {
    /// Its name.
    pub name: Box<str>,
    /// Its identifier.
    pub pmid: Pmid,
    /// Type of its values.
    pub value_type: ValueType,
    /// True if it has an instance domain.
    pub is_set: bool,
    /// True if no operation uses it. libpcp also fetches metrics of branches
    /// that are never chosen, and that decides which records of an archive
    /// count.
    pub is_mentioned_only: bool,
}

/// An operation of the program.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Number of the operation in the program.
    pub id: NodeId,
    /// Description of the operation, with `n1` and the like for other
    /// operations.
    pub text: String,
    /// Type of its values.
    pub value_type: ValueType,
    /// True if it has a value for each instance.
    pub is_set: bool,
    /// Operations and outputs that use it.
    pub users: Vec<String>,
    /// How its values are obtained when every operand has values.
    pub place: String,
}

/// One use of a kernel.
#[derive(Clone, Debug)]
pub struct ExplainedStep {
    /// Level of the step. Steps of one level do not need each other.
    pub level: u32,
    /// The operation that it computes.
    pub output: NodeId,
    /// Number of its kernel in the program.
    pub kernel: u32,
    /// Descriptions of the kernel's operands.
    pub operands: Vec<String>,
    /// Values of its constants.
    pub constants: Vec<String>,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct ExplainedKernel {
    /// Number of the kernel in the program.
    pub id: u32,
    /// The kernel's form.
    pub ir: KernelIr,
}

/// Explains a selection of definitions for a source. Mistakes are added to
/// `diagnostics`, which may already hold those of the texts.
///
/// # Errors
/// The source failed.
pub fn explain(
    engine: &Engine,
    registry: &Registry,
    selection: &[&Registered],
    source: &mut dyn MetadataSource,
    diagnostics: &mut Diagnostics,
) -> Result<Explanation, SourceError> {
    let examination = engine.examine(registry, selection, source, diagnostics)?;
    let Arranged { typed, outputs } = examination.arranged();
    let planned = Planned::all(&typed);
    let (program, operands) = engine.plan(&planned);
    let binding = operands.binding();
    let lowered = engine.nodes_of(&planned);

    let names = &examination.names;
    let all = needed(registry, selection);
    let mut definitions = Vec::with_capacity(selection.len());
    let mut words = graph::Words::default();
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error);
    let mut explainer = Explainer {
        names,
        dialect: engine.dialect(),
        program: &program,
        reported: errors.map(|one| (one.span, one.code, one.message.clone())).collect(),
    };
    for (position, one) in all.iter().enumerate() {
        if !examination.is_wanted(position) {
            continue;
        }
        let examined = &examination.expressions[position];
        let output = outputs[position].map(DefinitionId::index);
        let nodes = output.map_or(&[][..], |output| &lowered[output]);
        let is_hidden = one.is_named && matches!(names.get(&one.name), Name::Metric(_));
        let of_node = |id: ExprId| {
            let typed = (*examined.nodes.get(id)?)?;
            nodes.get(typed.0 as usize).copied()
        };
        // A hidden definition, or one in a cycle, has no results for its nodes.
        let explained = match examined.nodes.len() == one.expr.len() {
            false => Vec::new(),
            true => {
                words.read(&one.expr, of_node);
                explainer.nodes(&one.expr, examined, of_node)
            }
        };
        definitions.push(Explained {
            name: Box::from(&*one.name),
            is_named: one.is_named,
            text: print_expr(&one.expr),
            is_operand: position >= selection.len(),
            fate: match output {
                None => Fate::Refused,
                Some(at) if is_hidden => Fate::Hidden(at),
                Some(at) => Fate::Output(at),
            },
            nodes: explained,
        });
    }
    let program = match planned.is_empty() {
        true => None,
        false => {
            let names = input_names(&all, names, &binding.pmids, source)?;
            let mut titles = vec![String::new(); planned.len()];
            for one in &definitions {
                if let Fate::Output(output) | Fate::Hidden(output) = one.fate {
                    titles[output] = one.short_name();
                }
            }
            let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
            let keys: Vec<DefinitionKey> = typed.iter().map(|(key, _)| *key).collect();
            Some(words.program(&program, &binding, names, &titles, &keys))
        }
    };
    Ok(Explanation { definitions, program })
}

/// Explains the nodes of one expression after the other.
struct Explainer<'e> {
    names: &'e Names,
    dialect: Dialect,
    program: &'e Program,
    /// Mistakes whose node has not been found yet: place, code and message.
    reported: Vec<(Span, Code, String)>,
}

impl Explainer<'_> {
    fn nodes(
        &mut self,
        expr: &Expr,
        examined: &Examined,
        of_node: impl Fn(ExprId) -> Option<NodeId>,
    ) -> Vec<ExplainedNode> {
        let noted = Noted { expr, examined, names: self.names, dialect: self.dialect };
        let mut explained: Vec<ExplainedNode> = Vec::with_capacity(expr.len());
        for (id, node) in expr.nodes() {
            let mut operands = Vec::new();
            expr.operands(id, |operand| operands.push(operand.0 as usize));
            let mut notes = noted.notes(id);
            let outcome = match examined.nodes[id] {
                Some(typed) => Outcome::Typed(examined.typed.node(typed).desc),
                None if !examined.live[id] => Outcome::NotChosen,
                None => self.refusal(node, &mut notes),
            };
            let operation = of_node(id);
            if let Some(id) = operation.filter(|_| !operands.is_empty())
                && let Some(value) = graph::constant(self.program, id)
            {
                notes.push(format!("computed once and for all: {value}"));
            }
            explained.push(ExplainedNode {
                title: print_node(expr, id, |_| "…".to_owned()),
                span: node.span,
                operands,
                outcome,
                instances: None,
                notes,
                node: operation,
            });
        }
        explained
    }

    /// The outcome of a node without a type. Mistakes of its operands, which
    /// come first, have already been taken.
    fn refusal(&mut self, node: &Node, notes: &mut Vec<String>) -> Outcome {
        let Span { source, start, end } = node.span;
        let is_own = |(span, ..): &mut (Span, Code, String)| {
            span.source == source && span.start >= start && span.end <= end
        };
        let mut codes = Vec::new();
        for (_, code, message) in self.reported.extract_if(.., is_own) {
            codes.push(code);
            notes.push(message);
        }
        match node.kind {
            NodeKind::Error => Outcome::Refused(codes),
            _ if codes.is_empty() => Outcome::Unknown,
            _ => Outcome::Refused(codes),
        }
    }
}

/// Names of the metrics that a program fetches.
fn input_names(
    selection: &[&Registered],
    names: &Names,
    pmids: &[Pmid],
    source: &mut dyn MetadataSource,
) -> Result<Vec<Box<str>>, SourceError> {
    let mut known: HashMap<Pmid, Box<str>> = HashMap::new();
    for one in selection {
        let mentioned = references(&one.expr).map(|reference| reference.name);
        for name in mentioned.chain([&*one.name]) {
            if let Name::Metric(desc) = names.get(name) {
                known.entry(desc.pmid).or_insert_with(|| name.into());
            }
        }
    }
    pmids
        .iter()
        .map(|pmid| match known.get(pmid) {
            Some(name) => Ok(name.clone()),
            None => Ok(match source.names_of(*pmid)? {
                Ok(names) => names.into_iter().next().unwrap_or_default(),
                Err(_) => pmid.to_string().into(),
            }),
        })
        .collect()
}
