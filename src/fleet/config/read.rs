//! Reads the configuration. It reports all mistakes of a file at once, each at its place.

use std::net::SocketAddr;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use pmderive_runtime::context::Encryption;
use toml::de::DeValue;

use super::keys::{TOP, keys_of};
use super::{
    Access, Config, DEFAULT_BUFFER, DEFAULT_INTERVAL, Fleet, Group, INTERVALS, Limits, MAX_SINKS,
    RemoteWrite, Sink, SinkKind, USUAL, Web, default_deadline,
};
use crate::diag::{Code, Diagnostics};
use crate::fleet::aggregates::MAX_GRACE;
use crate::fleet::labels::Labels;
use crate::fleet::redaction::{secrets_in, secrets_in_url, without};
use crate::fleet::sinks::client::{Credentials, Url};
use crate::fleet::sinks::tls::Identity;
use crate::fleet::targets::target::SHARDS;
use crate::fleet::targets::{LABEL_NAME_RULE, MAX_TEXT_BYTES, is_label_name, is_of_prometheus};
use crate::syntax::ast::Spanned;
use crate::syntax::{choices, nearest};
use crate::text::document::{Document, Table, Times, Value, number_of};
use crate::text::paths::directory_of;
use crate::text::{SourceId, SourceMap, SourceText, Span};

/// Another name of the standard output.
const STANDARD_OUTPUT: &str = "/dev/stdout";

/// Range of times that are no intervals.
const TIMES: Times =
    Times { shortest: Duration::from_nanos(1), words: "1 nsec to 1 day", ..INTERVALS };

/// Reads a text of the source map, shorter than 4 GiB, whose paths are relative to `directory`.
/// `None` if it is no TOML; otherwise the result is usable if nothing was reported. Secrets
/// become unreadable in the source map, as diagnostics show the lines around a mistake.
pub fn read(
    source: SourceId,
    directory: &Path,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<Config> {
    let SourceText { name, text, .. } = sources.get(source).clone();
    let (document, table) = Document::parse(Code::BadServeFile, source, &text, diagnostics);
    let mut reader = Reader { document, directory, secrets: Vec::new() };
    let config = table.map(|table| reader.config(&table));
    if config.is_none() {
        reader.secrets = secrets_in(&text);
        reader.secrets.extend(values_of_unknown_keys(&text));
    }
    let secrets = reader.secrets;
    if !secrets.is_empty() {
        sources.insert(source, SourceText::new(name, without(&text, secrets)));
    }
    config
}

/// The values behind keys that no table has, in a text that is no TOML. Lines without a key
/// belong to a value of several lines.
fn values_of_unknown_keys(text: &str) -> Vec<Range<usize>> {
    let headings = [TOP, "[limits]", "[web]", "[[group]]", "[fleet]", "[[sink]]"];
    let known = headings.map(keys_of).concat();
    let (mut values, mut start, mut goes_on) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        // A line of a long value may have the sign, too.
        let after = line.find('=').filter(|_| !goes_on).map_or(0, |sign| sign + 1);
        let sign = line.find('=');
        let is_unknown = match sign {
            Some(sign) => !known.contains(&line[..sign].trim().trim_matches(['"', '\''])),
            None => goes_on && !line.starts_with('['),
        };
        let is_begun = || {
            let has_quotes = ["\"\"\"", "'''"].iter().any(|quotes| line.contains(quotes));
            has_quotes || line.trim_end().ends_with(['[', '{', ','])
        };
        goes_on = is_unknown && (goes_on || is_begun());
        if is_unknown {
            values.push(start + after..start + line.len());
        }
        start += line.len();
    }
    values
}

/// Appends the places of all values within a value. A table has no place of its own, as it may
/// be in several pieces.
fn places_within(value: &Value<'_>, places: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(table) => table.values().for_each(|one| places_within(one, places)),
        DeValue::Array(array) => array.iter().for_each(|one| places_within(one, places)),
        _ => places.push(value.span()),
    }
}

/// True for sinks that would mix their lines, or show the same page.
fn is_same_place(one: &SinkKind, other: &SinkKind) -> bool {
    match (one, other) {
        (SinkKind::Prometheus, SinkKind::Prometheus)
        | (SinkKind::JsonLines(None), SinkKind::JsonLines(None)) => true,
        (SinkKind::JsonLines(Some(one)), SinkKind::JsonLines(Some(other))) => {
            is_same_file(one, other)
        }
        _ => false,
    }
}

/// True for paths of one file. A device may have several writers, so it never counts as the
/// same.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match [one, other].map(std::fs::metadata) {
        [Ok(one), Ok(other)] => {
            let is_device = one.file_type().is_char_device();
            (one.dev(), one.ino()) == (other.dev(), other.ino()) && !is_device
        }
        _ => to_be_made(one) == to_be_made(other),
    }
}

/// The path at which a new file would be created.
fn to_be_made(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // Linux follows this many links.
    for _ in 0..40 {
        let Ok(link) = path.read_link() else { break };
        path = directory_of(&path).join(link);
    }
    match (directory_of(&path).canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.components().filter(|part| *part != Component::CurDir).collect(),
    }
}

struct Reader<'r> {
    document: Document<'r>,
    directory: &'r Path,
    /// Ranges of secrets in the text.
    secrets: Vec<Range<usize>>,
}

impl Reader<'_> {
    fn config(&mut self, table: &Table<'_>) -> Config {
        let tables = ["limits", "web", "group", "fleet", "sink"];
        self.only(table, TOP, &tables);
        for (key, value) in table.iter().filter(|(key, _)| tables.contains(&&**key.get_ref())) {
            // Nothing is read within another kind of value, so it has no known keys.
            if value.get_ref().is_array() != matches!(&**key.get_ref(), "group" | "sink") {
                places_within(value, &mut self.secrets);
            }
        }
        let (interval, deadline) = self.times(table, DEFAULT_INTERVAL, None);
        let limits = self.document.section(table, "limits").map(|table| self.limits(table));
        let web = self.document.section(table, "web").map(|table| self.web(table));
        let groups = self.document.tables(table, "group");
        if groups.is_empty() {
            let start = self.document.span(0..0);
            let help = "a group begins with `[[group]]`, and names its targets and definitions";
            self.document.error_with_help(start, "there is no group of hosts to watch", help);
        }
        let groups: Vec<Group> = groups
            .into_iter()
            .filter_map(|(table, span)| self.group(table, span, interval, deadline))
            .collect();
        let fleet = table.get("fleet").and_then(|value| self.fleet(value, &groups));
        let sinks = self.document.tables(table, "sink");
        if let Some((_, span)) = sinks.get(MAX_SINKS) {
            self.document.error(*span, format!("there are more than {MAX_SINKS} sinks"));
        }
        let sinks: Vec<Sink> = sinks
            .into_iter()
            .take(MAX_SINKS)
            .filter_map(|(table, span)| self.sink(table, span))
            .collect();
        self.once(table, "group", "groups");
        self.once(table, "sink", "sinks");
        self.ways_out(table, &sinks);
        Config {
            language: self.document.language(table, USUAL),
            listen: self.of(table, "listen", Self::address),
            web: web.unwrap_or_default(),
            threads: self.of(table, "threads", Self::threads),
            limits: limits.unwrap_or_default(),
            groups,
            fleet,
            sinks,
        }
    }

    /// Reports a configuration whose values go nowhere, and sinks that would mix their output.
    fn ways_out(&mut self, table: &Table<'_>, sinks: &[Sink]) {
        let listen = table.get("listen").map(|value| self.document.span(value.span()));
        let list = table.get("sink").and_then(|value| value.get_ref().as_array());
        let has_sinks = table.contains_key("sink") && list.is_none_or(|list| !list.is_empty());
        if let Some(listen) = listen.filter(|_| !has_sinks) {
            let message = "no values are served here, as there is no sink";
            let help = "add a `[[sink]]` with `kind = \"prometheus\"`";
            self.document.warning_with_help(listen, message, help);
        } else if !has_sinks {
            let start = self.document.span(0..0);
            let help = "a sink begins with `[[sink]]`, and its `kind` says which one";
            self.document.error_with_help(start, "there is no sink, so values go nowhere", help);
        }
        for (at, sink) in sinks.iter().enumerate() {
            if sink.kind == SinkKind::Prometheus && listen.is_none() {
                let message = "a sink of kind `prometheus` needs the key `listen`";
                let help = "such as listen = \"127.0.0.1:9464\" before all tables";
                self.document.error_with_help(sink.span, message, help);
            }
            let is_alike = |other: &&Sink| is_same_place(&other.kind, &sink.kind);
            let Some(first) = sinks[..at].iter().find(is_alike) else { continue };
            let message = match &sink.kind {
                SinkKind::Prometheus => "there are two sinks of kind `prometheus`".to_owned(),
                SinkKind::JsonLines(None) => {
                    format!("sink `{}` writes to standard output, too", first.name)
                }
                _ => format!("sink `{}` writes to the same file", first.name),
            };
            let help = "a single sink is enough: `export` chooses its metrics";
            self.document.error_with_help(sink.span, message, help);
        }
    }

    /// Reports unknown keys of a table with this heading.
    fn only(&mut self, table: &Table<'_>, heading: &str, more: &[&'static str]) {
        let known = [&*keys_of(heading), more].concat();
        // Their values may be secrets, and do not matter to the message.
        for (_, value) in table.iter().filter(|(key, _)| !known.contains(&&**key.get_ref())) {
            places_within(value, &mut self.secrets);
        }
        self.document.only(table, &known);
    }

    /// Parses the value of a key; `None` if it is absent or wrong.
    fn of<T>(
        &mut self,
        table: &Table<'_>,
        key: &str,
        read: impl FnOnce(&mut Self, &Value<'_>) -> Option<T>,
    ) -> Option<T> {
        read(self, table.get(key)?)
    }

    /// Reports names that two tables of a list share.
    fn once(&mut self, table: &Table<'_>, key: &str, plural: &str) {
        let tables = table.get(key).and_then(|value| value.get_ref().as_array());
        let mut seen: Vec<String> = Vec::new();
        for one in tables.into_iter().flat_map(|tables| tables.iter()) {
            let Some(own) = one.get_ref().as_table() else { continue };
            let named = own.get("name").or_else(|| own.get("kind"));
            let Some((value, name)) = named.and_then(|v| Some((v, v.get_ref().as_str()?))) else {
                continue;
            };
            if seen.iter().any(|known| known == name) {
                let message = format!("two {plural} are called `{name}`");
                self.document.error_with_help(value, message, "give one of them another `name`");
            }
            seen.push(name.to_owned());
        }
    }

    fn limits(&mut self, table: &Table<'_>) -> Limits {
        self.only(table, "[limits]", &[]);
        let usual = Limits::default();
        let mut number = |key, usual| {
            self.of(table, key, |reader, value| reader.document.count(value, 1)).unwrap_or(usual)
        };
        Limits {
            targets: number("targets", usual.targets),
            connects: number("connects", usual.connects),
            kinds: number("kinds", usual.kinds),
            instances: number("instances", usual.instances),
        }
    }

    fn web(&mut self, table: &Table<'_>) -> Web {
        self.only(table, "[web]", &[]);
        let identity = self.pair(table, "certificate", "key").and_then(|(certificate, key)| {
            Some(Identity { certificate: self.path(certificate)?, key: self.path(key)? })
        });
        Web { identity, token_file: self.of(table, "token-file", Self::path) }
    }

    fn group(
        &mut self,
        table: &Table<'_>,
        span: Span,
        interval: Duration,
        deadline: Option<Duration>,
    ) -> Option<Group> {
        self.only(table, "[[group]]", &[]);
        let name = self.required(table, span, "name", "a group")?;
        let name = self.document.string(name)?.0.into();
        let mut files = |key| {
            let list = self.required(table, span, key, "a group");
            list.map(|list| self.document.paths(list, self.directory)).unwrap_or_default()
        };
        let (targets, definitions) = (files("targets"), files("definitions"));
        let (interval, deadline) = self.times(table, interval, deadline);
        let deadline = deadline.unwrap_or_else(|| default_deadline(interval));
        let labels = self.document.section(table, "labels").map(|table| self.labels(table));
        let encryptions = [
            ("off", Encryption::Off),
            ("relaxed", Encryption::Relaxed),
            ("required", Encryption::Required),
        ];
        let access = Access {
            encryption: self
                .of(table, "secure", |reader, value| reader.document.word(value, &encryptions)),
            tls: self.of(table, "tls", Self::path),
            user: self.of(table, "user", Self::text),
            password_file: self.of(table, "password-file", Self::path),
        };
        let export = self.of(table, "export", Self::texts);
        let labels = labels.unwrap_or_default();
        Some(Group { name, span, targets, definitions, export, interval, deadline, labels, access })
    }

    fn fleet(&mut self, value: &Value<'_>, groups: &[Group]) -> Option<Fleet> {
        let span = self.document.span(value.span());
        let table = self.document.table(value)?;
        self.only(table, "[fleet]", &[]);
        let files = self.required(table, span, "definitions", "`[fleet]`")?;
        let definitions = self.document.paths(files, self.directory);
        let export = self.of(table, "export", Self::texts);
        let grace = self.of(table, "grace", |reader, value| reader.grace(value, groups));
        let mut intervals = groups.iter().map(|group| group.interval);
        let first = intervals.next();
        if intervals.any(|interval| Some(interval) != first) {
            let message = "groups of several intervals have no slots in common";
            let help = "give all groups one interval, or watch the others in another process";
            self.document.error_with_help(span, message, help);
        }
        Some(Fleet { span, definitions, export, grace })
    }

    /// A time of grace, which the longest interval limits.
    fn grace(&mut self, value: &Value<'_>, groups: &[Group]) -> Option<Duration> {
        let grace = self.time(value)?;
        let longest = groups.iter().map(|group| group.interval).max()?;
        if grace > longest * MAX_GRACE {
            let message = format!("the grace time is longer than {MAX_GRACE} intervals");
            let help = "a host answers or fails within its `deadline`: without `grace`, the \
                        longest one is waited for";
            self.document.error_with_help(value, message, help);
        }
        Some(grace)
    }

    fn sink(&mut self, table: &Table<'_>, span: Span) -> Option<Sink> {
        self.only(table, "[[sink]]", &[]);
        if let Some(url) = table.get("url") {
            self.hide_secrets(url);
        }
        let kind = self.required(table, span, "kind", "a sink")?;
        let (word, kind_span) = self.document.string(kind)?;
        let of_remote =
            ["url", "authorities", "user", "password-file", "token-file", "timeout", "max-age"];
        let (others, kind): (&[&str], _) = match word {
            "json-lines" => {
                let path = self.of(table, "path", Self::path);
                let is_file = |path: &PathBuf| !path.ends_with("-") && *path != *STANDARD_OUTPUT;
                let file = path.filter(is_file);
                (&of_remote, SinkKind::JsonLines(file))
            }
            "prometheus" => {
                self.foreign(table, &["path"], word);
                (&of_remote, SinkKind::Prometheus)
            }
            "remote-write" => {
                (&["path"], SinkKind::RemoteWrite(Box::new(self.remote_write(table, span)?)))
            }
            other => {
                let kinds = ["json-lines", "prometheus", "remote-write"];
                let message = format!("there is no kind of sink `{other}`");
                let help = match nearest(other, kinds) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("the kinds are {}", choices(kinds)),
                };
                self.document.error_with_help(kind_span, message, help);
                return None;
            }
        };
        self.foreign(table, others, word);
        Some(Sink {
            name: self.of(table, "name", Self::text).unwrap_or_else(|| word.into()),
            span,
            export: self.of(table, "export", Self::texts),
            buffer: self.of(table, "buffer", Self::size).unwrap_or(DEFAULT_BUFFER),
            kind,
        })
    }

    /// Notes the secrets in a URL.
    fn hide_secrets(&mut self, url: &Value<'_>) {
        let Some(text) = url.get_ref().as_str() else { return self.secrets.push(url.span()) };
        let span = self.document.span(url.span());
        self.secrets.extend(secrets_in_url(text).map(|secret| {
            // Escapes hide the place, so all of it is secret.
            let place = self.document.within(span, text, secret);
            place.start as usize..place.end as usize
        }));
    }

    /// Reports keys that a kind of sink does not use.
    fn foreign(&mut self, table: &Table<'_>, keys: &[&str], kind: &str) {
        for (key, _) in table.iter().filter(|(key, _)| keys.contains(&&**key.get_ref())) {
            let name = key.get_ref();
            self.document.error(key, format!("a sink of kind `{kind}` has no `{name}`"));
        }
    }

    fn remote_write(&mut self, table: &Table<'_>, span: Span) -> Option<RemoteWrite> {
        let url = self.required(table, span, "url", "a sink of kind `remote-write`")?;
        let (text, span) = self.document.string(url)?;
        let url = Url::parse(text);
        if let Err(problem) = &url {
            let help = "such as \"http://127.0.0.1:9090/api/v1/write\"";
            self.document.error_with_help(span, problem, help);
        }
        let login = self.pair(table, "user", "password-file").and_then(|(user, file)| {
            let user = self.text(user)?.into_string();
            Some(Credentials::Basic { user, password_file: self.path(file)? })
        });
        let token = self.of(table, "token-file", Self::path);
        let bearer = token.map(|token_file| Credentials::Bearer { token_file });
        if let Some(token) = table.get("token-file").filter(|_| table.contains_key("user")) {
            let message = "a receiver asks for a token or for a user, not for both";
            let help = "take away `token-file`, or `user` and `password-file`";
            self.document.error_with_help(token, message, help);
        }
        if let Some(authorities) = table.get("authorities")
            && url.as_ref().is_ok_and(|url| !url.is_encrypted)
        {
            let message = "this sink has no TLS, so `authorities` has no effect";
            self.document.error_with_help(authorities, message, "begin `url` with `https://`");
        }
        let authorities = self.of(table, "authorities", Self::path);
        let timeout = self.of(table, "timeout", Self::time);
        let max_age = self.of(table, "max-age", Self::time);
        let usual = RemoteWrite::to(url.ok()?);
        Some(RemoteWrite {
            authorities,
            credentials: login.or(bearer).unwrap_or_default(),
            timeout: timeout.unwrap_or(usual.timeout),
            max_age: max_age.unwrap_or(usual.max_age),
            ..usual
        })
    }

    fn text(&mut self, value: &Value<'_>) -> Option<Box<str>> {
        Some(self.document.string(value)?.0.into())
    }

    fn time(&mut self, value: &Value<'_>) -> Option<Duration> {
        self.document.time(value, &TIMES)
    }

    /// Two keys that only make sense together.
    fn pair<'v, 't>(
        &mut self,
        table: &'v Table<'t>,
        first: &str,
        second: &str,
    ) -> Option<(&'v Value<'t>, &'v Value<'t>)> {
        match (table.get(first), table.get(second)) {
            (Some(first), Some(second)) => Some((first, second)),
            (Some(lone), None) | (None, Some(lone)) => {
                self.document.error(lone, format!("`{first}` and `{second}` need each other"));
                None
            }
            (None, None) => None,
        }
    }

    fn required<'v, 't>(
        &mut self,
        table: &'v Table<'t>,
        span: Span,
        key: &str,
        what: &str,
    ) -> Option<&'v Value<'t>> {
        let value = table.get(key);
        if value.is_none() {
            self.document.error(span, format!("{what} needs the key `{key}`"));
        }
        value
    }

    /// Interval and deadline of a table, with defaults.
    fn times(
        &mut self,
        table: &Table<'_>,
        interval: Duration,
        deadline: Option<Duration>,
    ) -> (Duration, Option<Duration>) {
        let own = table.get("interval").and_then(|value| self.document.time(value, &INTERVALS));
        let interval = own.unwrap_or(interval);
        let given = table.get("deadline");
        let Some((value, own)) = given.and_then(|value| Some((value, self.time(value)?))) else {
            // For another interval the default deadline may be too long.
            return (interval, deadline.filter(|_| own.is_none()));
        };
        if own >= interval {
            let message = "the deadline is not shorter than the interval";
            let help = "a host must be done with a slot before the next one begins";
            self.document.error_with_help(value, message, help);
        }
        (interval, Some(own))
    }

    fn size(&mut self, value: &Value<'_>) -> Option<usize> {
        let text = match number_of(value) {
            Some(number) => format!("{number} bytes"),
            None => self.document.string(value)?.0.to_owned(),
        };
        let size = crate::text::size::size(&text)
            .and_then(|size| usize::try_from(size).map_err(|error| error.to_string()));
        size.map_err(|problem| self.document.error(value, problem)).ok()
    }

    /// A number of threads, limited to the number that can have work.
    fn threads(&mut self, value: &Value<'_>) -> Option<usize> {
        let threads = self.document.count(value, 1)?;
        if threads > SHARDS {
            let message = format!("`threads` is {SHARDS} at most; {SHARDS} are started");
            let help = "without it there are as many as processors; more are of no use";
            self.document.warning_with_help(value, message, help);
        }
        Some(threads.min(SHARDS))
    }

    fn address(&mut self, value: &Value<'_>) -> Option<SocketAddr> {
        let (text, span) = self.document.string(value)?;
        let address = text.parse().ok();
        if address.is_none() {
            let help = "such as \"127.0.0.1:9464\"; names are not looked up";
            self.document.error_with_help(span, "this is no address with a port", help);
        }
        address
    }

    fn texts(&mut self, value: &Value<'_>) -> Option<Vec<Spanned<Box<str>>>> {
        let list = self.document.array(value);
        let text = |one| {
            self.document.string(one).map(|(text, span)| Spanned { value: text.into(), span })
        };
        Some(list.iter().filter_map(text).collect())
    }

    fn path(&mut self, value: &Value<'_>) -> Option<PathBuf> {
        self.document.path(value, self.directory).map(|path| path.value)
    }

    fn labels(&mut self, table: &Table<'_>) -> Labels {
        let mut labels: Vec<(String, String)> = Vec::new();
        for (key, value) in table {
            let name = key.get_ref();
            if !is_label_name(name) {
                let message = "this cannot be the name of a label";
                self.document.error_with_help(key, message, LABEL_NAME_RULE);
            } else if is_of_prometheus(name) {
                let message = "labels that begin with two underscores are Prometheus' own";
                self.document.error(key, message);
            } else if let Some((value, span)) = self.document.string(value) {
                if value.len() > MAX_TEXT_BYTES {
                    let message = format!("a label of more than {MAX_TEXT_BYTES} bytes");
                    self.document.error(span, message);
                }
                labels.push((name.to_string(), value.to_owned()));
            }
        }
        labels.into_iter().collect()
    }
}
