//! An explanation for programs: one JSON object.
//!
//! ```text
//! {"definitions": [{"name", "text", "operand_only", "fate": usable | refused | hidden, "output",
//!     "nodes": [{"title", "span", "operands": [positions], "outcome": typed | refused | unknown |
//!                not chosen, "desc" | "codes", "notes", "operation"}, ...]}, ...],
//!  "program": {"metrics", "operations", "kept", "steps", "outputs", "kernels"},
//!  "diagnostics": [as check gives them]}
//! ```
//!
//! Descriptors and strings are as in all JSON of this crate; spans are bytes
//! of the definition's own text. The members `kernels` and `diagnostics` are
//! added by whoever has native code and the texts.

use std::fmt::Write as _;

use super::{Explained, ExplainedNode, ExplainedProgram, Fate, Outcome};
use crate::report::json::{write_desc, write_string};

/// Writes items as a list.
pub fn write_list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

fn strings(out: &mut String, texts: &[String]) {
    write_list(out, texts, |out, text| write_string(out, text));
}

/// Writes a definition as an object.
pub fn write_definition(out: &mut String, explained: &Explained) {
    out.push_str("{\"name\":");
    match explained.is_named {
        true => write_string(out, &explained.name),
        false => out.push_str("null"),
    }
    out.push_str(",\"text\":");
    write_string(out, &explained.text);
    let (fate, output) = match explained.fate {
        Fate::Output(output) => ("usable", Some(output)),
        Fate::Hidden(output) => ("hidden", Some(output)),
        Fate::Refused => ("refused", None),
    };
    let _ = write!(out, ",\"operand_only\":{},\"fate\":\"{fate}\"", explained.is_operand);
    if let Some(output) = output {
        let _ = write!(out, ",\"output\":{output}");
    }
    out.push_str(",\"nodes\":");
    write_list(out, &explained.nodes, node);
    out.push('}');
}

fn node(out: &mut String, node: &ExplainedNode) {
    out.push_str("{\"title\":");
    write_string(out, &node.title);
    let _ = write!(out, ",\"span\":[{},{}],\"operands\":", node.span.start, node.span.end);
    write_list(out, &node.operands, |out, operand| {
        let _ = write!(out, "{operand}");
    });
    match &node.outcome {
        Outcome::Typed(desc) => {
            out.push_str(",\"outcome\":\"typed\",\"desc\":");
            write_desc(out, desc);
        }
        Outcome::Refused(codes) => {
            out.push_str(",\"outcome\":\"refused\",\"codes\":");
            write_list(out, codes, |out, code| write_string(out, &code.to_string()));
        }
        Outcome::Unknown => out.push_str(",\"outcome\":\"unknown\""),
        Outcome::NotChosen => out.push_str(",\"outcome\":\"not chosen\""),
    }
    out.push_str(",\"notes\":");
    strings(out, &node.notes);
    if let Some(id) = node.node {
        let _ = write!(out, ",\"operation\":{}", id.0);
    }
    out.push('}');
}

/// Writes the members of a program, but for its kernels.
pub fn write_program(out: &mut String, program: &ExplainedProgram) {
    out.push_str("\"metrics\":");
    write_list(out, &program.inputs, |out, input| {
        out.push_str("{\"name\":");
        write_string(out, &input.name);
        let _ = write!(
            out,
            ",\"pmid\":\"{}\",\"type\":\"{}\",\"set\":{},\"mentioned_only\":{}}}",
            input.pmid, input.value_type, input.is_set, input.is_mentioned_only
        );
    });
    out.push_str(",\"operations\":");
    write_list(out, &program.nodes, |out, node| {
        let _ = write!(out, "{{\"id\":{},\"text\":", node.id.0);
        write_string(out, &node.text);
        let _ = write!(out, ",\"type\":\"{}\",\"set\":{},\"users\":", node.value_type, node.is_set);
        strings(out, &node.users);
        out.push_str(",\"place\":");
        write_string(out, &node.place);
        out.push('}');
    });
    out.push_str(",\"kept\":{");
    for (at, (name, words)) in program.kept.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(out, "{comma}\"{name}\":");
        write_string(out, words);
    }
    out.push('}');
    out.push_str(",\"steps\":");
    write_list(out, &program.steps, |out, step| {
        let _ = write!(
            out,
            "{{\"level\":{},\"operation\":{},\"kernel\":{},\"operands\":",
            step.level, step.output.0, step.kernel
        );
        strings(out, &step.operands);
        out.push_str(",\"constants\":");
        strings(out, &step.constants);
        out.push('}');
    });
    out.push_str(",\"outputs\":");
    strings(out, &program.outputs);
}
