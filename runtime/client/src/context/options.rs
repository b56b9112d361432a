//! Settings for connections to pmcd that a host specification leaves open.
//!
//! The settings are those of PCPIntro(1): the environment variables `PMCD_*`,
//! `PCP_CONTAINER`, `PCP_SECURE_SOCKETS`, `PCP_TLSCONF_PATH`, `PCP_ALLOW_*` and
//! `PMPROXY_*`. `PMDERIVE_PASSWORD` is our own. An invalid value is reported, and the
//! default holds. This module makes no connections.
//!
//! Time-outs are exact to fractions of a second. libpcp truncates
//! `PMCD_REQUEST_TIMEOUT` to whole seconds, and a value below one makes it wait for
//! ever.

use std::path::PathBuf;
use std::time::Duration;

use pmderive_system::pcp_conf::PcpConf;

use super::spec::{Encryption, HostAndPorts, PMCD_PORT, PMPROXY_PORT};
use super::tls_conf::TlsSettings;
use crate::proto::Secret;

/// Settings of connections.
///
/// ```
/// use std::time::Duration;
///
/// use pmderive_client::context::ConnectOptions;
///
/// let (mut options, ignored) = ConnectOptions::from_environment();
/// options.request_timeout = Some(Duration::from_secs(2));
/// # drop((options, ignored));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Maximum time of an attempt to connect, of which each port and each address gets one;
    /// `None` for no limit. Only asynchronous contexts limit the lookup of names, too.
    pub connect_timeout: Option<Duration>,
    /// Maximum time for a whole reply, and for the whole handshake: greeting, TLS and
    /// authentication. `None` for no limit.
    pub request_timeout: Option<Duration>,
    /// Waiting times before attempts to connect: after the first failure, after the
    /// second, and so on. The last one is used repeatedly. If empty, nothing waits
    /// (pmReconnectContext(3)). A delay that is too long for the clock lasts for ever.
    pub reconnect_delays: Vec<Duration>,
    /// Ports to try in turn.
    pub ports: Vec<u16>,
    /// Path of the local pmcd's socket.
    pub socket: PathBuf,
    /// The container whose metrics to read.
    pub container: Option<String>,
    /// Minimum encryption of connections over the network.
    pub encryption: Encryption,
    /// The trusted authorities in TLS, and this client's certificate.
    pub tls: TlsSettings,
    /// Password of users whose specification has none (`PMDERIVE_PASSWORD`).
    /// `Some("text".into())` sets one.
    pub password: Option<Secret>,
    /// Proxy for all connections over the network, unless the specification names
    /// another one.
    pub proxy: Option<HostAndPorts>,
    /// Port of proxies that are named without a port.
    pub proxy_port: u16,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            connect_timeout: Some(Duration::from_secs(5)),
            request_timeout: Some(Duration::from_secs(10)),
            reconnect_delays: [5, 10, 20, 40, 80].map(Duration::from_secs).into(),
            ports: vec![PMCD_PORT],
            socket: PathBuf::from("/run/pcp/pmcd.socket"),
            container: None,
            encryption: Encryption::Off,
            tls: TlsSettings::default(),
            password: None,
            proxy: None,
            proxy_port: PMPROXY_PORT,
        }
    }
}

impl ConnectOptions {
    /// The settings of this process's environment and machine, and the problems of
    /// settings that were ignored.
    pub fn from_environment() -> (ConnectOptions, Vec<String>) {
        let conf = PcpConf::load();
        ConnectOptions::from_lookup(|name| match name {
            "PCP_RUN_DIR" | "PCP_TLSCONF_PATH" => conf.get(name),
            _ => std::env::var(name).ok(),
        })
    }

    /// The settings that `lookup` returns for their names; see
    /// [`ConnectOptions::from_environment`].
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> (ConnectOptions, Vec<String>) {
        let mut options = ConnectOptions::default();
        let mut warnings = Vec::new();
        let timeouts = [
            ("PMCD_CONNECT_TIMEOUT", &mut options.connect_timeout),
            ("PMCD_REQUEST_TIMEOUT", &mut options.request_timeout),
        ];
        for (name, timeout) in timeouts {
            let Some(text) = lookup(name) else { continue };
            match parse_timeout(&text) {
                Some(value) => *timeout = value,
                None => warnings.push(format!("{name}={text} is not a number of seconds: ignored")),
            }
        }
        if let Some(text) = lookup("PMCD_RECONNECT_TIMEOUT") {
            match parse_delays(&text) {
                Some(delays) => options.reconnect_delays = delays,
                None => warnings.push(format!(
                    "PMCD_RECONNECT_TIMEOUT={text} is not a list of whole seconds: ignored"
                )),
            }
        }
        if let Some(text) = lookup("PMCD_PORT") {
            match parse_ports(&text) {
                Some(ports) => options.ports = ports,
                None => warnings.push(format!("PMCD_PORT={text} is not a list of ports: ignored")),
            }
        }
        if let Some(run_dir) = lookup("PCP_RUN_DIR") {
            options.socket = PathBuf::from(run_dir).join("pmcd.socket");
        }
        if let Some(path) = lookup("PMCD_SOCKET").filter(|path| !path.is_empty()) {
            options.socket = path.into();
        }
        options.container = lookup("PCP_CONTAINER");
        let password = lookup("PMDERIVE_PASSWORD").filter(|password| !password.is_empty());
        options.password = password.map(Secret::new);
        let host = lookup("PMPROXY_HOST").filter(|host| !host.is_empty());
        options.proxy = host.map(|name| HostAndPorts { name, ports: Vec::new() });
        if let Some(text) = lookup("PMPROXY_PORT") {
            // Only the first port of a proxy is ever used.
            match parse_ports(&text).as_deref() {
                Some([port, ..]) => options.proxy_port = *port,
                _ => warnings.push(format!("PMPROXY_PORT={text} is not a port: ignored")),
            }
        }
        if let Some(path) = lookup("PCP_TLSCONF_PATH").filter(|path| !path.is_empty()) {
            options.tls = TlsSettings::from_file(path);
        }
        if lookup("PCP_ALLOW_SERVER_SELF_CERT").is_some() {
            options.tls = options.tls.allow_unknown_issuers();
        }
        if lookup("PCP_ALLOW_BAD_CERT_DOMAIN").is_some() {
            options.tls = options.tls.allow_other_names();
        }
        if let Some(text) = lookup("PCP_SECURE_SOCKETS") {
            match text.as_str() {
                "" | "1" | "enforce" => options.encryption = Encryption::Required,
                "relaxed" => options.encryption = Encryption::Relaxed,
                _ => warnings.push(format!(
                    "PCP_SECURE_SOCKETS={text} is neither enforce nor relaxed: ignored"
                )),
            }
        }
        (options, warnings)
    }
}

/// Maximum time-out in seconds: some thirty years.
const MAX_TIMEOUT_SECONDS: f64 = 1e9;

/// A number of seconds; zero for no limit.
fn parse_timeout(text: &str) -> Option<Option<Duration>> {
    let seconds: f64 = text.trim().parse().ok().filter(|s| *s <= MAX_TIMEOUT_SECONDS)?;
    let timeout = Duration::try_from_secs_f64(seconds).ok()?;
    Some((!timeout.is_zero()).then_some(timeout))
}

/// Whole seconds, separated by commas. Zero is not allowed.
fn parse_delays(text: &str) -> Option<Vec<Duration>> {
    let delay = |text: &str| text.trim().parse::<u32>().ok().filter(|seconds| *seconds != 0);
    text.split(',').map(|text| Some(Duration::from_secs(delay(text)?.into()))).collect()
}

/// Ports, separated by commas. Zero is not allowed.
pub(super) fn parse_ports(text: &str) -> Option<Vec<u16>> {
    let ports = text.split(',').map(str::trim).filter(|port| !port.is_empty());
    let ports: Option<Vec<u16>> =
        ports.map(|port| port.parse().ok().filter(|port| *port != 0)).collect();
    ports.filter(|ports| !ports.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(set: &[(&str, &str)]) -> (ConnectOptions, Vec<String>) {
        ConnectOptions::from_lookup(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_overrides_the_defaults() {
        assert_eq!(options(&[]), (ConnectOptions::default(), vec![]));
        let (set, warnings) = options(&[
            ("PMCD_CONNECT_TIMEOUT", "0.5"),
            ("PMCD_REQUEST_TIMEOUT", "0"),
            ("PMCD_RECONNECT_TIMEOUT", "1, 3"),
            ("PMCD_PORT", "4321, 44322,"),
            ("PCP_RUN_DIR", "/tmp/run"),
            ("PCP_CONTAINER", "web"),
            ("PCP_SECURE_SOCKETS", ""),
            ("PMPROXY_HOST", "gate"),
            ("PMPROXY_PORT", "44323,5"),
            ("PCP_TLSCONF_PATH", "/x/tls.conf"),
            ("PCP_ALLOW_BAD_CERT_DOMAIN", ""),
            ("PMDERIVE_PASSWORD", "pass word"),
        ]);
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(set.connect_timeout, Some(Duration::from_millis(500)));
        assert_eq!(set.request_timeout, None);
        assert_eq!(set.reconnect_delays, [1, 3].map(Duration::from_secs));
        assert_eq!(set.ports, [4321, 44322]);
        assert_eq!(set.socket, PathBuf::from("/tmp/run/pmcd.socket"));
        assert_eq!(set.container.as_deref(), Some("web"));
        assert_eq!(set.encryption, Encryption::Required);
        assert_eq!(set.proxy, Some(HostAndPorts { name: "gate".to_owned(), ports: vec![] }));
        assert_eq!(set.proxy_port, 44323);
        assert_eq!(set.password, Some(Secret::new("pass word")));
        assert!(!format!("{set:?}").contains("pass word"));
        assert_eq!(set.tls, TlsSettings::from_file("/x/tls.conf").allow_other_names());
        assert_eq!(options(&[("PCP_SECURE_SOCKETS", "relaxed")]).0.encryption, Encryption::Relaxed);
        let (set, _) = options(&[("PCP_RUN_DIR", "/x"), ("PMCD_SOCKET", "/y/s")]);
        assert_eq!(set.socket, PathBuf::from("/y/s"));
    }

    #[test]
    fn values_without_sense_are_reported_and_ignored() {
        for (name, value) in [
            ("PMCD_CONNECT_TIMEOUT", "soon"),
            ("PMCD_CONNECT_TIMEOUT", "-1"),
            ("PMCD_REQUEST_TIMEOUT", "nan"),
            ("PMCD_REQUEST_TIMEOUT", "1e300"),
            ("PMCD_RECONNECT_TIMEOUT", "5,0"),
            ("PMCD_RECONNECT_TIMEOUT", "1.5"),
            ("PMCD_RECONNECT_TIMEOUT", ""),
            ("PMCD_PORT", ","),
            ("PMCD_PORT", "0"),
            ("PMCD_PORT", "70000"),
            ("PCP_SECURE_SOCKETS", "maybe"),
            ("PMPROXY_PORT", "x"),
        ] {
            let (set, warnings) = options(&[(name, value)]);
            assert_eq!(set, ConnectOptions::default(), "{name}={value}");
            assert_eq!(warnings.len(), 1, "{name}={value}");
            assert!(warnings[0].starts_with(name), "{warnings:?}");
        }
    }
}
