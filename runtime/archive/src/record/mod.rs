//! Record mode: archives made on the fly by pmlogger(1) processes that this
//! program starts, one for each host, and a folio file that holds them together
//! for pmafm(1).
//!
//! ```text
//!   create ─► add_host, argument ─► start ─► show_status, stop, detach
//!   (begin)        (host)            (on)               (off)
//! ```
//!
//! `folio` is the file, `logger` one process. What is recorded is written by
//! the caller, in the language of pmlogger's configurations.

mod error;
mod folio;
mod logger;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

pub use error::RecordError;
pub use folio::archives_of_folio;
#[cfg(any(test, feature = "fuzz"))]
pub use folio::fuzz_folio;

use folio::Folio;
use logger::Logger;
use pmderive_core::model::Timestamp;
use pmderive_system::pcp_conf::PcpConf;
use pmderive_system::time::TimeZone;

/// A recording (`pmRecordSetup(3)`). When it is dropped, loggers that were
/// neither stopped nor detached go on and take the end of this program as that
/// of the launcher.
///
/// libpcp has one for the process and removes the replay configuration at once;
/// here each is a value, and the file is kept, as the manual says.
#[derive(Debug)]
pub struct Recording {
    folio: Folio,
    /// The folio's folder, in which everything is.
    folder: PathBuf,
    /// What names of files begin with, unique in the folder.
    base: String,
    creator: String,
    replay: Option<File>,
    hosts: Vec<Logger>,
    has_default: bool,
    is_started: bool,
}

/// One of the hosts of a recording (`pmRecordHost`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordHost(usize);

impl Recording {
    /// Begins a recording (`pmRecordSetup(3)`): creates the folio, and a file
    /// with a unique name beside it, which holds the replay configuration if
    /// there is to be one and stays empty else. `creator` is the name of the
    /// program.
    ///
    /// # Errors
    /// The folio exists, or a file cannot be created.
    pub fn create(folio: &Path, creator: &str, replay: bool) -> Result<Recording, RecordError> {
        let failed = |source| RecordError::io(folio, source);
        one_line("creator", creator)?;
        let path = std::path::absolute(folio).map_err(failed)?;
        one_line("folio", &path.to_string_lossy())?;
        let folder = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        let unique = tempfile::Builder::new().prefix("").rand_bytes(6).tempfile_in(&folder);
        let kept = unique.and_then(|unique| unique.keep().map_err(|error| error.error));
        let (control, control_path) = kept.map_err(|source| RecordError::io(&folder, source))?;
        let base = control_path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut folio = Folio { path, file, has_replay: replay };
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let time = TimeZone::system().ctime(Timestamp::now());
        folio.begin(&host, &time, creator, replay.then_some(&*base))?;
        Ok(Recording {
            folio,
            folder,
            base,
            creator: creator.to_owned(),
            replay: replay.then_some(control),
            hosts: Vec::new(),
            has_default: false,
            is_started: false,
        })
    }

    /// Where the replay configuration is written to, if there is one.
    pub fn replay_config(&mut self) -> Option<&mut impl Write> {
        self.replay.as_mut()
    }

    /// Adds a host, to be recorded by a logger of its own
    /// (`pmRecordAddHost(3)`); the default one stands first in the folio.
    ///
    /// # Errors
    /// Recording has begun, there is a default host already, or the files
    /// cannot be created.
    pub fn add_host(&mut self, host: &str, is_default: bool) -> Result<RecordHost, RecordError> {
        if self.is_started {
            return Err(RecordError::Order("hosts are added before recording begins"));
        }
        if is_default && self.has_default {
            return Err(RecordError::Order("there is one default host at most"));
        }
        if host.is_empty() {
            return Err(RecordError::Text { of: "host", text: String::new() });
        }
        one_line("host", host)?;
        let logger = Logger::create(&self.folder, &self.base, host, is_default)?;
        self.has_default |= is_default;
        self.hosts.push(logger);
        Ok(RecordHost(self.hosts.len() - 1))
    }

    /// Where the configuration of a host's logger is written to
    /// (pmlogger(1), CONFIGURATION FILE SYNTAX).
    ///
    /// # Errors
    /// Recording has begun.
    pub fn config(&mut self, host: RecordHost) -> Result<&mut impl Write, RecordError> {
        let logger = self.hosts.get_mut(host.0);
        let config = logger.and_then(|logger| logger.config.as_mut());
        config.ok_or(RecordError::Order("configurations are written before recording begins"))
    }

    /// Adds an argument for the logger of a host, or for all that are there
    /// (`PM_REC_SETARG` of `pmRecordControl(3)`).
    ///
    /// # Errors
    /// There is no host yet, or recording has begun.
    pub fn argument(&mut self, host: Option<RecordHost>, text: &str) -> Result<(), RecordError> {
        if self.is_started || self.hosts.is_empty() {
            return Err(RecordError::Order(
                "arguments are added after the first host and before recording begins",
            ));
        }
        if text.contains('\0') {
            return Err(RecordError::Text { of: "argument", text: text.to_owned() });
        }
        for logger in selected(&mut self.hosts, host) {
            logger.arguments.push(text.to_owned());
        }
        Ok(())
    }

    /// Begins to record (`PM_REC_ON` of `pmRecordControl(3)`): completes the
    /// folio and starts the loggers.
    ///
    /// # Errors
    /// There is no host, recording has begun already, or a logger cannot be
    /// started; then those that were are stopped.
    pub fn start(&mut self) -> Result<(), RecordError> {
        if self.is_started || self.hosts.is_empty() {
            return Err(RecordError::Order("recording begins once, and with a host at least"));
        }
        self.is_started = true;
        self.replay = None;
        // As libpcp does: the default host first, then the one that came last.
        let mut order: Vec<&Logger> = self.hosts.iter().rev().collect();
        order.sort_by_key(|logger| !logger.is_default);
        self.folio.complete(order.iter().map(|logger| (&*logger.host, &*logger.archive)))?;
        let folder = PcpConf::load().get("PCP_BINADM_DIR");
        let folder = folder.unwrap_or_else(|| "/usr/lib/pcp/bin".to_owned());
        let program = Path::new(&folder).join("pmlogger");
        // For a program, not for people.
        let path = self.folio.path.to_string_lossy();
        let mut greeting = format!("V0\nF{path}\nP{}\n", self.creator);
        if self.folio.has_replay {
            greeting.push_str("R\n");
        }
        let started = self
            .hosts
            .iter_mut()
            .try_for_each(|logger| logger.start(&program, &self.folder, &greeting));
        if started.is_err() {
            for logger in &mut self.hosts {
                // What is wrong is that one could not be started.
                let _ = logger.leave("Q");
            }
        }
        started
    }

    /// Lets the logger of a host, or all, tell its status in a window or in its
    /// log (`PM_REC_STATUS` of `pmRecordControl(3)`). `options` are for
    /// pmconfirm(1), such as `-geometry 100x100`.
    ///
    /// # Errors
    /// As for [`Recording::stop`].
    pub fn show_status(
        &mut self,
        host: Option<RecordHost>,
        options: &str,
    ) -> Result<(), RecordError> {
        self.tell(host, options, |logger| logger.tell(&format!("?{options}")))
    }

    /// Ends the logger of a host, or all (`PM_REC_OFF` of `pmRecordControl(3)`).
    /// It ends soon: see [`Recording::wait`].
    ///
    /// # Errors
    /// Nothing is recorded now, or the logger has ended by itself
    /// (`PM_ERR_IPC`); all others were told nevertheless.
    pub fn stop(&mut self, host: Option<RecordHost>, options: &str) -> Result<(), RecordError> {
        self.tell(host, options, |logger| logger.leave(&format!("Q{options}")))
    }

    /// Lets the logger of a host, or all, go on without this program
    /// (`PM_REC_DETACH` of `pmRecordControl(3)`).
    ///
    /// # Errors
    /// As for [`Recording::stop`].
    pub fn detach(&mut self, host: Option<RecordHost>, options: &str) -> Result<(), RecordError> {
        self.tell(host, options, |logger| logger.leave(&format!("D{options}")))
    }

    /// True while a logger was neither stopped nor detached.
    pub fn is_on(&self) -> bool {
        self.hosts.iter().any(Logger::is_on)
    }

    /// Waits until the logger of a host has ended, which happens after it was
    /// stopped, or by itself.
    ///
    /// # Errors
    /// It was not started.
    pub fn wait(&mut self, host: RecordHost) -> Result<ExitStatus, RecordError> {
        self.logger(host)?.wait()
    }

    /// How the logger of a host ended; `None` while it runs.
    ///
    /// # Errors
    /// It was not started.
    pub fn exit_status(&mut self, host: RecordHost) -> Result<Option<ExitStatus>, RecordError> {
        self.logger(host)?.exit_status()
    }

    /// Identifier of the process of a host's logger.
    ///
    /// # Errors
    /// It was not started.
    pub fn process_id(&mut self, host: RecordHost) -> Result<u32, RecordError> {
        self.logger(host)?.process_id()
    }

    /// The file in which the logger of a host writes what it has to say.
    pub fn log_file(&self, host: RecordHost) -> PathBuf {
        self.file(host, ".log")
    }

    /// The archive of a host, without the endings of its files.
    pub fn archive(&self, host: RecordHost) -> PathBuf {
        self.file(host, "")
    }

    fn file(&self, host: RecordHost, ending: &str) -> PathBuf {
        let archive = self.hosts.get(host.0).map_or("", |logger| &logger.archive);
        self.folder.join(format!("{archive}{ending}"))
    }

    fn logger(&mut self, host: RecordHost) -> Result<&mut Logger, RecordError> {
        self.hosts.get_mut(host.0).ok_or(RecordError::Order("the host is of another recording"))
    }

    fn tell(
        &mut self,
        host: Option<RecordHost>,
        options: &str,
        message: impl Fn(&mut Logger) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        one_line("options", options)?;
        let mut told = 0;
        let mut outcome = Ok(());
        for logger in selected(&mut self.hosts, host).filter(|logger| logger.is_on()) {
            told += 1;
            outcome = outcome.and(message(logger));
        }
        if told == 0 {
            return Err(RecordError::Order("nothing is recorded now"));
        }
        outcome
    }
}

/// One logger, or all.
fn selected(hosts: &mut [Logger], host: Option<RecordHost>) -> impl Iterator<Item = &mut Logger> {
    let is_it = move |index| host.is_none_or(|host| host.0 == index);
    hosts.iter_mut().enumerate().filter(move |(index, _)| is_it(*index)).map(|(_, logger)| logger)
}

/// Refuses what would not stay within a line.
fn one_line(of: &'static str, text: &str) -> Result<(), RecordError> {
    if text.contains(['\n', '\0']) {
        return Err(RecordError::Text { of, text: text.to_owned() });
    }
    Ok(())
}
