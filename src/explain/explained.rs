//! An explanation as data: the outcome of each node of definitions with its
//! reasons, and the program that computes them.

use pmderive_runtime::kernel::KernelIr;
use pmderive_runtime::model::{Pmid, ValueType};
use pmderive_runtime::program::NodeId;

use crate::bind::Desc;
use crate::diag::Code;
use crate::text::Span;

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
#[non_exhaustive]
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
    pub outcome: NodeOutcome,
    /// Words for the instances, where the number of their domain says nothing.
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
pub enum NodeOutcome {
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
    /// Names and descriptions of the previous samples that the program keeps.
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
    /// The way to its values when every operand has values.
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
