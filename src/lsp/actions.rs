//! Diagnostics as the protocol has them, and the edits that fix them.

use std::collections::HashMap;

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, DiagnosticRelatedInformation,
    DiagnosticSeverity, NumberOrString, Range, TextEdit, Uri, WorkspaceEdit,
};

use super::analysis::Analysis;
use crate::diag::{Diagnostic, Diagnostics, Fix, Severity};

/// Diagnostics of a text that are shown at most.
const MAX_SHOWN: usize = 1_000;

/// What is shown of a text's diagnostics.
pub fn shown(analysis: &Analysis, diagnostics: &Diagnostics) -> Vec<lsp_types::Diagnostic> {
    diagnostics.iter().take(MAX_SHOWN).map(|one| one_shown(analysis, one)).collect()
}

fn one_shown(analysis: &Analysis, diagnostic: &Diagnostic) -> lsp_types::Diagnostic {
    let here = |span| span == diagnostic.span;
    let mut message = diagnostic.message.clone();
    for label in diagnostic.labels.iter().filter(|label| here(label.span)) {
        message.push_str(&format!("\n{}", label.text));
    }
    if let Some(help) = &diagnostic.help {
        message.push_str(&format!("\nhelp: {help}"));
    }
    let elsewhere = diagnostic.labels.iter().filter(|label| !here(label.span));
    let related: Vec<DiagnosticRelatedInformation> = elsewhere
        .filter_map(|label| {
            let location = analysis.location(label.span)?;
            Some(DiagnosticRelatedInformation { location, message: label.text.clone() })
        })
        .collect();
    lsp_types::Diagnostic {
        range: analysis.range(diagnostic.span),
        severity: Some(match diagnostic.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
        }),
        code: Some(NumberOrString::String(diagnostic.code.to_string())),
        source: Some("pmderive".to_owned()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        ..lsp_types::Diagnostic::default()
    }
}

/// The edits that fix what is wrong in a range of a text.
pub fn actions(
    analysis: &Analysis,
    diagnostics: &Diagnostics,
    range: Range,
) -> Vec<CodeActionOrCommand> {
    let touches = |one: Range| one.start <= range.end && range.start <= one.end;
    let mut actions = Vec::new();
    for diagnostic in diagnostics.iter() {
        let Some(fix) = &diagnostic.fix else { continue };
        if fix.span.source != analysis.own || !touches(analysis.range(diagnostic.span)) {
            continue;
        }
        actions.push(CodeActionOrCommand::CodeAction(CodeAction {
            title: title(analysis, fix),
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![one_shown(analysis, diagnostic)]),
            edit: Some(edit(analysis.uri.clone(), analysis.range(fix.span), &fix.text)),
            is_preferred: Some(fix.is_certain),
            ..CodeAction::default()
        }));
    }
    actions
}

fn title(analysis: &Analysis, fix: &Fix) -> String {
    let before = analysis.sources.slice(fix.span);
    match (before, &*fix.text) {
        ("", text) => format!("Write `{text}` here"),
        (before, "") => format!("Remove `{before}`"),
        (before, text) => format!("Replace `{before}` by `{text}`"),
    }
}

fn edit(uri: Uri, range: Range, text: &str) -> WorkspaceEdit {
    let edits = vec![TextEdit { range, new_text: text.to_owned() }];
    WorkspaceEdit { changes: Some(HashMap::from([(uri, edits)])), ..WorkspaceEdit::default() }
}
