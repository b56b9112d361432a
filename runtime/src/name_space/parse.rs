//! Name spaces as text, see PMNS(5): groups `PATH { NAME [PMID] ... }`, one of
//! them called `root`.
//!
//! It returns the groups as they are written. The tree connects them.

use std::rc::Rc;

use pmderive_core::model::{Pmid, is_c_space};

use super::error::NameSpaceError;
use super::preprocess::Line;

/// A node of the name space and its direct children.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Full name; `root` for the root.
    pub path: String,
    /// Names of children. Metrics and subtrees of an agent have an identifier.
    pub children: Vec<(String, Option<Pmid>)>,
}

/// A word with its place in the input.
struct Word<'l> {
    text: &'l str,
    /// Offset in the line.
    at: usize,
    line: &'l Line,
    /// File and line, as control lines give them.
    place: (Rc<str>, u32),
}

impl Word<'_> {
    fn error(&self, problem: &str) -> NameSpaceError {
        let text = self.line.text.trim_start_matches(is_space);
        let indent = self.line.text.len() - text.len();
        NameSpaceError::Line {
            file: self.place.0.to_string(),
            line: self.place.1,
            text: text.trim_end_matches(is_space).to_owned(),
            offset: self.at - indent,
            problem: problem.to_owned(),
            next: None,
        }
    }

    /// The error for a word in the place of an identifier.
    fn no_pmid(&self, problem: &str) -> NameSpaceError {
        match self.error(problem) {
            NameSpaceError::Line { file, line, text, offset, problem, .. }
                if problem != NO_PMID =>
            {
                let next = Some(NO_PMID);
                NameSpaceError::Line { file, line, text, offset, problem, next }
            }
            error => error,
        }
    }
}

const NO_PMID: &str = "Expected NAME, PMID or }";

/// Removes the blanks around colons, so that an identifier is one word.
pub(super) fn join_colons(line: &mut Line) {
    if line.text.trim_start().starts_with('#') || !line.text.contains(':') {
        return;
    }
    let parts: Vec<&str> = line.text.split(':').collect();
    let last = parts.len() - 1;
    let joined = parts.iter().enumerate().map(|(at, part)| {
        let part = if at > 0 { part.trim_start_matches(is_space) } else { part };
        if at < last { part.trim_end_matches(is_space) } else { part }
    });
    line.text = joined.collect::<Vec<_>>().join(":");
}

/// The kinds of word that may come next.
enum State {
    /// `PATH`
    Path,
    /// `{`
    Open,
    /// `NAME` or `}`
    Name,
    /// As `Name`, or the identifier of the name before it.
    Pmid,
}

/// The groups in some lines. The end of the text also ends a group.
///
/// # Errors
/// A word stands where it must not.
pub(super) fn groups(lines: &[Line]) -> Result<Vec<Group>, NameSpaceError> {
    let mut groups: Vec<Group> = Vec::new();
    let mut path = "";
    let mut children: Vec<(String, Option<Pmid>)> = Vec::new();
    let mut state = State::Path;
    for word in words(lines)? {
        match (&state, word.text) {
            (State::Path, text) if is_path(text) => {
                path = text;
                state = State::Open;
            }
            (State::Path, _) => return Err(word.error("Expected NAME or PATH")),
            (State::Open, "{") => state = State::Name,
            (State::Open, _) => return Err(word.error("{ expected")),
            (State::Name | State::Pmid, "}") => {
                groups.push(group(path, std::mem::take(&mut children), &word)?);
                state = State::Path;
            }
            (State::Name | State::Pmid, text) if is_name(text) => {
                children.push((text.to_owned(), None));
                state = State::Pmid;
            }
            (State::Pmid, text) => {
                let pmid = pmid(text).map_err(|problem| word.no_pmid(problem))?;
                if let Some((_, missing)) = children.last_mut() {
                    *missing = Some(pmid);
                }
                state = State::Name;
            }
            (State::Name, _) => return Err(word.error("Expected NAME or }")),
        }
    }
    if matches!(state, State::Name | State::Pmid) {
        groups.push(Group { path: path.to_owned(), children });
    }
    Ok(groups)
}

/// The group that ends at `end`.
fn group(
    path: &str,
    children: Vec<(String, Option<Pmid>)>,
    end: &Word<'_>,
) -> Result<Group, NameSpaceError> {
    let mut names = std::collections::HashSet::new();
    for (name, _) in &children {
        if !names.insert(name.as_str()) {
            let text = format!("Duplicate name \"{name}\" in subtree for \"{path}\"");
            let problem = format!("{text}\n");
            let (file, line) = (end.place.0.to_string(), end.place.1);
            return Err(NameSpaceError::Line { file, line, text, offset: 0, problem, next: None });
        }
    }
    Ok(Group { path: path.to_owned(), children })
}

/// The words of lines. A control line `# 12 "file"` gives the file and number
/// of the next line.
fn words(lines: &[Line]) -> Result<Vec<Word<'_>>, NameSpaceError> {
    let mut words: Vec<Word<'_>> = Vec::new();
    // The file from the last control line, and the difference to add to line
    // numbers.
    let mut moved: Option<(Rc<str>, i64)> = None;
    for line in lines {
        let text = line.text.trim_start_matches(is_space);
        if let Some(marker) = text.strip_prefix('#') {
            let wrong = || no_marker(text.trim_end_matches(is_space), words.last());
            let (file, number) = marked(marker).ok_or_else(wrong)?;
            moved = Some((file.into(), i64::from(number) - i64::from(line.number) - 1));
            continue;
        }
        let place = match &moved {
            None => (line.file.clone(), line.number),
            Some((file, distance)) => {
                let number = u32::try_from(i64::from(line.number) + distance);
                (file.clone(), number.unwrap_or(line.number))
            }
        };
        let mut at = 0;
        for text in line.text.split(is_space) {
            if !text.is_empty() {
                words.push(Word { text, at, line, place: place.clone() });
            }
            at += text.len() + 1;
        }
    }
    Ok(words)
}

/// The error for an invalid control line. libpcp reports it at the place of the
/// word before it.
fn no_marker(text: &str, before: Option<&Word<'_>>) -> NameSpaceError {
    let problem = "Illegal line number control number".to_owned();
    let Some(Word { at, line, place: (file, number), .. }) = before else {
        return NameSpaceError::whole(problem);
    };
    let indent = line.text.len() - line.text.trim_start_matches(is_space).len();
    NameSpaceError::Line {
        file: file.to_string(),
        line: *number,
        text: text.to_owned(),
        offset: at - indent,
        problem,
        next: None,
    }
}

fn marked(marker: &str) -> Option<(&str, u32)> {
    let (number, file) = marker.trim().split_once(' ')?;
    let file = file.trim().strip_prefix('"')?.strip_suffix('"')?;
    Some((file, number.parse().ok()?))
}

fn is_space(character: char) -> bool {
    u8::try_from(character).is_ok_and(is_c_space)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// True for names with dots between them. Empty names between dots pass here
/// and fail later.
fn is_path(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}

/// Reads `DOMAIN:CLUSTER:ITEM`, where further parts are ignored, or
/// `DOMAIN:*:*` or `DOMAIN` for a subtree that an agent fills.
fn pmid(text: &str) -> Result<Pmid, &'static str> {
    let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b':' | b'*');
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    if !is_number || !text.bytes().all(is_part) {
        return Err(NO_PMID);
    }
    let fields: Vec<&str> = text.split(':').collect();
    let (domain, cluster, item) = match fields[..] {
        [domain] => (domain, "*", "*"),
        [domain, cluster, item, ..] => (domain, cluster, item),
        _ => return Err("Illegal PMID"),
    };
    let below = |field: &str, limit: u32| field.parse().ok().filter(|value: &u32| *value < limit);
    if (cluster, item) == ("*", "*") {
        let domain = below(domain, 511).ok_or("Illegal domain field in dynamic PMID")?;
        return Ok(Pmid::new(511, domain, 0));
    }
    if text.contains('*') || cluster.is_empty() || item.is_empty() {
        return Err("Illegal PMID");
    }
    let domain = below(domain, 511).ok_or("Illegal domain field in PMID")?;
    let cluster = below(cluster, 4096).ok_or("Illegal cluster field in PMID")?;
    let item = below(item, 1024).ok_or("Illegal item field in PMID")?;
    Ok(Pmid::new(domain, cluster, item))
}
