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

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

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

/// Attributes by all their names, with what they are about. Others mean nothing;
/// libpcp, too, ignores them and those that it sets itself.
const ATTRIBUTES: &[(&str, Attribute)] = &[
    ("container", Attribute::Container),
    ("secure", Attribute::Secure),
    ("compress", Attribute::Compress),
    ("userauth", Attribute::Authenticate),
    ("authorise", Attribute::Authenticate),
    ("authorize", Attribute::Authenticate),
    ("user", Attribute::User),
    ("username", Attribute::User),
    ("realm", Attribute::Realm),
    ("authmeth", Attribute::Method),
    ("method", Attribute::Method),
    ("pass", Attribute::Password),
    ("password", Attribute::Password),
    (PASSWORD_FILE, Attribute::PasswordFile),
];

/// The attribute whose value may have slashes.
const PASSWORD_FILE: &str = "passfile";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attribute {
    Container,
    Secure,
    Compress,
    Authenticate,
    User,
    Realm,
    Method,
    Password,
    PasswordFile,
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

    /// Takes the attributes of `text`, which end at a slash. `Err` with the
    /// offset of what is no character code.
    fn attributes(&mut self, text: &str) -> Result<(), usize> {
        let mut offset = 0;
        loop {
            let pair = first_pair(&text[offset..]);
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let known = ATTRIBUTES.iter().find(|(known, _)| *known == name);
            let decoded = percent_decoded(value);
            let value = decoded.map_err(|within| offset + pair.len() - value.len() + within)?;
            if let Some((_, attribute)) = known {
                self.attribute(*attribute, value);
            }
            offset += pair.len();
            if !text[offset..].starts_with('&') {
                return Ok(());
            }
            offset += 1;
        }
    }

    fn attribute(&mut self, attribute: Attribute, value: String) {
        match attribute {
            Attribute::Container => self.container = Some(value),
            Attribute::Secure if value == "relaxed" => self.encryption = Encryption::Relaxed,
            Attribute::Secure => self.encryption = Encryption::Required,
            Attribute::Compress => self.compress = true,
            Attribute::Authenticate => drop(self.user.get_or_insert_default()),
            Attribute::User => self.user.get_or_insert_default().name = Some(value),
            Attribute::Realm => self.user.get_or_insert_default().realm = Some(value),
            Attribute::Method => self.user.get_or_insert_default().method = Some(value),
            Attribute::Password => {
                self.user.get_or_insert_default().password = Some(Secret::new(value));
            }
            Attribute::PasswordFile => {
                self.user.get_or_insert_default().password_file = Some(value.into());
            }
        }
    }
}

/// The first attribute of a text, up to what ends it.
fn first_pair(text: &str) -> &str {
    let is_path = text.split('=').next() == Some(PASSWORD_FILE);
    let end = if is_path { text.find('&') } else { text.find(['&', '/']) };
    &text[..end.unwrap_or(text.len())]
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

impl FromStr for HostSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<HostSpec, SpecError> {
        let parser = Parser { text };
        if text.is_empty() {
            return Err(parser.error(0, "empty host specification"));
        }
        if let Some(offset) = text.find('\0') {
            return Err(parser.error(offset, "unexpected NUL character"));
        }
        let scheme = ["pcp", "pcps", "local", "unix"].into_iter().find_map(|scheme| {
            let rest = text.strip_prefix(scheme)?.strip_prefix(':')?;
            Some((scheme, rest.trim_start_matches('/')))
        });
        let Some((scheme, rest)) = scheme else {
            return parser.host(0, Encryption::Off);
        };
        let start = text.len() - rest.len();
        match scheme {
            "local" | "unix" => parser.socket(scheme == "local", rest),
            "pcps" => parser.host(start, Encryption::Required),
            _ => parser.host(start, Encryption::Off),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
}

impl Parser<'_> {
    fn error(&self, offset: usize, problem: &'static str) -> SpecError {
        // A password before the place makes the shown text shorter or longer.
        let offset =
            self.text.get(..offset).map_or(offset, |before| without_password(before).len());
        let spec = without_password(self.text);
        SpecError { offset: offset.min(spec.len()), spec, problem }
    }

    /// Adds the attributes that begin at an offset.
    fn attributes(&self, mut spec: HostSpec, start: usize) -> Result<HostSpec, SpecError> {
        let attributes = spec.attributes(self.text.get(start..).unwrap_or_default());
        attributes.map_err(|at| self.error(start + at, "% without two hexadecimal digits"))?;
        Ok(spec)
    }

    fn socket(&self, local: bool, rest: &str) -> Result<HostSpec, SpecError> {
        let (path, attributes) = rest.split_once('?').unwrap_or((rest, ""));
        if let Some(position) = path.find(':') {
            let offset = self.text.len() - rest.len() + position;
            return Err(self.error(offset, "unexpected terminal character"));
        }
        let socket = (!path.is_empty()).then(|| PathBuf::from(format!("/{path}")));
        let target = if local { Target::Local { socket } } else { Target::Unix { socket } };
        self.attributes(HostSpec::new(self.text, target), self.text.len() - attributes.len())
    }

    /// Host, ports, proxies and attributes from an offset on.
    fn host(&self, start: usize, encryption: Encryption) -> Result<HostSpec, SpecError> {
        let (host, mut offset) = self.host_and_ports(start)?;
        let mut spec = HostSpec::new(self.text, Target::Host(host));
        spec.encryption = encryption;
        while self.text[offset..].starts_with('@') {
            let (host, after) = self.host_and_ports(offset + 1)?;
            spec.proxy.get_or_insert(host);
            offset = after;
        }
        match self.text[offset..].chars().next() {
            None | Some('/') => Ok(spec),
            Some('?') => self.attributes(spec, offset + 1),
            Some(_) => Err(self.error(offset, "unexpected terminal character")),
        }
    }

    fn host_and_ports(&self, start: usize) -> Result<(HostAndPorts, usize), SpecError> {
        let rest = &self.text[start..];
        let (name, mut offset) = if let Some(inner) = rest.strip_prefix('[') {
            let Some(end) = inner.find(']') else {
                return Err(self.error(self.text.len(), "missing closing ']' for host spec"));
            };
            let after = start + end + 2;
            if !self.text[after..].is_empty()
                && !self.text[after..].starts_with([':', '@', '/', '?'])
            {
                return Err(self.error(after, "extra characters after host spec"));
            }
            (&inner[..end], after)
        } else {
            let end = rest.find([':', '@', '/', '?']).unwrap_or(rest.len());
            (&rest[..end], start + end)
        };
        if name.is_empty() {
            let problem = if offset < self.text.len() {
                "unexpected terminal character"
            } else {
                "missing host name"
            };
            return Err(self.error(start, problem));
        }
        let mut ports = Vec::new();
        while self.text[offset..].starts_with(if ports.is_empty() { ':' } else { ',' }) {
            offset += 1;
            let rest = &self.text[offset..];
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let ended =
                rest[digits..].is_empty() || rest[digits..].starts_with([',', '@', '/', '?']);
            if digits == 0 || !ended {
                let missing = digits == 0 && ended;
                let problem = if missing { "missing port" } else { "non-numeric port" };
                return Err(self.error(offset + digits, problem));
            }
            match rest[..digits].parse() {
                Ok(port) if port != 0 => ports.push(port),
                _ => return Err(self.error(offset, "port not between 1 and 65535")),
            }
            offset += digits;
        }
        Ok((HostAndPorts { name: name.to_owned(), ports }, offset))
    }
}

/// The value of an attribute: `+` is a blank, `%` begins two hexadecimal
/// digits. `Err` with the offset of a `%` without these.
fn percent_decoded(text: &str) -> Result<String, usize> {
    let digit =
        |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut offset = 0;
    while let Some(byte) = bytes.get(offset) {
        decoded.push(match byte {
            b'%' => {
                let digits =
                    (bytes.get(offset + 1).and_then(digit), bytes.get(offset + 2).and_then(digit));
                let (Some(high), Some(low)) = digits else { return Err(offset) };
                offset += 2;
                high << 4 | low
            }
            b'+' => b' ',
            _ => *byte,
        });
        offset += 1;
    }
    Ok(String::from_utf8_lossy(&decoded).into_owned())
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
