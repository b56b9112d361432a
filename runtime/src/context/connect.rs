//! Makes connections to pmcd as a host specification and the settings say.
//!
//! In go the two, out comes a [`Link`] after its handshake, or a
//! [`SourceError`] that says what was tried and what to look at. What the link
//! is used for does not matter here.

use std::io::ErrorKind;
use std::path::Path;

use super::link::{Link, LinkError};
use super::options::ConnectOptions;
use super::spec::{HostSpec, Target};
use crate::pdu::MAX_CONTAINER_NAME;
use crate::proto::{ConnectionConfig, Peer, ProtocolError};
use crate::source::SourceError;
use crate::transport::{ByteStream, connect_tcp, connect_unix};

/// Connects to the pmcd of a specification and performs the handshake.
pub(super) fn connect(spec: &HostSpec, options: &ConnectOptions) -> Result<Link, SourceError> {
    let unsupported =
        |message: String| SourceError::Specification { target: spec.to_string(), message };
    if let Some(name) = spec.unsupported.first() {
        return Err(unsupported(format!("the attribute `{name}` is not supported yet")));
    }
    let container = spec.container.as_ref().or(options.container.as_ref());
    if let Some(name) = container
        && !is_container_name(name)
    {
        return Err(unsupported(format!(
            "`{name}` is not the name of a container: letters, digits, `.`, `-` and `_` are"
        )));
    }
    let obstacle = network_obstacle(spec, options);
    match &spec.target {
        Target::Unix { socket } => {
            connect_socket(socket.as_ref().unwrap_or(&options.socket), container, options)
        }
        Target::Local { socket } => {
            let socket = socket.as_ref().unwrap_or(&options.socket);
            let first = connect_socket(socket, container, options);
            if first.is_ok() || obstacle.is_some() {
                return first;
            }
            match connect_host("localhost", &options.ports, container, options) {
                // The socket is the usual way: what is wrong with it says more.
                Err(SourceError::Connect { .. }) => first,
                outcome => outcome,
            }
        }
        Target::Host { name, ports } => {
            if let Some(obstacle) = obstacle {
                return Err(unsupported(obstacle));
            }
            let ports = if ports.is_empty() { &options.ports } else { ports };
            connect_host(name, ports, container, options)
        }
    }
}

/// Why no connection over the network may be made, if so.
fn network_obstacle(spec: &HostSpec, options: &ConnectOptions) -> Option<String> {
    if spec.secure {
        return Some("TLS is not supported yet; pcp:// connects without it".to_owned());
    }
    if options.secure {
        return Some("PCP_SECURE_SOCKETS demands TLS, which is not supported yet".to_owned());
    }
    let proxy = spec.proxy.as_ref().or(options.proxy.as_ref())?;
    Some(format!("the proxy `{proxy}` cannot be used: proxies are not supported yet"))
}

/// True for what pmcd accepts as the name of a container.
fn is_container_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=MAX_CONTAINER_NAME).contains(&name.len()) && name.chars().all(allowed)
}

fn connect_socket(
    path: &Path,
    container: Option<&String>,
    options: &ConnectOptions,
) -> Result<Link, SourceError> {
    let target = path.display().to_string();
    match connect_unix(path, options.connect_timeout) {
        Ok(stream) => establish(target, Box::new(stream), Peer::SameHost, container, options),
        Err(source) => Err(SourceError::Connect {
            target,
            help: "is pmcd running? `--local` gives metrics of this machine without PCP",
            source,
        }),
    }
}

fn connect_host(
    name: &str,
    ports: &[u16],
    container: Option<&String>,
    options: &ConnectOptions,
) -> Result<Link, SourceError> {
    let list: Vec<String> = ports.iter().map(u16::to_string).collect();
    let host = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
    let target = format!("{host}:{}", list.join(","));
    match connect_tcp(name, ports, options.connect_timeout) {
        Ok(stream) => establish(target, Box::new(stream), Peer::Remote, container, options),
        Err(source) => {
            let help = match source.kind() {
                ErrorKind::HostUnreachable => "is the name of the host right?",
                ErrorKind::ConnectionRefused => {
                    "is pmcd running there, on that port, and open to the network?"
                }
                _ => "can the host be reached, and does a firewall let connections to pmcd pass?",
            };
            Err(SourceError::Connect { target, help, source })
        }
    }
}

fn establish(
    target: String,
    stream: Box<dyn ByteStream>,
    peer: Peer,
    container: Option<&String>,
    options: &ConnectOptions,
) -> Result<Link, SourceError> {
    let config =
        ConnectionConfig { peer, container: container.cloned(), ..ConnectionConfig::default() };
    Link::establish(stream, config, options.request_timeout).map_err(|error| {
        let target = match error {
            LinkError::Timeout(_) => format!("{target}: connected, but is it a pmcd?"),
            _ => target,
        };
        source_error(target, error)
    })
}

/// What an error of a link to `target` is to the caller of a context.
pub(super) fn source_error(target: String, error: LinkError) -> SourceError {
    let error = match error {
        LinkError::Io(source) => return SourceError::Io { target, source },
        LinkError::Timeout(timeout) => {
            return SourceError::Timeout { target, seconds: timeout.as_secs_f64() };
        }
        LinkError::Protocol(error) => error,
    };
    let refused = |what: &str, status| SourceError::Status {
        target: format!("{target}: pmcd rejected {what}"),
        status,
    };
    match error {
        ProtocolError::Refused(status) => refused("the connection", status),
        ProtocolError::Rejected(status) => refused("the credentials or the container", status),
        ProtocolError::FirstFetch(status) => refused("the fetch", status),
        ProtocolError::Unsupported(message) => {
            SourceError::Specification { target, message: message.to_owned() }
        }
        ProtocolError::Closed { .. } => {
            let source = std::io::Error::new(ErrorKind::UnexpectedEof, error.to_string());
            SourceError::Io { target, source }
        }
        error => SourceError::Malformed { target, message: error.to_string() },
    }
}
