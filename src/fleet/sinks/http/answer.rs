//! Answers to requests.

use std::borrow::Cow;
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, header};
use pmderive_runtime::escape;

use super::listen::ListenerSettings;
use crate::fleet::sinks::newest_frames::NewestFrames;
use crate::fleet::sinks::query::{self, Query};
use crate::fleet::sinks::scrape;
use crate::fleet::sinks::secret::Secret;
use crate::fleet::sinks::text::Writer;
use crate::fleet::targets::canonical;
use crate::fleet::targets::target::Target;

const TEXT: &str = "text/plain; charset=utf-8";

/// Path of the page whose answer never lasts long.
const HEALTH: &str = "/healthz";

/// Smallest body that is compressed, in bytes.
const MIN_COMPRESSED: usize = 4096;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status of HTTP.
    pub status: u16,
    /// Type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// Further headers.
    pub headers: Vec<(&'static str, &'static str)>,
}

impl Answer {
    /// An answer in plain text.
    pub fn text(status: u16, text: impl Into<String>) -> Answer {
        let text: String = text.into();
        Answer::of(status, TEXT, text)
    }

    /// An answer with a body of some type.
    pub fn of(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, content_type, body: body.into(), headers: Vec::new() }
    }

    /// The answer while clients leave too many others unread.
    pub(super) fn busy() -> Answer {
        let words = "too many answers wait for clients that do not read them: ask again\n";
        Answer::text(503, words).with("retry-after", "1")
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Answer {
        self.headers.push((name, value));
        self
    }

    /// The answer, compressed if the client accepts that and it is worthwhile.
    fn compressed(self, headers: &HeaderMap) -> Answer {
        if self.body.len() < MIN_COMPRESSED || !accepts_gzip(headers) {
            return self;
        }
        let mut writer = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing into memory does not fail.
        match writer.write_all(&self.body).and_then(|()| writer.finish()) {
            Ok(body) => Answer { body, ..self }
                .with("content-encoding", "gzip")
                .with("vary", "accept-encoding"),
            Err(_) => self,
        }
    }
}

/// Pages of other modules that the listener shows. Several threads of the listener call it at
/// once. Calls may last long.
pub trait Pages: Send + Sync {
    /// Writes the program's own numbers into `/metrics`.
    fn write_own(&self, writer: &mut Writer<'_>) {
        let _ = writer;
    }

    /// Writes the condition of a host into `/metrics?target=`, beside its values.
    fn write_target(&self, target: &str, writer: &mut Writer<'_>) {
        let _ = (target, writer);
    }

    /// Whether a host is shown without values, as a known one that failed. The error is the
    /// reason why not.
    fn without_values(&self, target: &str) -> Result<(), Cow<'static, str>> {
        let _ = target;
        Err("it is unknown, or has no values now".into())
    }

    /// The trouble of the program, if there is any. This call never lasts long.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// The page at a path that begins with `/-/`, in the form of the `Accept` header.
    fn page(&self, path: &str, accept: &str) -> Option<Answer> {
        let _ = (path, accept);
        None
    }

    /// Reads targets, configuration and definitions again.
    fn reload(&self) -> Answer {
        Answer::text(501, "this program reads nothing again\n")
    }
}

/// The parts that answers are made of.
pub(super) struct Answers {
    pub(super) newest: Arc<NewestFrames>,
    pub(super) pages: Arc<dyn Pages>,
    pub(super) settings: ListenerSettings,
}

impl Answers {
    /// The answer to a request that may be of anybody: a refusal, or the health. It never lasts
    /// long. `None` if [`Answers::answer`] answers it.
    pub(super) fn for_anybody(&self, request: &Parts, token: Option<&Secret>) -> Option<Answer> {
        let is_read = matches!(request.method, Method::GET | Method::HEAD);
        if token.is_none() && is_under_a_name(&request.headers) {
            return Some(misdirected());
        }
        if request.uri.path() == HEALTH && is_read {
            // A supervisor that restarts an unhealthy server would only make trouble worse.
            let words = match self.pages.trouble() {
                None => "ok\n".to_owned(),
                Some(trouble) => format!("ok, but {trouble}\n"),
            };
            return Some(Answer::text(200, words));
        }
        (!bears(&request.headers, token)).then(unknown)
    }

    /// Answers a request that [`Answers::for_anybody`] leaves. This may last long.
    pub(super) fn answer(&self, request: &Parts) -> Answer {
        self.plain_answer(request).compressed(&request.headers)
    }

    fn plain_answer(&self, request: &Parts) -> Answer {
        let path = request.uri.path();
        let is_read = matches!(request.method, Method::GET | Method::HEAD);
        match path {
            "/-/reload" if request.method != Method::POST => {
                Answer::text(405, "only POST\n").with("allow", "POST")
            }
            "/-/reload" if is_foreign(&request.headers) => {
                Answer::text(403, "a page of another site asks for this\n")
            }
            "/-/reload" => self.pages.reload(),
            _ if !is_read => Answer::text(405, "only GET\n").with("allow", "GET, HEAD"),
            "/metrics" => self.metrics(request),
            _ if path.starts_with("/-/") => {
                let page = self.pages.page(path, &accept(&request.headers));
                page.unwrap_or_else(nothing)
            }
            _ => nothing(),
        }
    }

    fn metrics(&self, request: &Parts) -> Answer {
        let Some(query) = Query::parse(request.uri.query().unwrap_or_default()) else {
            return Answer::text(400, "the query is not text in UTF-8\n");
        };
        let target = query.get("target");
        if target == Some("") {
            return Answer::text(400, "target= without a name\n");
        }
        let name = target.map_or(Cow::Borrowed(Target::FLEET), canonical);
        let shown = self.newest.frame_of(&name);
        let sink = self.settings.shown();
        if let (Some(target), None) = (target, &shown) {
            let without = match sink {
                None => Err("there is no sink of the kind `prometheus`".into()),
                Some(_) => self.pages.without_values(&name),
            };
            if let Err(why) = without {
                let target = escape::line(target.as_bytes());
                return Answer::text(404, format!("no values of {target}: {why}\n"));
            }
        }
        let format = query::format(&accept(&request.headers));
        let mut text = String::new();
        let mut writer = Writer::new(&mut text, format);
        if let (Some(sink), Some(shown)) = (sink, &shown) {
            let times = query.get("times") == Some("true");
            let choice = scrape::Choice { sink, times };
            let written = scrape::write(&mut writer, shown, &choice);
            let numbers = self.newest.numbers();
            numbers.samples.add(written.samples as u64);
            numbers.labels_left_out.add(written.left_out as u64);
        }
        match target {
            None => self.pages.write_own(&mut writer),
            Some(_) => self.pages.write_target(&name, &mut writer),
        }
        writer.finish();
        Answer::of(200, format.content_type(), text)
    }
}

fn nothing() -> Answer {
    Answer::text(404, "there is /metrics, /metrics?target=NAME, /healthz, /-/targets, /-/reload\n")
}

/// The answer without valid credentials. A program sends the token as a bearer; a browser asks
/// its user for a password.
fn unknown() -> Answer {
    let words = "this needs the token: Authorization: Bearer TOKEN; in a browser it is the \
                 password, with any name\n";
    Answer::text(401, words)
        .with("www-authenticate", "Bearer")
        .with("www-authenticate", "Basic realm=\"pmderive\", charset=\"UTF-8\"")
        // Otherwise a client without the token could keep its place with such answers.
        .with("connection", "close")
}

/// The answer to a request that a page of another site may have sent: its name may lead to this
/// machine, so that a browser takes the answer for its own.
fn misdirected() -> Answer {
    let words = "without a token the Host header must be localhost or an IP address; with one \
                 (token-file in [web]) any name will do\n";
    Answer::text(421, words).with("connection", "close")
}

/// True if the request is for a host with a name, other than `localhost`.
fn is_under_a_name(headers: &HeaderMap) -> bool {
    headers.get_all(header::HOST).iter().any(|host| {
        let host = host.to_str().unwrap_or_default();
        let name = match host.strip_prefix('[') {
            Some(address) => address.split(']').next(),
            None => host.split(':').next(),
        };
        let name = name.unwrap_or_default();
        name.parse::<IpAddr>().is_err() && !name.eq_ignore_ascii_case("localhost")
    })
}

/// True if the request has the token, or none is needed.
fn bears(headers: &HeaderMap, token: Option<&Secret>) -> bool {
    let Some(token) = token else { return true };
    let given = headers.get(header::AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let Some(space) = given.iter().position(|byte| *byte == b' ') else { return false };
    let (scheme, given) = (&given[..space], given[space..].trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return token.equals(given);
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return false;
    }
    // The form is NAME:PASSWORD; the name does not matter.
    let both = BASE64.decode(given).unwrap_or_default();
    let colon = both.iter().position(|byte| *byte == b':');
    colon.is_some_and(|colon| token.equals(&both[colon + 1..]))
}

/// True if a request may be answered with gzip (RFC 9110, 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = all.filter_map(|value| value.to_str().ok()).flat_map(query::weighted);
    codings.any(|(coding, quality)| coding == "gzip" && quality > 0.0)
}

/// True if a browser requests this for a page of another site. Browsers send a known password
/// without asking.
fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value: &header::HeaderValue| value.as_bytes());
    let site = headers.get("sec-fetch-site").map(|value| value.as_bytes());
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return true;
    }
    let Some(origin) = text(header::ORIGIN) else { return false };
    let site =
        origin.splitn(2, |byte| *byte == b':').nth(1).and_then(|rest| rest.strip_prefix(b"//"));
    site.is_none() || site != text(header::HOST)
}

/// The accepted forms; several lines of the header mean the same as one.
fn accept(headers: &HeaderMap) -> String {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    lines.collect::<Vec<&str>>().join(",")
}
