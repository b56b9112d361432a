//! An explanation for people, for a terminal with 100 columns.
//!
//! Expressions are drawn as trees, with a table of types beside them. Trees of
//! any depth can be drawn: a part below a certain depth gets its own tree
//! further down.

use std::collections::VecDeque;
use std::fmt::Write as _;

use super::explained::{
    Explained, ExplainedKernel, ExplainedNode, ExplainedProgram, Explanation, Fate, NodeOutcome,
};
use super::graph::shape;
use crate::check::units_name;
use crate::diag::printable;

/// Number of columns in a line.
const WIDTH: usize = 100;
/// Largest number of columns for the tree beside its table.
const TREE: usize = 44;
/// Number of levels in one tree.
const DEPTH: usize = 12;

/// The whole explanation, except for kernels.
pub fn to_text(explanation: &Explanation) -> String {
    let mut out = String::new();
    for (at, explained) in explanation.definitions.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        definition(&mut out, explained);
    }
    if let Some(program) = &explanation.program {
        write_program(&mut out, program, &explanation.definitions);
    }
    out
}

fn definition(out: &mut String, explained: &Explained) {
    let title = match explained.is_named {
        true => format!("{} = {}", explained.name, explained.text),
        false => explained.text.clone(),
    };
    paragraph(out, "", "    ", &title);
    let mut say = |words: &str| paragraph(out, "  ", "  ", words);
    if explained.is_operand {
        say("This is needed by a definition above.");
    }
    match explained.fate {
        Fate::Hidden(_) => {
            say("A metric of the source has this name and takes the place of the definition.");
            return;
        }
        Fate::Refused if explained.nodes.is_empty() => {
            say("This is refused as a whole; the diagnostics say why.");
            return;
        }
        Fate::Refused => {
            let is_shown =
                explained.nodes.iter().any(|node| matches!(node.outcome, NodeOutcome::Refused(_)));
            let words = match is_shown {
                true => "This is refused; the tree shows where.",
                false => "This is refused; the tree shows what may be meant.",
            };
            say(words);
        }
        Fate::Output(_) => {}
    }
    out.push('\n');
    Tree { nodes: &explained.nodes, width: tree_width(&explained.nodes) }.draw(out);
}

/// The definitions, without the program that computes them.
pub fn definitions_to_text(definitions: &[Explained]) -> String {
    to_text(&Explanation { definitions: definitions.to_vec(), program: None })
}

/// Number of columns that the tree needs, within limits.
fn tree_width(nodes: &[ExplainedNode]) -> usize {
    let mut depth = vec![0usize; nodes.len()];
    let mut width = 0;
    for (at, node) in nodes.iter().enumerate().rev() {
        for operand in &node.operands {
            depth[*operand] = (depth[at] + 1) % DEPTH;
        }
        let own = depth[at] * 3 + node.title.chars().count();
        if own <= TREE {
            width = width.max(own);
        }
    }
    width
}

struct Tree<'t> {
    nodes: &'t [ExplainedNode],
    width: usize,
}

/// A node that is still to be drawn.
struct Branch {
    node: usize,
    depth: usize,
    /// Prefix of the node's own line, and prefix of the lines below it.
    first: String,
    rest: String,
}

impl Tree<'_> {
    fn draw(&self, out: &mut String) {
        let Some(root) = self.nodes.len().checked_sub(1) else { return };
        let header = ["type", "semantics", "units", "instances"];
        line(out, ["", ""], self.width, &row(header));
        // Subtrees that are too deep, with their numbers.
        let mut waiting: VecDeque<(usize, usize)> = VecDeque::new();
        let mut numbered = 0;
        let mut next = Some((root, 0));
        while let Some((root, number)) = next {
            if number > 0 {
                let _ = writeln!(out, "({number})");
            }
            let start = Branch { node: root, depth: 0, first: String::new(), rest: String::new() };
            let mut branches = vec![start];
            while let Some(branch) = branches.pop() {
                let node = &self.nodes[branch.node];
                let too_deep = branch.depth == DEPTH && !node.operands.is_empty();
                let number = too_deep.then(|| {
                    numbered += 1;
                    waiting.push_back((branch.node, numbered));
                    numbered
                });
                self.node(out, &branch, number);
                if number.is_none() {
                    self.operands(&branch, &mut branches);
                }
            }
            next = waiting.pop_front();
        }
    }

    /// Queues the operands of a node, with the first on top.
    fn operands(&self, branch: &Branch, branches: &mut Vec<Branch>) {
        let operands = &self.nodes[branch.node].operands;
        for (at, operand) in operands.iter().enumerate().rev() {
            let is_last = at + 1 == operands.len();
            let (first, rest) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            branches.push(Branch {
                node: *operand,
                depth: branch.depth + 1,
                first: format!("{}{first}", branch.rest),
                rest: format!("{}{rest}", branch.rest),
            });
        }
    }

    /// Draws a node with its facts and notes. `number` is that of the tree with
    /// its operands.
    fn node(&self, out: &mut String, branch: &Branch, number: Option<usize>) {
        let node = &self.nodes[branch.node];
        let facts = match &node.outcome {
            NodeOutcome::Typed(desc) => {
                let number = || desc.indom.map(|indom| indom.to_string());
                let instances = node.instances.clone().or_else(number);
                row([
                    &desc.value_type.to_string(),
                    &desc.semantics.to_string(),
                    &units_name(&desc.units),
                    &instances.unwrap_or_else(|| "single".to_owned()),
                ])
            }
            NodeOutcome::Refused(codes) if codes.is_empty() => "not understood".to_owned(),
            NodeOutcome::Refused(codes) => {
                let codes: Vec<String> = codes.iter().map(|code| code.to_string()).collect();
                format!("refused: {}", codes.join(", "))
            }
            NodeOutcome::Unknown => "unknown, since an operand is refused".to_owned(),
            NodeOutcome::NotChosen => "never chosen".to_owned(),
        };
        let title = match number {
            Some(number) => format!("{} ({number}, below)", node.title),
            None => node.title.clone(),
        };
        line(out, [&format!("{}{title}", branch.first), &branch.rest], self.width, &facts);
        let below = if node.operands.is_empty() || number.is_some() { "   " } else { "│  " };
        let indent = format!("{}{below}", branch.rest);
        for note in &node.notes {
            paragraph(out, &format!("{indent}· "), &format!("{indent}  "), note);
        }
    }
}

/// A row of the table.
fn row(cells: [&str; 4]) -> String {
    let [value_type, semantics, units, instances] = cells;
    format!("{value_type:<7} {semantics:<9} {units:<16} {instances}")
}

/// Writes a line of the tree with its row of the table. If the tree is too
/// wide, they are two lines, and `below` is the tree in the second.
fn line(out: &mut String, [tree, below]: [&str; 2], width: usize, facts: &str) {
    let tree = &*printable(tree);
    let tree = if tree.chars().count() > width {
        let _ = writeln!(out, "{tree}");
        below
    } else {
        tree
    };
    let pad = width.saturating_sub(tree.chars().count());
    let _ = writeln!(out, "{tree}{:pad$}  {}", "", facts.trim_end());
}

/// Writes words in lines of limited width. A longer word gets its own line.
fn paragraph(out: &mut String, first: &str, rest: &str, text: &str) {
    let mut current = first.to_owned();
    let mut has_words = false;
    for word in printable(text).split(' ') {
        if has_words && current.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{current}");
            current = rest.to_owned();
            has_words = false;
        }
        if has_words {
            current.push(' ');
        }
        current.push_str(word);
        has_words = true;
    }
    let _ = writeln!(out, "{current}");
}

/// A kernel of the program.
pub fn kernel_to_text(kernel: &ExplainedKernel) -> String {
    let mut out = String::new();
    let form = kernel.ir.to_string();
    let mut lines = form.lines();
    let head = lines.next().unwrap_or_default();
    paragraph(&mut out, &format!("  {:<3} ", format!("k{}", kernel.id)), "          ", head);
    for line in lines {
        let _ = writeln!(out, "    {line}");
    }
    out
}

fn heading(out: &mut String, title: &str) {
    let _ = writeln!(out, "\n{title}");
}

fn write_program(out: &mut String, program: &ExplainedProgram, definitions: &[Explained]) {
    heading(out, "Metrics to fetch");
    if program.inputs.is_empty() {
        out.push_str("  none\n");
    }
    let width = program.inputs.iter().map(|input| input.name.len()).max().unwrap_or(0).min(TREE);
    for input in &program.inputs {
        let pmid = input.pmid.to_string();
        let shape = shape(input.value_type, input.is_set);
        let name = &input.name;
        let _ = writeln!(out, "  {name:<width$}  {pmid:<12} {shape}");
        if input.is_mentioned_only {
            let why = "· no operation needs it, but it decides which records of an archive count";
            let _ = writeln!(out, "       {why}");
        }
    }
    heading(out, "Operations, each once");
    let longest = program.nodes.iter().map(|node| node.text.chars().count()).max().unwrap_or(0);
    let width = longest.min(TREE);
    for node in &program.nodes {
        let shape = shape(node.value_type, node.is_set);
        let name = format!("n{}", node.id.0);
        let facts = format!("{shape:<20} {}", node.place);
        line(out, [&format!("  {name:<4} {}", node.text), ""], width + 7, &facts);
        if node.users.len() > 1 {
            let users = format!("shared by {}", node.users.join(", "));
            paragraph(out, "       · ", "         ", &users);
        }
    }
    if !program.kept.is_empty() {
        heading(out, "Previous samples");
        for (name, words) in &program.kept {
            paragraph(out, &format!("  {name:<4} "), "       ", words);
        }
    }
    heading(out, "Schedule");
    for (at, step) in program.steps.iter().enumerate() {
        let _ = writeln!(
            out,
            "  step {at}, level {}: n{} by kernel k{} from",
            step.level, step.output.0, step.kernel
        );
        for (at, operand) in step.operands.iter().enumerate() {
            let _ = writeln!(out, "       o{at} = {operand}");
        }
        for (at, constant) in step.constants.iter().enumerate() {
            let _ = writeln!(out, "       c{at} = {constant}");
        }
    }
    for one in definitions {
        let (Fate::Output(output) | Fate::Hidden(output)) = one.fate else { continue };
        if let Some(place) = program.outputs.get(output) {
            paragraph(out, "  ", "      ", &format!("{} is {place}", one.short_name()));
        }
    }
}
