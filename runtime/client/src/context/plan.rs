//! The routes to a pmcd, in the order to try them.
//!
//! Input: a host specification and the settings. Output: [`routes`], each with
//! an address and the configuration of the connection there. The connecting code
//! reports each failure to an [`Outcome`], which decides whether to go on and what to
//! tell the user in the end. Nothing is looked up or connected here.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::PathBuf;

use pmderive_core::escape;
use pmderive_core::source::SourceError;

use super::advice;
use super::link::LinkError;
use super::options::ConnectOptions;
use super::password;
use super::spec::{Encryption, HostAndPorts, HostSpec, Target, UserAttributes};
use crate::pdu::MAX_CONTAINER_NAME;
use crate::proto::{ConnectionConfig, Credentials, Forward, Method, Peer, ProtocolError, Security};

/// One route to a pmcd.
#[derive(Debug)]
pub(super) struct Route {
    /// The address to connect to.
    pub(super) address: Address,
    /// The pmcd behind a proxy.
    forward: Option<(String, u16)>,
    config: ConnectionConfig,
    /// If an attempt fails at this stage or earlier, the next route is tried.
    gives_way: Stage,
    pub(super) target: advice::Target,
}

/// An address to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A host, at the first port that answers on any of its addresses.
    Tcp {
        /// Name or numeric address.
        host: String,
        /// Ports to try in turn.
        ports: Vec<u16>,
    },
}

/// The progress of an attempt before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// There was no connection.
    Nowhere,
    /// There was a connection, but nothing from pmcd.
    Connected,
    /// pmcd answered.
    Greeted,
}

/// The failure of a route.
#[derive(Debug)]
pub(super) struct Failure {
    stage: Stage,
    error: SourceError,
}

/// The outcome of the routes so far.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    farthest: Option<Failure>,
}

impl Outcome {
    /// Notes a failure. Returns whether to try the next route.
    pub(super) fn failed(&mut self, route: &Route, failure: Failure) -> ControlFlow<()> {
        let goes_on = failure.stage <= route.gives_way;
        match &mut self.farthest {
            Some(farthest) if failure.stage < farthest.stage => {}
            // Among failures at the same stage, the first route is the usual one, and
            // its remedy helps most. The reason of the last one is libpcp's status.
            Some(Failure { stage, error: SourceError::Connect { target, source, .. } })
                if *stage == failure.stage =>
            {
                if let SourceError::Connect { target: other, source: last, .. } = failure.error {
                    *target += " or ";
                    *target += &other;
                    *source = last;
                }
            }
            Some(farthest) if farthest.stage == failure.stage => {}
            farthest => *farthest = Some(failure),
        }
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// The error to show when no route is left.
    pub(super) fn into_error(self) -> SourceError {
        match self.farthest {
            Some(failure) => failure.error,
            // There is at least one route.
            None => {
                SourceError::Io { target: String::new(), source: io::ErrorKind::NotFound.into() }
            }
        }
    }
}

/// The routes to the pmcd of `spec`, at least one, in the order to try them. `options` decide
/// what it leaves open.
///
/// # Errors
/// The specification asks for something impossible, or a file that TLS needs cannot
/// be used.
pub(super) fn routes(spec: &HostSpec, options: &ConnectOptions) -> Result<Vec<Route>, SourceError> {
    let wrong = |message: String| SourceError::Specification { target: spec.to_string(), message };
    if spec.compress {
        return Err(SourceError::Handshake {
            target: spec.to_string(),
            status: advice::NOT_SUPPORTED,
            message: "no pmcd compresses its replies".to_owned(),
            help: "leave the attribute `compress` out".to_owned(),
        });
    }
    // As in libpcp, an empty name is no container, whatever the options say.
    let container = spec.container.as_ref().or(options.container.as_ref());
    let container = container.filter(|name| !name.is_empty());
    if let Some(name) = container
        && !is_container_name(name)
    {
        return Err(wrong(format!(
            "`{name}` is not the name of a container: letters, digits, `.`, `-` and `_` are"
        )));
    }
    let credentials = spec.user.as_ref().map(|user| credentials(user, options));
    let credentials = credentials.transpose().map_err(wrong)?;
    let planner = Planner {
        options,
        config: ConnectionConfig {
            container: container.cloned(),
            credentials,
            ..ConnectionConfig::default()
        },
        encryption: spec.encryption.max(options.encryption),
    };
    let usual = |socket: &Option<PathBuf>| socket.as_ref().unwrap_or(&options.socket).clone();
    Ok(match &spec.target {
        Target::Unix { socket } => vec![planner.socket(usual(socket), Stage::Nowhere)],
        Target::Local { socket } => {
            let mut routes = vec![planner.socket(usual(socket), Stage::Greeted)];
            // Without ports, or if the TLS settings are unusable, the socket remains.
            if !options.ports.is_empty() {
                routes.extend(planner.host("localhost".to_owned(), options.ports.clone()));
            }
            routes
        }
        Target::Host(HostAndPorts { name, ports }) => {
            let ports = if ports.is_empty() { &options.ports } else { ports };
            if ports.is_empty() {
                return Err(wrong("neither it nor the settings have a port".to_owned()));
            }
            match spec.proxy.as_ref().or(options.proxy.as_ref()) {
                Some(proxy) => planner.proxied(name, ports, proxy),
                None => planner.host(name.clone(), ports.clone()).map(|route| vec![route]),
            }
            .map_err(wrong)?
        }
    })
}

/// True if pmcd accepts the name of a container.
fn is_container_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    name.len() <= MAX_CONTAINER_NAME && name.chars().all(allowed)
}

/// The credentials of a user. All parts must be known.
fn credentials(user: &UserAttributes, options: &ConnectOptions) -> Result<Credentials, String> {
    let given = |value: Option<&String>| value.filter(|value| !value.is_empty()).cloned();
    let Some(name) = given(user.name.as_ref()) else {
        return Err("a user is to be authenticated: add `user=NAME`".to_owned());
    };
    let password = match (&user.password, &user.password_file, &options.password) {
        (Some(_), Some(_), _) => return Err("`pass=` or `passfile=`: one is enough".to_owned()),
        (Some(password), None, _) | (None, None, Some(password)) => password.clone(),
        (None, Some(file), _) => password::read(file)?,
        (None, None, None) => {
            return Err(format!(
                "the password of `{name}` is missing: add `passfile=FILE`, or set PMDERIVE_PASSWORD"
            ));
        }
    };
    let method = match &user.method {
        None => None,
        Some(name) => match Method::from_name(name) {
            None => {
                return Err(format!(
                    "the method `{name}` is not known: SCRAM-SHA-256, PLAIN and LOGIN are"
                ));
            }
            method => method,
        },
    };
    let user = match given(user.realm.as_ref()) {
        Some(realm) if !name.contains('@') => format!("{name}@{realm}"),
        _ => name,
    };
    Ok(Credentials { user, password, method })
}

/// Everything that the routes have in common.
struct Planner<'o> {
    options: &'o ConnectOptions,
    config: ConnectionConfig,
    encryption: Encryption,
}

impl Planner<'_> {
    /// A route over a unix socket. It has no TLS, because the system protects sockets.
    fn socket(&self, path: PathBuf, gives_way: Stage) -> Route {
        Route {
            target: self.target(escape::path(&path).into_owned()),
            address: Address::Unix(path),
            forward: None,
            config: ConnectionConfig { peer: Peer::SameHost, ..self.config.clone() },
            gives_way,
        }
    }

    fn host(&self, host: String, ports: Vec<u16>) -> Result<Route, String> {
        Ok(Route {
            target: self.target(shown(&host, &ports)),
            config: self.remote(&host)?,
            address: Address::Tcp { host, ports },
            forward: None,
            gives_way: Stage::Nowhere,
        })
    }

    /// A route for each port of pmcd, because a proxy tries only one.
    fn proxied(
        &self,
        host: &str,
        ports: &[u16],
        proxy: &HostAndPorts,
    ) -> Result<Vec<Route>, String> {
        let proxy_port = proxy.ports.first().copied().unwrap_or(self.options.proxy_port);
        let config = ConnectionConfig { peer: Peer::Remote, ..self.remote(host)? };
        let route = |port: &u16| Route {
            target: self.target(format!(
                "{} through the proxy {}",
                shown(host, &[*port]),
                shown(&proxy.name, &[proxy_port])
            )),
            address: Address::Tcp { host: proxy.name.clone(), ports: vec![proxy_port] },
            forward: Some((host.to_owned(), *port)),
            config: config.clone(),
            gives_way: Stage::Connected,
        };
        Ok(ports.iter().map(route).collect())
    }

    fn remote(&self, host: &str) -> Result<ConnectionConfig, String> {
        let tls = |verify| self.options.tls.client(host, verify);
        let security = match self.encryption {
            Encryption::Off => Security::Off,
            Encryption::Relaxed => Security::Relaxed(tls(false)?),
            Encryption::Required => Security::Required(tls(true)?),
        };
        let peer = if is_loopback(host) { Peer::Loopback } else { Peer::Remote };
        Ok(ConnectionConfig { peer, security, ..self.config.clone() })
    }

    fn target(&self, name: String) -> advice::Target {
        advice::Target { name, tls_conf: self.options.tls.file().to_owned() }
    }
}

/// True for names and addresses that mean this host.
fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// A host and its ports as in a specification.
fn shown(host: &str, ports: &[u16]) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let ports = ports.join(",");
    if host.contains(':') { format!("[{host}]:{ports}") } else { format!("{host}:{ports}") }
}

impl Route {
    /// Host and port of a pmcd behind a proxy; `None` without a proxy. Its addresses
    /// must be looked up for [`Route::config`].
    pub(super) fn forward(&self) -> Option<(&str, u16)> {
        self.forward.as_ref().map(|(host, port)| (host.as_str(), *port))
    }

    /// The configuration of the connection. `addresses` are those of
    /// [`Route::forward`], if there is a proxy.
    ///
    /// # Errors
    /// A proxy understands none of the addresses.
    pub(super) fn config(
        &self,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<ConnectionConfig, Failure> {
        let mut config = self.config.clone();
        if let Some((host, port)) = &self.forward {
            let mut usable = addresses.into_iter().filter_map(|address| match address.ip() {
                IpAddr::V4(address) => Some(address),
                IpAddr::V6(address) => address.to_ipv4_mapped(),
            });
            let Some(address) = usable.next() else {
                let error = SourceError::Specification {
                    target: self.target.name.clone(),
                    message: format!(
                        "`{host}` has no IPv4 address, and pmproxy takes no other for its own host"
                    ),
                };
                return Err(Failure { stage: Stage::Greeted, error });
            };
            config.forward = Some(Forward { address, port: *port });
        }
        Ok(config)
    }

    /// The failure if no connection could be made, or if the host of [`Route::forward`]
    /// was not found.
    pub(super) fn unreachable(&self, error: io::Error) -> Failure {
        let help = match (&self.address, &self.forward) {
            (Address::Unix(_), _) => advice::remedies::START_PMCD,
            (Address::Tcp { .. }, Some(_)) => advice::no_proxy(&error),
            (Address::Tcp { .. }, None) => advice::no_host(&error),
        };
        let target = self.target.name.clone();
        Failure {
            stage: Stage::Nowhere,
            error: SourceError::Connect { target, help, source: error },
        }
    }

    /// The failure if the handshake on a connection failed.
    pub(super) fn unusable(&self, error: LinkError) -> Failure {
        let silent = matches!(
            error,
            LinkError::Io(_)
                | LinkError::Protocol(
                    ProtocolError::Closed { received: None } | ProtocolError::ProxyClosed { .. }
                )
        );
        let stage = if silent { Stage::Connected } else { Stage::Greeted };
        Failure { stage, error: advice::handshake_error(&self.target, error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// libpcp takes it so, too.
    #[test]
    fn an_empty_name_is_no_container() {
        for (spec, option, container) in [
            ("web1?container=", "web", None),
            ("web1", "web", Some("web")),
            ("web1", "", None),
            ("web1?container=shop", "web", Some("shop")),
        ] {
            let options =
                ConnectOptions { container: Some(option.to_owned()), ..ConnectOptions::default() };
            let routes = routes(&spec.parse().expect(spec), &options).expect(spec);
            let config = &routes[0].config;
            assert_eq!(config.container.as_deref(), container, "{spec} {option:?}");
        }
    }

    /// Settings without ports leave no address to connect to, and the error
    /// says so.
    #[test]
    fn a_host_without_a_port_is_refused() {
        let options = ConnectOptions { ports: Vec::new(), ..ConnectOptions::default() };
        let planned = |spec: &str| routes(&spec.parse().expect(spec), &options);
        for spec in ["web17", "web17@gate"] {
            let error = planned(spec).expect_err(spec).to_string();
            assert_eq!(error, format!("{spec}: neither it nor the settings have a port"));
        }
        for (spec, count) in [("web17:44321", 1), ("local:", 1), ("unix:", 1)] {
            assert_eq!(planned(spec).map(|routes| routes.len()).ok(), Some(count), "{spec}");
        }
    }
}
