//! Writes the kernels of each family of expressions as machine code, for
//! `kernels.c` to run beside C loops: `benches/peer/run` does both.
//!
//! A line for each kernel, with tabs between: the name of its loops, the type
//! of the output, `s` or `c` for a single value or a column, the operands
//! (`u64[]`, `u64[]<` of the previous sample, `f64` for a single value), the
//! constants and the code in hexadecimal digits.

use std::fmt::Write;
use std::sync::Arc;

use pmderive::engine::Backend;
use pmderive::internal::jit;
use pmderive_runtime::kernel::{Access, KernelIr};

use crate::families::{FAMILIES, compiled};

/// The kernel of the last step of an expression's program, and its constants.
fn kernel(expression: &str) -> Result<(KernelIr, Vec<u8>), String> {
    let program = Arc::clone(&compiled(expression, Backend::Interp)?.program);
    let step = program.steps.iter().last().ok_or("it has no kernel")?;
    let ir = step.kernel.ir().clone();
    let constants = &program.constants[step.constants as usize..];
    let constants = constants[..ir.constants.len() * 8].to_vec();
    Ok((ir, constants))
}

fn hexadecimal(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn line(name: &str, expression: &str) -> Result<String, String> {
    let (ir, constants) = kernel(expression)?;
    let listing = jit::listing(&ir).map_err(|error| error.to_string())?;
    let listing = listing.ok_or("it has no native form")?;
    let operands: Vec<String> = ir
        .operands
        .iter()
        .map(|operand| {
            let shape = if operand.access == Access::Column { "[]" } else { "" };
            let age = if operand.previous { "<" } else { "" };
            format!("{}{shape}{age}", operand.scalar)
        })
        .collect();
    let (output, single) = (ir.output(), if ir.is_single() { "s" } else { "c" });
    let (constants, code) = (hexadecimal(&constants), hexadecimal(&listing.code));
    Ok(format!("{name}\t{output}\t{single}\t{}\t{constants}\t{code}", operands.join(" ")))
}

/// Writes the kernels of the families whose names contain one of `wanted`; all
/// if that is empty.
///
/// # Errors
/// An expression has no kernel.
pub fn write(wanted: &[&str]) -> Result<(), String> {
    for (name, expression) in FAMILIES {
        if wanted.is_empty() || wanted.iter().any(|part| name.contains(part)) {
            println!("{}", line(name, expression).map_err(|why| format!("{expression}: {why}"))?);
        }
    }
    Ok(())
}
