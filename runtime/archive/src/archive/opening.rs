//! Opens the archives of a context, and checks that they fit together.
//!
//! Input: the files of each archive. Output: the archives in the order of their starts,
//! and their metadata as one. Both are shared with contexts of the same files
//! (`identity`, `known`).
//!
//! If one of several archives is damaged, the rest is used without it. If archives
//! contradict each other, none is used. If the last record of metadata is cut, the
//! records before it are used.

use std::path::PathBuf;
use std::sync::Arc;

use pmderive_core::model::PmStatus;
use pmderive_core::source::{Fault, SourceError};

use crate::archive::files::{missing, not_found};
use crate::archive::identity::Identity;
use crate::archive::meta::{Metadata, MissingPart, check_label};
use crate::archive::options::OpenOptions;
use crate::archive::resolve::NamedArchive;
use crate::archive::sequence::overlapping;
use crate::archive::shared_metadata::SharedMetadata;
use crate::archive::single::SingleArchive;
use crate::archive::volumes::Volumes;

/// Archives that fit together.
pub(super) struct OpenedArchives {
    /// In the order of their starts. There is at least one.
    pub(super) archives: Arc<[Arc<SingleArchive>]>,
    /// The volumes of the first archive, at its first record.
    pub(super) first: Volumes,
    pub(super) metadata: Metadata,
    pub(super) passed_over: IgnoredProblems,
}

/// Problems of archives that did not prevent opening.
#[derive(Debug, Default)]
pub(super) struct IgnoredProblems {
    /// Problems for which libpcp refuses to open: archives that were left out, and cut
    /// metadata of other archives.
    pub(super) refused: Vec<SourceError>,
    /// Problems that libpcp ignores as well: metadata that end before the type of a
    /// record.
    pub(super) unnoticed: Vec<SourceError>,
}

impl IgnoredProblems {
    fn is_nothing(&self) -> bool {
        self.refused.is_empty() && self.unnoticed.is_empty()
    }
}

/// Opens archives. If another context has the same files open, only the first volume is
/// opened, and everything else is shared with that context.
///
/// # Errors
/// The errors of [`read_all`].
pub(super) fn open_all(
    list: Vec<NamedArchive>,
    options: OpenOptions,
) -> Result<OpenedArchives, SourceError> {
    let identity = Identity::of(&list, options);
    if let Some(known) = identity.as_ref().and_then(SharedMetadata::find)
        && let Some(opened) = &known.opened
    {
        let archives = Arc::clone(&opened.archives);
        let first = Volumes::of(&archives[0])?;
        let metadata = Metadata::of(known);
        return Ok(OpenedArchives {
            archives,
            first,
            metadata,
            passed_over: IgnoredProblems::default(),
        });
    }
    let mut opened = read_all(list, options.as_version_6)?;
    // Archives with problems are not shared, because every context must report them.
    // Files that have changed meanwhile are not shared either, because they may have
    // been read in part.
    if let Some(identity) = identity.filter(Identity::still_holds)
        && opened.passed_over.is_nothing()
    {
        opened.metadata.share(identity, &opened.archives);
    }
    Ok(opened)
}

/// Opens archives that no context has open.
///
/// # Errors
/// Archives contradict each other: `PM_ERR_LOGHOST`, `PM_ERR_LOGOVERLAP` or a
/// `PM_ERR_LOGCHANGE…`. No archive can be used: `PM_ERR_LOGFILE`. If there is only one
/// archive, or with `as_version_6` (see [`OpenOptions`]), the problem of the first
/// archive that has one.
fn read_all(list: Vec<NamedArchive>, as_version_6: bool) -> Result<OpenedArchives, SourceError> {
    let is_first_fatal = as_version_6 || list.len() == 1;
    let name = list.first().map(|named| named.name.clone()).unwrap_or_default();
    let mut opening = Opening { as_version_6, ..Opening::default() };
    if as_version_6 {
        opening.metadata.hide_new_nodes();
    }
    for named in list {
        match opening.add(named) {
            Err(error) if is_first_fatal || is_contradiction(error.status()) => return Err(error),
            Err(error) => opening.passed_over.refused.push(error),
            Ok(()) => {}
        }
    }
    let Opening { mut members, first, metadata, passed_over, .. } = opening;
    let Some(first) = first else {
        let reasons: Vec<_> = passed_over.refused.iter().map(SourceError::to_string).collect();
        let message = format!("none of the archives can be used: {}", reasons.join("; "));
        let are_users = passed_over.refused.iter().all(|error| error.fault() == Fault::User);
        return Err(if are_users { not_found } else { missing }(&name, &message));
    };
    members.sort_by_key(|member| member.archive.label.start);
    let archives = members.into_iter().map(|member| member.archive).collect();
    Ok(OpenedArchives { archives, first, metadata, passed_over })
}

/// True for a problem between archives, not with one of them.
pub(super) fn is_contradiction(status: PmStatus) -> bool {
    [
        PmStatus::LOGHOST,
        PmStatus::LOGOVERLAP,
        PmStatus::LOGCHANGETYPE,
        PmStatus::LOGCHANGESEM,
        PmStatus::LOGCHANGEINDOM,
        PmStatus::LOGCHANGEUNITS,
    ]
    .contains(&status)
}

/// The archives opened so far.
#[derive(Default)]
struct Opening {
    members: Vec<Member>,
    /// The volumes of the earliest archive.
    first: Option<Volumes>,
    metadata: Metadata,
    passed_over: IgnoredProblems,
    as_version_6: bool,
}

/// An archive with the name that the user gave it.
struct Member {
    name: PathBuf,
    archive: Arc<SingleArchive>,
}

impl Opening {
    fn add(&mut self, NamedArchive { name, files }: NamedArchive) -> Result<(), SourceError> {
        let volumes = Volumes::open(files?)?;
        let archive = Arc::clone(volumes.archive());
        let start = archive.label.start;
        let same = self.members.iter().position(|same| same.archive.label.start == start);
        if same.is_some_and(|same| self.members[same].name == name) {
            return Ok(());
        }
        if self.as_version_6 {
            // libpcp 6 reads the labels of all files first.
            archive.check_index()?;
            check_label(&archive.files.metadata, &archive.label)?;
        }
        if let Some(other) = self.members.first()
            && other.archive.label.host != archive.label.host
        {
            return Err(other_host(&other.archive, &archive));
        }
        let is_last = self.members.iter().all(|member| member.archive.label.start < start);
        let missing = self.metadata.add(&archive.files.metadata, &archive.label, is_last)?;
        match missing {
            Some(MissingPart { what, is_refused: true }) if self.as_version_6 => return Err(what),
            Some(MissingPart { what, is_refused: true }) => self.passed_over.refused.push(what),
            Some(MissingPart { what, is_refused: false }) => self.passed_over.unnoticed.push(what),
            None => {}
        }
        // libpcp compares metrics before it looks at times, so an overlap is found only
        // here.
        if let Some(same) = same.map(|same| &self.members[same].archive) {
            // If the end is damaged, the message has the start instead.
            return Err(overlapping(same, &archive, same.end_time().unwrap_or(start)));
        }
        if self.members.iter().all(|member| member.archive.label.start > start) {
            self.first = Some(volumes);
        }
        self.members.push(Member { name, archive });
        Ok(())
    }
}

/// The error for two archives of one context that are of different hosts.
pub(super) fn other_host(known: &SingleArchive, archive: &SingleArchive) -> SourceError {
    SourceError::Damaged {
        target: archive.name(),
        status: PmStatus::LOGHOST,
        message: format!(
            "it is of the host {}, but {} is of {}; archives of one context have to be of one host",
            archive.label.host,
            known.name(),
            known.label.host
        ),
    }
}
