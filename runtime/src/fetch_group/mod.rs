//! Fetch groups: a program names values, with units and types, and reads them
//! after each fetch (`pmFetchGroup(3)`).
//!
//! ```text
//!   ItemSpec ──extend──► slots (one per entry, with a recipe)
//!                           ▲            │
//!   source ──fetch──► samples (this result and the one before)
//!                                        ▼
//!                        get, instances, events: values by handle
//! ```
//!
//! Any source can be behind a group. If the source has derived metrics, so has
//! the group. An entry keeps the identifier of its metric: of a derived metric that
//! is replaced or removed, its value is `PM_ERR_PMID`, and it must be added again.
//! So must an entry whose metric has other metadata since: its value is `PM_ERR_CONV`.

mod extend;
mod read;
mod recipe;
mod samples;
mod slots;
mod spec;
mod target;

use std::sync::atomic::{AtomicU64, Ordering};

use recipe::Recipe;
use samples::FetchedResult;
use slots::{EventsSlot, InstancesSlot, ItemSlot, Round};
use target::Place;

pub use read::{EventRow, EventRows, InstanceRow, InstanceRows};
pub use spec::{ExtendError, ItemSpec};
pub use target::{Events, Instances, Item, Target};

use pmderive_core::model::{EVENT_FLAGS, EVENT_MISSED, InstanceProfile, PmStatus, Pmid, Timestamp};
use pmderive_core::source::{FetchEvents, FetchList, FetchSource, Freshness, SourceError};

/// Values of a source that are fetched together, converted, and kept until the
/// next fetch (`pmCreateFetchGroup(3)`).
///
/// ```
/// use pmderive_runtime::fetch_group::{FetchGroup, ItemSpec};
/// use pmderive_runtime::local::LocalContext;
///
/// let mut group = FetchGroup::new(LocalContext::new());
/// let load = ItemSpec::of("kernel.all.load").instance("1 minute");
/// let load = group.item::<f64>(load)?;
/// let memory = group.item::<u64>(ItemSpec::of("mem.physmem").scale("Mbyte"))?;
/// let busy = group.indom::<f64>(ItemSpec::of("kernel.percpu.cpu.user").scale("ms/sec"))?;
/// let system = group.item::<String>("kernel.uname.sysname")?;
///
/// for _ in 0..2 {
///     group.fetch()?;
///     println!("{}: load {:?}", group.timestamp(), group.get(load));
/// }
/// assert!(group.get(load)? >= 0.0);
/// assert!(group.get(memory)? > 0);
/// assert_eq!(group.get(system)?, "Linux");
/// for row in group.instances(busy).iter() {
///     println!("{}: {:?}", row.name.unwrap_or("?"), row.value);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Differences from libpcp:
/// - With more instances than the limit, the first ones can be read; libpcp
///   fills them in but gives their number as 0. Without a limit, all can be
///   read.
/// - An entry has the status `PM_ERR_VALUE` until the first fetch; libpcp
///   leaves the caller's variable as it was.
/// - After a gap, such as a restart of an agent or a mark in an archive, rates start again with
///   `PM_ERR_AGAIN`.
/// - If the time of the source has not moved forward since the previous fetch,
///   there is no rate (`PM_ERR_AGAIN`); libpcp divides by a nanosecond.
/// - An instance of an archive is found whenever it existed, not only now and
///   at the end.
/// - An entry that cannot be added changes nothing; with an archive, libpcp then delivers the
///   latest record again.
/// - NaN is not converted to an integer, nor 2^63 to a 64 or 2^64 to a U64.
/// - A group with derived metrics fetches all instances, because it does not
///   know which metrics a derived metric reads.
#[derive(Debug)]
pub struct FetchGroup<S> {
    source: S,
    options: FetchGroupOptions,
    /// Unique number of this group in the process; its handles carry it.
    identity: u64,
    /// Each metric once, in the order of first use.
    metrics: Vec<Pmid>,
    /// The source's epoch at which the recipes were compared with its descriptors.
    epoch: u64,
    profile: InstanceProfile,
    /// False when `list` lacks a metric or the source lacks the current
    /// profile.
    is_prepared: bool,
    list: FetchList,
    items: Vec<ItemSlot>,
    domains: Vec<InstancesSlot>,
    events: Vec<EventsSlot>,
    timestamp: Timestamp,
    latest: FetchedResult,
    has_latest: bool,
    /// Receives the next result.
    spare: FetchedResult,
}

/// Options for values that fall or are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchGroupOptions {
    /// True if a falling value of an integer type has wrapped around. False if
    /// it has no rate (`PM_ERR_VALUE`).
    pub counter_wraps: bool,
    /// True if the value of a discrete metric stays until another comes.
    pub keep_discrete: bool,
}

impl Default for FetchGroupOptions {
    fn default() -> FetchGroupOptions {
        FetchGroupOptions { counter_wraps: false, keep_discrete: true }
    }
}

impl FetchGroupOptions {
    /// The options in the environment. If `PCP_COUNTER_WRAP` is set, counters
    /// wrap; if `PCP_DISCRETE_ONCE` is set, discrete values do not stay.
    pub fn from_environment() -> FetchGroupOptions {
        let is_set = |name| std::env::var_os(name).is_some();
        FetchGroupOptions {
            counter_wraps: is_set("PCP_COUNTER_WRAP"),
            keep_discrete: !is_set("PCP_DISCRETE_ONCE"),
        }
    }
}

fn new_identity() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<S: FetchSource> FetchGroup<S> {
    /// An empty group that owns its source, with the options in the
    /// environment.
    pub fn new(source: S) -> FetchGroup<S> {
        FetchGroup::with_options(source, FetchGroupOptions::from_environment())
    }

    /// An empty group that owns its source.
    pub fn with_options(source: S, options: FetchGroupOptions) -> FetchGroup<S> {
        FetchGroup {
            epoch: source.metadata_epoch(),
            source,
            options,
            identity: new_identity(),
            metrics: Vec::new(),
            profile: InstanceProfile::default(),
            is_prepared: true,
            list: FetchList::new(Vec::new(), Vec::new()),
            items: Vec::new(),
            domains: Vec::new(),
            events: Vec::new(),
            timestamp: Timestamp::default(),
            latest: FetchedResult::default(),
            has_latest: false,
            spare: FetchedResult::default(),
        }
    }

    /// The source, for questions or to set a time
    /// (`pmGetFetchGroupContext(3)`). The group controls the source's instance
    /// profile.
    pub fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// Ends the group and returns the source (`pmDestroyFetchGroup(3)`).
    pub fn into_source(self) -> S {
        self.source
    }

    /// Forgets all entries, values and fetched results
    /// (`pmClearFetchGroup(3)`). Earlier handles give [`PmStatus::ARG`] from
    /// now on. The source keeps its position.
    pub fn clear(&mut self) {
        self.identity = new_identity();
        self.metrics.clear();
        self.profile = InstanceProfile::default();
        self.is_prepared = false;
        self.items.clear();
        self.domains.clear();
        self.events.clear();
        self.timestamp = Timestamp::default();
        self.has_latest = false;
    }

    /// Fetches the metrics of all entries at once and converts their values
    /// (`pmFetchGroup(3)`).
    ///
    /// While the instances stay the same, only text, event records and the
    /// source allocate memory.
    ///
    /// # Errors
    /// The fetch as a whole failed, or the group has no metrics
    /// (`PM_ERR_TOOSMALL`). Then all entries have the status `PM_ERR_VALUE`.
    /// Later rates count from the last successful fetch.
    pub fn fetch(&mut self) -> Result<FetchEvents, SourceError> {
        let fetched = self.fetch_metrics();
        let (events, latest) = match fetched {
            Ok(events) => {
                self.spare.index(&self.metrics);
                self.timestamp = self.spare.batch.timestamp();
                (Ok(events), Some(&self.spare))
            }
            Err(error) => {
                self.timestamp = Timestamp::now();
                (Err(error), None)
            }
        };
        let is_gap = events.as_ref().is_ok_and(|events| events.gap);
        let previous = (self.has_latest && !is_gap)
            .then(|| (&self.latest, self.timestamp.seconds_since(self.latest.batch.timestamp())));
        let round = Round { latest, previous, counter_wraps: self.options.counter_wraps };
        self.items.iter_mut().for_each(|slot| slot.update(round));
        self.domains.iter_mut().for_each(|slot| slot.update(round));
        self.events.iter_mut().for_each(|slot| slot.update(round));
        if events.is_ok() {
            std::mem::swap(&mut self.latest, &mut self.spare);
            self.has_latest = true;
            self.name_instances();
        }
        events
    }

    fn fetch_metrics(&mut self) -> Result<FetchEvents, SourceError> {
        if self.metrics.is_empty() {
            return Err(SourceError::Status {
                target: self.source.name(),
                status: PmStatus::TOOSMALL,
            });
        }
        if !self.is_prepared {
            self.prepare()?;
        }
        self.spare.batch.clear();
        let events = self.source.fetch(&self.list, &mut self.spare.batch)?;
        if self.source.metadata_epoch() != self.epoch {
            self.compare_recipes();
        }
        Ok(events)
    }

    /// Compares the recipes with the present descriptors of their metrics. If the source does not
    /// give them, there is no value until it does.
    fn compare_recipes(&mut self) {
        let epoch = self.source.metadata_epoch();
        let of_items = self.items.iter_mut().map(|slot| &mut slot.recipe);
        let of_domains = self.domains.iter_mut().map(|slot| &mut slot.recipe);
        let of_events = self.events.iter_mut().map(|slot| &mut slot.recipe);
        let all = of_items.chain(of_domains).chain(of_events);
        // Fields that libpcp adds to records are of no source.
        let mut recipes: Vec<&mut Recipe> =
            all.filter(|one| ![EVENT_FLAGS, EVENT_MISSED].contains(&one.desc.pmid)).collect();
        let pmids: Vec<Pmid> = recipes.iter().map(|recipe| recipe.desc.pmid).collect();
        recipes.iter_mut().for_each(|recipe| recipe.is_current = false);
        let Ok(descs) = self.source.lookup_descs(&pmids) else { return };
        let mut are_told = true;
        for (recipe, desc) in recipes.iter_mut().zip(descs) {
            recipe.is_current = match desc {
                Ok(desc) => desc == recipe.desc,
                // A metric that is gone has no values, and can come back.
                Err(PmStatus::PMID | PmStatus::NAME | PmStatus::NOAGENT) => true,
                Err(_) => {
                    are_told = false;
                    false
                }
            };
        }
        if are_told {
            self.epoch = epoch;
        }
    }

    fn prepare(&mut self) -> Result<(), SourceError> {
        let all = InstanceProfile::default();
        let has_derived = self.metrics.iter().any(|pmid| pmid.is_derived());
        let profile = if has_derived { &all } else { &self.profile };
        match self.source.set_profile(profile) {
            // A source without profiles delivers more instances, which does no
            // harm.
            Err(error) if error.status() == PmStatus::NYI => {}
            outcome => outcome?,
        }
        self.list = FetchList::new(self.metrics.clone(), Vec::new());
        self.is_prepared = true;
        Ok(())
    }

    /// Asks for the names of new instances.
    fn name_instances(&mut self) {
        for slot in self.domains.iter_mut().filter(|slot| slot.has_new_instances()) {
            let Some(indom) = slot.indom else { continue };
            for freshness in [Freshness::Cached, Freshness::Current] {
                // A failure leaves the values without names.
                let domain = self.source.instance_domain(indom, freshness);
                slot.names = domain.ok().and_then(Result::ok);
                if slot.is_named() {
                    break;
                }
            }
            slot.named.clear();
            slot.named.extend(slot.rows.iter().map(|(instance, _)| *instance));
        }
    }

    fn place(&self, count: usize) -> Place {
        Place { group: self.identity, index: count - 1 }
    }
}
