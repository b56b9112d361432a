//! The agent for a Linux host. It serves the metrics of pmdalinux(1) and reads
//! /proc and /sys itself.
//!
//! Each area of metrics has a file with a table and with the reader of its
//! files. A row of the table selects the metric's value from the reader's data.
//! A fetch reads each file at most once, and only if it has a metric of that
//! area. A metric has no value where the kernel does not provide it, or
//! provides it in an unknown form; nothing is made up.

mod area;
mod cpu;
mod cpuinfo;
mod disk;
mod filesys;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod kernel;
mod keyed;
mod labels;
mod limits;
mod memory;
mod network;
mod protocols;
mod swap;
mod table;
mod vmstat;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pmderive_core::model::{InDom, InstanceDomain, LabelLevel, LabelSet, PmStatus, Pmid};

use self::area::{AnyArea, area};
use self::table::DOMAIN;
use super::agent::{Agent, Metric, Values};
use super::files::Files;

/// Metrics of the Linux kernel, with the names, identifiers, types, units,
/// semantics and instances that pmdalinux(1) of PCP 6.0.3 gives them.
pub struct LinuxAgent {
    files: Files,
    areas: Vec<Box<dyn AnyArea>>,
    /// The area of each metric, and the row in the area's table.
    rows: HashMap<Pmid, (usize, usize)>,
}

impl fmt::Debug for LinuxAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinuxAgent").field("metrics", &self.rows.len()).finish_non_exhaustive()
    }
}

impl LinuxAgent {
    /// The agent for this host.
    pub fn new() -> LinuxAgent {
        LinuxAgent::with_root(PathBuf::from("/"))
    }

    /// The agent for the tree `root`, which has `proc` and `sys` in it: a
    /// recorded tree, or a host's as a container sees it. Facts that come from
    /// the kernel directly (uname(2), page size, clock ticks) are still those
    /// of this host.
    pub fn with_root(root: impl Into<PathBuf>) -> LinuxAgent {
        let areas = areas();
        let mut rows = HashMap::new();
        for (position, area) in areas.iter().enumerate() {
            for (row, metric) in area.metrics().iter().enumerate() {
                rows.insert(metric.desc.pmid, (position, row));
            }
        }
        LinuxAgent { files: Files::new(root.into()), areas, rows }
    }
}

fn areas() -> Vec<Box<dyn AnyArea>> {
    vec![
        area::<cpu::Cpu>(),
        area::<cpuinfo::CpuInfo>(),
        area::<kernel::Kernel>(),
        area::<keyed::KeyedFiles>(),
        area::<limits::Limits>(),
        area::<swap::Swap>(),
        area::<disk::Disks>(),
        area::<network::Interfaces>(),
        area::<filesys::Filesystems>(),
    ]
}

impl Default for LinuxAgent {
    fn default() -> LinuxAgent {
        LinuxAgent::new()
    }
}

impl Agent for LinuxAgent {
    fn name(&self) -> &str {
        "linux"
    }

    fn duplicate(&self) -> Option<Box<dyn Agent>> {
        Some(Box::new(LinuxAgent::with_root(self.files.root())))
    }

    fn metrics(&self) -> Vec<Metric> {
        self.areas.iter().flat_map(|area| area.metrics()).collect()
    }

    fn begin_fetch(&mut self) {
        self.files.begin();
    }

    fn fetch(&mut self, pmid: Pmid, values: &mut Values<'_, '_>) -> Result<(), PmStatus> {
        let (area, row) = *self.rows.get(&pmid).ok_or(PmStatus::PMID)?;
        self.areas[area].fetch(row, &mut self.files, values)
    }

    fn instance_domain(&mut self, indom: InDom) -> Result<Arc<InstanceDomain>, PmStatus> {
        if indom.domain() != DOMAIN {
            return Err(PmStatus::INDOM);
        }
        let files = &mut self.files;
        let mut areas = self.areas.iter_mut();
        areas.find_map(|area| area.instance_domain(indom.serial(), files)).ok_or(PmStatus::INDOM)
    }

    fn domain_help(&self, indom: InDom) -> Option<Cow<'static, str>> {
        labels::domain_help(indom)
    }

    fn labels(&mut self, level: LabelLevel) -> Vec<LabelSet> {
        match level {
            LabelLevel::Instances(indom) => match self.instance_domain(indom) {
                Ok(instances) => labels::sets_of_instances(indom, &instances),
                Err(_) => Vec::new(),
            },
            _ => labels::set_of(level).into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests;
