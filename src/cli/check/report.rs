//! Prints the findings of `check` in the chosen form, and a summary.

use std::collections::BTreeSet;

use super::arguments::CheckArguments;
use crate::cli::findings::FindingsOutput;
use crate::cli::help::render::render;
use crate::cli::messages::Messages;
use crate::cli::stop::Stop;
use crate::cli::terminal;
use crate::diag::{Code, Diagnostics, Severity, page};
use crate::syntax::counted;
use crate::text::{SourceId, SourceMap};

/// Prints diagnostics and the wanted pages. `files` are the texts that were checked. Returns
/// the numbers of errors and warnings.
pub fn tell(
    arguments: &CheckArguments,
    mut diagnostics: Diagnostics,
    sources: &SourceMap,
    files: &[SourceId],
    messages: &mut Messages,
) -> Result<(usize, usize), Stop> {
    let errors = diagnostics.errors();
    let warnings = diagnostics.len() - errors;
    if messages.are_quiet() {
        diagnostics.retain(|one| one.severity == Severity::Error);
    }
    let codes = arguments.pages_of(&diagnostics);
    let mut findings = FindingsOutput::new(arguments.format);
    findings.diagnostics(diagnostics, sources, messages)?;
    let name = |text: &SourceId| sources.get(*text).name.to_string();
    findings.report.files = files.iter().map(name).collect();
    findings.end(messages)?;
    print_pages(&codes, messages);
    Ok((errors, warnings))
}

fn print_pages(codes: &BTreeSet<Code>, messages: &Messages) {
    for code in codes {
        messages.lines(&[&render(page(*code), terminal::width(), false)]);
    }
}

/// Prints the numbers of definitions and mistakes.
pub fn sum_up(count: usize, errors: usize, warnings: usize, is_offline: bool, messages: &Messages) {
    if is_offline {
        messages.note(
            &"names, types, semantics, units and instance domains of operands were not checked: \
              that needs a source (-h, -a, -L or --metadata)",
        );
    }
    let mut summary = format!("{}, {}", counted(count, "definition"), counted(errors, "error"));
    if warnings > 0 {
        summary = format!("{summary}, {}", counted(warnings, "warning"));
    }
    messages.note(&summary);
}
