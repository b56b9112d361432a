//! Makes connections to pmcd over any transport.
//!
//! Input: a host specification and the settings. Output: a [`Link`] after its
//! handshake, or a [`SourceError`] that says what was tried and what to check.
//! [`super::plan`] decides where to connect, in which order, and what failures mean.

use pmderive_core::source::SourceError;

use super::link::Link;
use super::options::ConnectOptions;
use super::plan::{Address, Failure, Outcome, Route, routes};
use super::spec::HostSpec;
use crate::transport::Transport;

/// Connects to the pmcd of a specification and performs the handshake.
pub(super) async fn connect<T: Transport>(
    spec: &HostSpec,
    options: &ConnectOptions,
) -> Result<Link<T>, SourceError> {
    let mut outcome = Outcome::default();
    for route in &routes(spec, options)? {
        match attempt(route, options).await {
            Ok(link) => return Ok(link),
            Err(failure) => {
                if outcome.failed(route, failure).is_break() {
                    break;
                }
            }
        }
    }
    Err(outcome.into_error())
}

async fn attempt<T: Transport>(
    route: &Route,
    options: &ConnectOptions,
) -> Result<Link<T>, Failure> {
    let timeout = options.connect_timeout;
    let forward = match route.forward() {
        Some((host, port)) => {
            let found = T::lookup(host, port, timeout).await;
            found.map_err(|error| route.unreachable(error))?
        }
        None => Vec::new(),
    };
    let config = route.config(forward)?;
    let stream = match &route.address {
        Address::Unix(path) => T::connect_unix(path, timeout).await,
        Address::Tcp { host, ports } => T::connect_tcp(host, ports, timeout).await,
    };
    let stream = stream.map_err(|error| route.unreachable(error))?;
    let link = Link::establish(stream, config, options.request_timeout).await;
    link.map_err(|error| route.unusable(error))
}
