//! What all areas have in common: rows of the tables of metrics, instance
//! domains, devices.
//!
//! Names, numbers, types, semantics and units are those of pmdalinux(1).

use std::sync::Arc;

use crate::agent::{Metric, Values};
use crate::files::Files;
use crate::instances::Instances;
pub(super) use crate::table::{Row, SINGLE, metrics, put_number, units};
use pmderive_core::model::{InstId, InstanceDomain, PmStatus, Pmid, Semantics, Units, ValueType};

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
    /// Areas to swap to.
    pub const SWAP: u32 = 6;
    /// Partitions of disks.
    pub const PARTITION: u32 = 10;
    /// Time spans over which stalls are averaged.
    pub const PRESSURE: u32 = 37;
}

/// A row of one of pmdalinux(1)'s metrics with one value.
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

/// A group of metrics that are read from the same files.
pub(super) trait Area: Send {
    /// The metrics; the position of each is its row.
    fn metrics(&self) -> Vec<Metric>;

    /// Adds the values of a row, reading what this fetch has not read yet.
    fn fetch(
        &mut self,
        row: usize,
        files: &mut Files,
        values: &mut Values<'_, '_>,
    ) -> Result<(), PmStatus>;

    /// The instance domain with this serial number, if it is this area's.
    fn instance_domain(&mut self, serial: u32, files: &mut Files) -> Option<Arc<InstanceDomain>> {
        let _ = (serial, files);
        None
    }
}

/// Sum of counters that are all known. It wraps as they do, so that
/// differences between two sums stay right.
pub(super) fn sum<const N: usize>(counters: [Option<u64>; N]) -> Option<u64> {
    counters.into_iter().try_fold(0u64, |sum, counter| Some(sum.wrapping_add(counter?)))
}

/// One row of numbers for each device of a kind, as several files of the kernel have them.
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
    /// Forgets the rows of the previous reading. Whether their file can be
    /// read now tells having no devices from not knowing them.
    pub fn begin(&mut self, readable: bool) {
        self.rows.clear();
        self.readable = readable;
    }

    /// Adds what was read of a device.
    pub fn add(&mut self, name: &str, row: T) {
        self.rows.push((self.instances.number(name), row));
    }

    /// All devices are there: of several rows of one name the first stays.
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

    /// The rows, to complete them with what is asked for only at need.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = (InstId, &mut T)> {
        self.rows.iter_mut().map(|(number, row)| (*number, row))
    }

    /// The name of a device.
    pub fn name(&self, number: InstId) -> &str {
        self.instances.name(number).unwrap_or_default()
    }

    /// The devices that were there at the latest reading.
    pub fn domain(&self) -> Arc<InstanceDomain> {
        Arc::clone(self.instances.domain())
    }
}
