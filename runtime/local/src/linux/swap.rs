//! Swap areas, from /proc/swaps.
//!
//! The name of an area is the kernel's, escapes included, as in pmdalinux.

use std::sync::Arc;

use pmderive_core::model::{InstanceDomain, Semantics::*, ValueType::*, text_of_bytes};

use super::area::Area;
use super::table::{Devices, Row, indom::SWAP, put_number, row, units::*};
use crate::agent::{AgentValue, Values};
use crate::files::Files;
use crate::text;

/// The value that a table row selects for each area.
#[derive(Clone, Copy)]
pub(super) enum Content {
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
pub(super) struct SwapArea {
    size: Option<u64>,
    used: Option<u64>,
    priority: Option<i32>,
}

/// Reader of /proc/swaps.
#[derive(Default)]
pub(super) struct Swap {
    areas: Devices<SwapArea>,
}

impl Area for Swap {
    type Content = Content;
    const TABLES: &'static [&'static [Row<Content>]] = &[TABLE];
    const DOMAINS: &'static [u32] = &[SWAP];

    fn read(&mut self, files: &mut Files) {
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
            self.areas.add(&text_of_bytes(name), area);
        }
        self.areas.end();
    }

    fn put(&mut self, content: Content, _: &mut Files, values: &mut Values<'_, '_>) {
        for (number, area) in self.areas.rows() {
            match content {
                Content::Size(of) => put_number(values, *number, of(area)),
                Content::Priority => {
                    if let Some(priority) = area.priority {
                        values.put(*number, AgentValue::I32(priority));
                    }
                }
            }
        }
    }

    fn domain(&self, _: u32) -> Arc<InstanceDomain> {
        self.areas.domain()
    }
}
