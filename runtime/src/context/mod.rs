//! Contexts: open sources of metrics.
//!
//! A context implements [`crate::source::MetadataSource`] and
//! [`crate::source::FetchSource`] over what the modules below it provide.

mod advice;
mod any;
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
pub mod pcp_conf;
mod plan;
mod prepared;
pub mod spec;
mod tls_conf;

pub use advice::SASL_ENCRYPTION_NEEDED;
pub use any::Context;
pub use async_host::AsyncHostContext;
pub use host::HostContext;
pub use options::ConnectOptions;
pub use spec::{Encryption, HostSpec, SpecError};
pub use tls_conf::TlsSettings;
