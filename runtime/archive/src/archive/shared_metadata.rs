//! The metadata read from archives, shared by all contexts that read the same files.
//!
//! Input: the contents of metadata files. Output: the same answers for every context,
//! whatever its time is. `meta` decides which of them hold at a time, and for which context.
//!
//! Contexts of the same files (according to [`Identity`]) share the metadata that the first of them
//! has read, as long as one of them exists. After a writer has appended, the first context that
//! reads the new part makes a new [`SharedMetadata`] for all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use pmderive_core::locks::lock;
use pmderive_core::model::{InDom, InstanceDomain, Pmid};
use pmderive_core::source::SourceError;
use pmderive_core::weak_table::WeakTable;

use crate::archive::domain_record::DomainRecord;
use crate::archive::domains::NamesOverTime;
use crate::archive::framing::Damage;
use crate::archive::identity::Identity;
use crate::archive::lives::{Lives, LivesBuilder};
use crate::archive::meta_contents::Contents;
use crate::archive::meta_files::MetadataFiles;
use crate::archive::names::Names;
use crate::archive::observations::Observation;
use crate::archive::positions::MetadataFileId;
use crate::archive::single::SingleArchive;

/// All shared metadata in use. They are found by the files that they were read from.
static IN_USE: Mutex<Option<WeakTable<SharedMetadata>>> = Mutex::new(None);

/// Number of versions of a domain to remember while a context uses them.
const VERSIONS: usize = 8;

/// The contents read from the metadata of one or several archives.
#[derive(Default)]
pub(super) struct SharedMetadata {
    /// The opened files; other contexts find these metadata by them.
    pub(super) opened: Option<OpenedFiles>,
    files: Arc<Mutex<MetadataFiles>>,
    /// The file that a writer may append to, and the offset of its first unread record.
    pub(super) growing: (MetadataFileId, u64),
    /// Size of that file when it was last read.
    pub(super) size: u64,
    /// The missing part of its last record, at that time.
    pub(super) missing: Option<Damage>,
    pub(super) names: Arc<Names>,
    /// Names below nodes that the first archive does not have are hidden.
    pub(super) hides_new_nodes: bool,
    pub(super) contents: Contents,
    decoded: Mutex<DecodedDomains>,
    /// The successor of this that has read furthest, while a context uses it.
    furthest: Arc<Mutex<Weak<SharedMetadata>>>,
}

/// The files that were opened, and the archives that they form.
pub(super) struct OpenedFiles {
    identity: Identity,
    pub(super) archives: Arc<[Arc<SingleArchive>]>,
}

/// Decoded domains. The `bool` is true if names of instances are looked up as libpcp
/// does (by their beginning).
#[derive(Default)]
struct DecodedDomains {
    versions: HashMap<(InDom, bool), Versions>,
    /// Domains with all their instances, for those that were asked for.
    whole: HashMap<(InDom, bool), Whole>,
    /// Names of instances over time, for the domains that were asked for.
    names_over_time: HashMap<InDom, Arc<NamesOverTime>>,
}

/// A domain with all its instances, and when each exists.
type Whole = (Arc<InstanceDomain>, Arc<Lives>);

/// Versions of a domain in use, each with the number of the observation that made it.
type Versions = Vec<(usize, Weak<InstanceDomain>)>;

impl Clone for SharedMetadata {
    /// A copy that will read on. The files and the decoded domains may differ then.
    fn clone(&self) -> SharedMetadata {
        SharedMetadata {
            opened: None,
            files: Arc::clone(&self.files),
            growing: self.growing,
            size: self.size,
            missing: self.missing.clone(),
            names: Arc::clone(&self.names),
            hides_new_nodes: self.hides_new_nodes,
            contents: self.contents.clone(),
            decoded: Mutex::default(),
            furthest: Arc::clone(&self.furthest),
        }
    }
}

impl SharedMetadata {
    /// The shared metadata of archives with this identity, if they are in use.
    pub(super) fn find(identity: &Identity) -> Option<Arc<SharedMetadata>> {
        let table = lock(&IN_USE);
        table.as_ref()?.find(identity.hash(), |known| known.is_of(identity))
    }

    /// Lets other contexts find this by its files. If another context has entered
    /// metadata meanwhile, returns those instead.
    pub(super) fn enter(
        mut self: Arc<SharedMetadata>,
        identity: Identity,
        archives: &Arc<[Arc<SingleArchive>]>,
    ) -> Arc<SharedMetadata> {
        let hash = identity.hash();
        let mut table = lock(&IN_USE);
        let table = table.get_or_insert_default();
        if let Some(known) = table.find(hash, |known| known.is_of(&identity)) {
            return known;
        }
        let archives = Arc::clone(archives);
        Arc::make_mut(&mut self).opened = Some(OpenedFiles { identity, archives });
        table.insert(hash, &self);
        self
    }

    fn is_of(&self, identity: &Identity) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.identity == *identity)
    }

    /// Separates this from other contexts, so that it can become the metadata of more
    /// archives than theirs.
    pub(super) fn separate(&mut self) {
        let files = self.files().separate();
        (self.opened, self.files) = (None, Arc::new(Mutex::new(files)));
        (self.decoded, self.furthest) = Default::default();
    }

    /// The metadata files. Only one thread reads them at a time.
    pub(super) fn files(&self) -> MutexGuard<'_, MetadataFiles> {
        lock(&self.files)
    }

    /// Adds the names of a file that are not known yet.
    pub(super) fn take_names(&mut self, file: MetadataFileId, mut names: Vec<(Box<str>, Pmid)>) {
        let needs_node = self.hides_new_nodes && file != MetadataFileId::default();
        names.retain(|(name, _)| {
            !self.names.has(name) && (!needs_node || self.names.has_node_of(name))
        });
        if !names.is_empty() {
            Arc::make_mut(&mut self.names).extend(names);
        }
    }

    /// Current size of the file that a writer may append to.
    pub(super) fn present_size(&self) -> Result<u64, SourceError> {
        let (file, _) = self.growing;
        let mut files = self.files();
        let size = files.window(file)?.size();
        size.map_err(|error| files.failed(file, error))
    }

    /// Replaces `known` by one that includes the appended records, up to `size` bytes of the file.
    ///
    /// # Errors
    /// The new part is damaged. `known` includes the part before the damage.
    pub(super) fn read_on(known: &mut Arc<SharedMetadata>, size: u64) -> Result<(), SourceError> {
        let further = lock(&known.furthest).upgrade();
        if let Some(further) = further.filter(|further| further.growing.1 > known.growing.1) {
            *known = further;
            if known.size == size {
                return Ok(());
            }
        }
        let own = Arc::make_mut(known);
        (own.opened, own.size) = (None, size);
        let read = own.take_records();
        own.contents.settle();
        *lock(&own.decoded) = DecodedDomains::default();
        let furthest = match &read {
            Ok(()) => Arc::downgrade(known),
            // Other contexts must find the damage by themselves, so that they report it
            // as well.
            Err(_) => Weak::new(),
        };
        *lock(&known.furthest) = furthest;
        read
    }

    fn take_records(&mut self) -> Result<(), SourceError> {
        let (file, next) = &mut self.growing;
        let mut files = lock(&self.files);
        let window = files.window(*file)?;
        // An incomplete record is still being written.
        let scanned = self.contents.scan(window, *file, next);
        let tail = scanned.map_err(|error| files.failed(*file, error))?;
        drop(files);
        self.missing = tail.missing().cloned();
        let names = std::mem::take(&mut self.contents.names);
        self.take_names(self.growing.0, names);
        Ok(())
    }

    /// The domain after an observation, which is given with its number. `before` is the
    /// domain before it. Contexts that ask while the domain is in use share it.
    pub(super) fn domain_after(
        &self,
        (indom, by_beginning): (InDom, bool),
        (number, observation): (usize, &Observation),
        before: Option<&InstanceDomain>,
    ) -> Result<Arc<InstanceDomain>, SourceError> {
        let mut decoded = lock(&self.decoded);
        let versions = decoded.versions.entry((indom, by_beginning)).or_default();
        let known = versions.iter().find(|(of, _)| *of == number);
        if let Some(known) = known.and_then(|(_, known)| known.upgrade()) {
            return Ok(known);
        }
        let domain = self.observed(observation, before)?;
        let domain = Arc::new(match by_beginning {
            true => domain.with_lookup_by_beginning(),
            false => domain,
        });
        versions.retain(|(of, known)| *of != number && known.strong_count() > 0);
        versions.truncate(VERSIONS - 1);
        versions.insert(0, (number, Arc::downgrade(&domain)));
        Ok(domain)
    }

    /// A domain with all instances that it ever has, and when each exists.
    pub(super) fn whole_domain(
        &self,
        (indom, by_beginning): (InDom, bool),
    ) -> Result<Option<Whole>, SourceError> {
        let Some(history) = self.contents.domains.get(&indom) else { return Ok(None) };
        let mut decoded = lock(&self.decoded);
        if let Some(known) = decoded.whole.get(&(indom, by_beginning)) {
            return Ok(Some(known.clone()));
        }
        let mut ever = LivesBuilder::default();
        for observation in &history.list {
            self.with_record(observation, |record| ever.take(observation.stamp, record))?;
        }
        let (domain, lives) = ever.finish();
        let domain = match by_beginning {
            true => domain.with_lookup_by_beginning(),
            false => domain,
        };
        let whole = (Arc::new(domain), Arc::new(lives));
        decoded.whole.insert((indom, by_beginning), whole.clone());
        Ok(Some(whole))
    }

    /// Names of the instances of a domain over time.
    pub(super) fn names_over_time(
        &self,
        indom: InDom,
    ) -> Result<Option<Arc<NamesOverTime>>, SourceError> {
        let Some(history) = self.contents.domains.get(&indom) else { return Ok(None) };
        let mut decoded = lock(&self.decoded);
        if let Some(known) = decoded.names_over_time.get(&indom) {
            return Ok(Some(Arc::clone(known)));
        }
        let names = history.names(|observation, before| self.observed(observation, before))?;
        let names = Arc::new(names);
        decoded.names_over_time.insert(indom, Arc::clone(&names));
        Ok(Some(names))
    }

    /// Decodes a domain after an observation. `before` is the domain before it.
    fn observed(
        &self,
        observation: &Observation,
        before: Option<&InstanceDomain>,
    ) -> Result<InstanceDomain, SourceError> {
        self.with_record(observation, |record| record.apply(before))
    }

    /// Decodes the record of an observation for a caller.
    fn with_record<T>(
        &self,
        observation: &Observation,
        take: impl FnOnce(&DomainRecord<'_>) -> T,
    ) -> Result<T, SourceError> {
        let place = observation.place;
        let mut files = self.files();
        let record = DomainRecord::decode(files.at(place)?, place.offset);
        let taken = record.map(|record| take(&record));
        taken.map_err(|damage| files.failed(place.file, damage))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, read, remove_file, rename, write};
    use std::io::Write;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::archive::context::ArchiveContext;
    use crate::archive::options::OpenOptions;
    use crate::archive::resolve::resolve;
    use pmderive_core::model::PmStatus;
    use pmderive_core::source::{Freshness, MetadataSource};

    /// A copy of an archive, and the folder that holds it.
    fn copied(name: &str) -> (tempfile::TempDir, PathBuf) {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/archives").join(name);
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().join("a");
        for suffix in ["0", "index", "meta"] {
            let bytes = read(own.with_extension(suffix)).expect("it is there");
            write(base.with_extension(suffix), bytes).expect("there is room");
        }
        (folder, base)
    }

    /// Opens an archive once it is old enough to be shared.
    fn opened(base: &Path) -> ArchiveContext {
        let named = || resolve(base, None).expect("it is there");
        while Identity::of(&named(), OpenOptions::default()).is_none() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        ArchiveContext::open(base).expect("it is there")
    }

    fn are_shared(one: &ArchiveContext, other: &ArchiveContext) -> bool {
        Arc::ptr_eq(one.metadata.known(), other.metadata.known())
    }

    #[test]
    fn what_was_read_is_shared_while_someone_uses_it() {
        let (_folder, base) = copied("own-dyn");
        let mut contexts = [opened(&base), opened(&base)];
        let [one, other] = &mut contexts;
        assert!(are_shared(one, other));
        assert!(Arc::ptr_eq(&one.records.archives()[0], &other.records.archives()[0]));
        let names = one.traverse("").expect("names");
        assert_eq!(other.traverse("").expect("names"), names);
        let indoms: Vec<InDom> = one.metadata.known().contents.domains.keys().copied().collect();
        assert!(!indoms.is_empty());
        for indom in indoms {
            let domain = |context: &mut ArchiveContext| {
                context.instance_domain(indom, Freshness::Cached).expect("it is readable")
            };
            match (domain(one), domain(other)) {
                (Ok(one), Ok(other)) => assert!(Arc::ptr_eq(&one, &other), "{indom}"),
                (one, other) => assert_eq!(one, other),
            }
            let whole = contexts_whole(one, indom);
            assert!(Arc::ptr_eq(&whole, &contexts_whole(other, indom)), "{indom}");
            // The records of instances are decoded once for the domain and the lives.
            let lives = |context: &ArchiveContext| {
                let whole = context.metadata.whole_domain(indom).expect("it is readable");
                whole.expect("it is known").1
            };
            assert!(Arc::ptr_eq(&lives(one), &lives(other)), "{indom}");
        }
        // A context that looks names up in another way has other domains.
        let mut third = opened(&base);
        third.look_up_instances_by_beginning();
        let indom = *third.metadata.known().contents.domains.keys().next().expect("a domain");
        assert!(!Arc::ptr_eq(&contexts_whole(&mut third, indom), &contexts_whole(one, indom)));
        let known = Arc::downgrade(one.metadata.known());
        drop(third);
        drop(contexts);
        assert_eq!(known.strong_count(), 0);
    }

    fn contexts_whole(context: &mut ArchiveContext, indom: InDom) -> Arc<InstanceDomain> {
        context.known_instances(indom).expect("it is readable").expect("it is known")
    }

    /// After any change to a file, opening the archive again reads it again.
    #[test]
    fn files_that_changed_are_read_again() {
        let append = |path: &Path, bytes: &[u8]| {
            let file = File::options().append(true).open(path);
            file.and_then(|mut file| file.write_all(bytes)).expect("it can be written");
        };
        let changed = |path: &Path| {
            let mut bytes = read(path).expect("it is there");
            // This is in the name of a metric, or in the padding of the label.
            let at = bytes.windows(4).rposition(|four| four == b"u32\0" || four == b".u32");
            bytes[at.unwrap_or(300)] ^= 0x01;
            bytes
        };
        type Change<'c> = &'c dyn Fn(&Path);
        let in_place: Change<'_> = &|path| write(path, changed(path)).expect("it can be written");
        let replaced: Change<'_> = &|path| {
            let new = path.with_extension("new");
            write(&new, changed(path)).expect("there is room");
            rename(&new, path).expect("it can be replaced");
        };
        let longer: Change<'_> = &|path| append(path, b"\0");
        let touched: Change<'_> = &|path| {
            let bytes = read(path).expect("it is there");
            remove_file(path).expect("it can be removed");
            write(path, bytes).expect("there is room");
        };
        for (what, change) in
            [("in place", in_place), ("replaced", replaced), ("longer", longer), ("new", touched)]
        {
            for suffix in ["meta", "index", "0"] {
                let (_folder, base) = copied("own-dyn");
                let before = opened(&base);
                change(&base.with_extension(suffix));
                if let Ok(at_once) = ArchiveContext::open(&base) {
                    assert!(!are_shared(&before, &at_once), "{what} {suffix}");
                    assert!(!are_shared(&before, &opened(&base)), "{what} {suffix}");
                }
            }
        }
        // The same name in another folder is another archive. So is another name of the
        // same files, because errors contain the name.
        let ((one, base), (_other, same)) = (copied("own-dyn"), copied("own-dyn"));
        assert!(!are_shared(&opened(&base), &opened(&same)));
        let link = one.path().join("b");
        for suffix in ["0", "index", "meta"] {
            let (from, to) = (base.with_extension(suffix), link.with_extension(suffix));
            std::os::unix::fs::symlink(from, to).expect("it can be linked");
        }
        assert!(!are_shared(&opened(&base), &opened(&link)));
    }

    /// Offsets of the records of a metadata file.
    fn records(bytes: &[u8]) -> Vec<usize> {
        let length = |at: usize| {
            let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
            word.map(|word| u32::from_be_bytes(*word) as usize)
        };
        let offsets = std::iter::successors(Some(0), |at| Some(at + length(*at)?));
        offsets.take_while(|at| *at < bytes.len()).skip(1).collect()
    }

    /// Contexts that read on at different times know the same.
    #[test]
    fn what_is_appended_is_read_once_and_known_to_all() {
        let (_folder, base) = copied("own-dyn");
        let path = base.with_extension("meta");
        let bytes = read(&path).expect("it is there");
        let offsets = records(&bytes);
        assert!(offsets.len() > 20, "{}", offsets.len());
        let begin = offsets[offsets.len() / 2];
        write(&path, &bytes[..begin]).expect("it can be written");
        let mut contexts: Vec<ArchiveContext> = (0..3).map(|_| opened(&base)).collect();
        let mut written = begin;
        let ends = offsets.iter().copied().filter(|at| *at > begin).chain([bytes.len()]);
        for (round, end) in ends.enumerate() {
            let file = File::options().append(true).open(&path);
            file.and_then(|mut file| file.write_all(&bytes[written..end])).expect("it is writable");
            written = end;
            // One context is two records behind at times.
            let count = if round % 3 == 0 { 3 } else { 2 };
            for context in &mut contexts[..count] {
                context.refresh_metadata().expect("it is sound");
            }
            assert!(are_shared(&contexts[0], &contexts[1]), "{round}");
            assert_eq!(are_shared(&contexts[0], &contexts[2]), count == 3, "{round}");
            let mut alone = ArchiveContext::open(&base).expect("it is sound");
            for (number, context) in contexts[..count].iter_mut().enumerate() {
                let (own, other) = (context.traverse(""), alone.traverse(""));
                assert_eq!(own.expect("names"), other.expect("names"), "{round} {number}");
                let indoms: Vec<InDom> =
                    alone.metadata.known().contents.domains.keys().copied().collect();
                for indom in indoms {
                    let (own, other) =
                        (context.known_instances(indom), alone.known_instances(indom));
                    assert_eq!(own.expect("readable"), other.expect("readable"), "{round} {indom}");
                }
            }
        }
    }

    /// Every context reports damage in an appended part.
    #[test]
    fn damage_that_was_appended_is_told_to_all() {
        let (_folder, base) = copied("own-dyn");
        let mut contexts = [opened(&base), opened(&base), opened(&base)];
        let file = File::options().append(true).open(base.with_extension("meta"));
        let record =
            [&12u32.to_be_bytes()[..], &99u32.to_be_bytes(), &12u32.to_be_bytes()].concat();
        file.and_then(|mut file| file.write_all(&record)).expect("it can be written");
        let told = contexts.each_mut().map(|context| {
            let error = context.refresh_metadata().expect_err("the record is of no kind");
            assert!(context.refresh_metadata().is_ok(), "it is told once");
            (error.status(), error.to_string())
        });
        assert_eq!(told[0].0, PmStatus::RECTYPE);
        assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    }
}
