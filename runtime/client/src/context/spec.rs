//! Host specifications: which pmcd to connect to, and how.
//!
//! ```text
//! spec   = [ scheme ":" { "/" } ] rest        scheme = pcp | pcps | local | unix
//! rest   = host [ ports ] { "@" host [ ports ] } [ "/" ... | "?" attributes ]    pcp, pcps, none
//! rest   = [ path ] [ "?" attributes ]                                            local, unix
//! ports  = ":" number { "," number }
//! host   = characters other than : @ / ?   |   "[" anything "]"
//! attributes = name [ "=" value ] { "&" name [ "=" value ] }                      up to a "/"
//! ```
//!
//! `passfile=` is our own. Its value is a path, which a "/" does not end.
//!
//! The forms are those of pmNewContext(3) and PCPIntro(1). Input: text. Output: a
//! [`HostSpec`], or the place of the mistake. Neither shows a password. Nothing is
//! looked up or connected here. The context reports what this client does not support.

#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod parse;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use pmderive_core::escape::Foreign;
use pmderive_core::source::SourceError;

#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_host_spec;

use crate::proto::Secret;

/// Port of pmcd.
pub const PMCD_PORT: u16 = 44321;

/// Port of pmproxy.
pub const PMPROXY_PORT: u16 = 44322;

/// A pmcd, and the way to reach it. It is displayed in its original spelling,
/// even after changes to its fields.
///
/// ```
/// use pmderive_client::context::{Encryption, HostSpec};
///
/// let spec: HostSpec = "pcps://web17:44321@gate?container=shop".parse()?;
/// assert_eq!(spec.encryption, Encryption::Required);
/// assert_eq!(spec.container.as_deref(), Some("shop"));
/// assert!("web17:port".parse::<HostSpec>().is_err());
/// # Ok::<(), pmderive_client::context::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostSpec {
    /// The text of the specification, without the password.
    text: String,
    /// The place of pmcd.
    pub target: Target,
    /// The encryption that the connection needs (`pcps:`, `secure=`).
    pub encryption: Encryption,
    /// The first proxy that is named, if any.
    pub proxy: Option<HostAndPorts>,
    /// The container whose metrics to read (`container=`).
    pub container: Option<String>,
    /// The user, if any attribute is about that.
    pub user: Option<UserAttributes>,
    /// True if compression is requested (`compress`). No pmcd supports it.
    pub compress: bool,
    /// Probable mistakes in the attributes, in words. libpcp reports none of them.
    pub warnings: Vec<String>,
}

/// The encryption of connections over the network with TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encryption {
    /// Not encrypted.
    #[default]
    Off,
    /// Encrypted if pmcd supports it, without checking its identity. This keeps
    /// out listeners, but not an attacker who can redirect the connection.
    Relaxed,
    /// Encrypted, and pmcd's certificate must be good.
    Required,
}

/// The user of a connection, from the attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UserAttributes {
    /// `user=` or `username=`.
    pub name: Option<String>,
    /// `pass=` or `password=`. Every user of this machine who lists its processes
    /// can see it.
    pub password: Option<Secret>,
    /// `passfile=`: a file with the password in its first line.
    pub password_file: Option<PathBuf>,
    /// `method=` or `authmeth=`: the SASL mechanism.
    pub method: Option<String>,
    /// `realm=`: the user's realm, if it is not pmcd's own.
    pub realm: Option<String>,
}

/// A host on the network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostAndPorts {
    /// Name or address.
    pub name: String,
    /// Ports to try in turn; empty for the default ones.
    pub ports: Vec<u16>,
}

/// The place of a pmcd.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// On this machine: over its socket, or else `localhost`.
    Local {
        /// Path of the socket, unless it is the default one.
        socket: Option<PathBuf>,
    },
    /// On this machine, over its socket only.
    Unix {
        /// Path of the socket, unless it is the default one.
        socket: Option<PathBuf>,
    },
    /// On the network.
    Host(HostAndPorts),
}

/// A host specification that is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The text of the specification, without the password.
    pub spec: String,
    /// Offset of the mistake in `spec`, in bytes.
    pub offset: usize,
    /// The mistake, in libpcp's words where it has any.
    pub problem: &'static str,
}

/// Shows the specification, and the mistake on a line below its place.
impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.spec.get(..self.offset).unwrap_or(&self.spec);
        let form = |text| Foreign(text).form(f.alternate());
        let column = form(before).chars().count();
        write!(f, "{}\n{:column$}^ -- {}", form(&self.spec), "", self.problem)
    }
}

impl std::error::Error for SpecError {}

impl From<SpecError> for SourceError {
    fn from(error: SpecError) -> SourceError {
        let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
        let message = format!("{} at byte {}{help}", error.problem, error.offset);
        SourceError::Specification { target: error.spec, message }
    }
}

impl SpecError {
    /// Advice, if libpcp's words for the mistake do not lead there.
    pub fn help(&self) -> Option<&'static str> {
        let is_scheme = self.spec.get(self.offset..).is_some_and(|rest| rest.starts_with("//"));
        is_scheme.then_some("the schemes are pcp:, pcps:, local: and unix:")
    }
}

impl HostSpec {
    /// The pmcd of this machine, like `local:`.
    pub fn local() -> HostSpec {
        HostSpec::new("local:", Target::Local { socket: None })
    }

    /// The name or address to connect to over the network: of the first proxy, else of the host.
    pub fn name_on_network(&self) -> Option<&str> {
        match (&self.proxy, &self.target) {
            (Some(proxy), _) => Some(&proxy.name),
            (None, Target::Host(host)) => Some(&host.name),
            (None, Target::Local { .. } | Target::Unix { .. }) => None,
        }
    }

    /// An identity of the metrics it leads to: the same text for all forms of a
    /// specification, such as `web1`, `WEB1:44321` and `pcps://web1`. Names are not
    /// looked up.
    pub fn identity(&self) -> Box<str> {
        let place = |place: &HostAndPorts, usual: u16| {
            let name = place.name.trim_end_matches('.').to_ascii_lowercase();
            // Addresses have several forms as well.
            let name = name.parse().map_or(name, |address: IpAddr| address.to_string());
            let usual = [usual];
            let ports = if place.ports.is_empty() { &usual } else { &*place.ports };
            format!("{name} {ports:?}")
        };
        let host = match &self.target {
            Target::Local { socket } | Target::Unix { socket } => format!("here {socket:?}"),
            Target::Host(host) => place(host, PMCD_PORT),
        };
        let proxy = self.proxy.as_ref().map(|proxy| place(proxy, PMPROXY_PORT));
        format!("{host} {proxy:?} {:?}", self.container).into()
    }

    fn new(text: &str, target: Target) -> HostSpec {
        HostSpec {
            text: without_password(text),
            target,
            encryption: Encryption::Off,
            proxy: None,
            container: None,
            user: None,
            compress: false,
            warnings: Vec::new(),
        }
    }
}

/// The text of a specification, with `***` in place of each password.
fn without_password(text: &str) -> String {
    let Some(start) = text.find('?') else { return text.to_owned() };
    let (before, attributes) = text.split_at(start + 1);
    let shown = attributes.split('&').map(|pair| match pair.split_once('=') {
        Some((name @ ("pass" | "password"), value)) => {
            let ignored = value.find('/').map_or("", |end| &value[end..]);
            format!("{name}=***{ignored}")
        }
        _ => pair.to_owned(),
    });
    before.to_owned() + &shown.collect::<Vec<_>>().join("&")
}

impl fmt::Display for HostSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, ports: &[u16]) -> Target {
        Target::Host(HostAndPorts { name: name.to_owned(), ports: ports.to_vec() })
    }

    #[test]
    fn targets() {
        let at = |path: &str| Some(PathBuf::from(path));
        for (text, target) in [
            ("web1", host("web1", &[])),
            ("web1:44321", host("web1", &[44321])),
            ("pcp://web1:1,2", host("web1", &[1, 2])),
            ("pcp:web1/ignored?container=x", host("web1", &[])),
            ("[::1]:44321", host("::1", &[44321])),
            ("[fe80::1%eth0]", host("fe80::1%eth0", &[])),
            ("a,b", host("a,b", &[])),
            ("local:", Target::Local { socket: None }),
            ("local://tmp/s", Target::Local { socket: at("/tmp/s") }),
            ("unix:", Target::Unix { socket: None }),
            ("unix:a/b", Target::Unix { socket: at("/a/b") }),
            ("unix:///a/b?container=web", Target::Unix { socket: at("/a/b") }),
            ("localhost", host("localhost", &[])),
            ("LOCAL", host("LOCAL", &[])),
        ] {
            let spec: HostSpec = text.parse().expect(text);
            assert_eq!(spec.target, target, "{text}");
            assert_eq!(spec.to_string(), text);
        }
    }

    #[test]
    fn schemes_proxies_and_attributes() {
        let spec = |text: &str| text.parse::<HostSpec>().expect(text);
        assert_eq!(spec("pcps://web1").encryption, Encryption::Required);
        assert_eq!(spec("pcps://web1?secure=relaxed").encryption, Encryption::Relaxed);
        assert_eq!(spec("pcp://web1?secure").encryption, Encryption::Required);
        assert_eq!(spec("pcp://web1?user=me").encryption, Encryption::Off);
        let proxy = HostAndPorts { name: "proxy".to_owned(), ports: vec![44322] };
        assert_eq!(spec("web1@proxy:44322@other").proxy, Some(proxy));
        assert_eq!(spec("local:?container=a%2Db+c").container.as_deref(), Some("a-b c"));
        assert!(spec("h?compress").compress);
        assert_eq!(spec("h?gid=3&x").user, None);
        assert_eq!(spec("h?userauth").user, Some(UserAttributes::default()));
    }

    #[test]
    fn attributes_that_mean_nothing() {
        for (text, warnings) in [
            ("h?container=a&secure&user=me&compress&", &[][..]),
            ("h?secure=enforce", &[]),
            ("h?secure=relaxed&contianer/=x", &["`contianer` is no attribute of a host"]),
            ("h?passwrd=secret&nix=1", &["`passwrd` is no", "`nix` is no"]),
            ("h?secure=nonsense", &["`secure=nonsense` is read as `secure=enforce`"]),
        ] {
            let spec: HostSpec = text.parse().expect(text);
            assert_eq!(spec.warnings.len(), warnings.len(), "{:?}", spec.warnings);
            for (warning, beginning) in spec.warnings.iter().zip(warnings) {
                assert!(warning.starts_with(beginning) && !warning.contains("secret"), "{warning}");
            }
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let spec: HostSpec = "h:1@p?pass=se%26cret&user=me&method=plain".parse().expect("a host");
        assert_eq!(
            spec.user,
            Some(UserAttributes {
                name: Some("me".to_owned()),
                password: Some(Secret::new("se&cret")),
                method: Some("plain".to_owned()),
                ..UserAttributes::default()
            })
        );
        assert_eq!(spec.to_string(), "h:1@p?pass=***&user=me&method=plain");
        assert!(!format!("{spec:?}").contains("cret"));
        for text in ["h:x?pass=secret", "h?pass=secret&user=%zz", "h?user=me&password=se%cret/x"] {
            let error = text.parse::<HostSpec>().expect_err(text);
            assert!(!format!("{error} {error:?}").contains("cret"), "{error}");
        }
        let error = "h?pass=secret&user=%zz".parse::<HostSpec>().expect_err("not hexadecimal");
        assert_eq!(
            error.to_string(),
            "h?pass=***&user=%zz\n                ^ -- % without two hexadecimal digits"
        );
    }

    #[test]
    fn paths_of_password_files_have_slashes() {
        for (text, path, container) in [
            ("h?user=me&passfile=/run/a.b/c", "/run/a.b/c", None),
            ("h?passfile=/run/x&container=web&user=me/&container=y", "/run/x", Some("web")),
            ("h?container=web&passfile=a%26+b/c%2F", "a&+b/c/", Some("web")),
            ("unix:/s?passfile=", "", None),
        ] {
            let path = path.replace('+', " ");
            let spec: HostSpec = text.parse().expect(text);
            let user = spec.user.clone().expect(text);
            assert_eq!(user.password_file, Some(PathBuf::from(path)), "{text}");
            assert_eq!(spec.container.as_deref(), container, "{text}");
            assert_eq!(spec.to_string(), text);
        }
        let spec: HostSpec = "h?passfiles=/x&user=me".parse().expect("a host");
        assert_eq!(spec.user, None);
    }

    /// The places and words are those of pminfo(1).
    #[test]
    fn mistakes_are_shown_below_their_place() {
        for (text, offset, problem) in [
            ("", 0, "empty host specification"),
            ("[::1", 4, "missing closing ']' for host spec"),
            ("[::1]x", 5, "extra characters after host spec"),
            ("h:", 2, "missing port"),
            ("h:x", 2, "non-numeric port"),
            ("h:1x", 3, "non-numeric port"),
            ("h:1;x", 3, "non-numeric port"),
            ("h:1:2", 3, "non-numeric port"),
            ("h:1,", 4, "missing port"),
            ("::1", 0, "unexpected terminal character"),
            ("@p", 0, "unexpected terminal character"),
            ("http://h", 5, "missing port"),
            ("unix:/path:?container=x", 10, "unexpected terminal character"),
            ("local:a:b", 7, "unexpected terminal character"),
            ("h:99999", 2, "port not between 1 and 65535"),
            ("h:0", 2, "port not between 1 and 65535"),
            ("pcp:", 4, "missing host name"),
            ("h@", 2, "missing host name"),
        ] {
            let error = text.parse::<HostSpec>().expect_err(text);
            assert_eq!((error.offset, error.problem), (offset, problem), "{text}");
        }
        let error = "h:x".parse::<HostSpec>().expect_err("port");
        assert_eq!(error.to_string(), "h:x\n  ^ -- non-numeric port");
        assert_eq!(error.help(), None);
        assert_eq!(SourceError::from(error).to_string(), "h:x: non-numeric port at byte 2");
        let error = "http://h".parse::<HostSpec>().expect_err("a scheme of others");
        assert_eq!(
            SourceError::from(error).to_string(),
            "http://h: missing port at byte 5; the schemes are pcp:, pcps:, local: and unix:"
        );
    }

    #[test]
    fn any_text_gives_a_specification_or_a_place() {
        let pieces = [
            "pcp",
            "unix",
            ":",
            "/",
            "?",
            "@",
            "[",
            "]",
            "%",
            "container=",
            "1",
            ",",
            "\u{e9}",
            "&",
            "pass=",
            "passfile=",
        ];
        let mut random = 7u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..8 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let choice = usize::try_from(random >> 40).expect("24 bits") % pieces.len();
                text.push_str(pieces[choice]);
            }
            fuzz_host_spec(text.as_bytes());
        }
    }
}
