//! A pmcd that serves invented metrics, and misbehaves on command: the peer of
//! tests and of simulations of many hosts.
//!
//! ```text
//!   World     metrics with scripts, instances, texts, labels; shared, unchanged
//!     ▲
//!   FakeHost  name, seed, clock, agents, notices, rules for faults; changed at any time
//!     ▲
//!   Session   one connection: bytes in, bytes out, no sockets
//!     ▲
//!   FakePmcd  TCP and unix sockets for any number of hosts, in one thread
//!   Direct    no sockets and no waiting: a context in the same thread
//! ```
//!
//! It answers as pmcd 6.0.3 does, also to requests that make no sense. Nothing
//! depends on the time of day or on chance unless a [`Clock`] or a script says
//! so.
//!
//! ```
//! use pmderive_client::context::{ConnectOptions, HostContext};
//! use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Fault, Metric, Rule, Script, World};
//! use pmderive_core::model::Value;
//! use pmderive_client::pdu::PduType;
//! use pmderive_core::source::{FetchSource, MetadataSource};
//!
//! let mut world = World::new();
//! let disks = world.add_domain(&["sda", "sdb"]);
//! let reads = world.add(Metric::new("disk.dev.read", Script::counter(100.0)).per(disks));
//! let pmcd = FakePmcd::start(FakeHost::new(world).named("web1"));
//!
//! let mut host = HostContext::open_with(&pmcd.spec(), ConnectOptions::default())?;
//! assert_eq!(host.lookup_names(&["disk.dev.read"])?, [Ok(reads)]);
//! // Its clock goes on by a second with each fetch.
//! for reads_so_far in [0, 100] {
//!     let result = host.fetch_values(&[reads])?;
//!     let values = result.sets[0].decode(pmderive_core::model::ValueType::U64)?;
//!     assert_eq!(values[1], (1, Value::U64(reads_so_far)));
//! }
//!
//! // The next reply breaks off after seven bytes.
//! pmcd.host().inject(Rule::new(Fault::Close { after: 7 }).on(PduType::HighresFetch));
//! let lost = host.fetch_values(&[reads]).expect_err("a broken connection");
//! assert!(lost.to_string().ends_with("pmcd closed the connection after 7 bytes of a reply"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answers;
mod direct;
mod fault;
mod fetch;
mod fuzz;
mod host;
mod outbox;
mod script;
mod server;
mod session;
mod world;

pub use direct::Direct;
pub use fault::{Change, Fault, Garble, Rule};
pub use fuzz::fuzz_session;
pub use host::{Clock, FEATURES, FakeHost};
pub use script::{Compute, Moment, Script};
pub use server::FakePmcd;
pub(crate) use server::{first, loopback_socket};
pub use session::{Flow, Session};
pub use world::{DEFAULT_AGENT, Metric, PMCD_AGENT, Populate, World};
