//! Hover texts: type, semantics, units and instances of the part under the pointer, the rules
//! behind them, help and values.

use std::fmt::Write as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};
use pmderive_runtime::context::Context;
use pmderive_runtime::model::{TextKind, TextSubject};
use pmderive_runtime::program::{Reason, Status};
use pmderive_runtime::source::{FetchSource, MetadataSource, Mode, SourceError};

#[cfg(feature = "fleet")]
use super::analysis::OverFleet;
use super::analysis::{Analysis, whole};
use super::source::{OpenSource, SourceHandle};
use crate::check::{describe, describe_with};
use crate::diag::Diagnostics;
use crate::engine::{Engine, Registered, Registry, Session, Space};
use crate::escape;
use crate::explain::{Explained, NodeOutcome, explain};
#[cfg(feature = "fleet")]
use crate::fleet::stages;
use crate::functions::signature;
use crate::report::plain;
use crate::syntax::ast::NodeKind;
use crate::syntax::is_of_name;
use crate::text::Span;

/// Values that are shown at most.
const MAX_VALUES: usize = 8;
/// Longest help text that is shown, in characters.
const MAX_HELP: usize = 1_000;
/// Longest name of an instance and longest text that is shown, in characters.
const MAX_NAME: usize = 100;
/// Records at the end of an archive that are read for differences.
const FOR_DIFFERENCES: usize = 100;
/// Records of an archive that are read for windows of time. Values in a window may depend on
/// all earlier records, so a longer archive has none.
const FOR_WINDOWS: usize = 1_000;
/// Time between the two samples of a live source that a rate needs.
const APART: Duration = Duration::from_millis(250);

/// The hover text at an offset of a text. Without a source it shows only the facts in the text. A
/// source that fails is closed.
pub fn hover(
    analysis: &Analysis,
    offset: usize,
    handle: Option<&mut SourceHandle>,
) -> Option<Hover> {
    let mut words = String::new();
    let place = match analysis.definition_at(offset) {
        Some(definition) => {
            let definition = analysis.evaluated(definition);
            let place = part_at(definition, offset);
            let text = &analysis.sources.slice(place);
            let _ = writeln!(words, "```pmderive\n{text}\n```");
            if let Some(function) = function_at(analysis, definition, offset) {
                add_function(&mut words, function);
            }
            if let Some(handle) = handle {
                add_known(&mut words, analysis, definition, place, handle);
            }
            place
        }
        // The line has a mistake; its words still have meanings.
        None => {
            let (word, place) = word_at(analysis, offset)?;
            match signature::named(word) {
                Some(function) => add_function(&mut words, function),
                None => add_metric(&mut words, analysis, place, handle?)?,
            }
            place
        }
    };
    let value = words.trim_end().to_owned();
    let contents = MarkupContent { kind: MarkupKind::Markdown, value };
    let contents = HoverContents::Markup(contents);
    Some(Hover { contents, range: Some(analysis.range(place)) })
}

/// The smallest part of a definition at an offset; on the name it is the whole definition.
fn part_at(definition: &Registered, offset: usize) -> Span {
    let is_at = |span: &Span| (span.start as usize..=span.end as usize).contains(&offset);
    if is_at(&definition.name_span) {
        return whole(definition);
    }
    let nodes = definition.expr.nodes().map(|(_, node)| node.span);
    nodes.filter(is_at).min_by_key(|span| span.end - span.start).unwrap_or(whole(definition))
}

/// The function with its name at an offset of a definition.
fn function_at(
    analysis: &Analysis,
    definition: &Registered,
    offset: usize,
) -> Option<signature::Signature> {
    let (word, place) = word_at(analysis, offset)?;
    let is_name = |kind: &NodeKind| matches!(kind, NodeKind::Metric(_));
    let mut nodes = definition.expr.nodes();
    let is_metric = nodes.any(|(_, node)| node.span == place && is_name(&node.kind));
    if is_metric { None } else { signature::named(word) }
}

/// The word at an offset of a text.
fn word_at(analysis: &Analysis, offset: usize) -> Option<(&str, Span)> {
    let text = analysis.text();
    let before = text.get(..offset)?;
    let start = before.trim_end_matches(is_of_name).len();
    let after = &text[offset..];
    let end = offset + (after.len() - after.trim_start_matches(is_of_name).len());
    let place = Span::within(analysis.own, text, start..end);
    (start < end).then(|| (&text[start..end], place))
}

fn add_function(words: &mut String, function: signature::Signature) {
    let _ = writeln!(words, "`{}`: {}\n", function.usage, function.words);
    if function.extension.is_some() {
        words.push_str("libpcp does not have this function.\n\n");
    }
}

/// Adds the source's metadata of a metric without a definition.
fn add_metric(
    words: &mut String,
    analysis: &Analysis,
    place: Span,
    handle: &mut SourceHandle,
) -> Option<()> {
    let mut ignored = Diagnostics::default();
    let metric = analysis.registry.parse_within(place, &analysis.sources, &mut ignored).ok()?;
    if !matches!(metric.expr.node(metric.expr.root()).kind, NodeKind::Metric(_)) {
        return None;
    }
    // Words of comments are no metrics.
    let mut known = String::new();
    add_known(&mut known, analysis, &metric, place, handle);
    let is_known = !known.is_empty() && !known.starts_with(REFUSED);
    is_known.then(|| {
        let _ = writeln!(words, "```pmderive\n{}\n```", metric.name);
        words.push_str(&known);
    })
}

/// The text for a part that is refused.
const REFUSED: &str = "This is refused.";

/// Adds the source's answer about a part of a definition.
fn add_known(
    words: &mut String,
    analysis: &Analysis,
    definition: &Registered,
    place: Span,
    handle: &mut SourceHandle,
) {
    handle.define(analysis);
    let mut facts = String::new();
    handle.ask(|engine, opened| {
        let source = opened.metadata();
        add_explanation(&mut facts, engine, analysis, definition, place, source)?;
        let name = match place == whole(definition) {
            true => &*definition.name,
            false => analysis.sources.slice(place),
        };
        add_help(&mut facts, &analysis.registry, name, source)?;
        match opened {
            // There is no source of a fleet.
            OpenSource::Session(session) if !(analysis.is_over_fleet && definition.is_named) => {
                let root = definition.expr.node(definition.expr.root()).span;
                let part = if place == whole(definition) { root } else { place };
                add_values(&mut facts, analysis, part, session)
            }
            _ => Ok(()),
        }
    });
    words.push_str(&facts);
}

/// Adds the results of checking a part of a definition.
fn add_explanation(
    words: &mut String,
    engine: &Arc<Engine>,
    analysis: &Analysis,
    definition: &Registered,
    place: Span,
    source: &mut dyn MetadataSource,
) -> Result<(), SourceError> {
    let Some(explained) = explained(engine, analysis, definition, source)? else { return Ok(()) };
    let node = match place == whole(definition) {
        true => explained.nodes.last(),
        false => explained.nodes.iter().find(|node| node.span == place),
    };
    let Some(node) = node else { return Ok(()) };
    match &node.outcome {
        NodeOutcome::Typed(desc) => {
            let shown = match &node.instances {
                Some(instances) => describe_with(desc, &format!("instances {instances}")),
                None => describe(desc),
            };
            let _ = writeln!(words, "{shown}\n");
        }
        NodeOutcome::Refused(_) => {
            let _ = writeln!(words, "{REFUSED}\n");
        }
        NodeOutcome::Unknown => words.push_str("An operand of this is refused.\n\n"),
        NodeOutcome::NotChosen => words.push_str("This branch is never chosen.\n\n"),
    }
    for note in &node.notes {
        let _ = writeln!(words, "- {note}");
    }
    if !node.notes.is_empty() {
        words.push('\n');
    }
    Ok(())
}

/// Explains a definition or an expression. `None` if it is over the fleet and refused.
fn explained(
    engine: &Arc<Engine>,
    analysis: &Analysis,
    definition: &Registered,
    source: &mut dyn MetadataSource,
) -> Result<Option<Explained>, SourceError> {
    #[cfg(feature = "fleet")]
    if let Some(over_fleet) = &analysis.over_fleet
        && definition.is_named
    {
        let OverFleet { definitions, hosts, is_open } = over_fleet;
        let Some(definition) = definitions.named(&definition.name) else { return Ok(None) };
        let mut aggregates = stages::across(engine, definitions, [(hosts, *is_open)], source)?;
        return Ok(aggregates.explain(&[definition]).into_iter().next());
    }
    let mut ignored = Diagnostics::default();
    let explanation = explain(engine, &analysis.registry, &[definition], source, &mut ignored)?;
    Ok(explanation.definitions.into_iter().next())
}

/// Escapes foreign text for Markdown, and cuts it to `most` characters. Links, images and
/// control characters have no effect.
fn foreign(text: &str, most: usize) -> String {
    let cut: String = text.chars().take(most).collect();
    let mut shown = String::with_capacity(cut.len());
    for (number, line) in cut.lines().enumerate() {
        if number > 0 {
            shown.push('\n');
        }
        for one in escape::line(line.as_bytes()).chars() {
            if matches!(one, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '!' | '#' | '|' | '~')
            {
                shown.push('\\');
            }
            shown.push(one);
        }
    }
    if cut.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Adds the help texts of a metric: of the source, or of the definition with this name. Both
/// texts of a metric can be the same.
fn add_help(
    words: &mut String,
    registry: &Registry,
    name: &str,
    source: &mut dyn MetadataSource,
) -> Result<(), SourceError> {
    let kinds = [TextKind::OneLine, TextKind::Help];
    let mut shown: Vec<String> = Vec::new();
    let mut add = |text: &str| shown.push(foreign(text.trim(), MAX_HELP));
    if let Some(Ok(pmid)) = source.lookup_names(&[name])?.pop() {
        for kind in kinds {
            source.text(TextSubject::Metric(pmid), kind)?.iter().for_each(|text| add(text));
        }
    } else if let Some(pmid) = registry.get(name).and_then(|one| one.pmid) {
        kinds.iter().filter_map(|kind| registry.text(pmid, *kind)).for_each(add);
    }
    shown.dedup();
    for text in shown.iter().filter(|text| !text.is_empty()) {
        let _ = writeln!(words, "{text}\n");
    }
    Ok(())
}

/// Adds the values of a part of a definition: present ones of a live source, the last ones of
/// an archive.
fn add_values(
    words: &mut String,
    analysis: &Analysis,
    place: Span,
    session: &mut Session<Context>,
) -> Result<(), SourceError> {
    let (sources, registry) = (&analysis.sources, &analysis.registry);
    let mut ignored = Diagnostics::default();
    let Ok(part) = registry.parse_within(place, sources, &mut ignored) else { return Ok(()) };
    session.choose(&[&part], &mut ignored)?;
    let mut space = Space::default();
    if session.metrics().iter().all(|metric| metric.output.is_none()) {
        return Ok(());
    }
    let Some(when) = samples_before(session, &mut space)? else { return Ok(()) };
    let mut sample = session.sample(&mut space)?;
    let Some(output) = sample.metrics.first().and_then(|metric| metric.output) else {
        return Ok(());
    };
    let values = sample.values.get(output);
    if values.status != Status::Values {
        return Ok(());
    }
    let indom = sample.metrics[0].desc.ok().and_then(|desc| desc.indom);
    let ids: Vec<i32> = values.instances.to_vec();
    let texts: Vec<String> = values
        .iter()
        .take(MAX_VALUES)
        .map(|(_, value)| {
            let mut text = String::new();
            plain::write_value(&mut text, value);
            text
        })
        .collect();
    let domain = match indom {
        Some(indom) => sample.instance_names(indom, &ids)?.ok(),
        None => None,
    };
    let _ = write!(words, "Value {when}: ");
    for (at, text) in texts.iter().enumerate() {
        let name = domain.as_ref().and_then(|domain| domain.name(ids[at]));
        let _ = match name {
            Some(name) => {
                let (name, text) = (foreign(name, MAX_NAME), foreign(text, MAX_NAME));
                write!(words, "{name} **{text}**, ")
            }
            None => write!(words, "**{}**, ", foreign(text, MAX_NAME)),
        };
    }
    words.truncate(words.trim_end_matches(", ").len());
    match ids.len().saturating_sub(MAX_VALUES) {
        0 => words.push_str("\n\n"),
        more => {
            let _ = writeln!(words, ", and {more} more\n");
        }
    }
    Ok(())
}

/// Reads the earlier samples that differences and windows need. Returns the time of the shown
/// sample in words. `None` if it would not have the value that `eval` has.
fn samples_before(
    session: &mut Session<Context>,
    space: &mut Space,
) -> Result<Option<&'static str>, SourceError> {
    let (has_windows, has_differences) = session.program().map_or((false, false), |program| {
        (!program.windows.is_empty(), !program.histories.is_empty())
    });
    if let Context::Archive(archive) = session.source() {
        let end = archive.end_time()?;
        archive.set_mode(Mode::Backward, Some(end))?;
        let most = match (has_windows, has_differences) {
            (true, _) => FOR_WINDOWS,
            (false, true) => FOR_DIFFERENCES,
            (false, false) => 1,
        };
        let (mut start, mut count) = (end, 0);
        let is_all = loop {
            match session.sample(space) {
                Ok(_) if count == most => break false,
                Ok(sample) => (start, count) = (sample.values.timestamp(), count + 1),
                Err(error) if error.is_end_of_archive() => break true,
                Err(error) => return Err(error),
            }
        };
        if count == 0 || has_windows && !is_all {
            return Ok(None);
        }
        session.source().set_mode(Mode::Forward, Some(start))?;
        for _ in 1..count {
            session.sample(space)?;
        }
        return Ok(Some("at the end of the archive"));
    }
    let sample = session.sample(space)?;
    let output = sample.metrics.first().and_then(|metric| metric.output);
    let status = output.map(|output| sample.values.get(output).status);
    if status == Some(Status::Empty(Reason::FirstSample)) {
        thread::sleep(APART);
    }
    Ok(Some("now"))
}

/// Names of the instances of a metric or an expression.
pub fn instances_of(analysis: &Analysis, metric: &str, handle: &mut SourceHandle) -> Vec<String> {
    let mut sources = analysis.sources.clone();
    let id = sources.add("", metric);
    let mut ignored = Diagnostics::default();
    let Ok(part) = analysis.registry.parse(id, &sources, &mut ignored) else { return Vec::new() };
    let domain = handle.ask(|engine, source| {
        let source = source.metadata();
        let examination = engine.examine(&analysis.registry, &[&part], source, &mut ignored)?;
        let typed = examination.expressions.first().filter(|one| one.is_whole);
        Ok(match typed.and_then(|one| one.typed.desc().indom) {
            Some(indom) => source.known_instances(indom)?.ok(),
            None => None,
        })
    });
    let domain = domain.flatten();
    let names = domain.iter().flat_map(|domain| domain.instances().map(|(_, name)| name));
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_text_in_markdown() {
        for (text, shown) in [
            ("CPU time, in \u{b5}s", "CPU time, in \u{b5}s"),
            ("![x](http://evil/x.png)", "\\!\\[x\\](http://evil/x.png)"),
            ("a_b *c* <b>", "a\\_b \\*c\\* \\<b\\>"),
            ("```\nb", "\\`\\`\\`\nb"),
            ("\u{1b}[31m\u{202e}", "\\\\x1b\\[31m\\\\u{202e}"),
            ("abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrst…"),
        ] {
            assert_eq!(foreign(text, 20 + 4 * usize::from(text.len() < 26)), shown, "{text:?}");
        }
    }
}
