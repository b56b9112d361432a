//! A context of archives: how it is opened, and its state.
//!
//! Input: the names of archives, or files in memory. Output: a context and the problems
//! of its archives. `fetching` fetches values, and `answers` has the metadata as of a
//! time. Only `opening`, `sequence` and `meta` know that there may be several archives.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use pmderive_core::escape;
use pmderive_core::model::{InstanceProfile, PmStatus, Timestamp};
use pmderive_core::source::{Mode, SourceError};

use crate::archive::following::Following;
use crate::archive::inspection::inspect;
use crate::archive::interpolation::{InterpolationRules, Interpolator, Surroundings};
use crate::archive::label::ArchiveLabel;
use crate::archive::meta::Metadata;
use crate::archive::opening::{IgnoredProblems, OpenedArchives, open_all};
use crate::archive::options::OpenOptions;
use crate::archive::resolve::{NamedArchive, names_directory, resolve};
use crate::archive::selection::Selection;
use crate::archive::sequence::{Place, Sequence};
use crate::archive::single::SingleArchive;
use crate::archive::untyped::UntypedOrder;

/// One archive of a context.
pub struct ArchivePart<'c> {
    /// The label of this archive.
    pub label: &'c ArchiveLabel,
    archive: &'c SingleArchive,
}

impl fmt::Debug for ArchivePart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchivePart").field("label", &self.label).finish_non_exhaustive()
    }
}

impl ArchivePart<'_> {
    /// Time of the last record, marks included (`pmGetArchiveEnd(3)`).
    ///
    /// # Errors
    /// `PM_ERR_LOGREC` if there is no complete record.
    pub fn end_time(&self) -> Result<Timestamp, SourceError> {
        self.archive.end_time()
    }

    /// Reports problems of its files that reading never reports: metadata of unknown
    /// kinds, and index entries that lead nowhere or are out of order. Problems of data
    /// records and volumes are not among them.
    pub fn inspect(&self, report: &mut dyn FnMut(SourceError)) {
        inspect(self.archive, report);
    }

    /// The files of this archive with their sizes on disk: metadata, index and volumes.
    pub fn files(&self) -> impl Iterator<Item = (String, std::io::Result<u64>)> + '_ {
        let files = &self.archive.files;
        let volumes = files.volumes.iter().map(|(_, volume)| volume);
        let members = [&files.metadata].into_iter().chain(&files.index).chain(volumes);
        members.map(|member| (member.name(), member.size_on_disk()))
    }
}

/// The damage that becomes a warning if reading goes on after it. All other is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passing {
    /// None, as in libpcp 6.
    Nothing,
    /// That of one of several archives.
    AmongSeveral,
    /// All.
    Everything,
}

/// An open archive, or several that follow each other in time (`pmNewContext(3)` with
/// `PM_CONTEXT_ARCHIVE`). At first it is read forward, record by record.
///
/// The context has an origin: the time of the last fetch, at first the start of the
/// archive. A fetch that finds the end leaves it at the last record, or between records
/// at the next sample. Instance domains are those in force at the origin. Records on the
/// other side of the origin are skipped.
///
/// ```no_run
/// use pmderive_archive::archive::ArchiveContext;
/// use pmderive_core::result::ResultBatch;
/// use pmderive_core::source::{FetchList, FetchSource, MetadataSource};
///
/// let mut archive = ArchiveContext::open("/var/log/pcp/pmlogger/web17/20260704")?;
/// let load = archive.lookup_names(&["kernel.all.load"])?.remove(0)?;
/// let list = FetchList::new(vec![load], vec![]);
/// let mut batch = ResultBatch::default();
/// loop {
///     match archive.fetch(&list, &mut batch) {
///         Ok(_) => println!("{:?}", batch.timestamp()),
///         Err(error) if error.is_end_of_archive() => break,
///         Err(error) => return Err(error.into()),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ArchiveContext {
    pub(super) name: String,
    /// The label of the first archive.
    pub(super) label: ArchiveLabel,
    pub(super) metadata: Metadata,
    pub(super) records: Sequence,
    /// Problems of archives that did not stop reading.
    pub(super) warnings: Vec<SourceError>,
    /// Number of records that were left out while reading record by record.
    pub(super) left_out: u64,
    /// The texts of all warnings since the context was opened.
    warned: HashSet<String>,
    /// Number of warnings, counted from the first, about archives that libpcp refuses.
    /// Such an archive was left out, or its metadata are cut.
    refused: usize,
    pub(super) passing: Passing,
    pub(super) mode: Mode,
    pub(super) origin: Timestamp,
    /// True while records are skipped to reach the origin.
    pub(super) seeking: bool,
    /// True while records are skipped although the origin was reached.
    pub(super) is_leaving_out: bool,
    /// A mark was passed since the last delivered record.
    pub(super) gap: bool,
    /// Records were lost before the record that was read last, whole.
    pub(super) follows_damage: bool,
    /// The time of the last mark among the records that were read.
    pub(super) last_mark: Option<Timestamp>,
    /// Records before this place were written before the metadata was read.
    pub(super) described: Place,
    /// Present while the archive is followed as it grows.
    pub(super) following: Option<Box<Following>>,
    /// The argument that names a directory, and the limit for compressed files in it.
    pub(super) directory: Option<(PathBuf, Option<u64>)>,
    /// Counts changes of the metadata.
    pub(super) epoch: u64,
    /// The epoch that the last fetch reported.
    pub(super) reported_epoch: u64,
    pub(super) selection: Selection,
    /// Place and length of the record that was checked last.
    pub(super) sound: Option<(Place, usize)>,
    pub(super) profile: InstanceProfile,
    pub(super) rules: InterpolationRules,
    pub(super) untyped_order: UntypedOrder,
    /// Present after the first fetch between records.
    pub(super) interpolator: Option<Box<Interpolator>>,
    /// Time of the next interpolated fetch.
    pub(super) next_sample: Timestamp,
    /// Last known end of the archive, in seconds since its start. `None` until the
    /// first interpolated fetch, then 0 until the first fetch after the start.
    pub(super) known_end: Option<f64>,
}

impl fmt::Debug for ArchiveContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveContext")
            .field("name", &self.name)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl ArchiveContext {
    /// Opens an archive by its base name or any of its files. A directory, or a list of
    /// names and directories with commas, opens several archives as one. The context
    /// begins at their start. The environment sets the rules of interpolation.
    ///
    /// Several archives must be of one host, must not overlap, and must agree on their
    /// metrics. Archives that cannot be used are left out as long as one can be used
    /// (see [`ArchiveContext::take_warnings`]). There is a gap between two archives.
    ///
    /// Metadata may end within a record, because they are being written or because
    /// their writer was stopped. They are read up to there, and a warning reports it.
    ///
    /// # Errors
    /// [`SourceError::Io`] if nothing has that name, [`SourceError::NotFound`] if it
    /// stands for no archive. Otherwise [`SourceError::Damaged`] with the status of
    /// `pmNewContext(3)`: `PM_ERR_LOGFILE` if no archive can be used, `PM_ERR_LOGHOST`,
    /// `PM_ERR_LOGOVERLAP` or a `PM_ERR_LOGCHANGE…` if archives do not fit together; for
    /// a single archive, the status of its problem.
    pub fn open(path: impl AsRef<Path>) -> Result<ArchiveContext, SourceError> {
        ArchiveContext::open_with(path, OpenOptions::default())
    }

    /// Like [`ArchiveContext::open`], with options.
    ///
    /// # Errors
    /// As for [`ArchiveContext::open`].
    pub fn open_with(
        path: impl AsRef<Path>,
        options: OpenOptions,
    ) -> Result<ArchiveContext, SourceError> {
        let path = path.as_ref();
        let name = escape::path(&path).into_owned();
        let archives = resolve(path, options.max_expanded)?;
        let mut context = ArchiveContext::of(name, archives, options)?;
        context.rules = InterpolationRules::of_environment();
        context.directory = names_directory(path).then(|| (path.to_owned(), options.max_expanded));
        if options.as_version_6 {
            context.pass_over_nothing()?;
        }
        Ok(context)
    }

    pub(super) fn of(
        name: String,
        archives: Vec<NamedArchive>,
        options: OpenOptions,
    ) -> Result<ArchiveContext, SourceError> {
        let OpenedArchives { archives, first, metadata, passed_over } =
            open_all(archives, options)?;
        let IgnoredProblems { refused: mut warnings, unnoticed } = passed_over;
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
            passing: Passing::AmongSeveral,
            seeking: true,
            is_leaving_out: false,
            gap: false,
            follows_damage: false,
            last_mark: None,
            described: Place::default(),
            following: None,
            directory: None,
            epoch: 0,
            reported_epoch: 0,
            selection: Selection::default(),
            sound: None,
        })
    }

    /// The problems of archives since the last call:
    ///
    /// * From opening: archives that were left out, and metadata that are cut, with the
    ///   place of the incomplete record.
    /// * From reading since: records that were skipped because their times are out of
    ///   order, and any damage if there are several archives or
    ///   [`ArchiveContext::pass_over_damage`] was called.
    ///
    /// All other problems of a single archive are errors.
    pub fn take_warnings(&mut self) -> Vec<SourceError> {
        self.refused = 0;
        std::mem::take(&mut self.warnings)
    }

    /// Number of records that were left out while reading record by record, because
    /// their times are out of order.
    pub fn records_left_out(&self) -> u64 {
        self.left_out
    }

    /// Adds a warning unless it was given before: a second reading passes the same
    /// places.
    pub(super) fn warn(&mut self, error: SourceError) {
        if self.warned.insert(error.to_string()) {
            self.warnings.push(error);
        }
    }

    /// Removes the warning about incomplete metadata, because the rest of them may
    /// still come.
    pub(super) fn expect_rest_of_metadata(&mut self) {
        let Some(unfinished) = self.metadata.unfinished() else { return };
        let text = unfinished.to_string();
        let before = self.warnings.len();
        self.warnings.retain(|warning| warning.to_string() != text);
        self.refused = self.refused.saturating_sub(before - self.warnings.len());
    }

    /// True if [`ArchiveContext::take_warnings`] will return something.
    pub fn has_warnings(&self) -> bool {
        !self.warnings.is_empty()
    }

    /// Makes damage of a single archive a warning, as it is in one of several, if
    /// reading goes on after it: with the next good record, or the next volume. There is
    /// a gap in its place. Damage that nothing follows stays an error.
    pub fn pass_over_damage(&mut self) {
        self.passing = Passing::Everything;
    }

    /// Makes the context skip nothing, like libpcp before 7.1.4. An archive that cannot
    /// be used is an error. So is one whose metadata end within a record, or whose
    /// index does not begin like one. If an archive cannot be read past its damage,
    /// reading does not continue with the next archive. Must be called before anything
    /// else.
    ///
    /// # Errors
    /// An archive was left out when the context was opened, its metadata are cut, or
    /// its index is not an index.
    pub fn pass_over_nothing(&mut self) -> Result<(), SourceError> {
        self.passing = Passing::Nothing;
        self.records.stop_at_damage();
        match self.refused {
            0 => self.records.archives().iter().try_for_each(|archive| archive.check_index()),
            _ => Err(self.take_warnings().swap_remove(0)),
        }
    }

    /// Another context of the same archives with the same position, mode and profile
    /// (`pmDupContext(3)`). Later changes affect only one of the two. They share the
    /// metadata and index that were read.
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
            passing: self.passing,
            mode: self.mode,
            origin: self.origin,
            seeking: self.seeking,
            is_leaving_out: self.is_leaving_out,
            gap: self.gap,
            follows_damage: self.follows_damage,
            last_mark: self.last_mark,
            described: self.described,
            following: None,
            directory: self.directory.clone(),
            epoch: self.epoch,
            reported_epoch: self.reported_epoch,
            selection: Selection::default(),
            sound: None,
            profile: self.profile.clone(),
            rules: self.rules,
            untyped_order: self.untyped_order,
            interpolator: None,
            next_sample: self.next_sample,
            known_end: self.known_end,
        })
    }

    /// Looks up names of instances as libpcp does (see
    /// `InstanceDomain::with_lookup_by_beginning`). Must be called before anything
    /// else.
    pub fn look_up_instances_by_beginning(&mut self) {
        self.metadata.look_up_by_beginning();
    }

    /// Assumes that 64-bit numbers in blocks without a type are in the byte order of
    /// this machine, as libpcp does. Their values are wrong unless that is network
    /// byte order. Must be called before anything else.
    pub fn take_untyped_numbers_as_native(&mut self) {
        self.untyped_order = UntypedOrder::Native;
    }

    /// The label of the first archive (`pmGetArchiveLabel(3)`).
    pub fn label(&self) -> &ArchiveLabel {
        &self.label
    }

    /// The archives of this context in the order of their starts.
    pub fn parts(&self) -> impl Iterator<Item = ArchivePart<'_>> {
        let archives = self.records.archives().iter();
        archives.map(|archive| ArchivePart { label: &archive.label, archive })
    }

    /// Time of the last record of the last archive, marks included
    /// (`pmGetArchiveEnd(3)`). The position stays as it is. An archive that grows gives
    /// later times later.
    ///
    /// # Errors
    /// `PM_ERR_LOGREC` if there is no complete record.
    pub fn end_time(&mut self) -> Result<Timestamp, SourceError> {
        self.records.last_archive().end_time()
    }

    /// Like [`ArchiveContext::end_time`], but found as libpcp does: if the end is
    /// damaged, libpcp reads the part before the damage only from an index entry on.
    ///
    /// # Errors
    /// `PM_ERR_LOGREC` if no complete record is found this way.
    pub fn indexed_end_time(&mut self) -> Result<Timestamp, SourceError> {
        self.records.last_archive().indexed_end_time()
    }

    /// The time of the metadata: that of the last fetch, or the end where a fetch found none.
    pub fn origin(&self) -> Timestamp {
        self.origin
    }

    /// The rules of interpolation.
    pub fn interpolation_rules(&self) -> InterpolationRules {
        self.rules
    }

    /// Changes the rules of interpolation. The next fetch starts again instead of continuing.
    pub fn set_interpolation_rules(&mut self, rules: InterpolationRules) {
        self.rules = rules;
        self.interpolator = None;
    }

    /// The parts of the context that interpolation needs.
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
