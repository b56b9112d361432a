//! The tool of PCP that a command stands in for, and the output of a tool that ends at once.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use pmderive_runtime::context::HostSpec;
use pmderive_runtime::model::PmStatus;

use super::tools::Tool;
use crate::cli::lines::Lines;
use crate::dialect::Dialect;

/// A tool of PCP in one of its versions.
#[derive(Clone, Copy, Debug)]
pub struct Impersonated {
    /// The tool.
    pub tool: &'static Tool,
    /// Its version.
    pub dialect: Dialect,
}

/// The output of a tool that ends before any work.
#[derive(Debug, PartialEq, Eq)]
pub struct EarlyEnd {
    /// Text for standard error.
    pub text: Lines,
    /// True if the user asked for this text.
    pub is_good: bool,
}

impl Impersonated {
    /// The tool that a command line asks for. `arguments` begin with the program's name.
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

    /// The version that the tool prints as its own.
    pub fn version(self) -> &'static str {
        match self.dialect {
            Dialect::Pcp6_0 => "6.0.3",
            Dialect::Pcp7_2 | Dialect::Fixed => "7.2.1",
        }
    }
}

/// The error of pmNewContext(3) for an impossible host, and the words that a tool adds.
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
