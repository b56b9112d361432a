//! Shared parts of all areas: rows of the metric tables, instance domains,
//! devices.
//!
//! Names, numbers, types, semantics and units are those of pmdalinux(1).

use std::sync::Arc;

use crate::instances::Instances;
pub(super) use crate::table::{Row, SINGLE, metrics, put_number, units};
use pmderive_core::model::{InstId, InstanceDomain, Pmid, Semantics, Units, ValueType};

/// Number of pmdalinux's domain.
pub(super) const DOMAIN: u32 = 60;

/// Serial numbers of the instance domains.
pub(super) mod indom {
    /// Processors.
    pub const CPU: u32 = 0;
    /// Whole disks.
    pub const DISK: u32 = 1;
    /// The three load averages.
    pub const LOAD: u32 = 2;
    /// Network interfaces.
    pub const INTERFACE: u32 = 3;
    /// Mounted file systems on devices of this host.
    pub const FILESYS: u32 = 5;
    /// Swap areas.
    pub const SWAP: u32 = 6;
    /// Partitions of disks.
    pub const PARTITION: u32 = 10;
    /// Time spans over which stalls are averaged.
    pub const PRESSURE: u32 = 37;
}

/// A row for a metric of pmdalinux(1) with a single value.
pub(super) const fn row<V>(
    name: &'static str,
    number: (u32, u32),
    value_type: ValueType,
    semantics: Semantics,
    units: Units,
    value: V,
    help: &'static str,
) -> Row<V> {
    let pmid = Pmid::new(DOMAIN, number.0, number.1);
    Row::new(name, pmid, (value_type, semantics, units), value, help)
}

/// The sum of counters, if all have a value. The sum wraps as the counters do,
/// which keeps the difference of two sums right.
pub(super) fn sum<const N: usize>(counters: [Option<u64>; N]) -> Option<u64> {
    counters.into_iter().try_fold(0u64, |sum, counter| Some(sum.wrapping_add(counter?)))
}

/// One row of numbers for each device. Several files of the kernel have this
/// form.
pub(super) struct Devices<T> {
    instances: Instances,
    rows: Vec<(InstId, T)>,
    readable: bool,
}

impl<T> Default for Devices<T> {
    fn default() -> Devices<T> {
        Devices { instances: Instances::default(), rows: Vec::new(), readable: false }
    }
}

impl<T> Devices<T> {
    /// Forgets the rows of the previous reading. `readable` is false if the
    /// file cannot be read now, which does not mean that there are no devices.
    pub fn begin(&mut self, readable: bool) {
        self.rows.clear();
        self.readable = readable;
    }

    /// Adds the row of a device.
    pub fn add(&mut self, name: &str, row: T) {
        self.rows.push((self.instances.number(name), row));
    }

    /// Ends the reading. The first of several rows with one name stays.
    pub fn end(&mut self) {
        self.rows.sort_by_key(|(number, _)| *number);
        self.rows.dedup_by_key(|(number, _)| *number);
        self.instances.set_present(self.rows.iter().map(|(number, _)| *number));
    }

    /// Number of devices, if their file could be read.
    pub fn count(&self) -> Option<u64> {
        u64::try_from(self.rows.len()).ok().filter(|_| self.readable)
    }

    /// The rows, in the order of their instance numbers.
    pub fn rows(&self) -> &[(InstId, T)] {
        &self.rows
    }

    /// The rows, to complete them with facts that are fetched only on demand.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = (InstId, &mut T)> {
        self.rows.iter_mut().map(|(number, row)| (*number, row))
    }

    /// The name of a device.
    pub fn name(&self, number: InstId) -> &str {
        self.instances.name(number).unwrap_or_default()
    }

    /// The devices of the latest reading.
    pub fn domain(&self) -> Arc<InstanceDomain> {
        Arc::clone(self.instances.domain())
    }
}
