//! Diagnostics in the form of the protocol, and edits that fix them.

use std::borrow::Cow;
use std::collections::HashMap;

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, DiagnosticRelatedInformation,
    DiagnosticSeverity, NumberOrString, Range, TextEdit, WorkspaceEdit,
};

use super::analysis::Analysis;
use super::formatting::line_edits;
use crate::diag::fixes::{applied, certain};
use crate::diag::{Diagnostic, Diagnostics, Fix, Severity};
use crate::dialect::Language;
use crate::engine::Registry;
use crate::text::SourceMap;

/// Rounds of fixing a text: a fix can reveal further mistakes.
const MAX_PASSES: usize = 10;

/// The diagnostics of a text for the editor, up to a limit, errors before warnings. The last
/// one tells how many are left out.
pub fn shown(
    analysis: &Analysis,
    diagnostics: &Diagnostics,
    max_shown: usize,
) -> Vec<lsp_types::Diagnostic> {
    // At least one is shown, as a text without any looks correct.
    let max_shown = max_shown.max(1);
    let more = diagnostics.len().saturating_sub(max_shown);
    let mut worst = Cow::Borrowed(diagnostics);
    if more > 0 {
        worst.to_mut().keep_worst(max_shown);
    }
    let mut all: Vec<lsp_types::Diagnostic> =
        worst.iter().map(|one| one_shown(analysis, one)).collect();
    if let Some(last) = all.last_mut().filter(|_| more > 0) {
        last.message
            .push_str(&format!("\n{more} more not shown; `--max-diagnostics N` shows more"));
    }
    all
}

fn one_shown(analysis: &Analysis, diagnostic: &Diagnostic) -> lsp_types::Diagnostic {
    let mut diagnostic = diagnostic.clone();
    diagnostic.name_option();
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

/// The edits that fix mistakes in a range of a text. A client may choose their kinds. One
/// action with all certain edits of the text is offered only on request.
pub fn actions(
    analysis: &Analysis,
    diagnostics: &Diagnostics,
    range: Range,
    only: Option<&[CodeActionKind]>,
) -> Vec<CodeActionOrCommand> {
    let mut actions = Vec::new();
    if only.is_some_and(|only| only.iter().any(|one| has(one, &CodeActionKind::SOURCE_FIX_ALL))) {
        actions.extend(fix_all(analysis, diagnostics).map(CodeActionOrCommand::CodeAction));
    }
    if only.is_some_and(|only| !only.iter().any(|one| has(one, &CodeActionKind::QUICKFIX))) {
        return actions;
    }
    let touches = |one: Range| one.start <= range.end && range.start <= one.end;
    for diagnostic in diagnostics.iter() {
        let Some(fix) = &diagnostic.fix else { continue };
        if fix.span.source != analysis.own || !touches(analysis.range(diagnostic.span)) {
            continue;
        }
        actions.push(CodeActionOrCommand::CodeAction(CodeAction {
            title: title(analysis, fix),
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![one_shown(analysis, diagnostic)]),
            edit: Some(of_text(analysis, edits(analysis, &[fix]))),
            is_preferred: Some(fix.is_certain),
            ..CodeAction::default()
        }));
    }
    actions
}

/// True if one kind is another or a sub-kind of it, as `source.fixAll` is of `source`.
fn has(wanted: &CodeActionKind, kind: &CodeActionKind) -> bool {
    let rest = kind.as_str().strip_prefix(wanted.as_str());
    rest.is_some_and(|rest| wanted.as_str().is_empty() || rest.is_empty() || rest.starts_with('.'))
}

/// One action with all certain edits of a text, if there are any.
fn fix_all(analysis: &Analysis, diagnostics: &Diagnostics) -> Option<CodeAction> {
    let (once, _) = applied(diagnostics, analysis.own, &analysis.sources)?;
    let all = fixed_again(&once, analysis.settings.language);
    let edits = match all == once {
        true => edits(analysis, &certain(diagnostics, analysis.own)),
        false => line_edits(analysis, &all),
    };
    Some(CodeAction {
        title: "Fix all that can be meant in one way only".to_owned(),
        kind: Some(CodeActionKind::SOURCE_FIX_ALL),
        edit: Some(of_text(analysis, edits)),
        ..CodeAction::default()
    })
}

/// The text after all certain fixes, repeated because a fix can reveal further mistakes. The
/// mistakes are those of the text alone.
fn fixed_again(text: &str, language: Language) -> String {
    let mut text = text.to_owned();
    for _ in 0..MAX_PASSES {
        let (mut sources, mut found) = (SourceMap::default(), Diagnostics::default());
        let source = sources.add("", &*text);
        Registry::new(language).add_text(source, &sources, &mut found);
        match applied(&found, source, &sources) {
            Some((fixed, _)) => text = fixed,
            None => break,
        }
    }
    text
}

fn title(analysis: &Analysis, fix: &Fix) -> String {
    let before = analysis.sources.slice(fix.span).trim_end_matches('\r');
    match (before, &*fix.text) {
        ("", "") => "Remove the carriage return".to_owned(),
        ("", text) => format!("Write `{text}` here"),
        (before, "") => format!("Remove `{before}`"),
        (before, text) => format!("Replace `{before}` by `{text}`"),
    }
}

fn edits(analysis: &Analysis, fixes: &[&Fix]) -> Vec<TextEdit> {
    let edit = |fix: &&Fix| {
        let (mut span, mut new_text) = (fix.span, fix.text.to_string());
        let (before, after) = analysis.text().split_at(span.end as usize);
        // No position is between CR and LF.
        if before.ends_with('\r') && after.starts_with('\n') {
            span.end += 1;
            new_text.push('\n');
        }
        TextEdit { range: analysis.range(span), new_text }
    };
    fixes.iter().map(edit).collect()
}

fn of_text(analysis: &Analysis, edits: Vec<TextEdit>) -> WorkspaceEdit {
    let uri = analysis.uri.clone();
    WorkspaceEdit { changes: Some(HashMap::from([(uri, edits)])), ..WorkspaceEdit::default() }
}
