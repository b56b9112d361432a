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
//! Answers to pmNewContext(3) and PCPIntro(1). In goes text, out comes a
//! [`HostSpec`] or the place of the mistake. Nothing is looked up or connected
//! here, and what this client cannot do is for the context to say.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::source::SourceError;

/// Which pmcd, and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    text: String,
    /// Where pmcd is.
    pub target: Target,
    /// True when the connection has to be encrypted.
    pub secure: bool,
    /// Host of a proxy, if one is named.
    pub proxy: Option<String>,
    /// Container whose metrics are wanted, if one is named.
    pub container: Option<String>,
    /// Attributes that ask for authentication or compression, by name.
    pub unsupported: Vec<String>,
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
    Host {
        /// Name or address of the host.
        name: String,
        /// Ports to try in turn; empty for the usual ones.
        ports: Vec<u16>,
    },
}

/// A host specification that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// What was given.
    pub spec: String,
    /// Offset of the fault, in bytes.
    pub offset: usize,
    /// What is wrong there, in the words of libpcp where it has any.
    pub problem: &'static str,
}

/// Three lines: the specification, and the fault below its place.
impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.spec.get(..self.offset).unwrap_or(&self.spec);
        let column = before.chars().count();
        write!(f, "{}\n{:column$}^ -- {}", self.spec, "", self.problem)
    }
}

impl std::error::Error for SpecError {}

impl From<SpecError> for SourceError {
    fn from(error: SpecError) -> SourceError {
        let message = format!("{} at byte {}", error.problem, error.offset);
        SourceError::Specification { target: error.spec, message }
    }
}

/// Attributes by all their names, with what they are about.
const ATTRIBUTES: &[(&str, Attribute)] = &[
    ("container", Attribute::Container),
    ("secure", Attribute::Secure),
    ("compress", Attribute::Unsupported),
    ("userauth", Attribute::Unsupported),
    ("authorise", Attribute::Unsupported),
    ("authorize", Attribute::Unsupported),
    ("user", Attribute::Unsupported),
    ("username", Attribute::Unsupported),
    ("realm", Attribute::Unsupported),
    ("authmeth", Attribute::Unsupported),
    ("method", Attribute::Unsupported),
    ("pass", Attribute::Unsupported),
    ("password", Attribute::Unsupported),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attribute {
    Container,
    Secure,
    Unsupported,
}

impl HostSpec {
    /// The pmcd of this machine, as `local:` means it.
    pub fn local() -> HostSpec {
        HostSpec::new("local:", Target::Local { socket: None })
    }

    fn new(text: &str, target: Target) -> HostSpec {
        HostSpec {
            text: text.to_owned(),
            target,
            secure: false,
            proxy: None,
            container: None,
            unsupported: Vec::new(),
        }
    }

    fn attributes(&mut self, text: &str) {
        let text = text.split('/').next().unwrap_or_default();
        for pair in text.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // Unknown attributes mean nothing to libpcp either.
            match ATTRIBUTES.iter().find(|(known, _)| *known == name) {
                Some((_, Attribute::Container)) => self.container = Some(percent_decoded(value)),
                Some((_, Attribute::Secure)) => self.secure = value != "relaxed",
                Some((_, Attribute::Unsupported)) => self.unsupported.push(name.to_owned()),
                None => {}
            }
        }
    }
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
            return parser.host(0, Encryption::Optional);
        };
        let start = text.len() - rest.len();
        match scheme {
            "local" | "unix" => parser.socket(scheme == "local", rest),
            "pcps" => parser.host(start, Encryption::Required),
            _ => parser.host(start, Encryption::Optional),
        }
    }
}

/// What a scheme says of encryption; an attribute may say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encryption {
    Optional,
    Required,
}

struct Parser<'t> {
    text: &'t str,
}

impl Parser<'_> {
    fn error(&self, offset: usize, problem: &'static str) -> SpecError {
        SpecError { spec: self.text.to_owned(), offset, problem }
    }

    fn socket(&self, local: bool, rest: &str) -> Result<HostSpec, SpecError> {
        let (path, attributes) = rest.split_once('?').unwrap_or((rest, ""));
        if let Some(position) = path.find(':') {
            let offset = self.text.len() - rest.len() + position;
            return Err(self.error(offset, "unexpected terminal character"));
        }
        let socket = (!path.is_empty()).then(|| PathBuf::from(format!("/{path}")));
        let target = if local { Target::Local { socket } } else { Target::Unix { socket } };
        let mut spec = HostSpec::new(self.text, target);
        spec.attributes(attributes);
        Ok(spec)
    }

    /// Host, ports, proxies and attributes from an offset on.
    fn host(&self, start: usize, encryption: Encryption) -> Result<HostSpec, SpecError> {
        let (name, ports, mut offset) = self.host_and_ports(start)?;
        let mut spec = HostSpec::new(self.text, Target::Host { name, ports });
        spec.secure = encryption == Encryption::Required;
        while self.text[offset..].starts_with('@') {
            let (name, _, after) = self.host_and_ports(offset + 1)?;
            spec.proxy.get_or_insert(name);
            offset = after;
        }
        match self.text[offset..].chars().next() {
            None | Some('/') => {}
            Some('?') => spec.attributes(&self.text[offset + 1..]),
            Some(_) => return Err(self.error(offset, "unexpected terminal character")),
        }
        Ok(spec)
    }

    fn host_and_ports(&self, start: usize) -> Result<(String, Vec<u16>, usize), SpecError> {
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
        Ok((name.to_owned(), ports, offset))
    }
}

/// The value of an attribute: `+` is a blank, `%` begins two hexadecimal digits.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let coded = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let coded = coded.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, coded) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Parses any text and checks that its places are within it.
#[doc(hidden)]
pub fn fuzz_host_spec(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.parse::<HostSpec>() {
        Ok(spec) => assert_eq!(spec.to_string(), text),
        Err(error) => {
            assert!(error.offset <= text.len());
            assert!(error.to_string().contains(error.problem));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, ports: &[u16]) -> Target {
        Target::Host { name: name.to_owned(), ports: ports.to_vec() }
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
        assert!(spec("pcps://web1").secure);
        assert!(!spec("pcps://web1?secure=relaxed").secure);
        assert!(spec("pcp://web1?secure").secure);
        assert_eq!(spec("web1@proxy:44322@other").proxy.as_deref(), Some("proxy"));
        assert_eq!(spec("local:?container=a%2Db+c").container.as_deref(), Some("a-b c"));
        assert_eq!(spec("h?container=%zz%").container.as_deref(), Some("%zz%"));
        assert_eq!(spec("h?user=me&x=1&pass=word").unsupported, ["user", "pass"]);
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
        let pieces =
            ["pcp", "unix", ":", "/", "?", "@", "[", "]", "%", "container=", "1", ",", "\u{e9}"];
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
