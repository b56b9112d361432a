//! A client of pmcd, blocking and async.
//!
//! ```text
//!   context     a host: metadata that is remembered, fetches, reconnecting
//!      │
//!   transport   sockets; the only module that reads and writes
//!      │
//!   proto       what a connection says next, and what an answer means: no sockets
//!      │
//!   pdu         bytes
//! ```
//!
//! Applications depend on `pmderive` or `pmderive-runtime`. They write
//! `pmderive::runtime::context`, say, for `pmderive_client::context`,
//! and `pmderive::runtime::model` for `pmderive_core::model`; or `pmderive_runtime::`.
#![deny(missing_debug_implementations, unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod context;
pub mod pdu;
pub mod proto;
pub mod transport;
