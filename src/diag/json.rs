//! Diagnostics for programs: one JSON object each.
//!
//! Offsets are bytes of the file; lines and columns count from 1, columns in characters.
//! Every key is always present; an absent value is `null`.

use crate::text::json::{Object, write_object};
use crate::text::stray;
use crate::text::{SourceMap, Span};

use super::{Derivation, Diagnostic};

/// The diagnostic as a JSON object on one line, without the line end.
pub fn to_json(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let file = |span: Span| &*sources.get(span.source).name;
    let place = |object: &mut Object<'_>, place| span(object, place, sources);
    let (line, column) = sources.start_of(diagnostic.span);
    let mut out = String::new();
    write_object(&mut out, |object| {
        object.text("code", &diagnostic.code.to_string());
        object.text("severity", diagnostic.severity.word());
        object.text("message", &diagnostic.message);
        object.text("file", file(diagnostic.span));
        place(object, diagnostic.span);
        object.value("line", line);
        object.value("column", column);
        object.objects("labels", &diagnostic.labels, |object, label| {
            // A label of the same file does not repeat its name.
            if label.span.source != diagnostic.span.source {
                object.text("file", file(label.span));
            }
            place(object, label.span);
            object.text("text", &label.text);
        });
        object.text_or_null("help", diagnostic.help.as_deref());
        match &diagnostic.fix {
            None => object.value("fix", "null"),
            Some(fix) => object.object("fix", |object| {
                place(object, fix.span);
                object.text("text", &fix.text);
                // True if nothing else can be meant.
                object.value("certain", fix.is_certain);
            }),
        }
        object.text_or_null("metric", diagnostic.metric.as_deref());
        object.objects("derivations", &diagnostic.derivations, |object, one| {
            derivation(object, one, sources);
        });
        // libpcp's own words.
        object.text_or_null("pcp", diagnostic.pcp.as_deref());
    });
    stray::replaced(&out).into_owned()
}

fn derivation(object: &mut Object<'_>, derivation: &Derivation, sources: &SourceMap) {
    object.text("of", &derivation.subject);
    span(object, derivation.span, sources);
    object.text("property", derivation.property.name());
    object.objects("steps", &derivation.steps, |object, step| {
        span(object, step.span, sources);
        object.text("text", sources.slice(step.span));
        object.text("value", &step.value);
        object.text("reason", &step.reason);
    });
}

fn span(object: &mut Object<'_>, span: Span, sources: &SourceMap) {
    let [start, end] =
        [span.start, span.end].map(|offset| sources.byte_offset(span.source, offset));
    object.value("span", format_args!("[{start},{end}]"));
}
