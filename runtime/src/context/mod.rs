//! Contexts: open sources of metrics.
//!
//! A context implements [`crate::source::MetadataSource`] and
//! [`crate::source::FetchSource`] over what the modules below it provide.

mod connect;
pub mod host;
mod host_metadata;
mod link;
mod metadata_cache;
pub mod options;
pub mod pcp_conf;
pub mod spec;

pub use host::HostContext;
pub use options::ConnectOptions;
pub use spec::{HostSpec, SpecError};
