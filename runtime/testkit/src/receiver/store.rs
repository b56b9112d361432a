//! The requests that a receiver remembers, and its answers.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::http::{MOST_BODY, Request};
use super::remote_write::{Sample, Series, WriteRequest, decode, fault_of};
use super::snappy::decompress;

/// A receiver's reaction to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// 204 if all is in order, and stored; else 400 or 415 and the reason, which
    /// is remembered as a complaint.
    ByMerit,
    /// A status, whatever the request is. With one from 200 to 299 the request is
    /// stored as well.
    Status {
        /// The status.
        status: u16,
        /// The header `Retry-After`: seconds, or a date.
        retry_after: Option<Box<str>>,
    },
    /// Bytes that are not a response, and then the end of the stream.
    Garbage(Vec<u8>),
    /// By merit, but the response breaks off after this many bytes.
    Cut(usize),
    /// By merit, but this much later.
    Late(Duration),
    /// No answer, as long as the client waits.
    Never,
}

impl Reply {
    /// A status and nothing else.
    pub fn status(status: u16) -> Reply {
        Reply::Status { status, retry_after: None }
    }

    /// 429, and when to come again.
    pub fn too_many(retry_after: &str) -> Reply {
        Reply::Status { status: 429, retry_after: Some(retry_after.into()) }
    }
}

/// A request, and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedRequest {
    /// The request as received.
    pub request: Request,
    /// The contents of its body, or its fault.
    pub content: Result<WriteRequest, String>,
    /// The script's reply to it.
    pub reply: Reply,
}

/// Labels of a series.
type Labels = Vec<(String, String)>;

/// The memory of a receiver.
#[derive(Debug)]
pub(super) struct Store {
    script: VecDeque<Reply>,
    /// The reply to requests after the script.
    otherwise: Reply,
    pub seen: Vec<ReceivedRequest>,
    pub stored: HashMap<Labels, Vec<Sample>>,
    pub complaints: Vec<String>,
}

impl Default for Store {
    fn default() -> Store {
        Store {
            script: VecDeque::new(),
            otherwise: Reply::ByMerit,
            seen: Vec::new(),
            stored: HashMap::new(),
            complaints: Vec::new(),
        }
    }
}

/// A status, and why.
pub(super) type Verdict = (u16, String);

impl Store {
    pub fn add_script(&mut self, replies: impl IntoIterator<Item = Reply>) {
        self.script.extend(replies);
    }

    pub fn reply_otherwise(&mut self, reply: Reply) {
        self.script.clear();
        self.otherwise = reply;
    }

    /// Handles a request. The verdict is the one by merit, if the request gets as far as that.
    pub fn take(&mut self, request: Request) -> (Reply, Verdict) {
        let reply = self.script.pop_front().unwrap_or_else(|| self.otherwise.clone());
        let content = content_of(&request);
        let is_taken = match reply {
            Reply::Status { status, .. } => (200..300).contains(&status),
            Reply::ByMerit | Reply::Cut(_) | Reply::Late(_) => true,
            Reply::Garbage(_) | Reply::Never => false,
        };
        let verdict = match &content {
            _ if !is_taken => (204, String::new()),
            Err(verdict) => verdict.clone(),
            Ok(content) => self.store(content),
        };
        if verdict.0 != 204 {
            self.complaints.push(verdict.1.clone());
        }
        let content = content.map_err(|(_, reason)| reason);
        self.seen.push(ReceivedRequest { request, content, reply: reply.clone() });
        (reply, verdict)
    }

    /// Stores correct samples, even beside faulty ones.
    fn store(&mut self, content: &WriteRequest) -> Verdict {
        let mut verdict = (204, String::new());
        for series in &content.series {
            let fault = fault_of(series).or_else(|| self.append(series));
            if let Some(fault) = fault {
                verdict = (400, fault);
            }
        }
        verdict
    }

    /// Appends samples. A sample not later than the latest is a fault, unless
    /// both are the same.
    fn append(&mut self, series: &Series) -> Option<String> {
        let stored = self.stored.entry(series.labels.clone()).or_default();
        let mut fault = None;
        for sample in &series.samples {
            match stored.last() {
                Some(last) if last == sample => {}
                Some(last) if last.timestamp >= sample.timestamp => {
                    let labels = &series.labels;
                    fault = Some(format!("{labels:?}: {sample:?} comes after {last:?}"));
                }
                _ => stored.push(*sample),
            }
        }
        fault
    }
}

/// The contents of a request.
fn content_of(request: &Request) -> Result<WriteRequest, Verdict> {
    let due = [
        ("content-encoding", "snappy", 415),
        ("content-type", "application/x-protobuf", 415),
        ("x-prometheus-remote-write-version", "0.1.0", 400),
    ];
    if request.method != "POST" {
        return Err((405, format!("a {}", request.method)));
    }
    for (name, value, status) in due {
        let found = request.header(name).unwrap_or_default();
        if found.split(';').next() != Some(value) {
            return Err((status, format!("{name}: {found:?} is not {value}")));
        }
    }
    let bytes = decompress(&request.body, MOST_BODY);
    bytes.and_then(|bytes| decode(&bytes)).map_err(|reason| (400, reason))
}
