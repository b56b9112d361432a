//! Host specifications: which pmcd, and how to reach it.
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
//! `passfile=` is not PCP's: its value is a path, in which a "/" ends nothing.
//!
//! The forms are those of pmNewContext(3) and PCPIntro(1). Input: text. Output: a
//! [`HostSpec`] or the place of the mistake; neither shows a password. Nothing is
//! looked up or connected here. The context says what this client cannot do.

mod parse;

use std::fmt;
use std::path::PathBuf;

use pmderive_core::escape::Foreign;
use pmderive_core::source::SourceError;

use crate::proto::Secret;

/// Which pmcd, and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// What was given, without the password.
    text: String,
    /// Where pmcd is.
    pub target: Target,
    /// Whether the connection has to be encrypted (`pcps:`, `secure=`).
    pub encryption: Encryption,
    /// The first proxy, if one is named.
    pub proxy: Option<HostAndPorts>,
    /// Container whose metrics are wanted, if one is named (`container=`).
    pub container: Option<String>,
    /// Who the user is, if any attribute is about that.
    pub user: Option<UserAttributes>,
    /// True if compression is asked for (`compress`), which no pmcd has.
    pub compress: bool,
}

/// Whether connections over the network are encrypted by TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Encryption {
    /// They are not.
    #[default]
    Off,
    /// They are where pmcd can, without looking at who it is: that keeps
    /// listeners out, but nobody who can redirect the connection.
    Relaxed,
    /// They are, and the certificate of pmcd has to be good.
    Required,
}

/// Who the user of a connection is, as far as the attributes say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserAttributes {
    /// `user=` or `username=`.
    pub name: Option<String>,
    /// `pass=` or `password=`, which everyone on this machine can see who looks
    /// at its processes.
    pub password: Option<Secret>,
    /// `passfile=`: a file with the password in its first line.
    pub password_file: Option<PathBuf>,
    /// `method=` or `authmeth=`: mechanism of SASL.
    pub method: Option<String>,
    /// `realm=`: where the user is known, unless in pmcd's own realm.
    pub realm: Option<String>,
}

/// A host on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAndPorts {
    /// Name or address.
    pub name: String,
    /// Ports to try in turn; empty for the usual ones.
    pub ports: Vec<u16>,
}

/// Where a pmcd is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// On this machine: its socket first, then `localhost`.
    Local {
        /// Path of the socket, unless the usual one.
        socket: Option<PathBuf>,
    },
    /// On this machine, by its socket only.
    Unix {
        /// Path of the socket, unless the usual one.
        socket: Option<PathBuf>,
    },
    /// On the network.
    Host(HostAndPorts),
}

/// A host specification that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// What was given, without the password.
    pub spec: String,
    /// Offset of the fault in it, in bytes.
    pub offset: usize,
    /// What is wrong there, in the words of libpcp where it has any.
    pub problem: &'static str,
}

/// Three lines: the specification, and the fault below its place.
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
        let message = format!("{} at byte {}", error.problem, error.offset);
        SourceError::Specification { target: error.spec, message }
    }
}

impl HostSpec {
    /// The pmcd of this machine, as `local:` means it.
    pub fn local() -> HostSpec {
        HostSpec::new("local:", Target::Local { socket: None })
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
        }
    }
}

/// The text of a specification with `***` for the value of each password.
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

/// Parses any text and checks that its places are within it.
#[cfg(any(test, feature = "fuzz"))]
pub fn fuzz_host_spec(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.parse::<HostSpec>() {
        Ok(spec) => assert_eq!(spec.to_string(), without_password(&text)),
        Err(error) => {
            assert!(error.offset <= error.spec.len());
            assert!(error.to_string().contains(error.problem));
        }
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

    /// Places and words are those that pminfo(1) shows.
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
        assert_eq!(SourceError::from(error).to_string(), "h:x: non-numeric port at byte 2");
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
