//! Functions that libpcp does not have, one file for each family. A file has everything about
//! its functions: signature, result, check, lowering and example.
//!
//! A further function is such a row, and its line below. An operation that
//! no kernel has goes into [`pmderive_runtime::kernel`].
//! `grammar/extensions.md` is made from these files; a test compares them.

mod abs;
mod arguments;
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

use pmderive_runtime::kernel::Reg;

use crate::check::call::{Call, Checked};
use crate::check::typed::TypedId;
use crate::plan::lane::LaneBuilder;

pub use abs::ABS;
pub use arguments::{BadArgument, NumberKind, Shape, interval};

/// All of them, in the manual's order.
pub static FUNCTIONS: [&Function; 17] = [
    &abs::ABS,
    &rounding::FLOOR,
    &rounding::CEIL,
    &rounding::ROUND,
    &sqrt::SQRT,
    &log::LOG,
    &pow::POW,
    &clamp::CLAMP,
    &ranks::TOPK,
    &ranks::BOTTOMK,
    &statistics::QUANTILE,
    &statistics::STDEV,
    &windows::AVG_OVER,
    &windows::MAX_OVER,
    &windows::MIN_OVER,
    &windows::EWMA,
    &matchvalue::MATCHVALUE,
];

/// A function that libpcp does not have.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The call with its arguments by name.
    pub usage: &'static str,
    /// How its arguments are written.
    pub shape: Shape,
    /// For the manual: what its result is.
    pub result: ResultRule,
    /// For the manual: which values it has, and when it has none.
    pub values: &'static str,
    /// A call as one may meet it.
    pub example: Example,
    /// True if `by (label, ...)` may follow a call in definitions over a fleet.
    pub takes_by: bool,
    /// What `explain` says of a call, if the notes of its nodes are not enough.
    pub explained: Option<&'static str>,
    /// Checks a call, and makes the typed nodes of it.
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
    /// Which instances it has.
    pub instances: &'static str,
}

/// All is as it is of the operand.
const OF_X: ResultRule =
    ResultRule { value_type: "of x", semantics: "of x", units: "of x", instances: "of x" };

/// A call over the archive `tests/archives/own-fleet`.
pub struct Example {
    /// The call.
    pub call: &'static str,
    /// Metadata of its result, as [`crate::check::describe`] has it.
    pub gives: &'static str,
}

/// What a function of the values of one instance does to them.
pub struct LaneRule {
    /// What `explain` says of it.
    pub note: &'static str,
    /// Adds its instructions. The operands' registers are of the type that the
    /// node is computed in, and so is the result's.
    pub(crate) write: fn(&mut LaneBuilder, &[Reg]) -> Reg,
}

/// The function of a name.
pub fn named(name: &str) -> Option<&'static Function> {
    FUNCTIONS.into_iter().find(|function| function.name == name)
}

/// Names of all functions that libpcp does not have.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.into_iter().map(|function| function.name)
}

/// The rows of the manual's table, of which each ends with a line feed.
pub fn manual() -> String {
    let row = |function: &&Function| {
        let Function { usage, result, values, example: Example { call, gives }, .. } = function;
        let ResultRule { value_type, semantics, units, instances } = result;
        format!(
            "| `{usage}` | {value_type} | {semantics} | {units} | {instances} | {values} | \
             `{call}` | {gives} |\n"
        )
    };
    FUNCTIONS.iter().map(row).collect()
}

// There is one of each name.
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

impl fmt::Debug for LaneRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_name_of_its_own() {
        for function in FUNCTIONS {
            let Function { name, usage, example, .. } = function;
            assert!(usage.starts_with(&format!("{name}(")), "{usage}");
            assert!(example.call.starts_with(&format!("{name}(")), "{}", example.call);
            assert_eq!(names().filter(|other| other == name).count(), 1, "{name}");
        }
    }
}
