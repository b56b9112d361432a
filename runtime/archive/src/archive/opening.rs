//! Opens the archives of a context, and checks that they fit together.
//!
//! Input: the files of each. Output: the archives in order of their starts, and
//! their metadata as one, both shared with contexts of the same files
//! (`identity`, `known`). What is wrong with one archive of several is no
//! reason to do without the others; that they contradict each other is. That
//! the last record of metadata is cut is no reason to do without those before.

use std::path::PathBuf;
use std::sync::Arc;

use pmderive_core::model::PmStatus;
use pmderive_core::source::SourceError;

use crate::archive::context::OpenOptions;
use crate::archive::files::missing;
use crate::archive::identity::Identity;
use crate::archive::known::Known;
use crate::archive::meta::{Metadata, Missing, check_label};
use crate::archive::resolve::Named;
use crate::archive::sequence::overlapping;
use crate::archive::single::SingleArchive;
use crate::archive::volumes::Volumes;

/// Archives that fit together.
pub(super) struct Opened {
    /// In order of their starts; never empty.
    pub(super) archives: Arc<[Arc<SingleArchive>]>,
    /// Volumes of the first one, at its first record.
    pub(super) first: Volumes,
    pub(super) metadata: Metadata,
    pub(super) passed_over: PassedOver,
}

/// What is wrong with archives, and was passed over.
#[derive(Debug, Default)]
pub(super) struct PassedOver {
    /// Why archives were left out, and where the metadata of others are cut:
    /// what libpcp refuses to open.
    pub(super) refused: Vec<SourceError>,
    /// What libpcp passes over as well: metadata that end before the type of a record.
    pub(super) unnoticed: Vec<SourceError>,
}

impl PassedOver {
    fn is_nothing(&self) -> bool {
        self.refused.is_empty() && self.unnoticed.is_empty()
    }
}

/// Opens archives. Where a context has the very same files open already, only
/// the first volume is opened, and what the other one has read is shared.
///
/// # Errors
/// As for [`read_all`].
pub(super) fn open_all(list: Vec<Named>, options: OpenOptions) -> Result<Opened, SourceError> {
    let identity = Identity::of(&list, options);
    if let Some(known) = identity.as_ref().and_then(Known::find)
        && let Some(opened) = &known.opened
    {
        let archives = Arc::clone(&opened.archives);
        let first = Volumes::of(&archives[0])?;
        let metadata = Metadata::of(known);
        return Ok(Opened { archives, first, metadata, passed_over: PassedOver::default() });
    }
    let mut opened = read_all(list, options.as_version_6)?;
    // What is wrong is told to everyone, and what changed meanwhile may have been
    // read in part.
    if let Some(identity) = identity.filter(Identity::still_holds)
        && opened.passed_over.is_nothing()
    {
        opened.metadata.share(identity, &opened.archives);
    }
    Ok(opened)
}

/// Opens archives that nobody has open. Of a single one, what is wrong with it is the error; of
/// several as well, the first in their order, if that is to be
/// `as_version_6`. See [`OpenOptions`].
///
/// # Errors
/// `PM_ERR_LOGHOST`, `PM_ERR_LOGOVERLAP` and the `PM_ERR_LOGCHANGE…` where
/// archives contradict each other, `PM_ERR_LOGFILE` when none can be used.
fn read_all(list: Vec<Named>, as_version_6: bool) -> Result<Opened, SourceError> {
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
        return Err(missing(&name, &message));
    };
    members.sort_by_key(|member| member.archive.label.start);
    let archives = members.into_iter().map(|member| member.archive).collect();
    Ok(Opened { archives, first, metadata, passed_over })
}

/// True for what is wrong between archives rather than with one of them.
fn is_contradiction(status: PmStatus) -> bool {
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

/// Archives that were opened so far.
#[derive(Default)]
struct Opening {
    members: Vec<Member>,
    /// Volumes of the earliest one.
    first: Option<Volumes>,
    metadata: Metadata,
    passed_over: PassedOver,
    as_version_6: bool,
}

/// An archive, and what it was called.
struct Member {
    name: PathBuf,
    archive: Arc<SingleArchive>,
}

impl Opening {
    fn add(&mut self, Named { name, files }: Named) -> Result<(), SourceError> {
        let volumes = Volumes::open(files?)?;
        let archive = Arc::clone(volumes.archive());
        let start = archive.label.start;
        let same = self.members.iter().position(|same| same.archive.label.start == start);
        if same.is_some_and(|same| self.members[same].name == name) {
            return Ok(());
        }
        if self.as_version_6 {
            // Labels of all files come first.
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
            Some(Missing { what, is_refused: true }) if self.as_version_6 => return Err(what),
            Some(Missing { what, is_refused: true }) => self.passed_over.refused.push(what),
            Some(Missing { what, is_refused: false }) => self.passed_over.unnoticed.push(what),
            None => {}
        }
        // What both say of metrics was compared before, as libpcp does it.
        if let Some(same) = same.map(|same| &self.members[same].archive) {
            // Where its end is damaged, it is at least at its start.
            return Err(overlapping(same, &archive, same.end_time().unwrap_or(start)));
        }
        if self.members.iter().all(|member| member.archive.label.start > start) {
            self.first = Some(volumes);
        }
        self.members.push(Member { name, archive });
        Ok(())
    }
}

fn other_host(known: &SingleArchive, archive: &SingleArchive) -> SourceError {
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
