//! Contexts: open sources of metrics, of any kind.

#[cfg(any(feature = "archive", feature = "live", feature = "local"))]
mod any;

#[cfg(any(feature = "archive", feature = "live", feature = "local"))]
pub use any::Context;
#[cfg(feature = "live")]
pub use pmderive_client::context::{
    AsyncHostContext, ConnectOptions, Encryption, HostContext, HostSpec, SASL_ENCRYPTION_NEEDED,
    Secret, SpecError, TlsSettings, Transport, host, options, remedies, spec,
};
