//! Swap areas, from /proc/swaps.
//!
//! The name of an area is the kernel's, escapes included, as in pmdalinux.

use std::sync::Arc;

use pmderive_core::model::{InstanceDomain, PmStatus, Semantics::*, ValueType::*};

use super::table::{Area, Devices, Row, indom::SWAP, metrics, put_number, row, units::*};
use crate::agent::{AgentValue, Metric, Values};
use crate::files::{Files, ReadMark};
use crate::text;

/// What a table row delivers for each area.
#[derive(Clone, Copy)]
enum Content {
    /// A size in kilobytes.
    Size(fn(&SwapArea) -> Option<u64>),
    /// The priority, which may be negative.
    Priority,
}

/// The metrics.
#[rustfmt::skip]
static TABLE: &[Row<Content>] = &[
    row("swapdev.free", (6, 0), U32, Instant, KBYTE, Content::Size(|area| area.size?.checked_sub(area.used?)), "Space of each swap area that is free.").over(SWAP),
    row("swapdev.length", (6, 1), U32, Discrete, KBYTE, Content::Size(|area| area.size), "Space of each swap area.").over(SWAP),
    row("swapdev.maxswap", (6, 2), U32, Discrete, KBYTE, Content::Size(|area| area.size), "Space that each swap area can have; the same as its length.").over(SWAP),
    row("swapdev.vlength", (6, 3), U32, Discrete, KBYTE, Content::Size(|_| Some(0)), "Space of each swap area that is virtual, which Linux does not have.").over(SWAP),
    row("swapdev.priority", (6, 4), I32, Instant, NONE, Content::Priority, "Priority of each swap area; the highest is used first.").over(SWAP),
];

/// A line of the file; sizes in kilobytes.
struct SwapArea {
    size: Option<u64>,
    used: Option<u64>,
    priority: Option<i32>,
}

/// Reader of /proc/swaps.
#[derive(Default)]
pub(super) struct Swap {
    read: ReadMark,
    areas: Devices<SwapArea>,
}

impl Swap {
    fn read(&mut self, files: &mut Files) {
        if !self.read.is_due(files) {
            return;
        }
        let contents = files.read("proc/swaps");
        self.areas.begin(contents.is_some());
        // The first line names the columns.
        for line in text::lines(contents.unwrap_or_default()).skip(1) {
            let mut words = text::words(line);
            let Some(name) = words.next() else { continue };
            let mut columns = words.skip(1);
            let area = SwapArea {
                size: columns.next().and_then(text::number),
                used: columns.next().and_then(text::number),
                priority: columns.next().and_then(text::number),
            };
            self.areas.add(&text::text(name), area);
        }
        self.areas.end();
    }
}

impl Area for Swap {
    fn metrics(&self) -> Vec<Metric> {
        metrics(TABLE)
    }

    fn fetch(
        &mut self,
        row: usize,
        files: &mut Files,
        values: &mut Values<'_, '_>,
    ) -> Result<(), PmStatus> {
        self.read(files);
        for (number, area) in self.areas.rows() {
            match TABLE[row].value {
                Content::Size(of) => put_number(values, *number, of(area)),
                Content::Priority => {
                    if let Some(priority) = area.priority {
                        values.put(*number, AgentValue::I32(priority));
                    }
                }
            }
        }
        Ok(())
    }

    fn instance_domain(&mut self, serial: u32, files: &mut Files) -> Option<Arc<InstanceDomain>> {
        if serial != SWAP {
            return None;
        }
        self.read(files);
        Some(self.areas.domain())
    }
}
