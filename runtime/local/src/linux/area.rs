//! Areas of metrics: tables of rows, with the reader that rows select values from.
//!
//! An area reads its files and knows its rows. This module has the parts that all areas share: the
//! row of a metric, and at most one reading of a file per fetch.

use std::sync::Arc;

use pmderive_core::model::{InstanceDomain, PmStatus};

use super::table::{Row, metrics};
use crate::agent::{Metric, Values};
use crate::files::{Files, ReadMark};

/// A group of metrics that are read from the same files.
pub(super) trait Area: Default + Send + 'static {
    /// The place of a value, as a row gives it.
    type Content: Copy + 'static;

    /// The metrics.
    const TABLES: &'static [&'static [Row<Self::Content>]];

    /// Serial numbers of the instance domains that [`Area::domain`] knows.
    const DOMAINS: &'static [u32] = &[];

    /// Reads the files that most rows need. It is called once in a fetch, before any question.
    fn read(&mut self, _: &mut Files) {}

    /// Adds the values of a row. Reads the files that only this row needs.
    fn put(&mut self, content: Self::Content, files: &mut Files, values: &mut Values<'_, '_>);

    /// The instance domain with one of the serial numbers.
    fn domain(&self, _: u32) -> Arc<InstanceDomain> {
        Arc::default()
    }
}

/// An area of any kind.
pub(super) trait AnyArea: Send {
    /// The metrics. A metric's position in this list is its row.
    fn metrics(&self) -> Vec<Metric>;

    /// Adds the values of a row.
    fn fetch(
        &mut self,
        row: usize,
        files: &mut Files,
        values: &mut Values<'_, '_>,
    ) -> Result<(), PmStatus>;

    /// The instance domain with this serial number, if it belongs to this area.
    fn instance_domain(&mut self, serial: u32, files: &mut Files) -> Option<Arc<InstanceDomain>>;
}

/// An area, and whether it has read its files.
#[derive(Default)]
struct AreaReading<A> {
    area: A,
    read: ReadMark,
}

impl<A: Area> AreaReading<A> {
    /// The area, after it has read its files in this fetch.
    fn current(&mut self, files: &mut Files) -> &mut A {
        if self.read.is_due(files) {
            self.area.read(files);
        }
        &mut self.area
    }
}

impl<A: Area> AnyArea for AreaReading<A> {
    fn metrics(&self) -> Vec<Metric> {
        A::TABLES.iter().flat_map(|table| metrics(table)).collect()
    }

    fn fetch(
        &mut self,
        row: usize,
        files: &mut Files,
        values: &mut Values<'_, '_>,
    ) -> Result<(), PmStatus> {
        let row = A::TABLES.iter().copied().flatten().nth(row).ok_or(PmStatus::PMID)?;
        self.current(files).put(row.value, files, values);
        Ok(())
    }

    fn instance_domain(&mut self, serial: u32, files: &mut Files) -> Option<Arc<InstanceDomain>> {
        A::DOMAINS.contains(&serial).then(|| self.current(files).domain(serial))
    }
}

/// An area that has read nothing yet.
pub(super) fn area<A: Area>() -> Box<dyn AnyArea> {
    Box::new(AreaReading::<A>::default())
}
