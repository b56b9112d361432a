//! The client's side of the conversation with pmcd, without sockets and clock.
//!
//! [`Connection`] takes the bytes that arrive and tells what they mean, takes
//! requests and tells which bytes to send. Replies carry no request number, so
//! it keeps the queue of what is due; how long to wait for it is for the
//! caller to decide, see [`crate::transport`].

mod connection;
mod error;
mod request;

pub use connection::{Connection, ConnectionConfig, Event, Peer, StateChange, fuzz_stream};
pub use error::ProtocolError;
pub use request::{FetchRequest, Reply, Request};
