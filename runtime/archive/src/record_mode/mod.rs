//! Record mode: this program starts a pmlogger(1) process for each host. A folio file
//! holds their archives together for pmafm(1).
//!
//! ```text
//!   create ─► add_host, argument ─► start ─► show_status, stop, detach
//!   (begin)        (host)            (on)               (off)
//! ```
//!
//! `folio` handles the file, `logger` one process. The caller writes the configuration
//! that says what is recorded, in pmlogger's language.

mod error;
mod folio;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod logger;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

pub use error::RecordError;
pub use folio::archives_of_folio;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_folio;

use folio::Folio;
use logger::Logger;
use pmderive_core::model::Timestamp;
use pmderive_system::pcp_conf::PcpConf;
use pmderive_system::time::TimeZone;

/// A recording (`pmRecordSetup(3)`). If it is dropped, loggers that were neither
/// stopped nor detached continue. They see that their parent program has ended.
///
/// libpcp has one recording per process and removes the replay configuration at once.
/// Here each recording is a value, and the file is kept, as the manual says.
#[derive(Debug)]
pub struct Recording {
    folio: Folio,
    /// The folio's folder, which holds all files of the recording.
    folder: PathBuf,
    /// Beginning of all file names, unique in the folder.
    base: String,
    creator: String,
    replay: Option<File>,
    hosts: Vec<Logger>,
    has_default: bool,
    is_started: bool,
}

/// A host of a recording (`pmRecordHost`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordHost(usize);

/// The error for a host of another recording.
const OF_ANOTHER: RecordError = RecordError::Order("the host belongs to another recording");

impl Recording {
    /// Begins a recording (`pmRecordSetup(3)`): creates the folio, and a file with a
    /// unique name beside it. That file holds the replay configuration if `replay` is
    /// set, otherwise it stays empty. `creator` is the name of the program.
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

    /// The file for the replay configuration, if there is one.
    pub fn replay_config(&mut self) -> Option<&mut impl Write> {
        self.replay.as_mut()
    }

    /// Adds a host and a logger for it (`pmRecordAddHost(3)`). The default host comes
    /// first in the folio.
    ///
    /// # Errors
    /// The recording has begun, there is a default host already, or the files cannot be
    /// created.
    pub fn add_host(&mut self, host: &str, is_default: bool) -> Result<RecordHost, RecordError> {
        if self.is_started {
            return Err(RecordError::Order("hosts must be added before recording begins"));
        }
        if is_default && self.has_default {
            return Err(RecordError::Order("only one host can be the default"));
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

    /// The file for the configuration of a host's logger (pmlogger(1), CONFIGURATION
    /// FILE SYNTAX).
    ///
    /// # Errors
    /// The recording has begun.
    pub fn config(&mut self, host: RecordHost) -> Result<&mut impl Write, RecordError> {
        let logger = self.hosts.get_mut(host.0);
        let config = logger.and_then(|logger| logger.config.as_mut());
        config.ok_or(RecordError::Order("configurations must be written before recording begins"))
    }

    /// Adds an argument for the logger of `host`, or for all loggers added so far
    /// (`PM_REC_SETARG` of `pmRecordControl(3)`).
    ///
    /// # Errors
    /// There is no host yet, or the recording has begun.
    pub fn argument(&mut self, host: Option<RecordHost>, text: &str) -> Result<(), RecordError> {
        if self.is_started || self.hosts.is_empty() {
            return Err(RecordError::Order(
                "arguments must be added after the first host and before recording begins",
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

    /// Begins to record (`PM_REC_ON` of `pmRecordControl(3)`): completes the folio and
    /// starts the loggers.
    ///
    /// # Errors
    /// There is no host, the recording has begun already, or a logger cannot be
    /// started. In the last case the loggers that did start are stopped.
    pub fn start(&mut self) -> Result<(), RecordError> {
        if self.is_started || self.hosts.is_empty() {
            return Err(RecordError::Order("recording can begin only once, and needs a host"));
        }
        self.is_started = true;
        self.replay = None;
        // libpcp's order: the default host, then the others, the last added first.
        let mut order: Vec<&Logger> = self.hosts.iter().rev().collect();
        order.sort_by_key(|logger| !logger.is_default);
        self.folio.complete(order.iter().map(|logger| (&*logger.host, &*logger.archive)))?;
        let folder = PcpConf::load().get("PCP_BINADM_DIR");
        let folder = folder.unwrap_or_else(|| "/usr/lib/pcp/bin".to_owned());
        let program = Path::new(&folder).join("pmlogger");
        // The reader is a program, so nothing is escaped.
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
                // The error to report is the one of `start`.
                let _ = logger.leave("Q");
            }
        }
        started
    }

    /// Asks the logger of `host`, or all loggers, to show the status in a window or in
    /// the log (`PM_REC_STATUS` of `pmRecordControl(3)`). `options` are passed to
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

    /// Stops the logger of `host`, or all loggers (`PM_REC_OFF` of
    /// `pmRecordControl(3)`). The logger ends a little later: see [`Recording::wait`].
    ///
    /// # Errors
    /// Nothing is being recorded, or the logger has ended by itself (`PM_ERR_IPC`). All
    /// other loggers are stopped nevertheless.
    pub fn stop(&mut self, host: Option<RecordHost>, options: &str) -> Result<(), RecordError> {
        self.tell(host, options, |logger| logger.leave(&format!("Q{options}")))
    }

    /// Lets the logger of `host`, or all loggers, continue without this program
    /// (`PM_REC_DETACH` of `pmRecordControl(3)`).
    ///
    /// # Errors
    /// As for [`Recording::stop`].
    pub fn detach(&mut self, host: Option<RecordHost>, options: &str) -> Result<(), RecordError> {
        self.tell(host, options, |logger| logger.leave(&format!("D{options}")))
    }

    /// True while there is a logger that was neither stopped nor detached.
    pub fn is_on(&self) -> bool {
        self.hosts.iter().any(Logger::is_on)
    }

    /// Waits until the logger of `host` has ended, after it was stopped or by itself.
    ///
    /// # Errors
    /// The logger was not started.
    pub fn wait(&mut self, host: RecordHost) -> Result<ExitStatus, RecordError> {
        self.logger(host)?.wait()
    }

    /// The exit status of the logger of `host`; `None` while it runs.
    ///
    /// # Errors
    /// The logger was not started.
    pub fn exit_status(&mut self, host: RecordHost) -> Result<Option<ExitStatus>, RecordError> {
        self.logger(host)?.exit_status()
    }

    /// Process identifier of a host's logger.
    ///
    /// # Errors
    /// The logger was not started.
    pub fn process_id(&self, host: RecordHost) -> Result<u32, RecordError> {
        self.hosts.get(host.0).ok_or(OF_ANOTHER)?.process_id()
    }

    /// The log file of a host's logger.
    pub fn log_file(&self, host: RecordHost) -> PathBuf {
        self.file(host, ".log")
    }

    /// The archive of a host: the path of its files without their suffixes.
    pub fn archive(&self, host: RecordHost) -> PathBuf {
        self.file(host, "")
    }

    fn file(&self, host: RecordHost, ending: &str) -> PathBuf {
        let archive = self.hosts.get(host.0).map_or("", |logger| &logger.archive);
        self.folder.join(format!("{archive}{ending}"))
    }

    fn logger(&mut self, host: RecordHost) -> Result<&mut Logger, RecordError> {
        self.hosts.get_mut(host.0).ok_or(OF_ANOTHER)
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
            return Err(RecordError::Order("nothing is being recorded"));
        }
        outcome
    }
}

/// One logger, or all.
fn selected(hosts: &mut [Logger], host: Option<RecordHost>) -> impl Iterator<Item = &mut Logger> {
    let is_it = move |index| host.is_none_or(|host| host.0 == index);
    hosts.iter_mut().enumerate().filter(move |(index, _)| is_it(*index)).map(|(_, logger)| logger)
}

/// Refuses text that would not stay on one line.
fn one_line(of: &'static str, text: &str) -> Result<(), RecordError> {
    if text.contains(['\n', '\0']) {
        return Err(RecordError::Text { of, text: text.to_owned() });
    }
    Ok(())
}
