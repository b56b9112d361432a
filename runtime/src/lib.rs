//! The runtime of pmderive: everything that is needed to fetch performance
//! metrics and to evaluate a compiled program over them.
//!
//! ```text
//!   archive/  local/  memory  transport/+proto/+pdu/ sources of metrics
//!        \      |      /
//!         context/                                  MetadataSource + FetchSource
//!            │  ResultBatch (what pmcd sent, columns)
//!            ▼
//!         eval/   layout · workspace · history      one evaluation per fetch
//!            ▲
//!         program/ + kernel/                        what to compute, made by the compiler
//! ```
//!
//! This crate knows nothing of the expression language or of Cranelift: the
//! compiler hands it a [`program::Program`] and, perhaps, native entry points.
#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod archive;
pub mod archive_writer;
pub mod context;
pub mod escape;
pub mod eval;
pub mod fake_pmcd;
pub mod fetch_group;
pub mod kernel;
pub mod local;
pub mod memory;
#[allow(
    clippy::disallowed_methods,
    reason = "its messages are the caller's, as those of pmprintf(3)"
)]
pub mod message;
pub mod model;
pub mod name_space;
pub mod new_file;
pub mod pattern;
pub mod pdu;
pub mod program;
pub mod proto;
pub mod record;
pub mod result;
mod sampling;
pub mod source;
pub mod time;
pub mod transport;
pub mod weak_table;
