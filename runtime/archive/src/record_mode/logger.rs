//! One pmlogger process, and the pipe that carries commands to it.

use std::fs::{File, OpenOptions};
use std::io::{PipeWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::error::RecordError;

/// The logger of a host.
#[derive(Debug)]
pub(super) struct Logger {
    pub host: String,
    pub is_default: bool,
    /// Name of the archive in the folder. The names of all files of this logger begin
    /// with it.
    pub archive: String,
    pub arguments: Vec<String>,
    /// The configuration's file, until the logger starts.
    pub config: Option<File>,
    log: PathBuf,
    process: Option<Child>,
    /// The pipe to the process, until it is stopped or detached.
    pipe: Option<PipeWriter>,
}

impl Logger {
    /// Creates the configuration of a logger. If a file with its name exists, a letter is
    /// added to the base.
    pub fn create(
        folder: &Path,
        base: &str,
        host: &str,
        is_default: bool,
    ) -> Result<Logger, RecordError> {
        // A host specification may contain the path of a socket.
        let name = host.replace('/', "_");
        let letters = std::iter::once(String::new()).chain(('a'..='z').map(String::from));
        let mut failure = None;
        for letter in letters {
            let archive = format!("{base}{letter}.{name}");
            let path = folder.join(format!("{archive}.config"));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(config) => {
                    return Ok(Logger {
                        host: host.to_owned(),
                        is_default,
                        log: folder.join(format!("{archive}.log")),
                        archive,
                        arguments: Vec::new(),
                        config: Some(config),
                        process: None,
                        pipe: None,
                    });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    failure = Some(RecordError::io(&path, error));
                }
                Err(error) => return Err(RecordError::io(&path, error)),
            }
        }
        Err(failure.unwrap_or(RecordError::Order("all file names are taken")))
    }

    /// Starts the process in `folder` and sends the greeting.
    pub fn start(
        &mut self,
        program: &Path,
        folder: &Path,
        greeting: &str,
    ) -> Result<(), RecordError> {
        self.config = None;
        let failed = |source| RecordError::io(program, source);
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let log = File::create(&self.log).map_err(|source| RecordError::io(&self.log, source))?;
        let archive = &self.archive;
        let mut command = Command::new(program);
        // The pipe is standard input, so no other child can inherit it.
        command
            .args(&self.arguments)
            .args(["-x", "0", "-h", &self.host])
            .args(["-l", &format!("{archive}.log"), "-c", &format!("{archive}.config")])
            .arg(archive)
            .current_dir(folder)
            .stdin(Stdio::from(reader))
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log);
        self.process = Some(command.spawn().map_err(failed)?);
        self.pipe = Some(writer);
        self.write(greeting)
    }

    /// True while the logger accepts commands.
    pub fn is_on(&self) -> bool {
        self.pipe.is_some()
    }

    /// Sends a message of one line.
    pub fn tell(&mut self, message: &str) -> Result<(), RecordError> {
        if self.exit_status()?.is_some() {
            self.pipe = None;
            return Err(self.ended());
        }
        self.write(&format!("{message}\n"))
    }

    /// Sends a last message and closes the pipe.
    pub fn leave(&mut self, message: &str) -> Result<(), RecordError> {
        let told = self.tell(message);
        self.pipe = None;
        told
    }

    pub fn wait(&mut self) -> Result<ExitStatus, RecordError> {
        let log = &self.log;
        let process = self.process.as_mut().ok_or(NOT_STARTED)?;
        process.wait().map_err(|source| RecordError::io(log, source))
    }

    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>, RecordError> {
        let log = &self.log;
        let process = self.process.as_mut().ok_or(NOT_STARTED)?;
        process.try_wait().map_err(|source| RecordError::io(log, source))
    }

    pub fn process_id(&self) -> Result<u32, RecordError> {
        Ok(self.process.as_ref().ok_or(NOT_STARTED)?.id())
    }

    fn write(&mut self, text: &str) -> Result<(), RecordError> {
        let pipe = self.pipe.as_mut().ok_or(NOT_STARTED)?;
        match pipe.write_all(text.as_bytes()) {
            Ok(()) => Ok(()),
            Err(_) => {
                self.pipe = None;
                Err(self.ended())
            }
        }
    }

    fn ended(&self) -> RecordError {
        RecordError::Ended { host: self.host.clone(), log: self.log.clone() }
    }
}

const NOT_STARTED: RecordError = RecordError::Order("the logger was not started");
