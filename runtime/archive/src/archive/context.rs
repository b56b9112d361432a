//! A context of archives: opening them, and how they are read.
//!
//! Input: the names of archives, or files in memory. Output: a context, with what is
//! wrong with its archives. `fetching` fetches values, and
//! `answers` has metadata as of a time. Only `opening`, `sequence` and `meta` know
//! that there may be several archives.

use std::collections::HashSet;
use std::path::Path;

use pmderive_core::escape;
use pmderive_core::model::{InstanceProfile, PmStatus, Timestamp};
use pmderive_core::source::{Mode, SourceError};

use crate::archive::growth::Following;
use crate::archive::inspection::inspect;
use crate::archive::interpolation::{InterpolationRules, Interpolator, Surroundings};
use crate::archive::label::ArchiveLabel;
use crate::archive::meta::Metadata;
use crate::archive::opening::{Opened, PassedOver, open_all};
use crate::archive::resolve::{Named, resolve};
use crate::archive::selection::Selection;
use crate::archive::sequence::{Place, Sequence};
use crate::archive::single::SingleArchive;
use crate::archive::untyped::UntypedOrder;

/// One of the archives of a context.
pub struct ArchivePart<'c> {
    /// Its label.
    pub label: &'c ArchiveLabel,
    archive: &'c SingleArchive,
}

impl ArchivePart<'_> {
    /// Time of its last record, marks included (`pmGetArchiveEnd(3)`).
    ///
    /// # Errors
    /// `PM_ERR_LOGREC` when there is no complete record.
    pub fn end_time(&self) -> Result<Timestamp, SourceError> {
        self.archive.end_time()
    }

    /// Hands out what is wrong with its files beside data records, which nobody
    /// is told of who reads it: metadata of unknown kinds, entries of the index
    /// that lead nowhere or are out of order, volumes that are missing.
    pub fn inspect(&self, found: &mut dyn FnMut(SourceError)) {
        inspect(self.archive, found);
    }

    /// Its files with their sizes on disk, metadata, index and volumes.
    pub fn files(&self) -> impl Iterator<Item = (String, std::io::Result<u64>)> + '_ {
        let files = &self.archive.files;
        let volumes = files.volumes.iter().map(|(_, volume)| volume);
        let members = [&files.metadata].into_iter().chain(&files.index).chain(volumes);
        members.map(|member| (member.name(), member.size_on_disk()))
    }
}

/// An archive, or several that follow each other in time, open
/// (`pmNewContext(3)` with `PM_CONTEXT_ARCHIVE`); at first read forward record
/// by record.
///
/// The context has an origin: the time of what was fetched last, at first
/// the start of the archive. Instance domains are those in force at the
/// origin, and records on its other side are passed over.
pub struct ArchiveContext {
    pub(super) name: String,
    /// That of the first archive.
    pub(super) label: ArchiveLabel,
    pub(super) metadata: Metadata,
    pub(super) records: Sequence,
    /// What is wrong with archives, where that is passed over.
    pub(super) warnings: Vec<SourceError>,
    /// Number of records that were left out while reading record by record.
    pub(super) left_out: u64,
    /// All that was among the warnings since the context was opened.
    warned: HashSet<String>,
    /// How many of the warnings, the first ones, are of archives that libpcp
    /// refuses: they were left out, or their metadata are cut.
    refused: usize,
    pub(super) passes_over_damage: bool,
    pub(super) mode: Mode,
    pub(super) origin: Timestamp,
    /// True while records are passed over to reach the origin.
    pub(super) seeking: bool,
    /// True while records are passed over although the origin was reached.
    pub(super) is_leaving_out: bool,
    /// A mark was passed since the record delivered last.
    pub(super) gap: bool,
    /// Records before this place were written before the metadata was read.
    pub(super) described: Place,
    /// Present where the archive is followed while it is written.
    pub(super) following: Option<Box<Following>>,
    /// Counts the changes of metadata.
    pub(super) epoch: u64,
    /// Epoch that the last fetch reported.
    pub(super) reported_epoch: u64,
    pub(super) selection: Selection,
    pub(super) profile: InstanceProfile,
    pub(super) rules: InterpolationRules,
    pub(super) untyped_order: UntypedOrder,
    /// Present once values between records were asked for.
    pub(super) interpolator: Option<Box<Interpolator>>,
    /// Time of the next interpolated fetch.
    pub(super) next_sample: Timestamp,
    /// End of the archive as it was known last, in seconds since its start;
    /// the start itself until a time behind it was asked for.
    pub(super) known_end: Option<f64>,
}

/// How archives are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpenOptions {
    /// What each compressed file may expand to, in bytes, in the folder for
    /// temporary files; without that 16 GiB, or nine tenths of the space that is
    /// free there, whichever is less.
    pub max_expanded: Option<u64>,
    /// As libpcp 6 does: nothing is passed over, see
    /// [`ArchiveContext::pass_over_nothing`], of several archives with mistakes
    /// the first one named is told, and names of metrics in the others count
    /// where they lie directly below nodes of the first.
    pub as_version_6: bool,
}

impl ArchiveContext {
    /// Opens an archive, given its base name or any of its files; or several
    /// as one, given a directory, or names and directories with commas
    /// between them. Positions the context at its start. Interpolation
    /// follows the environment.
    ///
    /// Several archives have to be of one host, must not overlap, and have to
    /// agree on what metrics are. Those that cannot be used are left out as
    /// long as another one can, see [`ArchiveContext::take_warnings`]. Between
    /// two archives there is a gap. Metadata that end within a record, since
    /// it is being written or its writer was stopped, are read up to there,
    /// with a warning as well.
    ///
    /// # Errors
    /// [`SourceError::Io`] when there is nothing of that name,
    /// [`SourceError::Damaged`] with the status that `pmNewContext(3)` gives
    /// for the rest: `PM_ERR_LOGFILE` when no archive can be used,
    /// `PM_ERR_LOGHOST`, `PM_ERR_LOGOVERLAP` and the `PM_ERR_LOGCHANGE…` when
    /// archives do not fit together, and of a single archive what is wrong
    /// with it.
    pub fn open(path: &Path) -> Result<ArchiveContext, SourceError> {
        ArchiveContext::open_with(path, OpenOptions::default())
    }

    /// As [`ArchiveContext::open`], in a certain way.
    ///
    /// # Errors
    /// As for [`ArchiveContext::open`].
    pub fn open_with(path: &Path, options: OpenOptions) -> Result<ArchiveContext, SourceError> {
        let name = escape::path(&path).into_owned();
        let archives = resolve(path, options.max_expanded)?;
        let mut context = ArchiveContext::of(name, archives, options)?;
        context.rules = InterpolationRules::of_environment();
        if options.as_version_6 {
            context.pass_over_nothing()?;
        }
        Ok(context)
    }

    pub(super) fn of(
        name: String,
        archives: Vec<Named>,
        options: OpenOptions,
    ) -> Result<ArchiveContext, SourceError> {
        let Opened { archives, first, metadata, passed_over } = open_all(archives, options)?;
        let PassedOver { refused: mut warnings, unnoticed } = passed_over;
        let refused = warnings.len();
        warnings.extend(unnoticed);
        let label = archives[0].label.clone();
        Ok(ArchiveContext {
            name,
            mode: Mode::Forward,
            origin: label.start,
            next_sample: label.start,
            known_end: None,
            profile: InstanceProfile::default(),
            rules: InterpolationRules::default(),
            untyped_order: UntypedOrder::default(),
            interpolator: None,
            label,
            metadata,
            records: Sequence::new(archives, first),
            refused,
            warnings,
            left_out: 0,
            warned: HashSet::new(),
            passes_over_damage: true,
            seeking: true,
            is_leaving_out: false,
            gap: false,
            described: Place::default(),
            following: None,
            epoch: 0,
            reported_epoch: 0,
            selection: Selection::default(),
        })
    }

    /// What is wrong with archives of this context, as far as nobody asked
    /// yet: when it was opened, archives that were left out and metadata that
    /// are cut, with the place of the record that is not whole; and what was
    /// passed over since: records whose times are out of order, and in one
    /// archive of several any damage. Of a single archive all else is an error.
    pub fn take_warnings(&mut self) -> Vec<SourceError> {
        self.refused = 0;
        std::mem::take(&mut self.warnings)
    }

    /// How many records were left out while reading record by record, since
    /// their times are out of order.
    pub fn records_left_out(&self) -> u64 {
        self.left_out
    }

    /// Adds a warning, unless it was there before: who reads again passes the
    /// same places.
    pub(super) fn warn(&mut self, error: SourceError) {
        if self.warned.insert(error.to_string()) {
            self.warnings.push(error);
        }
    }

    /// Takes the warning back that the metadata which may grow are cut.
    pub(super) fn expect_rest_of_metadata(&mut self) {
        let Some(unfinished) = self.metadata.unfinished() else { return };
        let text = unfinished.to_string();
        let before = self.warnings.len();
        self.warnings.retain(|warning| warning.to_string() != text);
        self.refused = self.refused.saturating_sub(before - self.warnings.len());
    }

    /// True when [`ArchiveContext::take_warnings`] has something to tell.
    pub fn has_warnings(&self) -> bool {
        !self.warnings.is_empty()
    }

    /// Passes over nothing, as libpcp before 7.1.4: an archive that cannot be
    /// used is an error, one whose metadata end within a record or whose index
    /// does not begin as one included, and damage that one archive cannot be
    /// read behind stays in the way. To be called before anything else.
    ///
    /// # Errors
    /// An archive was left out when the context was opened, its metadata are
    /// cut, or its index is none.
    pub fn pass_over_nothing(&mut self) -> Result<(), SourceError> {
        self.passes_over_damage = false;
        self.records.stop_at_damage();
        match self.refused {
            0 => self.records.archives().iter().try_for_each(|archive| archive.check_index()),
            _ => Err(self.take_warnings().swap_remove(0)),
        }
    }

    /// A further context of the same archive, with the same position, mode and
    /// profile, which from then on are its own (`pmDupContext(3)`). What was
    /// read of metadata and index is shared.
    ///
    /// # Errors
    /// A file can no longer be opened.
    pub fn duplicate(&self) -> Result<ArchiveContext, SourceError> {
        Ok(ArchiveContext {
            name: self.name.clone(),
            label: self.label.clone(),
            metadata: self.metadata.duplicate(),
            records: self.records.duplicate()?,
            warnings: Vec::new(),
            left_out: 0,
            warned: HashSet::new(),
            refused: 0,
            passes_over_damage: self.passes_over_damage,
            mode: self.mode,
            origin: self.origin,
            seeking: self.seeking,
            is_leaving_out: self.is_leaving_out,
            gap: self.gap,
            described: self.described,
            following: None,
            epoch: self.epoch,
            reported_epoch: self.reported_epoch,
            selection: Selection::default(),
            profile: self.profile.clone(),
            rules: self.rules,
            untyped_order: self.untyped_order,
            interpolator: None,
            next_sample: self.next_sample,
            known_end: self.known_end,
        })
    }

    /// Looks names of instances up as libpcp does it, see
    /// `InstanceDomain::with_lookup_by_beginning`. To be called before
    /// anything else.
    pub fn look_up_instances_by_beginning(&mut self) {
        self.metadata.look_up_by_beginning();
    }

    /// Takes numbers of 64 bits in blocks without a type as they stand there for
    /// numbers in the byte order of this machine, as libpcp does: other ones,
    /// unless that is network byte order. To be called before anything else.
    pub fn take_untyped_numbers_as_native(&mut self) {
        self.untyped_order = UntypedOrder::Native;
    }

    /// The label of the archive, of several the first one's
    /// (`pmGetArchiveLabel(3)`).
    pub fn label(&self) -> &ArchiveLabel {
        &self.label
    }

    /// The archives that the context is of, in the order of their starts.
    pub fn parts(&self) -> impl Iterator<Item = ArchivePart<'_>> {
        let archives = self.records.archives().iter();
        archives.map(|archive| ArchivePart { label: &archive.label, archive })
    }

    /// Time of the last record of the last archive, marks included
    /// (`pmGetArchiveEnd(3)`). The position is not affected. A growing archive gives a later time later.
    ///
    /// # Errors
    /// `PM_ERR_LOGREC` when there is no complete record.
    pub fn end_time(&mut self) -> Result<Timestamp, SourceError> {
        self.records.last_archive().end_time()
    }

    /// As [`ArchiveContext::end_time`], as libpcp finds it: it reads what is
    /// before a damaged end only from an entry of the temporal index on.
    ///
    /// # Errors
    /// `PM_ERR_LOGREC` when no complete record is found like that.
    pub fn indexed_end_time(&mut self) -> Result<Timestamp, SourceError> {
        self.records.last_archive().indexed_end_time()
    }

    /// The time that metadata is as of: that of what was fetched last.
    pub fn origin(&self) -> Timestamp {
        self.origin
    }

    /// Rules of interpolation in force.
    pub fn interpolation_rules(&self) -> InterpolationRules {
        self.rules
    }

    /// Changes the rules of interpolation. The next fetch does not continue
    /// those before.
    pub fn set_interpolation_rules(&mut self, rules: InterpolationRules) {
        self.rules = rules;
        self.interpolator = None;
    }

    /// What interpolation needs beside a list.
    pub(super) fn surroundings(&mut self) -> Surroundings<'_> {
        Surroundings { metadata: &mut self.metadata, profile: &self.profile }
    }

    pub(super) fn status(&self, status: PmStatus) -> SourceError {
        SourceError::Status { target: self.name.clone(), status }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_move_between_threads() {
        fn check<T: Send>() {}
        check::<ArchiveContext>();
    }
}
