//! The client's side of the conversation with pmcd, without sockets and clock.
//!
//! [`Connection`] accepts received bytes and returns events. It accepts requests and
//! returns the bytes to send. Replies carry no request number, so it keeps a queue of
//! the replies that are due. The caller decides how long to wait for them (see
//! [`crate::transport`]).

//!
//! ```text
//!   proxy     pmproxy's words, if one is in between
//!   greeting  pmcd says what it can do, we say what we want
//!   tls       from here on everything is encrypted, if so wanted
//!   sasl      who the user is, if pmcd is to know
//!   requests  and their replies
//! ```

mod certificate;
mod config;
mod connection;
mod error;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod handshake;
mod proxy;
mod request;
mod sasl;
mod store;
#[cfg(test)]
mod test_peer;
mod tls;

pub use certificate::CertificateProblem;
pub use config::{
    ConnectionConfig, Credentials, Forward, Method, Peer, Secret, Security, TlsClient,
};
pub use connection::{Connection, Event};
pub use error::{Lack, ProtocolError};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::{fuzz_handshake, fuzz_stream};
pub use request::{FetchRequest, Reply, Request};
pub use sasl::AuthenticationError;
pub use store::StoreRequest;
