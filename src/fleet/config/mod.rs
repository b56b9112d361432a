//! The configuration: one TOML file as data, with the places of what may turn out
//! to be wrong later. Files that it names are not read here, except by
//! [`super::plan`].

mod keys;
mod read;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use read::read;

use super::labels::Labels;
use super::sinks::client::{Credentials, Url};
use super::sinks::tls::Identity;
use crate::dialect::{Dialect, Language};
use crate::document::Times;
use crate::stamps::Stamps;
use crate::syntax::ast::Spanned;
use crate::text::Span;

/// What `serve` was asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The language of all definitions.
    pub language: Language,
    /// Where metrics are served.
    pub listen: Option<SocketAddr>,
    /// Who may read them.
    pub web: Web,
    /// Threads that fetch and evaluate; as many as processors without it.
    pub threads: Option<usize>,
    /// What is refused.
    pub limits: Limits,
    /// The groups, each with a name of its own.
    pub groups: Vec<Group>,
    /// What is computed across hosts.
    pub fleet: Option<Fleet>,
    /// The sinks, each with a name of its own; at most [`MAX_SINKS`].
    pub sinks: Vec<Sink>,
}

/// Sinks at most: a set of sinks has a bit for each, and one more.
pub const MAX_SINKS: usize = 63;

/// Who may read what is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Web {
    /// Certificates of the server and its private key.
    pub identity: Option<Identity>,
    /// A file whose first line is the token that requests have to bring.
    pub token_file: Option<PathBuf>,
}

/// What is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Hosts.
    pub targets: usize,
    /// Connections that are being made at once, in each thread.
    pub connects: usize,
    /// Kinds of hosts.
    pub kinds: usize,
    /// Instances of one exported metric on one host.
    pub instances: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { targets: 100_000, connects: 64, kinds: 4096, instances: 10_000 }
    }
}

/// Hosts that are watched alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What it is called.
    pub name: Box<str>,
    /// Where the table stands.
    pub span: Span,
    /// Files of targets.
    pub targets: Vec<Spanned<PathBuf>>,
    /// Files of definitions.
    pub definitions: Vec<Spanned<PathBuf>>,
    /// Which metrics are exported; those that files mark without it.
    pub export: Option<Vec<Spanned<Box<str>>>>,
    /// How often each host is fetched.
    pub interval: Duration,
    /// How long a host may take for a slot; shorter than the interval.
    pub deadline: Duration,
    /// Labels of all its hosts.
    pub labels: Labels,
    /// How connections are made.
    pub access: Access,
}

/// Definitions over the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Where the table stands.
    pub span: Span,
    /// Their files.
    pub definitions: Vec<Spanned<PathBuf>>,
    /// Which metrics of the fleet sinks get; all without it.
    pub export: Option<Vec<Spanned<Box<str>>>>,
    /// How long hosts are waited for after the end of a slot; the longest deadline
    /// of the groups without it.
    pub grace: Option<Duration>,
}

/// How connections to the hosts of a group are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Whether they are encrypted; as the environment says without it.
    pub encryption: Option<pmderive_runtime::context::Encryption>,
    /// Certificates and keys, in the form of PCP's `tls.conf`.
    pub tls: Option<PathBuf>,
    /// Who logs in.
    pub user: Option<Box<str>>,
    /// A file whose first line is the password.
    pub password_file: Option<PathBuf>,
}

/// Where values go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sink {
    /// What it is called.
    pub name: Box<str>,
    /// Where the table stands.
    pub span: Span,
    /// Which of the exported metrics it gets; all without it.
    pub export: Option<Vec<Spanned<Box<str>>>>,
    /// Bytes that wait for it at most.
    pub buffer: usize,
    /// What it is.
    pub kind: SinkKind,
}

/// Kinds of sinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkKind {
    /// Lines of JSON in a file; on standard output without one.
    JsonLines(Option<PathBuf>),
    /// `/metrics` of this process.
    Prometheus,
    /// A receiver of Prometheus' remote write.
    RemoteWrite(Box<RemoteWrite>),
}

/// A receiver of Prometheus' remote write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteWrite {
    /// Where it is.
    pub url: Url,
    /// Who is trusted in TLS, PEM; whom the system trusts without it.
    pub authorities: Option<PathBuf>,
    /// Their file as it was when the plan was made: with another one it is another sink.
    pub authorities_then: Stamps,
    /// Who we are to it.
    pub credentials: Credentials,
    /// How long the receiver may take.
    pub timeout: Duration,
    /// Samples older than this are not sent.
    pub max_age: Duration,
}

/// The language unless the file says otherwise.
pub const USUAL: Language = Language { dialect: Dialect::Fixed, extensions: true };

/// An interval unless the file says otherwise.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(10);

/// Bytes that wait for a sink at most, unless the file says otherwise.
pub const DEFAULT_BUFFER: usize = 64 << 20;

/// Intervals: in shorter ones no host answers, and longer ones are hardly meant.
pub const INTERVALS: Times = Times {
    shortest: Duration::from_millis(10),
    longest: Duration::from_secs(24 * 3600),
    words: "10 msec to 1 day",
};

/// The part of an interval that a deadline is unless the file says otherwise.
pub fn default_deadline(interval: Duration) -> Duration {
    interval * 4 / 5
}

/// For fuzzing: whatever is in the file, it is read or refused, and what is read
/// without a mistake keeps its promises.
#[cfg(any(test, feature = "fuzz"))]
pub fn fuzz_serve_config(data: &[u8]) {
    use crate::diag::Diagnostics;
    use crate::text::SourceMap;
    let mut sources = SourceMap::default();
    let source = sources.add("serve.toml", String::from_utf8_lossy(data));
    let mut diagnostics = Diagnostics::default();
    let config = read(source, std::path::Path::new(""), &mut sources, &mut diagnostics);
    for diagnostic in &diagnostics {
        assert!(sources.holds(diagnostic.span), "{diagnostic:?}");
    }
    let Some(config) = config.filter(|_| diagnostics.errors() == 0) else { return };
    assert!(config.sinks.len() <= MAX_SINKS && !config.groups.is_empty());
    assert!(config.groups.iter().all(|group| group.deadline < group.interval));
}
