//! Parses host specifications. [`super`] describes their form.

use std::path::PathBuf;
use std::str::FromStr;

use pmderive_core::percent;

use super::{Encryption, HostAndPorts, HostSpec, SpecError, Target, without_password};
use crate::proto::Secret;

/// All names of attributes, with their meanings. Other attributes are ignored, as
/// libpcp ignores them and those that it sets itself.
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

/// The attribute whose value may contain slashes.
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
    /// Reads the attributes of `text`, which end at a slash. The error is the offset of
    /// an invalid character code.
    fn attributes(&mut self, text: &str) -> Result<(), usize> {
        let mut offset = 0;
        loop {
            let pair = first_pair(&text[offset..]);
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let known = ATTRIBUTES.iter().find(|(known, _)| *known == name);
            let decoded = percent::decoded(value, b' ');
            let value = decoded.map_err(|within| offset + pair.len() - value.len() + within)?;
            let value = String::from_utf8_lossy(&value).into_owned();
            match known {
                Some((_, attribute)) => self.attribute(*attribute, value),
                None if name.is_empty() => {}
                None => self.warnings.push(format!(
                    "`{name}` is no attribute of a host and is ignored; attributes are such as \
                     container, secure, user and passfile"
                )),
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
            Attribute::Secure => {
                if !["", "1", "enforce"].contains(&&*value) {
                    self.warnings.push(format!(
                        "`secure={value}` is read as `secure=enforce`; the other value is `relaxed`"
                    ));
                }
                self.encryption = Encryption::Required;
            }
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

/// The first attribute of a text.
fn first_pair(text: &str) -> &str {
    let is_path = text.split('=').next() == Some(PASSWORD_FILE);
    let end = if is_path { text.find('&') } else { text.find(['&', '/']) };
    &text[..end.unwrap_or(text.len())]
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
        // The shown text has another length if it hides a password before the place.
        let offset =
            self.text.get(..offset).map_or(offset, |before| without_password(before).len());
        let spec = without_password(self.text);
        SpecError { offset: offset.min(spec.len()), spec, problem }
    }

    /// Adds the attributes that begin at `start`.
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

    /// Parses host, ports, proxies and attributes, beginning at `start`.
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
