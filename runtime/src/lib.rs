//! Performance metrics and compiled programs over them: hosts, archives and
//! this machine as sources, behind one door.
//!
//! ```text
//!   pmderive-archive   pmderive-local   pmderive-client     sources of metrics
//!            \               |               /
//!             pmderive-core: ask, fetch ──► batch ──► evaluator
//! ```
//!
//! | crate | contents |
//! |---|---|
//! | `pmderive-core` | metrics, results, programs, the evaluator; no input or output |
//! | `pmderive-client` | pmcd's protocol and hosts, blocking and async (feature `live`) |
//! | `pmderive-archive` | archives, read and written (feature `archive`) |
//! | `pmderive-local` | this machine, without pmcd (feature `local`) |
//! | `pmderive-system` | pcp.conf, time zones, new files |
//!
//! This crate adds the parts that work over any source: a
//! [`Context`](context::Context) of any kind, fetch groups, name spaces. None
//! of these crates knows the expression language or Cranelift: the compiler
//! hands the evaluator a [`program::Program`] and, perhaps, native entry
//! points.
#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations, unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod context;
pub mod fetch_group;
pub mod name_space;

#[cfg(feature = "archive")]
pub use pmderive_archive::{archive, archive_writer, record_mode};
pub use pmderive_core::{eval, memory, model, program, result, source};
#[cfg(feature = "local")]
pub use pmderive_local as local;
pub use pmderive_system::{pcp_conf, time};

// Parts that the crates of this workspace share. The crate that has one
// documents it.
#[cfg(feature = "live")]
#[doc(hidden)]
pub use pmderive_client::{pdu, proto, transport};
#[doc(hidden)]
pub use pmderive_core::{escape, kernel, locks, pattern, position, positions, weak_table};
#[doc(hidden)]
pub use pmderive_system::{bounded, new_file};
