//! Functions that libpcp does not have, one file for each family. The lexer asks for their names,
//! and the checker for their rules. A file has everything about its functions: signature, result,
//! check, lowering and example.
//!
//! A new function is a row, and a name in its family. A new family is a file, and a row of the
//! list below. An operation without a kernel goes into [`pmderive_runtime::kernel`]. A test
//! compares `grammar/extensions.md` with these files.

mod abs;
mod clamp;
mod log;
mod matchvalue;
mod pow;
mod ranks;
mod rounding;
#[cfg(any(feature = "cli", feature = "lsp"))]
pub mod signature;
mod sqrt;
mod statistics;
mod windows;

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::check::call::{Call, Checked};
use crate::check::typed::TypedId;
use crate::syntax::Shape;

pub use abs::ABS;

/// The families, in the manual's order.
static FAMILIES: [&[&Function]; 10] = [
    abs::FAMILY,
    rounding::FAMILY,
    sqrt::FAMILY,
    log::FAMILY,
    pow::FAMILY,
    clamp::FAMILY,
    ranks::FAMILY,
    statistics::FAMILY,
    windows::FAMILY,
    matchvalue::FAMILY,
];

/// A function that libpcp does not have.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The call with its arguments by name.
    pub usage: &'static str,
    /// The form of its arguments.
    pub shape: Shape,
    /// The result's metadata, for the manual.
    pub result: ResultRule,
    /// The result's values and when they are missing, for the manual.
    pub values: &'static str,
    /// A typical call.
    pub example: Example,
    /// True if `by (label, ...)` may follow a call in definitions over a fleet.
    pub takes_by: bool,
    /// The words of `explain` about a call, if the notes of its nodes are not
    /// enough.
    pub explained: Option<&'static str>,
    /// Checks a call, and makes its typed nodes.
    pub(crate) check: fn(&mut Call<'_, '_>) -> Checked<TypedId>,
}

/// Metadata of a result, in words: cells of the manual's table.
pub struct ResultRule {
    /// Type.
    pub value_type: &'static str,
    /// Semantics.
    pub semantics: &'static str,
    /// Units.
    pub units: &'static str,
    /// Instances.
    pub instances: &'static str,
}

/// The operand's metadata, unchanged.
const OF_X: ResultRule =
    ResultRule { value_type: "of x", semantics: "of x", units: "of x", instances: "of x" };

/// A call over the archive `tests/archives/own-fleet`.
pub struct Example {
    /// The call.
    pub call: &'static str,
    /// Metadata of its result, in the words of [`crate::check::describe`].
    pub gives: &'static str,
}

/// All functions, in the manual's order.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    FAMILIES.into_iter().flatten().copied()
}

/// The function with a name.
pub fn named(name: &str) -> Option<&'static Function> {
    functions().find(|function| function.name == name)
}

/// Names of all functions that libpcp does not have.
pub fn names() -> impl Iterator<Item = &'static str> {
    functions().map(|function| function.name)
}

/// The rows of the manual's table. Each ends with a line feed.
pub fn manual() -> String {
    let row = |function: &Function| {
        let Function { usage, result, values, example: Example { call, gives }, .. } = function;
        let ResultRule { value_type, semantics, units, instances } = result;
        format!(
            "| `{usage}` | {value_type} | {semantics} | {units} | {instances} | {values} | \
             `{call}` | {gives} |\n"
        )
    };
    functions().map(row).collect()
}

// Names are unique.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_name_of_its_own() {
        for function in functions() {
            let Function { name, usage, example, .. } = function;
            assert!(usage.starts_with(&format!("{name}(")), "{usage}");
            assert!(example.call.starts_with(&format!("{name}(")), "{}", example.call);
            assert_eq!(names().filter(|other| other == name).count(), 1, "{name}");
        }
    }
}
