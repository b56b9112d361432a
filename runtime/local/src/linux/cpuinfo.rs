//! Descriptions of the processors, from /proc/cpuinfo.
//!
//! The file has a block of `key : value` lines for each processor that is
//! online. Each metric searches the whole file: these metrics are rarely fetched, and keeping all
//! values as text would cost more.

use std::collections::HashSet;

use pmderive_core::model::{InstId, Semantics::*, ValueType::*, text_of_bytes};

use super::area::Area;
use super::table::{Row, indom::CPU, put_number, row, units::*};
use crate::agent::{AgentValue, Values};
use crate::files::Files;
use crate::text;

/// The key in a block, and the form of its value.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// The text of the value, unchanged.
    Text(&'static str),
    /// A whole number, perhaps followed by its unit.
    Number(&'static str),
    /// A decimal fraction.
    Fraction(&'static str),
}

/// The metrics.
#[rustfmt::skip]
static TABLE: &[Row<Content>] = &[
    row("hinv.cpu.clock", (18, 0), F32, Discrete, PER_MICROSEC, Content::Fraction("cpu MHz"), "Clock rate of each processor at present.").over(CPU),
    row("hinv.cpu.vendor", (18, 1), String, Discrete, NONE, Content::Text("vendor_id"), "Who made each processor.").over(CPU),
    row("hinv.cpu.model", (18, 2), String, Discrete, NONE, Content::Text("model"), "Number of the model of each processor.").over(CPU),
    row("hinv.cpu.model_name", (18, 9), String, Discrete, NONE, Content::Text("model name"), "Name of the model of each processor.").over(CPU),
    row("hinv.cpu.stepping", (18, 3), String, Discrete, NONE, Content::Text("stepping"), "Revision of each processor's model.").over(CPU),
    row("hinv.cpu.cache", (18, 4), U32, Discrete, KBYTE, Content::Number("cache size"), "Size of each processor's cache.").over(CPU),
    row("hinv.cpu.cache_alignment", (18, 11), U32, Discrete, NONE, Content::Number("cache_alignment"), "Alignment that suits each processor's cache, in bytes.").over(CPU),
    row("hinv.cpu.bogomips", (18, 5), F32, Discrete, NONE, Content::Fraction("bogomips"), "Speed of each processor in the kernel's delay loop.").over(CPU),
    row("hinv.cpu.flags", (18, 10), String, Discrete, NONE, Content::Text("flags"), "Names of each processor's features.").over(CPU),
];

/// Reader of /proc/cpuinfo.
#[derive(Default)]
pub(super) struct CpuInfo {
    contents: Vec<u8>,
}

/// Key and value of a line.
fn entry(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (key, value) = text::split_once(line, b':')?;
    Some((key.trim_ascii_end(), value.strip_prefix(b" ").unwrap_or(value)))
}

/// The value of `key` for each processor. The first value counts if a block has
/// the key twice or a processor has two blocks.
fn each_processor<'a>(
    contents: &'a [u8],
    key: &'a str,
) -> impl Iterator<Item = (InstId, &'a [u8])> {
    let mut processor = None;
    let mut seen = HashSet::new();
    text::lines(contents).filter_map(entry).filter_map(move |(found, value)| {
        if found == b"processor" {
            let number = text::number::<InstId>(value).filter(|number| *number >= 0);
            processor = number.filter(|number| seen.insert(*number));
            return None;
        }
        if found != key.as_bytes() {
            return None;
        }
        Some((processor.take()?, value))
    })
}

impl Area for CpuInfo {
    type Content = Content;
    const TABLES: &'static [&'static [Row<Content>]] = &[TABLE];

    fn read(&mut self, files: &mut Files) {
        self.contents.clear();
        self.contents.extend_from_slice(files.read("proc/cpuinfo").unwrap_or_default());
    }

    fn put(&mut self, content: Content, _: &mut Files, values: &mut Values<'_, '_>) {
        let contents = &self.contents;
        match content {
            Content::Text(key) => {
                for (processor, value) in each_processor(contents, key) {
                    values.put(processor, AgentValue::Text(&text_of_bytes(value)));
                }
            }
            Content::Number(key) => {
                for (processor, value) in each_processor(contents, key) {
                    let number = text::words(value).next().and_then(text::number);
                    put_number(values, processor, number);
                }
            }
            Content::Fraction(key) => {
                for (processor, value) in each_processor(contents, key) {
                    let number = text::words(value).next().and_then(text::number::<f32>);
                    if let Some(number) = number.filter(|number| number.is_finite()) {
                        values.put(processor, AgentValue::F32(number));
                    }
                }
            }
        }
    }
}
