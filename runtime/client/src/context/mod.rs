//! Hosts as sources of metrics, in two forms: calls that block, and futures. Both remember the
//! metadata of their hosts, and make lost connections again.
//!
//! A context implements [`pmderive_core::source::MetadataSource`] and
//! [`pmderive_core::source::FetchSource`] over the modules below it.

mod advice;
mod async_host;
mod backoff;
mod certificates;
mod common_metadata;
mod connect;
mod evaluating;
pub mod host;
mod host_metadata;
mod host_questions;
mod link;
mod metadata_cache;
pub mod options;
mod password;
mod plan;
mod prepared;
pub mod spec;
mod tls_conf;

pub use advice::{SASL_ENCRYPTION_NEEDED, remedies};
pub use async_host::AsyncHostContext;
pub use host::HostContext;
pub use options::ConnectOptions;
pub use spec::{Encryption, HostSpec, SpecError};
pub use tls_conf::TlsSettings;

// The types of a password and of a connection, which contexts are made with.
pub use crate::proto::Secret;
pub use crate::transport::Transport;
