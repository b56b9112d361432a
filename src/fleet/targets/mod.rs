//! Reads files of targets: JSON in the form of Prometheus' `file_sd_configs`. Each mistake is
//! reported with its place. This module neither looks names up nor connects.

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod target;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, hash_map};
use std::net::Ipv6Addr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use pmderive_runtime::context::HostSpec;
use pmderive_runtime::context::spec::Target as HostTarget;
use serde::Deserialize;

use super::labels::Labels;
use super::redaction::{password_in, secrets_in, without};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::escape;
use crate::syntax::ast::Spanned;
use crate::text::{SourceId, SourceMap, SourceText, Span};
use target::{GroupId, Target};

/// Largest file of targets that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// Longest specification of a host, and longest value of a label, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024;

/// Most labels of one entry.
const MAX_LABELS: usize = 64;

/// The rule for names of labels, for messages.
pub const LABEL_NAME_RULE: &str = "at most 1024 letters, digits and `_`, and no digit in front";

/// Mistakes that are reported for one file, at most. Duplicate hosts and unknown attributes
/// have the same limit each.
const MAX_MISTAKES: usize = 20;

/// One entry of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<'t> {
    #[serde(borrow)]
    targets: Vec<Text<'t>>,
    #[serde(borrow, default)]
    labels: BTreeMap<Text<'t>, Text<'t>>,
}

/// A text of the file. Without escapes it is borrowed from the file, so its place is known.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(transparent)]
struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

/// Targets of all files so far, each host once.
#[derive(Debug, Default)]
pub struct Targets {
    all: Vec<Arc<Target>>,
    /// First place that names each file, by the file's identity.
    files: HashMap<PathBuf, Span>,
    /// Place of each host, by the host's identity.
    places: HashMap<Box<str>, Span>,
    /// Place of the first host with each set of labels that has an `instance`.
    instances: HashMap<Labels, Span>,
    /// True once hosts with the same labels were reported.
    are_alike_told: bool,
    /// True once too many targets were reported.
    is_limit_told: bool,
}

impl Targets {
    /// All targets, in the order of files and entries.
    pub fn into_all(self) -> Vec<Arc<Target>> {
        self.all
    }

    /// Registers a file of targets. Returns a warning if the same file was named before, even
    /// under another path. The caller then skips it.
    pub fn named_before(&mut self, file: &Spanned<PathBuf>) -> Option<Diagnostic> {
        let path = file.value.canonicalize().unwrap_or_else(|_| file.value.clone());
        match self.files.entry(path) {
            hash_map::Entry::Vacant(unnamed) => {
                unnamed.insert(file.span);
                None
            }
            hash_map::Entry::Occupied(first) => {
                let message = format!("{} is named twice", escape::path(&file.value));
                Some(left_out(message, file.span, *first.get()))
            }
        }
    }

    /// Adds the targets of a text of the source map to a group whose hosts have `labels`. It
    /// adds none beyond `limit`. Passwords in the text become unreadable, as diagnostics show
    /// the lines around a mistake.
    pub fn read(
        &mut self,
        source: SourceId,
        group: GroupId,
        labels: &Labels,
        limit: usize,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) {
        let SourceText { name, text, .. } = sources.get(source).clone();
        let mut file = File {
            source,
            text: &text,
            diagnostics,
            mistakes: 0,
            duplicates: 0,
            doubts: HashSet::new(),
            secrets: Vec::new(),
        };
        self.read_file(&mut file, group, labels, limit);
        file.tell_duplicates();
        if !file.secrets.is_empty() {
            let shown = without(&text, file.secrets);
            sources.insert(source, SourceText::new(name, shown));
        }
    }

    fn read_file(&mut self, file: &mut File<'_>, group: GroupId, labels: &Labels, limit: usize) {
        // A byte order mark may precede the text, as in other files.
        let json = file.text.strip_prefix('\u{feff}').unwrap_or(file.text);
        let entries: Vec<Entry<'_>> = match serde_json::from_str(json) {
            Ok(entries) => entries,
            Err(error) => return file.no_targets(&error),
        };
        for entry in entries {
            let mut all =
                labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            if let Some(own) = file.labels(&entry.labels) {
                all = [all, own].concat();
            }
            let labels: Labels = all.into_iter().collect();
            for target in &entry.targets {
                if file.mistakes >= MAX_MISTAKES {
                    let place = file.span(target);
                    let help = format!("the first {MAX_MISTAKES} of this file are shown");
                    return file.error(place, "there may be more mistakes from here on", help);
                }
                let Some((name, spec)) = file.target(target) else { continue };
                let place = file.span(target);
                let unlisted = match self.places.entry(spec.identity()) {
                    hash_map::Entry::Vacant(unlisted) => unlisted,
                    hash_map::Entry::Occupied(first) => {
                        file.duplicate(&name, place, *first.get());
                        continue;
                    }
                };
                if self.all.len() >= limit {
                    if std::mem::replace(&mut self.is_limit_told, true) {
                        return;
                    }
                    let message = format!("there are more than {limit} targets");
                    let help = "`targets` of `[limits]` in a configuration of `serve` allows more; \
                                or divide the fleet between processes";
                    file.report(Diagnostic::error(Code::BadServeFile, place, message).help(help));
                    return;
                }
                unlisted.insert(place);
                if labels.get("instance").is_some_and(|instance| !instance.is_empty()) {
                    self.check_labels(&labels, &name, place, file);
                }
                self.all.push(Arc::new(Target::new(name, spec, labels.clone(), group)));
            }
        }
    }

    /// Warns once of a host whose series cannot be told from those of another.
    fn check_labels(&mut self, labels: &Labels, name: &str, place: Span, file: &mut File<'_>) {
        let Some(first) = self.instances.get(labels) else {
            self.instances.insert(labels.clone(), place);
            return;
        };
        if std::mem::replace(&mut self.are_alike_told, true) {
            return;
        }
        let message = format!("`{name}` has all the labels of another host, `instance` too");
        let warning = Diagnostic::warning(Code::BadServeFile, place, message);
        let help = "give each host its own `instance`, or none: then it is the host's name; \
                    otherwise only labels of their pmcds can tell their series apart";
        file.diagnostics.push(warning.label(*first, "the first of them").help(help));
    }
}

/// A file being read.
struct File<'f> {
    source: SourceId,
    text: &'f str,
    diagnostics: &'f mut Diagnostics,
    /// Number of reported mistakes.
    mistakes: usize,
    /// Number of targets left out because an earlier entry lists them.
    duplicates: usize,
    /// Unknown attributes that were reported.
    doubts: HashSet<String>,
    /// Known places of passwords.
    secrets: Vec<Range<usize>>,
}

/// The message for a target with a user or a password.
const NO_SECRETS: (&str, &str) = (
    "a user or a password in a target",
    "files of targets hold no secrets; a group of a configuration has `user` and `password-file`",
);

/// The form of a target, for messages.
const AS_TARGET: &str = "a target is a host specification such as web1, web1:44321 or pcps://web1";

/// The attributes of a target, for messages.
const ATTRIBUTES: &str = "a target has `container=NAME`, and `secure` or `secure=relaxed`; its group \
                          has `user` and `password-file`";

/// The form of an IPv6 address in a target, for messages.
fn in_brackets(address: Ipv6Addr) -> String {
    format!("an address of IPv6 stands in brackets, as in [{address}]")
}

/// A character of a target that no host's name has: its place, and the message.
fn misplaced(text: &str, spec: &HostSpec) -> Option<(usize, &'static str)> {
    // The path of a socket may have both.
    if !matches!(spec.target, HostTarget::Host(_)) {
        return None;
    }
    if let Some(at) = text.find(char::is_whitespace) {
        return Some((at, "unexpected blank"));
    }
    let host = text.split('?').next().unwrap_or_default();
    let host = host.strip_suffix('/').unwrap_or(host).as_bytes();
    // The characters after the scheme follow its colon, or each other.
    let slash = host.windows(2).position(|two| two[1] == b'/' && !matches!(two[0], b':' | b'/'));
    slash.map(|before| (before + 1, "unexpected slash"))
}

/// The warning about a duplicate target, which is left out.
fn left_out(message: String, place: Span, first: Span) -> Diagnostic {
    Diagnostic::warning(Code::BadServeFile, place, message)
        .label(place, "is left out here")
        .label(first, "here it is first")
}

impl File<'_> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.mistakes += 1;
        self.diagnostics.push(diagnostic);
    }

    fn error(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.report(Diagnostic::error(Code::BadServeFile, span, message).help(help));
    }

    /// Warns of a duplicate host. Other hosts are not affected.
    fn duplicate(&mut self, name: &str, place: Span, first: Span) {
        self.duplicates += 1;
        if self.duplicates > MAX_MISTAKES {
            return;
        }
        let help =
            "a host is in one group, and in one entry; take this one away, or give it another port";
        let warning = left_out(format!("`{name}` is listed twice"), place, first);
        self.diagnostics.push(warning.help(help));
    }

    /// Reports the number of further duplicates.
    fn tell_duplicates(&mut self) {
        if let Some(more) = self.duplicates.checked_sub(MAX_MISTAKES).filter(|more| *more > 0) {
            let message = format!("{more} more targets of this file are listed twice");
            let warning = Diagnostic::warning(Code::BadServeFile, self.within(0..0), message);
            self.diagnostics.push(warning.help("each host counts where it is listed first"));
        }
    }

    /// Reports that the file is no list of targets.
    fn no_targets(&mut self, error: &serde_json::Error) {
        let lines = self.text.split_inclusive('\n');
        let before: usize = lines.take(error.line().saturating_sub(1)).map(str::len).sum();
        let mark = if error.line() == 1 && self.text.starts_with('\u{feff}') { 3 } else { 0 };
        let offset = (mark + before + error.column().saturating_sub(1)).min(self.text.len());
        let offset = self.text.floor_char_boundary(offset);
        let span = self.within(offset..offset + 1);
        let words = error.to_string();
        let words = words.rsplit_once(" at line ").map_or(&*words, |(words, _)| words);
        let words = without(words, secrets_in(words));
        self.secrets.extend(secrets_in(self.text));
        let help = r#"such as [{ "targets": ["web1", "web2:44322"], "labels": { "rack": "a" } }]"#;
        self.error(span, format!("this is no list of targets: {words}"), help);
    }

    /// The place of a range of the file's bytes.
    fn within(&self, range: Range<usize>) -> Span {
        Span::within(self.source, self.text, range)
    }

    /// The place of a text; the start of the file for one with escapes.
    fn span(&self, text: &Text<'_>) -> Span {
        match text.0 {
            Cow::Borrowed(text) => {
                let start = (text.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
                self.within(start..start + text.len().min(MAX_TEXT_BYTES))
            }
            Cow::Owned(_) => self.within(0..0),
        }
    }

    /// The place of one character of a text, or of the whole text if it has escapes.
    fn place(&self, text: &Text<'_>, at: usize) -> Span {
        let span = self.span(text);
        match text.0 {
            Cow::Borrowed(_) => self.within(span.start as usize + at..span.start as usize + at + 1),
            Cow::Owned(_) => span,
        }
    }

    /// Notes a secret in a text of the file. If the place of the text is unknown, all of the
    /// file is secret.
    fn hide(&mut self, text: &Text<'_>, secret: Range<usize>) {
        let start = self.span(text).start as usize;
        self.secrets.push(match text.0 {
            Cow::Borrowed(_) => start + secret.start..start + secret.end,
            Cow::Owned(_) => 0..self.text.len(),
        });
    }

    /// Parses the name and the specification of a target.
    fn target(&mut self, text: &Text<'_>) -> Option<(Box<str>, HostSpec)> {
        let span = self.span(text);
        if text.0.len() > MAX_TEXT_BYTES {
            let message = format!("a target of {} bytes", text.0.len());
            self.error(span, message, format!("a host specification has at most {MAX_TEXT_BYTES}"));
            return None;
        }
        // The name says which port it is, whatever the environment says.
        let named = |_| canonical(&text.0).parse();
        let spec: HostSpec = match text.0.parse::<HostSpec>().and_then(named) {
            Ok(spec) => spec,
            Err(_) if let Some(secret) = password_in(&text.0) => {
                self.hide(text, secret);
                self.error(span, NO_SECRETS.0, NO_SECRETS.1);
                return None;
            }
            Err(error) => {
                let place = self.place(text, error.offset);
                let bare: Option<Ipv6Addr> = text.0.parse().ok();
                let help = bare.map_or_else(|| AS_TARGET.to_owned(), in_brackets);
                self.error(place, format!("this is no host: {}", error.problem), help);
                return None;
            }
        };
        if spec.user.is_some() {
            let attributes = text.0.find('?').map_or(0, |mark| mark + 1);
            self.hide(text, attributes..text.0.len());
            self.error(span, NO_SECRETS.0, NO_SECRETS.1);
            return None;
        }
        if let Some((at, problem)) = misplaced(&text.0, &spec) {
            // Text that is no attribute may still be a password.
            if let Some(mark) = text.0.find('?') {
                self.hide(text, mark + 1..text.0.len());
            }
            let place = self.place(text, at);
            self.error(place, format!("this is no host: {problem}"), AS_TARGET);
            return None;
        }
        self.tell_doubts(text, &spec);
        Some((canonical(&text.0).into(), spec))
    }

    /// Warns of unknown attributes, each once. Their values are not shown, as one may be a
    /// password.
    fn tell_doubts(&mut self, text: &Text<'_>, spec: &HostSpec) {
        let attributes = text.0.find('?').filter(|_| !spec.warnings.is_empty());
        let Some(mark) = attributes else { return };
        for (at, _) in text.0.match_indices('=').filter(|(at, _)| *at > mark) {
            let end = text.0[at..].find('&').map_or(text.0.len(), |end| at + end);
            self.hide(text, at + 1..end);
        }
        for warning in &spec.warnings {
            let words = warning.split(';').next().unwrap_or_default();
            if self.doubts.len() < MAX_MISTAKES && self.doubts.insert(words.to_owned()) {
                let warning = Diagnostic::warning(Code::BadServeFile, self.span(text), words);
                self.diagnostics.push(warning.help(ATTRIBUTES));
            }
        }
    }

    /// The labels of an entry, without those of Prometheus.
    fn labels(&mut self, labels: &BTreeMap<Text<'_>, Text<'_>>) -> Option<Vec<(String, String)>> {
        let own: Vec<_> = labels.iter().filter(|(name, _)| !is_of_prometheus(&name.0)).collect();
        if let Some((name, _)) = own.get(MAX_LABELS) {
            let span = self.span(name);
            let message = format!("{} labels on one entry", own.len());
            self.error(span, message, format!("an entry has at most {MAX_LABELS}"));
            return None;
        }
        let mut good = Vec::new();
        for (name, value) in own {
            if !is_label_name(&name.0) {
                let span = self.span(name);
                let message = "this cannot be the name of a label";
                self.error(span, message, LABEL_NAME_RULE);
            } else if value.0.len() > MAX_TEXT_BYTES {
                let span = self.span(value);
                let message = format!("a label of {} bytes", value.0.len());
                self.error(
                    span,
                    message,
                    format!("the value of a label has at most {MAX_TEXT_BYTES}"),
                );
            } else {
                good.push((name.0.to_string(), value.0.to_string()));
            }
        }
        Some(good)
    }
}

/// True for the name of a label in Prometheus.
pub fn is_label_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|one| one.is_ascii_alphanumeric() || one == '_')
        && name.len() <= MAX_TEXT_BYTES
}

/// True for a label that only Prometheus uses.
pub fn is_of_prometheus(name: &str) -> bool {
    name.starts_with("__")
}

/// The name of a target: as written, with the usual port after a bare name.
pub fn canonical(written: &str) -> Cow<'_, str> {
    match written.contains([':', '@', '/', '?']) {
        true => Cow::Borrowed(written),
        false => Cow::Owned(format!("{written}:44321")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<Arc<Target>>, Vec<String>) {
        let mut sources = SourceMap::default();
        let source = sources.add("hosts.json", text);
        let (mut diagnostics, mut targets) = (Diagnostics::default(), Targets::default());
        let labels = Labels::from_iter([("job", "web"), ("dc", "x")]);
        targets.read(source, GroupId(0), &labels, 3, &mut sources, &mut diagnostics);
        let told = diagnostics
            .iter()
            .map(|one| format!("{}: {}", sources.slice(one.span), one.message))
            .collect();
        (targets.into_all(), told)
    }

    /// Diagnostics show the lines around a mistake, in logs as well.
    #[test]
    fn passwords_are_not_shown() {
        for (target, shown) in [
            ("pcp://me:s3cret@web1", "pcp://me:******@web1"),
            ("me:s3/c\u{e9}:t@x@web1:44321", "me:**********@web1:44321"),
            ("web1?user=me&pass=s3cret", "web1?*******************"),
            ("web1?passwrd=s3cret&secure=x&y", "web1?passwrd=******&secure=*&y"),
            // A proxy is no secret.
            ("web1:44321@proxy:44322", "web1:44321@proxy:44322"),
            ("web1:x", "web1:x"),
        ] {
            let text = format!("[{{\"targets\": [\n\"{target}\"\n]}}]");
            let mut sources = SourceMap::default();
            let source = sources.add("hosts.json", text.as_str());
            let mut diagnostics = Diagnostics::default();
            let (mut targets, labels) = (Targets::default(), Labels::default());
            targets.read(source, GroupId(0), &labels, 3, &mut sources, &mut diagnostics);
            assert_eq!(*sources.get(source).text, *text.replace(target, shown), "{target}");
            let is_secret = shown.contains('*');
            let told = diagnostics.iter().any(|one| one.message == NO_SECRETS.0);
            let doubted = diagnostics.iter().any(|one| one.help.as_deref() == Some(ATTRIBUTES));
            assert_eq!(told || doubted, is_secret, "{target}");
            assert!(diagnostics.iter().all(|one| !one.message.contains("s3cret")), "{target}");
        }
    }

    #[test]
    fn entries_give_their_labels_to_hosts() {
        let (targets, told) = read(
            r#"[{"targets": ["web1", "web2:4433", "pcps://web3?container=shop"],
                 "labels": {"rack": "a", "dc": "y", "__meta": "z"}}]"#,
        );
        assert_eq!(told, Vec::<String>::new());
        let names: Vec<&str> = targets.iter().map(|target| &*target.name).collect();
        assert_eq!(names, ["web1:44321", "web2:4433", "pcps://web3?container=shop"]);
        let labels: Vec<_> = targets[0].labels.iter().collect();
        assert_eq!(labels, [("dc", "y"), ("job", "web"), ("rack", "a")]);
    }

    #[test]
    fn a_byte_order_mark_may_stand_in_front() {
        let (targets, told) = read("\u{feff}[{\"targets\": [\"web1\", \"unix:/run/pmcd\"]}]");
        assert_eq!((targets.len(), told), (2, Vec::new()));
        let told = read("\u{feff}[{\"targets\": [\"web1:x\"]}]").1;
        assert_eq!(told, ["x: this is no host: non-numeric port"]);
    }

    #[test]
    fn bare_addresses_of_ipv6_are_told_to_stand_in_brackets() {
        let mut sources = SourceMap::default();
        let source = sources.add("hosts.json", r#"[{"targets": ["::1"]}]"#);
        let (mut diagnostics, mut targets) = (Diagnostics::default(), Targets::default());
        let labels = Labels::default();
        targets.read(source, GroupId(0), &labels, 3, &mut sources, &mut diagnostics);
        let help: Vec<_> = diagnostics.iter().filter_map(|one| one.help.as_deref()).collect();
        assert_eq!(help, ["an address of IPv6 stands in brackets, as in [::1]"]);
    }

    #[test]
    fn what_differs_is_not_the_same_host() {
        for others in
            [r#""web1", "web1:44322""#, r#""web1", "web1@proxy""#, r#""web1", "web1?container=a""#]
        {
            let (targets, told) = read(&format!(r#"[{{"targets": [{others}]}}]"#));
            assert_eq!((targets.len(), told), (2, Vec::new()), "{others}");
        }
    }

    #[test]
    fn a_host_that_is_listed_twice_harms_no_other() {
        // One has an escape, so its place is unknown.
        let (targets, told) = read(
            r#"[{"targets": ["web1", "web2", "pcp://WEB1"]}, {"targets": ["web\u0031", "web3"]}]"#,
        );
        let names: Vec<&str> = targets.iter().map(|target| &*target.name).collect();
        assert_eq!(names, ["web1:44321", "web2:44321", "web3:44321"]);
        let expected =
            ["pcp://WEB1: `pcp://WEB1` is listed twice", ": `web1:44321` is listed twice"];
        assert_eq!(told, expected);
    }

    #[test]
    fn mistakes_are_told_where_they_stand() {
        let long = "x".repeat(1 << 20);
        for (text, expected) in [
            ("", ": this is no list of targets: EOF while parsing a value"),
            ("{}", "{: this is no list of targets: invalid type: map, expected a sequence"),
            (
                r#"[{"target": []}]"#,
                "\": this is no list of targets: unknown field `target`, expected `targets` or `labels`",
            ),
            (
                r#"[{"targets": [1]}]"#,
                "1: this is no list of targets: invalid type: integer `1`, expected a string",
            ),
            (r#"[{"targets": ["web1", "web1"]}]"#, "web1: `web1:44321` is listed twice"),
            (
                r#"[{"targets": ["web1", "web1:44321"]}]"#,
                "web1:44321: `web1:44321` is listed twice",
            ),
            (
                r#"[{"targets": ["web1", "pcp://WEB1"]}]"#,
                "pcp://WEB1: `pcp://WEB1` is listed twice",
            ),
            (
                r#"[{"targets": ["pcps://web1:44321", "web1."]}]"#,
                "web1.: `web1.:44321` is listed twice",
            ),
            (
                r#"[{"targets": ["[::1]", "[0:0::1]:44321"]}]"#,
                "[0:0::1]:44321: `[0:0::1]:44321` is listed twice",
            ),
            (r#"[{"targets": ["local:", "unix:"]}]"#, "unix:: `unix:` is listed twice"),
            (r#"[{"targets": [""]}]"#, "\": this is no host: empty host specification"),
            (r#"[{"targets": ["web1:x"]}]"#, "x: this is no host: non-numeric port"),
            (r#"[{"targets": ["we b"]}]"#, " : this is no host: unexpected blank"),
            (r#"[{"targets": [" web1:45101"]}]"#, " : this is no host: unexpected blank"),
            (
                r#"[{"targets": ["a?contianer=x", "b?contianer=y"]}]"#,
                "a?contianer=*: `contianer` is no attribute of a host and is ignored",
            ),
            (
                r#"[{"targets": "me:s3cret@web1"}]"#,
                "\": this is no list of targets: invalid type: string \"me:******@web1\", expected a sequence",
            ),
            (r#"[{"targets": ["web1/x"]}]"#, "/: this is no host: unexpected slash"),
            (r#"[{"targets": ["pcps://web1/x:4"]}]"#, "/: this is no host: unexpected slash"),
            (
                r#"[{"targets": ["web1?user=a&pass=b"]}]"#,
                "web1?*************: a user or a password in a target",
            ),
            (r#"[{"targets": ["a", "b", "c", "d", "e"]}]"#, "d: there are more than 3 targets"),
            (
                r#"[{"targets": ["a"], "labels": {"a-b": "c"}}]"#,
                "a-b: this cannot be the name of a label",
            ),
        ] {
            assert_eq!(read(text).1, [expected], "{text}");
        }
        let told = read(&format!(r#"[{{"targets": ["{long}"]}}]"#)).1;
        assert!(told[0].ends_with(": a target of 1048576 bytes") && told[0].len() < 1100);
        let told = read(&format!(r#"[{{"targets": ["a"], "labels": {{"b": "{long}"}}}}]"#)).1;
        assert!(told[0].ends_with(": a label of 1048576 bytes") && told[0].len() < 1100);
    }
}
