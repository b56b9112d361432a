//! Messages of a program to its user. They are collected and delivered together
//! to the place that `PCP_STDERR` names. Also the name under which the program
//! speaks.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::RwLock;

use pmderive_core::escape;
use pmderive_core::locks::{read, write};

use crate::pcp_conf::PcpConf;

/// The place that messages go to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MessageTarget {
    /// Standard error.
    #[default]
    Stderr,
    /// A window with a button, opened by PCP's pmconfirm(1).
    Dialog,
    /// A file; messages are appended.
    File(PathBuf),
}

impl MessageTarget {
    /// The target in the environment variable `PCP_STDERR`: unset or empty is
    /// standard error, `DISPLAY` is a window, anything else is a file.
    pub fn from_environment() -> MessageTarget {
        match std::env::var_os("PCP_STDERR") {
            None => MessageTarget::Stderr,
            Some(value) if value.is_empty() => MessageTarget::Stderr,
            Some(value) if value == "DISPLAY" => MessageTarget::Dialog,
            Some(value) => MessageTarget::File(value.into()),
        }
    }
}

/// Messages that wait for a good moment (`pmprintf(3)`). Write to it with
/// `write!` of [`fmt::Write`]. Messages that were not delivered are lost when
/// it is dropped.
///
/// libpcp has one buffer for the process; here each part that has messages owns
/// one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageBuffer {
    text: String,
}

impl fmt::Write for MessageBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        Ok(())
    }
}

/// A line with more bytes needs a window that scrolls.
const LONG_MESSAGE: usize = 80;

impl MessageBuffer {
    /// The waiting messages.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Delivers the waiting messages to the target in the environment
    /// (`pmflush(3)`).
    ///
    /// # Errors
    /// Even standard error fails; the messages stay in the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flush_to(&MessageTarget::from_environment())
    }

    /// Delivers the waiting messages. If the target fails, they go to standard
    /// error, with a note.
    ///
    /// # Errors
    /// Even standard error fails; the messages stay in the buffer.
    pub fn flush_to(&mut self, target: &MessageTarget) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        let note = match target {
            MessageTarget::Stderr => None,
            MessageTarget::File(path) => {
                let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
                let written = file.and_then(|mut file| file.write_all(self.text.as_bytes()));
                match written {
                    Ok(()) => {
                        self.text.clear();
                        return Ok(());
                    }
                    Err(error) => Some(format!(
                        "pmflush: cannot append to file '{}' (from $PCP_STDERR): {error}",
                        escape::path(&path)
                    )),
                }
            }
            MessageTarget::Dialog => match self.show() {
                Ok(()) => {
                    self.text.clear();
                    return Ok(());
                }
                Err((program, error)) => Some(format!(
                    "{}: using stderr - cannot access {program}: {error}",
                    program_name()
                )),
            },
        };
        let mut stderr = io::stderr().lock();
        if let Some(note) = note {
            writeln!(stderr, "{note}")?;
        }
        stderr.write_all(self.text.as_bytes())?;
        stderr.flush()?;
        self.text.clear();
        Ok(())
    }

    /// Shows the messages in a window and waits until the user closes it.
    fn show(&self) -> Result<(), (String, io::Error)> {
        let program = PcpConf::load().get("PCP_XCONFIRM_PROG");
        let program = program.unwrap_or_else(|| "/usr/bin/pmconfirm".to_owned());
        let shown = || {
            let mut file = tempfile::NamedTempFile::new()?;
            file.write_all(self.text.as_bytes())?;
            let mut command = Command::new(&program);
            command.arg("-file").arg(file.path()).args(["-c", "-B", "OK", "-icon", "info"]);
            if self.text.len() > LONG_MESSAGE {
                command.arg("-useslider");
            }
            command.stdin(Stdio::null()).stdout(Stdio::null()).status()
        };
        match shown() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err((program.clone(), io::Error::other(status.to_string()))),
            Err(error) => Err((program.clone(), error)),
        }
    }
}

static PROGRAM_NAME: RwLock<Option<String>> = RwLock::new(None);

/// The name under which this program speaks in messages (`pmGetProgname(3)`).
/// It is `pcp` until a name is set.
pub fn program_name() -> String {
    let name = read(&PROGRAM_NAME);
    name.clone().unwrap_or_else(|| "pcp".to_owned())
}

/// Sets the name under which this program speaks: the part of `name` after its
/// last slash (`pmSetProgname(3)`).
pub fn set_program_name(name: &str) {
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    *write(&PROGRAM_NAME) = Some(name);
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn messages_are_appended_to_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("messages");
        let mut buffer = MessageBuffer::default();
        for text in ["one\n", "two\n"] {
            write!(buffer, "{text}").unwrap();
            assert_eq!(buffer.as_str(), text);
            buffer.flush_to(&MessageTarget::File(file.clone())).unwrap();
            assert_eq!(buffer.as_str(), "");
        }
        assert_eq!(std::fs::read_to_string(file).unwrap(), "one\ntwo\n");
        // Then on standard error, with a note.
        writeln!(buffer, "three").unwrap();
        let nowhere = folder.path().join("no/such/file");
        buffer.flush_to(&MessageTarget::File(nowhere)).unwrap();
        assert_eq!(buffer.as_str(), "");
    }

    #[test]
    fn the_name_is_what_follows_the_last_slash() {
        assert_eq!(program_name(), "pcp");
        for (name, expected) in [("/a/b/c", "c"), ("x", "x"), ("a/", ""), ("", "")] {
            set_program_name(name);
            assert_eq!(program_name(), expected);
        }
    }
}
