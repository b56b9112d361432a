//! Reads the values of a group by their handles.

use std::marker::PhantomData;

use pmderive_core::model::{InstId, MetricDesc, PmStatus, Timestamp};

use super::FetchGroup;
use super::slots::{EventsSlot, HeldValue, InstancesSlot};
use super::target::{Events, Instances, Item, Place, Target};

/// The status for a handle of another group, or from before the group was
/// cleared.
const FOREIGN: PmStatus = PmStatus::ARG;

impl HeldValue {
    fn read<T: Target>(&self) -> Result<T::Read<'_>, PmStatus> {
        self.status?;
        self.kept::<T>().ok_or(PmStatus::VALUE)
    }

    fn kept<T: Target>(&self) -> Option<T::Read<'_>> {
        self.value.as_ref().and_then(T::read)
    }
}

impl<S> FetchGroup<S> {
    /// The time of the values of the latest fetch
    /// (`pmExtendFetchGroup_timestamp(3)`). After a failed fetch, the time of
    /// the failure. Before the first fetch, the epoch.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// A value.
    ///
    /// # Errors
    /// The reason why there is no value:
    /// - [`PmStatus::VALUE`]: the metric or instance is missing, nothing was
    ///   fetched yet, or the value fell and has no rate;
    /// - [`PmStatus::AGAIN`]: a rate needs a second fetch at a later time. A derived
    ///   metric that needs one has [`PmStatus::VALUE`], as all it has not computed;
    /// - [`PmStatus::TRUNC`], [`PmStatus::SIGN`], [`PmStatus::CONV`],
    ///   [`PmStatus::TYPE`]: the value cannot be converted;
    /// - `-ERANGE`: a text holds a number out of range;
    /// - [`PmStatus::ARG`]: the handle is of another group;
    /// - the status that the source gave for the metric.
    pub fn get<T: Target>(&self, item: Item<T>) -> Result<T::Read<'_>, PmStatus> {
        self.item_at(item.place).ok_or(FOREIGN)?.read::<T>()
    }

    /// A value. A discrete metric's value from an earlier fetch counts, even if
    /// the latest fetch gave the metric another status.
    pub fn kept<T: Target>(&self, item: Item<T>) -> Option<T::Read<'_>> {
        self.item_at(item.place)?.kept::<T>()
    }

    /// The descriptor of an entry's metric, before any conversion. `None` for a handle of
    /// another group.
    pub fn desc<T>(&self, item: Item<T>) -> Option<&MetricDesc> {
        Some(&self.own(&self.items, item.place)?.recipe.desc)
    }

    /// The descriptor of the metric whose instances are an entry, as for
    /// [`FetchGroup::desc`].
    pub fn desc_of_instances<T>(&self, handle: Instances<T>) -> Option<&MetricDesc> {
        Some(&self.own(&self.domains, handle.place)?.recipe.desc)
    }

    fn item_at(&self, place: Place) -> Option<&HeldValue> {
        Some(&self.own(&self.items, place)?.held)
    }

    /// The entry at a place; `None` if the place is of another group.
    fn own<'g, E>(&self, entries: &'g [E], place: Place) -> Option<&'g E> {
        entries.get(place.index).filter(|_| place.group == self.identity)
    }

    /// The values of all instances of a metric.
    pub fn instances<T: Target>(&self, handle: Instances<T>) -> InstanceRows<'_, T> {
        InstanceRows { slot: self.own(&self.domains, handle.place), target: PhantomData }
    }

    /// The values of a field of all event records.
    pub fn events<T: Target>(&self, handle: Events<T>) -> EventRows<'_, T> {
        EventRows { slot: self.own(&self.events, handle.place), target: PhantomData }
    }
}

/// Values of the instances of a metric.
#[derive(Clone, Copy, Debug)]
pub struct InstanceRows<'g, T> {
    slot: Option<&'g InstancesSlot>,
    target: PhantomData<fn() -> T>,
}

/// The value of one instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceRow<'g, T: Target> {
    /// The instance, -1 (`PM_IN_NULL`) for a metric without an instance domain.
    pub instance: InstId,
    /// Its name, if it has one.
    pub name: Option<&'g str>,
    /// Its value; see [`FetchGroup::get`] for the errors.
    pub value: Result<T::Read<'g>, PmStatus>,
}

impl<'g, T: Target> InstanceRows<'g, T> {
    /// Status of the metric.
    ///
    /// # Errors
    /// [`PmStatus::TOOBIG`]: there are more instances than the limit. Otherwise as for
    /// [`FetchGroup::get`]; then there are no rows, except those of a discrete metric
    /// that stayed.
    pub fn status(&self) -> Result<(), PmStatus> {
        self.slot.map_or(Err(FOREIGN), |slot| slot.status)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.slot.map_or(0, |slot| slot.rows.len())
    }

    /// True when there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows, in ascending order of instances.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = InstanceRow<'g, T>> + use<'g, T> {
        let names = self.slot.and_then(|slot| slot.names.as_deref());
        let rows = self.slot.map_or(&[][..], |slot| &slot.rows[..]);
        rows.iter().map(move |(instance, held)| InstanceRow {
            instance: *instance,
            name: names.and_then(|names| names.name(*instance)),
            value: held.read::<T>(),
        })
    }
}

/// Values of a field of event records.
#[derive(Clone, Copy, Debug)]
pub struct EventRows<'g, T> {
    slot: Option<&'g EventsSlot>,
    target: PhantomData<fn() -> T>,
}

/// The value in one event record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventRow<'g, T: Target> {
    /// Time of the event.
    pub timestamp: Timestamp,
    /// The value; see [`FetchGroup::get`] for the errors.
    pub value: Result<T::Read<'g>, PmStatus>,
}

impl<'g, T: Target> EventRows<'g, T> {
    /// Status of the metric. A metric without records is not an error.
    ///
    /// # Errors
    /// [`PmStatus::TOOBIG`]: there are more values than the limit. Otherwise as for
    /// [`FetchGroup::get`], or a fault in the records.
    pub fn status(&self) -> Result<(), PmStatus> {
        self.slot.map_or(Err(FOREIGN), |slot| slot.status)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.slot.map_or(0, |slot| slot.rows.len())
    }

    /// True when there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows, in the order of records and of fields within them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = EventRow<'g, T>> + use<'g, T> {
        let rows = self.slot.map_or(&[][..], |slot| &slot.rows[..]);
        let row = |(timestamp, held): &'g (Timestamp, HeldValue)| EventRow {
            timestamp: *timestamp,
            value: held.read::<T>(),
        };
        rows.iter().map(row)
    }
}
