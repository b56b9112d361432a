//! What requests are answered. How they come and go is not known here.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, header};
use pmderive_runtime::escape;

use super::Pages;
use crate::fleet::sinks::names;
use crate::fleet::sinks::newest::Newest;
use crate::fleet::sinks::numbers::Numbers;
use crate::fleet::sinks::query::{self, Query};
use crate::fleet::sinks::scrape;
use crate::fleet::sinks::secret::Secret;
use crate::fleet::sinks::text::Writer;
use crate::fleet::target::Target;

const TEXT: &str = "text/plain; charset=utf-8";

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status of HTTP.
    pub status: u16,
    /// What the body is.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// One more header.
    pub header: Option<(&'static str, &'static str)>,
}

impl Answer {
    /// An answer in plain text.
    pub fn text(status: u16, text: impl Into<String>) -> Answer {
        Answer { status, content_type: TEXT, body: text.into().into(), header: None }
    }
}

/// What answers are made of.
pub(super) struct Answers {
    pub(super) newest: Arc<Newest>,
    pub(super) numbers: Arc<Numbers>,
    pub(super) pages: Arc<dyn Pages>,
    pub(super) sink: Option<u32>,
    pub(super) labels: names::Limits,
}

impl Answers {
    /// Answers a request. May take its time.
    pub(super) fn answer(
        &self,
        request: &Parts,
        peer: SocketAddr,
        token: Option<&Secret>,
    ) -> Answer {
        let path = request.uri.path();
        let is_read = matches!(request.method, Method::GET | Method::HEAD);
        let is_known = bears(&request.headers, token);
        let is_loopback = peer.ip().to_canonical().is_loopback();
        match path {
            "/healthz" if is_read => match self.pages.trouble() {
                None => Answer::text(200, "ok\n"),
                Some(trouble) => Answer::text(503, trouble + "\n"),
            },
            "/-/reload" if !is_known && !is_loopback => unknown(),
            "/-/reload" if request.method != Method::POST => {
                Answer { header: Some(("allow", "POST")), ..Answer::text(405, "only POST\n") }
            }
            "/-/reload" if is_foreign(&request.headers) => {
                Answer::text(403, "a page of another site asks for this\n")
            }
            "/-/reload" => self.pages.reload(),
            _ if !is_known => unknown(),
            _ if !is_read => {
                Answer { header: Some(("allow", "GET, HEAD")), ..Answer::text(405, "only GET\n") }
            }
            "/metrics" => self.metrics(request),
            _ if path.starts_with("/-/") => {
                let page = self.pages.page(path, accept(&request.headers));
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
        let hosts = self.newest.of(target.unwrap_or(Target::FLEET));
        if let (Some(target), true) = (target, hosts.is_empty()) {
            let target = escape::line(target.as_bytes());
            let why = "unknown, or it did not answer in its newest slot";
            return Answer::text(404, format!("no values of {target}: {why}\n"));
        }
        let format = query::format(accept(&request.headers));
        let mut text = String::new();
        let mut writer = Writer::new(&mut text, format);
        if let Some(sink) = self.sink {
            let times = query.get("times") == Some("true");
            let choice = scrape::Choice { sink, times, limits: self.labels };
            let left_out = scrape::write(&mut writer, &hosts, &choice);
            self.numbers.labels_left_out.add(left_out as u64);
        }
        if target.is_none() {
            self.pages.write_own(&mut writer);
        }
        writer.finish();
        let content_type = format.content_type();
        Answer { status: 200, content_type, body: text.into(), header: None }
    }
}

fn nothing() -> Answer {
    Answer::text(404, "there is /metrics, /metrics?target=NAME, /healthz, /-/targets, /-/reload\n")
}

fn unknown() -> Answer {
    let header = Some(("www-authenticate", "Bearer"));
    Answer { header, ..Answer::text(401, "this needs the token: Authorization: Bearer TOKEN\n") }
}

/// True if the request brings the token, or none is needed.
fn bears(headers: &HeaderMap, token: Option<&Secret>) -> bool {
    let Some(token) = token else { return true };
    let given = headers.get(header::AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let (scheme, given) = given.split_at_checked(7).unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"bearer ") && token.is(given.trim_ascii())
}

/// True if a browser asks for the page of another site.
fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value: &header::HeaderValue| value.as_bytes());
    let Some(origin) = text(header::ORIGIN) else { return false };
    let site =
        origin.splitn(2, |byte| *byte == b':').nth(1).and_then(|rest| rest.strip_prefix(b"//"));
    site.is_none() || site != text(header::HOST)
}

fn accept(headers: &HeaderMap) -> &str {
    headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
