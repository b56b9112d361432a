//! Rows of the tables of metrics, and what all areas have in common.
//!
//! A row is a metric's name, descriptor and help together with the area's
//! own notion of where its value is. Names, numbers, types, semantics and
//! units are those of pmdalinux(1).

use std::sync::Arc;

use super::files::Files;
use crate::local::agent::{Metric, Value, Values};
use crate::local::instances::Instances;
use crate::model::{
    InDom, InstId, InstanceDomain, MetricDesc, PmStatus, Pmid, Semantics, Units, ValueType,
};

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

/// The units that occur in the tables.
pub(super) mod units {
    use crate::model::Units;

    const fn space(scale: u8) -> Units {
        Units { dim_space: 1, scale_space: scale, ..Units::NONE }
    }

    const fn time(scale: u8) -> Units {
        Units { dim_time: 1, scale_time: scale, ..Units::NONE }
    }

    /// No dimension.
    pub const NONE: Units = Units::NONE;
    /// Bytes.
    pub const BYTE: Units = space(0);
    /// Kilobytes of 1024 bytes.
    pub const KBYTE: Units = space(1);
    /// Megabytes of 1024 kilobytes.
    pub const MBYTE: Units = space(2);
    /// Microseconds.
    pub const MICROSEC: Units = time(1);
    /// Milliseconds.
    pub const MILLISEC: Units = time(2);
    /// Seconds.
    pub const SEC: Units = time(3);
    /// Events or things.
    pub const COUNT: Units = Units { dim_count: 1, ..Units::NONE };
    /// Events per second.
    pub const COUNT_PER_SEC: Units = Units { dim_time: -1, scale_time: 3, ..COUNT };
    /// Bytes per second.
    pub const BYTE_PER_SEC: Units = Units { dim_time: -1, scale_time: 3, ..BYTE };
    /// Megabytes per second.
    pub const MBYTE_PER_SEC: Units = Units { dim_time: -1, scale_time: 3, ..MBYTE };
    /// Per microsecond.
    pub const PER_MICROSEC: Units = Units { dim_time: -1, scale_time: 1, ..Units::NONE };
}

/// A metric and where an area finds its value.
pub(super) struct Row<V> {
    name: &'static str,
    desc: MetricDesc,
    help: &'static str,
    pub value: V,
}

/// A row of a metric with one value.
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
    Row { name, desc: MetricDesc { pmid, value_type, indom: None, semantics, units }, help, value }
}

impl<V: Copy> Row<V> {
    /// The same metric over an instance domain.
    pub const fn over(mut self, serial: u32) -> Row<V> {
        self.desc.indom = Some(InDom::new(DOMAIN, serial));
        self
    }

    /// The metric as the agent describes it.
    pub fn metric(&self) -> Metric {
        Metric { name: self.name.into(), desc: self.desc, help: self.help.into() }
    }
}

/// The metrics of a table.
pub(super) fn metrics<V: Copy>(table: &[Row<V>]) -> Vec<Metric> {
    table.iter().map(Row::metric).collect()
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

/// Instance of a metric without an instance domain (`PM_IN_NULL`).
pub(super) const SINGLE: InstId = -1;

/// Adds a number, if there is one, in the form of the metric's type.
///
/// A counter of 32 bits wraps, as the kernel's own would. Any other number
/// that its type cannot hold is no value.
pub(super) fn put_number(values: &mut Values<'_, '_>, instance: InstId, number: Option<u64>) {
    let Some(number) = number else { return };
    let desc = values.desc();
    let value = match (desc.value_type, desc.semantics) {
        (ValueType::U64, _) => Value::U64(number),
        (ValueType::I64, _) => match i64::try_from(number) {
            Ok(number) => Value::I64(number),
            Err(_) => return,
        },
        (ValueType::U32, Semantics::Counter) => {
            let [.., a, b, c, d] = number.to_be_bytes();
            Value::U32(u32::from_be_bytes([a, b, c, d]))
        }
        (ValueType::I32, _) => match i32::try_from(number) {
            Ok(number) => Value::I32(number),
            Err(_) => return,
        },
        // A type that is not a table's gives PM_ERR_TYPE.
        _ => match u32::try_from(number) {
            Ok(number) => Value::U32(number),
            Err(_) => return,
        },
    };
    values.put(instance, value);
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
