//! A metric with its source and instances as one text:
//! `[HOST:|ARCHIVE/|@:]METRIC[[INSTANCE, ...]]`.
//!
//! Only the form matters here. The caller checks whether such hosts, archives
//! and metrics exist.

use super::TextFault;
use super::c_number::{after_space, is_c_space};

/// The source in a metric specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecSource {
    /// The pmcd of a host; `None` for the default host.
    Host(Option<String>),
    /// An archive; `None` for the default archive.
    Archive(Option<String>),
    /// This process (`@`).
    Local,
}

/// A metric with its source and instances (`pmParseMetricSpec(3)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricSpec {
    /// The source of the metric.
    pub source: SpecSource,
    /// Name of the metric.
    pub metric: String,
    /// Names of the instances; empty for all.
    pub instances: Vec<String>,
}

/// A place in the text, and the problem there.
type Fault = (usize, &'static str);

impl MetricSpec {
    /// Reads a specification (`pmParseMetricSpec(3)`). A text without a source
    /// has the source `default`. A backslash makes the next character ordinary,
    /// except for the last `:` or `/`.
    ///
    /// # Errors
    /// The first fault in the text.
    pub fn parse(text: &str, default: SpecSource) -> Result<MetricSpec, TextFault> {
        let error = |(offset, problem)| TextFault { text: text.to_owned(), offset, problem };
        parse(text, default).map_err(error)
    }
}

fn parse(text: &str, default: SpecSource) -> Result<MetricSpec, Fault> {
    let start = after_space(text, 0);
    let before_instances = text.find('[').unwrap_or(text.len());
    let end_of_source = text[start..before_instances.max(start)].rfind([':', '/']);
    let (source, at) = match end_of_source.map(|length| start + length) {
        Some(end) => (source(text, start, end)?, end + 1),
        None => (default, start),
    };
    let at = after_space(text, at);
    let (metric, end) = metric(text, at)?;
    let at = after_space(text, end);
    let (instances, at) = match text[at..].starts_with('[') {
        true => {
            let end = closing_bracket(text, at)?;
            (instances(&text[at + 1..end]), after_space(text, end + 1))
        }
        false => (Vec::new(), at),
    };
    if at < text.len() {
        return Err((at, "unexpected extra characters"));
    }
    Ok(MetricSpec { source, metric, instances })
}

/// The source between `start` and the `:` or `/` at `end`.
fn source(text: &str, start: usize, end: usize) -> Result<SpecSource, Fault> {
    let is_archive = text[end..].starts_with('/');
    let given = text[start..end].trim_end_matches(is_space);
    if given.is_empty() {
        let problem = if is_archive { "archive name expected" } else { "host name expected" };
        return Err((start, problem));
    }
    let name = without_backslashes(given);
    Ok(match (is_archive, given) {
        (true, _) => SpecSource::Archive(Some(name)),
        (false, "@") => SpecSource::Local,
        (false, _) => SpecSource::Host(Some(name)),
    })
}

/// The metric's name that begins at `at`, and its end.
fn metric(text: &str, at: usize) -> Result<(String, usize), Fault> {
    let mut name = String::new();
    let mut rest = text[at..].char_indices();
    let mut end = text.len();
    while let Some((offset, character)) = rest.next() {
        match character {
            '\\' => name.push(rest.next().map_or('\\', |(_, quoted)| quoted)),
            ']' | ',' => return Err((at + offset, "unexpected character in metric name")),
            '[' => {
                end = at + offset;
                break;
            }
            character if is_space(character) => {
                end = at + offset;
                break;
            }
            character => name.push(character),
        }
    }
    if end == at {
        return Err((at, "performance metric name expected"));
    }
    Ok((name, end))
}

/// The bracket that closes the one at `at`. Brackets in quotes or after a
/// backslash do not count.
fn closing_bracket(text: &str, at: usize) -> Result<usize, Fault> {
    let mut is_quoted = false;
    let mut rest = text[at..].char_indices();
    while let Some((offset, character)) = rest.next() {
        match character {
            '\\' => {
                rest.next();
            }
            '"' => is_quoted = !is_quoted,
            ']' if !is_quoted => return Ok(at + offset),
            _ => {}
        }
    }
    let problem = if is_quoted { "closing \" and ] expected" } else { "closing ] expected" };
    Err((text.len(), problem))
}

/// The instances between brackets, separated by white space or commas. A name
/// that begins with a quote may contain both up to the closing quote.
fn instances(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = list;
    loop {
        rest = rest.trim_start_matches(is_space);
        if rest.is_empty() {
            return names;
        }
        let quoted = rest.strip_prefix('"');
        let mut name = String::new();
        let mut characters = quoted.unwrap_or(rest).char_indices();
        let mut end = None;
        while let Some((offset, character)) = characters.next() {
            match character {
                '\\' => name.extend(characters.next().map(|(_, quoted)| quoted)),
                '"' if quoted.is_some() => {
                    end = Some(offset + 1);
                    break;
                }
                character if quoted.is_none() && (character == ',' || is_space(character)) => {
                    end = Some(offset);
                    break;
                }
                character => name.push(character),
            }
        }
        names.push(name);
        let after = quoted.unwrap_or(rest);
        rest = end.map_or("", |end| &after[end..]);
        rest = rest.trim_start_matches(|c| is_space(c) || c == ',');
    }
}

fn without_backslashes(text: &str) -> String {
    let mut characters = text.chars();
    let mut name = String::new();
    while let Some(character) = characters.next() {
        if character == '\\' {
            name.push(characters.next().unwrap_or('\\'));
        } else {
            name.push(character);
        }
    }
    name
}

fn is_space(character: char) -> bool {
    u8::try_from(character).is_ok_and(is_c_space)
}
