//! The configuration of a connection.
//!
//! The caller that opens the connection fills this in. This module reads no
//! files and no environment, and `Debug` shows no secrets.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

/// The settings of one connection.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// The way from the connection to pmcd.
    pub peer: Peer,
    /// The pmcd to which the proxy at the other end of the stream must connect. `None`
    /// if pmcd itself is at the other end.
    pub forward: Option<Forward>,
    /// The encryption of the connection.
    pub security: Security,
    /// User and password, if pmcd needs to know the user.
    pub credentials: Option<Credentials>,
    /// The container whose metrics to read, if any.
    pub container: Option<String>,
    /// Maximum length of a reply in bytes.
    pub max_reply_bytes: usize,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        ConnectionConfig {
            peer: Peer::Remote,
            forward: None,
            security: Security::Off,
            credentials: None,
            container: None,
            max_reply_bytes: 64 << 20,
        }
    }
}

/// The way from a connection to pmcd. It decides how pmcd identifies the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Over a unix socket: the system tells pmcd the user of the client.
    SameHost,
    /// Over the network, but on this host: pmcd demands no certificate of the client.
    Loopback,
    /// Over the network.
    Remote,
}

/// A pmcd that is reached through a proxy.
///
/// The address must be numeric: pmproxy(1) silently uses its own host for names and for
/// IPv6 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Address of pmcd's host.
    pub address: Ipv4Addr,
    /// Port of pmcd.
    pub port: u16,
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.address, self.port)
    }
}

/// The encryption of a connection.
#[derive(Clone, Debug, Default)]
pub enum Security {
    /// Not encrypted.
    #[default]
    Off,
    /// Encrypted if pmcd can do it.
    Relaxed(TlsClient),
    /// Encrypted, or the connection fails.
    Required(TlsClient),
}

/// The client's settings for TLS with one host.
#[derive(Clone)]
pub struct TlsClient {
    /// The accepted certificates and ciphers.
    pub config: Arc<ClientConfig>,
    /// Name or address of the host. The certificate must contain it.
    pub server: ServerName<'static>,
    /// True if `config` has a certificate of the client.
    pub has_certificate: bool,
    /// True if `config` accepts only certificates of this host.
    pub is_verified: bool,
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient")
            .field("server", &self.server)
            .field("has_certificate", &self.has_certificate)
            .field("is_verified", &self.is_verified)
            .finish_non_exhaustive()
    }
}

/// A user, and the proof of identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the user, with `@REALM` unless it is pmcd's default realm.
    pub user: String,
    /// The password.
    pub password: Secret,
    /// The SASL mechanism to use. `None` chooses the best one that pmcd offers and that
    /// does not show the password to eavesdroppers.
    pub method: Option<Method>,
}

/// A SASL mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `SCRAM-SHA-256`: both sides prove that they know the password without sending
    /// it.
    ScramSha256,
    /// `PLAIN`: the password itself is sent.
    Plain,
    /// `LOGIN`: an older form that also sends the password itself.
    Login,
}

impl Method {
    /// The mechanisms that this client knows, the best one first.
    pub const ALL: [Method; 3] = [Method::ScramSha256, Method::Plain, Method::Login];

    /// The registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Method::ScramSha256 => "SCRAM-SHA-256",
            Method::Plain => "PLAIN",
            Method::Login => "LOGIN",
        }
    }

    /// True if an eavesdropper would see the password.
    pub const fn shows_password(self) -> bool {
        !matches!(self, Method::ScramSha256)
    }

    /// The mechanism with a name, in upper or lower case. `None` if this client does
    /// not know it.
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name().eq_ignore_ascii_case(name))
    }
}

/// A text that must not be shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret text.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
