//! The configuration: one TOML file as data, with the places of values that later checks may
//! refuse. [`super::plan`] reads the files that it names.

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod keys;
mod read;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use read::{is_same_file, read};

use super::labels::Labels;
use super::sinks::client::{Credentials, Url};
use super::sinks::tls::Identity;
use crate::dialect::{Dialect, Language};
use crate::stamps::Stamps;
use crate::syntax::ast::Spanned;
use crate::text::Span;
use crate::text::document::Times;

/// The configuration of `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The language of all definitions.
    pub language: Language,
    /// Address at which metrics are served.
    pub listen: Option<SocketAddr>,
    /// Access to the served metrics.
    pub web: Web,
    /// Threads that fetch and evaluate; `None` for one per processor.
    pub threads: Option<usize>,
    /// Limits.
    pub limits: Limits,
    /// The groups, each with a name of its own.
    pub groups: Vec<Group>,
    /// Definitions across hosts.
    pub fleet: Option<Fleet>,
    /// The sinks, each with a name of its own; at most [`MAX_SINKS`].
    pub sinks: Vec<Sink>,
}

/// Most sinks: a set of sinks has a bit for each, and one more.
pub const MAX_SINKS: usize = 63;

/// Access to the served metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Web {
    /// Certificates of the server and its private key.
    pub identity: Option<Identity>,
    /// File whose first line is the token that requests must have.
    pub token_file: Option<PathBuf>,
}

/// Limits of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of hosts.
    pub targets: usize,
    /// Number of connections that each thread makes at once.
    pub connects: usize,
    /// Number of kinds of hosts.
    pub kinds: usize,
    /// Number of instances of one metric on one host, be it exported or read by such a metric.
    pub instances: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { targets: 100_000, connects: 64, kinds: 4096, instances: 10_000 }
    }
}

/// Hosts with the same settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: Box<str>,
    /// Place of the table.
    pub span: Span,
    /// Files of targets.
    pub targets: Vec<Spanned<PathBuf>>,
    /// Files of definitions.
    pub definitions: Vec<Spanned<PathBuf>>,
    /// Exported metrics; `None` for those that files mark.
    pub export: Option<Vec<Spanned<Box<str>>>>,
    /// Time between fetches of a host.
    pub interval: Duration,
    /// Time for a host to answer in a slot; shorter than the interval.
    pub deadline: Duration,
    /// Labels of all its hosts.
    pub labels: Labels,
    /// Options of connections.
    pub access: Access,
}

/// Definitions over the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Place of the table.
    pub span: Span,
    /// Their files.
    pub definitions: Vec<Spanned<PathBuf>>,
    /// Metrics of the fleet for sinks; `None` for all.
    pub export: Option<Vec<Spanned<Box<str>>>>,
    /// Time after the end of a slot in which hosts still count; `None` for the longest deadline
    /// of the groups.
    pub grace: Option<Duration>,
}

/// Options of connections to the hosts of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Encryption; `None` leaves it to the environment.
    pub encryption: Option<pmderive_runtime::context::Encryption>,
    /// Certificates and keys, in the form of PCP's `tls.conf`.
    pub tls: Option<PathBuf>,
    /// User who logs in.
    pub user: Option<Box<str>>,
    /// File whose first line is the password.
    pub password_file: Option<PathBuf>,
}

/// A sink: a destination of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sink {
    /// Its name.
    pub name: Box<str>,
    /// Place of the table.
    pub span: Span,
    /// The exported metrics that it gets; `None` for all.
    pub export: Option<Vec<Spanned<Box<str>>>>,
    /// Bytes that wait for it at most.
    pub buffer: usize,
    /// Its kind.
    pub kind: SinkKind,
}

/// Kinds of sinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkKind {
    /// Lines of JSON in a file, or on standard output.
    JsonLines(Option<PathBuf>),
    /// `/metrics` of this process.
    Prometheus,
    /// A receiver of Prometheus' remote write.
    RemoteWrite(Box<RemoteWrite>),
}

/// A receiver of Prometheus' remote write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteWrite {
    /// Its address.
    pub url: Url,
    /// Trusted authorities of TLS, PEM; `None` for those of the system.
    pub authorities: Option<PathBuf>,
    /// Stamps of their file when the plan was made. A changed file makes another sink.
    pub authorities_then: Stamps,
    /// Credentials for the receiver.
    pub credentials: Credentials,
    /// Time for the receiver to answer.
    pub timeout: Duration,
    /// Age from which on samples are not sent.
    pub max_age: Duration,
}

impl RemoteWrite {
    /// A receiver without other settings.
    pub fn to(url: Url) -> RemoteWrite {
        RemoteWrite {
            url,
            authorities: None,
            authorities_then: Stamps::default(),
            credentials: Credentials::None,
            timeout: Duration::from_secs(30),
            max_age: Duration::from_secs(600),
        }
    }
}

/// The language without a setting in the file.
pub const USUAL: Language = Language { dialect: Dialect::Fixed, extensions: true };

/// The interval without a setting in the file.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(10);

/// Bytes that wait for a sink at most, without a setting in the file.
pub const DEFAULT_BUFFER: usize = 64 << 20;

/// Range of intervals: in shorter ones no host answers, and longer ones are probably mistakes.
pub const INTERVALS: Times = Times {
    shortest: Duration::from_millis(10),
    longest: Duration::from_secs(24 * 3600),
    words: "10 msec to 1 day",
};

/// The deadline without a setting in the file: a part of the interval.
pub fn default_deadline(interval: Duration) -> Duration {
    interval * 4 / 5
}
