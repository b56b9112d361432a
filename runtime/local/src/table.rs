//! Rows of the metric tables of this machine's agents.
//!
//! A row is a metric's name, descriptor and help, together with the agent's own
//! description of where the value is.

use pmderive_core::model::{InDom, InstId, MetricDesc, Pmid, Semantics, Units, ValueType};

use super::agent::{AgentValue, Metric, Values};

/// The units that occur in the tables.
pub(super) mod units {
    use pmderive_core::model::Units;

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
    /// Nanoseconds.
    pub const NANOSEC: Units = time(0);
    /// Microseconds.
    pub const MICROSEC: Units = time(1);
    /// Milliseconds.
    pub const MILLISEC: Units = time(2);
    /// Seconds.
    pub const SEC: Units = time(3);
    /// A count of events or things.
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

/// A metric and the place of its value.
pub(super) struct Row<V> {
    name: &'static str,
    desc: MetricDesc,
    help: &'static str,
    pub value: V,
}

impl<V> Row<V> {
    /// A row for a metric with a single value and this type, semantics and
    /// units.
    pub const fn new(
        name: &'static str,
        pmid: Pmid,
        (value_type, semantics, units): (ValueType, Semantics, Units),
        value: V,
        help: &'static str,
    ) -> Row<V> {
        let desc = MetricDesc { pmid, value_type, indom: None, semantics, units };
        Row { name, desc, help, value }
    }
}

impl<V: Copy> Row<V> {
    /// Gives the metric an instance domain.
    pub const fn over(mut self, serial: u32) -> Row<V> {
        self.desc.indom = Some(InDom::new(self.desc.pmid.domain(), serial));
        self
    }

    /// Identifier of the metric.
    pub const fn pmid(&self) -> Pmid {
        self.desc.pmid
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

/// Instance of a metric without an instance domain (`PM_IN_NULL`).
pub(super) const SINGLE: InstId = -1;

/// Adds a number, if there is one, in the form of the metric's type.
///
/// A 32-bit counter wraps, as the kernel's own would. Any other number that the
/// type cannot hold is dropped.
pub(super) fn put_number(values: &mut Values<'_, '_>, instance: InstId, number: Option<u64>) {
    let Some(number) = number else { return };
    let desc = values.desc();
    let value = match (desc.value_type, desc.semantics) {
        (ValueType::U64, _) => Some(AgentValue::U64(number)),
        (ValueType::I64, _) => i64::try_from(number).ok().map(AgentValue::I64),
        (ValueType::U32, Semantics::Counter) => Some(AgentValue::U32(number as u32)),
        (ValueType::I32, _) => i32::try_from(number).ok().map(AgentValue::I32),
        // A type that the tables do not use ends in PM_ERR_TYPE.
        _ => u32::try_from(number).ok().map(AgentValue::U32),
    };
    if let Some(value) = value {
        values.put(instance, value);
    }
}
