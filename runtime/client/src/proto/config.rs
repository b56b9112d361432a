//! What a connection has to know before its first byte.
//!
//! Whoever makes connections fills this in. Nothing is read from files or from the
//! environment here, and `Debug` shows no secrets.

use std::fmt;
use std::net::Ipv4Addr;

use super::tls::TlsClient;

/// How a connection is to be made.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Where pmcd runs.
    pub peer: Peer,
    /// The pmcd that a proxy at the other end of the stream is to connect us to;
    /// `None` where pmcd itself is there.
    pub forward: Option<Forward>,
    /// Whether the connection is to be encrypted.
    pub security: Security,
    /// Who the user is, if pmcd is to know.
    pub credentials: Option<Credentials>,
    /// Container whose metrics are wanted, if any.
    pub container: Option<String>,
    /// Longest reply that is accepted, in bytes.
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

/// How pmcd tells who the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Over a unix socket, where the system vouches for the client.
    SameHost,
    /// Over the network, without leaving this host: pmcd asks for no
    /// certificate of the client.
    Loopback,
    /// Over the network.
    Remote,
}

/// A pmcd as seen from a proxy.
///
/// Its address is given in numbers: pmproxy(1) takes any name and any address
/// of version 6 for its own host, without a word.
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

/// Whether a connection is encrypted.
#[derive(Clone, Debug, Default)]
pub enum Security {
    /// It is not.
    #[default]
    Off,
    /// It is if pmcd can.
    Relaxed(TlsClient),
    /// It is, or there is no connection.
    Required(TlsClient),
}

/// Who the user is, and how to prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Name of the user, with `@REALM` unless the realm is pmcd's own.
    pub user: String,
    /// The password.
    pub password: Secret,
    /// The mechanism of SASL to use; `None` for the best that pmcd offers and
    /// that does not give the password to an eavesdropper.
    pub method: Option<Method>,
}

/// A mechanism of SASL, by its registered name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `SCRAM-SHA-256`: both ends prove that they know the password, and
    /// neither shows it.
    ScramSha256,
    /// `PLAIN`: the password itself is sent.
    Plain,
    /// `LOGIN`: the same, in an older form.
    Login,
}

impl Method {
    /// Those that this client knows, the better one first.
    pub const ALL: [Method; 3] = [Method::ScramSha256, Method::Plain, Method::Login];

    /// The registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Method::ScramSha256 => "SCRAM-SHA-256",
            Method::Plain => "PLAIN",
            Method::Login => "LOGIN",
        }
    }

    /// True if eavesdroppers would see the password.
    pub const fn shows_password(self) -> bool {
        !matches!(self, Method::ScramSha256)
    }

    /// The mechanism of a name, in letters of any case; `None` for one that
    /// this client does not know.
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name().eq_ignore_ascii_case(name))
    }
}

/// A text that nobody is to see.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
