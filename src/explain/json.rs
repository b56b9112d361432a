//! An explanation as one JSON object, for programs.
//!
//! ```text
//! {"definitions": [{"name", "text", "operand_only", "fate": usable | refused | hidden, "output",
//!     "nodes": [{"title", "span", "operands": [positions], "outcome": typed | refused | unknown |
//!                not chosen, "desc" | "codes", "notes", "operation"}, ...]}, ...],
//!                (over a fleet with "instances" in words beside the "desc")
//!  "fleet": [definitions over the fleet, in the same form],
//!  "program": {"metrics", "operations", "kept", "steps", "outputs", "kernels"},
//!  "diagnostics": [as check gives them]}
//! ```
//!
//! Descriptors and strings have the same form as in all JSON of this crate.
//! Spans are byte ranges of the definition's own text. The command adds the
//! members `program` and `diagnostics`, because it has native code and the
//! texts.

use std::fmt::Write as _;

use super::explained::{Explained, ExplainedNode, Fate, NodeOutcome};
use crate::report::json::write_desc;
use crate::text::json::{write_object, write_string};

/// Writes a definition as an object.
pub fn write_definition(out: &mut String, explained: &Explained) {
    write_object(out, |object| {
        object.text_or_null("name", explained.is_named.then_some(&*explained.name));
        object.text("text", &explained.text);
        object.value("operand_only", explained.is_operand);
        let (fate, output) = match explained.fate {
            Fate::Output(output) => ("usable", Some(output)),
            Fate::Hidden(output) => ("hidden", Some(output)),
            Fate::Refused => ("refused", None),
        };
        object.text("fate", fate);
        if let Some(output) = output {
            object.value("output", output);
        }
        object.list("nodes", &explained.nodes, write_node);
    });
}

fn write_node(out: &mut String, node: &ExplainedNode) {
    write_object(out, |object| {
        object.text("title", &node.title);
        object.value("span", format_args!("[{},{}]", node.span.start, node.span.end));
        object.list("operands", &node.operands, |out, operand| _ = write!(out, "{operand}"));
        match &node.outcome {
            NodeOutcome::Typed(desc) => {
                object.text("outcome", "typed");
                object.member("desc", |out| write_desc(out, desc));
                if let Some(instances) = &node.instances {
                    object.text("instances", instances);
                }
            }
            NodeOutcome::Refused(codes) => {
                object.text("outcome", "refused");
                object.list("codes", codes, |out, code| write_string(out, &code.to_string()));
            }
            NodeOutcome::Unknown => object.text("outcome", "unknown"),
            NodeOutcome::NotChosen => object.text("outcome", "not chosen"),
        }
        object.texts("notes", &node.notes);
        if let Some(id) = node.node {
            object.value("operation", id.0);
        }
    });
}
