//! Explains to users how their definitions are understood and computed, and
//! why.
//!
//! [`explain`] checks definitions against a source, as compiling does. It
//! describes the type and the decisions for each node, and then the program
//! that computes all definitions together. The result is data; its words for
//! users are complete sentences. [`text`] and [`json`] show it.

mod explained;
mod graph;
pub mod json;
mod notes;
pub mod text;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use pmderive_runtime::model::Pmid;
use pmderive_runtime::program::{DefinitionKey, NodeId, Program};
use pmderive_runtime::source::{MetadataSource, SourceError};

use crate::bind::{DefinitionId, Name, Names, references};
use crate::check::Examined;
use crate::diag::{Code, Diagnostics, Severity};
use crate::dialect::Dialect;
use crate::engine::{Arranged, Engine, Registered, Registry, needed};
use crate::plan::Planned;
use crate::syntax::ast::{Expr, ExprId, Node, NodeKind};
use crate::syntax::{print_expr, print_node};
use crate::text::{SourceId, Span};
pub use explained::{
    Explained, ExplainedInput, ExplainedKernel, ExplainedNode, ExplainedProgram, ExplainedStep,
    Explanation, Fate, NodeOutcome, Operation,
};
use notes::CheckedExpression;

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
    let planned: Vec<Planned<'_>> =
        typed.iter().map(|(key, expr)| (*key, Cow::Borrowed(expr))).collect();
    let lowered = engine.nodes_of(&planned);
    let (program, operands) = engine.plan(|add| planned.into_iter().for_each(add));
    let binding = operands.binding();

    let names = &examination.names;
    let all = needed(registry, selection);
    let mut definitions = Vec::with_capacity(selection.len());
    let mut words = graph::Words::default();
    let mut reported: BTreeMap<(SourceId, u32), Vec<Mistake>> = BTreeMap::new();
    for one in diagnostics.iter().filter(|one| one.severity == Severity::Error) {
        let mistake = (one.span.end, one.code, one.message.clone());
        reported.entry((one.span.source, one.span.start)).or_default().push(mistake);
    }
    let mut explainer = Explainer { names, dialect: engine.dialect(), program: &program, reported };
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
    let program = match typed.is_empty() {
        true => None,
        false => {
            let names = input_names(&all, names, &binding.pmids, source)?;
            let mut titles = vec![String::new(); typed.len()];
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

/// The end, the code and the message of a mistake.
type Mistake = (u32, Code, String);

/// Explains the nodes of one expression after the other.
struct Explainer<'e> {
    names: &'e Names,
    dialect: Dialect,
    program: &'e Program,
    /// Mistakes whose node has not been found yet, by their beginnings.
    reported: BTreeMap<(SourceId, u32), Vec<Mistake>>,
}

impl Explainer<'_> {
    fn nodes(
        &mut self,
        expr: &Expr,
        examined: &Examined,
        of_node: impl Fn(ExprId) -> Option<NodeId>,
    ) -> Vec<ExplainedNode> {
        let noted = CheckedExpression { expr, examined, names: self.names, dialect: self.dialect };
        let mut explained: Vec<ExplainedNode> = Vec::with_capacity(expr.len());
        for (id, node) in expr.nodes() {
            let mut operands = Vec::new();
            expr.operands(id, |operand| operands.push(operand.0 as usize));
            let mut notes = noted.notes(id);
            let outcome = match examined.nodes[id] {
                Some(typed) => NodeOutcome::Typed(examined.typed.node(typed).desc),
                None if !examined.live[id] => NodeOutcome::NotChosen,
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

    /// The outcome of a node without a type. Mistakes of its operands come
    /// first and are already reported.
    fn refusal(&mut self, node: &Node, notes: &mut Vec<String>) -> NodeOutcome {
        let Span { source, start, end } = node.span;
        let mut codes = Vec::new();
        // A definition has few mistakes, but a file may have very many.
        for (_, mistakes) in self.reported.range_mut((source, start)..=(source, end)) {
            for (_, code, message) in mistakes.extract_if(.., |(last, ..)| *last <= end) {
                codes.push(code);
                notes.push(message);
            }
        }
        match node.kind {
            NodeKind::Error => NodeOutcome::Refused(codes),
            _ if codes.is_empty() => NodeOutcome::Unknown,
            _ => NodeOutcome::Refused(codes),
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
