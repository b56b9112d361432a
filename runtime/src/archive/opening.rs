//! Opens the archives of a context, and sees to it that they fit together.
//!
//! In: the files of each. Out: the archives in order of their starts, and
//! their metadata as one. What is wrong with one archive of several is no
//! reason to do without the others; that they contradict each other is. That
//! the last record of metadata is cut is no reason to do without those before.

use std::path::PathBuf;
use std::sync::Arc;

use crate::archive::files::missing;
use crate::archive::meta::{Metadata, Missing};
use crate::archive::resolve::Named;
use crate::archive::sequence::overlapping;
use crate::archive::single::SingleArchive;
use crate::archive::volumes::Volumes;
use crate::model::PmStatus;
use crate::source::SourceError;

/// Archives that fit together.
pub(super) struct Opened {
    /// In order of their starts; never empty.
    pub(super) archives: Vec<Arc<SingleArchive>>,
    /// Volumes of the first one, at its first record.
    pub(super) first: Volumes,
    pub(super) metadata: Metadata,
    pub(super) passed_over: PassedOver,
}

/// What is wrong with archives, and was passed over.
#[derive(Default)]
pub(super) struct PassedOver {
    /// Why archives were left out, and where the metadata of others are cut:
    /// what libpcp refuses to open.
    pub(super) refused: Vec<SourceError>,
    /// What libpcp passes over as well: metadata that end before the type of a record.
    pub(super) unnoticed: Vec<SourceError>,
}

/// Opens archives. Of a single one, what is wrong with it is the error.
///
/// # Errors
/// `PM_ERR_LOGHOST`, `PM_ERR_LOGOVERLAP` and the `PM_ERR_LOGCHANGE…` where
/// archives contradict each other, `PM_ERR_LOGFILE` when none can be used.
pub(super) fn open_all(list: Vec<Named>) -> Result<Opened, SourceError> {
    let is_single = list.len() == 1;
    let name = list.first().map(|named| named.name.clone()).unwrap_or_default();
    let mut opening = Opening::default();
    for named in list {
        match opening.add(named) {
            Err(error) if is_single || is_contradiction(error.status()) => return Err(error),
            Err(error) => opening.passed_over.refused.push(error),
            Ok(()) => {}
        }
    }
    let Opening { mut members, first, metadata, passed_over } = opening;
    let Some(first) = first else {
        let reasons: Vec<_> = passed_over.refused.iter().map(SourceError::to_string).collect();
        let message = format!("none of the archives can be used: {}", reasons.join("; "));
        return Err(missing(&name, &message));
    };
    members.sort_by_key(|member| member.archive.label.start);
    let archives: Vec<_> = members.into_iter().map(|member| member.archive).collect();
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
        if let Some(other) = self.members.first()
            && other.archive.label.host != archive.label.host
        {
            return Err(other_host(&other.archive, &archive));
        }
        if let Some(same) = self.members.iter().find(|same| same.archive.label.start == start) {
            if same.name == name {
                return Ok(());
            }
            return Err(overlapping(&same.archive, &archive, same.archive.end_time()?));
        }
        let is_last = self.members.iter().all(|member| member.archive.label.start < start);
        let missing = self.metadata.add(&archive.files.metadata, &archive.label, is_last)?;
        match missing {
            Some(Missing { what, is_refused: true }) => self.passed_over.refused.push(what),
            Some(Missing { what, is_refused: false }) => self.passed_over.unnoticed.push(what),
            None => {}
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
