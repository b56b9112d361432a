//! The expanded contents of a file, in a temporary file without a name. Only the parts
//! that were asked for are expanded.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use pmderive_core::escape;
use pmderive_core::locks::lock;
use pmderive_system::pcp_conf::PcpConf;

use super::input::Input;
use super::output::Output;
use super::units::Units;
use super::xz::Block;
use crate::archive::bytes::Bytes;

/// Maximum size in bytes to which a file may expand, unless the caller sets a limit.
const ALLOWED: u64 = 16 << 30;

/// Largest share of the free space for a file, in percent, if that is less.
const ALLOWED_SHARE: u64 = 90;

/// The reason why a file cannot be expanded.
#[derive(Clone, Debug)]
pub(in crate::archive) struct ExpandError {
    /// Number of bytes of the compressed file that were read.
    pub(in crate::archive) offset: u64,
    reason: Arc<str>,
}

impl std::error::Error for ExpandError {}

impl std::fmt::Display for ExpandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

impl ExpandError {
    fn new(offset: u64, error: &io::Error) -> ExpandError {
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it ends too early".into(),
            _ => error.to_string().into(),
        };
        ExpandError { offset, reason }
    }
}

impl From<ExpandError> for io::Error {
    fn from(error: ExpandError) -> io::Error {
        io::Error::other(error)
    }
}

/// The contents of a compressed file.
#[derive(Debug)]
pub(super) struct Expansion {
    contents: File,
    state: Mutex<State>,
}

struct State {
    input: Input,
    /// Maximum size of the contents in bytes.
    limit: u64,
    plan: Plan,
}

/// The order in which units are expanded.
enum Plan {
    /// Blocks with known places, in any order.
    Blocks(Vec<(Block, Progress)>),
    /// From front to back.
    InOrder {
        units: Box<dyn Units>,
        /// Size of the units expanded so far.
        size: u64,
        progress: Progress,
    },
}

/// The progress in expanding a block or the whole file.
#[derive(Clone, Debug)]
enum Progress {
    ToDo,
    Done,
    Failed(ExpandError),
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Expansion {
    /// Prepares to expand a file to at most `limit` bytes, or to the size that is
    /// allowed for every file. Expands nothing yet. `blocks` are all blocks of the
    /// file, if there is a list.
    pub(super) fn new(
        mut input: Input,
        units: Box<dyn Units>,
        blocks: Option<Vec<Block>>,
        limit: Option<u64>,
    ) -> io::Result<Expansion> {
        let contents = temporary_file()?;
        let limit = limit.unwrap_or_else(|| free_space(&contents).min(ALLOWED));
        let blocks = blocks.filter(|blocks| blocks.last().is_some_and(|last| last.end() <= limit));
        let plan = match blocks {
            Some(blocks) => {
                Plan::Blocks(blocks.into_iter().map(|block| (block, Progress::ToDo)).collect())
            }
            None => Plan::InOrder { units, size: 0, progress: Progress::ToDo },
        };
        input.seek(0);
        let state = Mutex::new(State { input, limit, plan });
        Ok(Expansion { contents, state })
    }

    /// Expands the part that contains `offset`. Returns the end of that part, or
    /// `offset` itself at the end of the contents.
    fn expand(&self, offset: u64) -> io::Result<u64> {
        // The state changes only as the last step of a computation, so a panic leaves the
        // old state.
        let State { input, limit, plan } = &mut *lock(&self.state);
        match plan {
            Plan::Blocks(blocks) => {
                let after = blocks.partition_point(|(block, _)| block.start <= offset);
                let Some((block, progress)) = blocks[..after].last_mut() else { return Ok(offset) };
                let end = block.end();
                if end <= offset {
                    return Ok(offset);
                }
                if matches!(progress, Progress::ToDo) {
                    let mut sink = Sink { file: &self.contents, position: block.start };
                    let mut output = Output::new(&mut sink, block.size);
                    *progress = match block.expand(input, &mut output) {
                        Ok(()) => Progress::Done,
                        Err(e) => Progress::Failed(ExpandError::new(input.position(), &e)),
                    };
                }
                match progress {
                    Progress::Failed(error) => Err(error.clone().into()),
                    _ => Ok(end),
                }
            }
            Plan::InOrder { units, size, progress } => {
                while *size <= offset {
                    match progress {
                        Progress::ToDo => {}
                        Progress::Done => return Ok(offset),
                        Progress::Failed(error) => return Err(error.clone().into()),
                    }
                    let mut sink = Sink { file: &self.contents, position: *size };
                    let mut output = Output::after(*size, &mut sink, *limit);
                    match units.next(input, &mut output) {
                        Ok(true) => *size += output.written(),
                        Ok(false) => *progress = Progress::Done,
                        // Decoders cannot continue after an error.
                        Err(e) => {
                            if e.kind() == io::ErrorKind::UnexpectedEof {
                                *size += output.written();
                            }
                            *progress = Progress::Failed(ExpandError::new(input.position(), &e));
                        }
                    }
                }
                Ok(*size)
            }
        }
    }
}

impl Bytes for Arc<Expansion> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let there = self.expand(offset)? - offset;
        let length = usize::try_from(there).unwrap_or(usize::MAX).min(buffer.len());
        self.contents.read_exact_at(&mut buffer[..length], offset)?;
        Ok(length)
    }

    fn size(&mut self) -> io::Result<u64> {
        if let Plan::Blocks(blocks) = &lock(&self.state).plan
            && let Some((last, _)) = blocks.last()
        {
            return Ok(last.end());
        }
        let mut size = 0;
        loop {
            match self.expand(size)? {
                end if end == size => return Ok(size),
                end => size = end,
            }
        }
    }
}

/// Writes to a file, starting at a position.
struct Sink<'a> {
    file: &'a File,
    position: u64,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.position).map_err(|e| {
            let folder = temporary_folder();
            io::Error::other(format!("its contents do not fit into {}: {e}", escape::path(&folder)))
        })?;
        self.position += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The folder in which PCP keeps temporary files.
fn temporary_folder() -> std::path::PathBuf {
    PcpConf::load().get("PCP_TMPFILE_DIR").map_or_else(std::env::temp_dir, Into::into)
}

fn temporary_file() -> io::Result<File> {
    let folder = temporary_folder();
    tempfile::tempfile_in(&folder).or_else(|error| {
        let cannot = |_| {
            let (folder, other) = (escape::path(&folder), std::env::temp_dir());
            let other = escape::path(&other);
            io::Error::other(format!(
                "it cannot be expanded: no temporary file can be made in {folder} (from \
                 PCP_TMPFILE_DIR) or in {other}: {error}"
            ))
        };
        tempfile::tempfile().map_err(cannot)
    })
}

/// The number of bytes of the free space in a folder that a file may fill.
fn free_space(file: &File) -> u64 {
    let Ok(about) = rustix::fs::fstatvfs(file) else { return u64::MAX };
    about.f_bavail.saturating_mul(about.f_frsize) / 100 * ALLOWED_SHARE
}
