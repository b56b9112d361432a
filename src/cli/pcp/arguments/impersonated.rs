//! The tool of PCP that a command stands in for, and what such a tool may say instead of
//! doing anything.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use pmderive_runtime::context::HostSpec;
use pmderive_runtime::model::PmStatus;

use super::tools::Tool;
use crate::cli::lines::Lines;
use crate::dialect::Dialect;

/// A tool of PCP in one of its versions, which a command stands in for.
#[derive(Clone, Copy, Debug)]
pub struct Impersonated {
    /// The tool.
    pub tool: &'static Tool,
    /// Its version.
    pub dialect: Dialect,
}

/// What a tool has to say before it ends without having done anything.
#[derive(Debug, PartialEq, Eq)]
pub struct EarlyEnd {
    /// For standard error.
    pub text: Lines,
    /// True if this is what was asked for.
    pub is_good: bool,
}

impl Impersonated {
    /// The tool that arguments, the program's name among them, ask for.
    pub fn by(arguments: &[OsString]) -> Option<Impersonated> {
        let tool = Tool::of_command(arguments.get(1)?.to_str()?)?;
        let rest = &arguments[2..];
        let at = rest.iter().position(|argument| {
            argument == "--" || argument.as_bytes().starts_with(b"--compat")
        })?;
        let version = match rest[at].as_bytes().strip_prefix(b"--compat")? {
            [] => rest.get(at + 1)?.to_str()?,
            [b'=', version @ ..] => std::str::from_utf8(version).ok()?,
            _ => return None,
        };
        let dialect = match version {
            "6.0" => Dialect::Pcp6_0,
            "7.2" => Dialect::Pcp7_2,
            _ => return None,
        };
        Some(Impersonated { tool, dialect })
    }

    /// The version that the tool says it is.
    pub fn version(self) -> &'static str {
        match self.dialect {
            Dialect::Pcp6_0 => "6.0.3",
            Dialect::Pcp7_2 | Dialect::Fixed => "7.2.1",
        }
    }
}

/// What pmNewContext(3) says of a host that cannot be one, and what a tool adds.
pub fn refused_host(host: &str) -> Option<(Lines, String)> {
    let error = host.parse::<HostSpec>().err()?;
    let (reason, status) = match host {
        "" => (Lines::default(), PmStatus::NOTHOST),
        _ => {
            let start = "pmNewContext: bad host specification\n";
            (Lines::of(&[&start, &error, &"\n"]), PmStatus::GENERIC)
        }
    };
    Some((reason, format!("Cannot connect to PMCD on host \"{host}\": {status}")))
}
