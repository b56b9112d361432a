//! Diagnostics for programs: one JSON object each.
//!
//! Offsets are bytes of the file; lines and columns count from 1, columns in characters.
//! Keys are always there, with `null` for what is absent.

use serde::Serialize;

use crate::report::json::shown;
use crate::text::stray;
use crate::text::{SourceMap, Span};

use super::{Derivation, Diagnostic, Step};

/// The diagnostic as a JSON object on one line, without the line end.
pub fn to_json(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let file = |span: Span| &*sources.get(span.source).name;
    let ends = |span| ends(span, sources);
    let (line, column) = sources.line_column(diagnostic.span.source, diagnostic.span.start);
    let labels = diagnostic
        .labels
        .iter()
        .map(|label| LabelJson {
            // A label of the same file does not repeat its name.
            file: (label.span.source != diagnostic.span.source).then(|| file(label.span)),
            span: ends(label.span),
            text: &label.text,
        })
        .collect();
    let object = DiagnosticJson {
        code: diagnostic.code.to_string(),
        severity: diagnostic.severity.word(),
        message: &diagnostic.message,
        file: file(diagnostic.span),
        span: ends(diagnostic.span),
        line,
        column,
        labels,
        help: diagnostic.help.as_deref(),
        fix: diagnostic.fix.as_ref().map(|fix| FixJson {
            span: ends(fix.span),
            text: &fix.text,
            certain: fix.is_certain,
        }),
        metric: diagnostic.metric.as_deref(),
        derivations: diagnostic.derivations.iter().map(|one| derivation(one, sources)).collect(),
        pcp: diagnostic.pcp.as_deref(),
    };
    // Texts and numbers alone always serialise.
    shown(stray::replaced(&serde_json::to_string(&object).unwrap_or_default()).into_owned())
}

fn derivation<'d>(derivation: &'d Derivation, sources: &'d SourceMap) -> DerivationJson<'d> {
    let ends = |span| ends(span, sources);
    let step = |step: &'d Step| StepJson {
        span: ends(step.span),
        text: sources.slice(step.span),
        value: &step.value,
        reason: &step.reason,
    };
    DerivationJson {
        of: &derivation.subject,
        span: ends(derivation.span),
        property: derivation.property.name(),
        steps: derivation.steps.iter().map(step).collect(),
    }
}

fn ends(span: Span, sources: &SourceMap) -> [u32; 2] {
    [span.start, span.end].map(|offset| sources.byte_offset(span.source, offset))
}

#[derive(Serialize)]
struct DiagnosticJson<'d> {
    code: String,
    severity: &'static str,
    message: &'d str,
    file: &'d str,
    span: [u32; 2],
    line: usize,
    column: usize,
    labels: Vec<LabelJson<'d>>,
    help: Option<&'d str>,
    fix: Option<FixJson<'d>>,
    metric: Option<&'d str>,
    derivations: Vec<DerivationJson<'d>>,
    /// libpcp's own words.
    pcp: Option<&'d str>,
}

#[derive(Serialize)]
struct LabelJson<'d> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'d str>,
    span: [u32; 2],
    text: &'d str,
}

#[derive(Serialize)]
struct FixJson<'d> {
    span: [u32; 2],
    text: &'d str,
    /// Whether nothing else can be meant.
    certain: bool,
}

#[derive(Serialize)]
struct DerivationJson<'d> {
    of: &'d str,
    span: [u32; 2],
    property: &'static str,
    steps: Vec<StepJson<'d>>,
}

#[derive(Serialize)]
struct StepJson<'d> {
    span: [u32; 2],
    text: &'d str,
    value: &'d str,
    reason: &'d str,
}
