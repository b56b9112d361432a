//! An agent for tests, which no product has: a part of pmdasample(1)'s metrics,
//! with every type. All values are known in advance.
//!
//! Values change with each fetch, not with the clock: each fetch counts as one
//! second later than the fetch before.

use std::collections::HashMap;
use std::sync::Arc;

use pmderive_core::model::{self, InDom, InstId, InstanceDomain, PmStatus, Pmid};
use pmderive_core::model::{Semantics, Semantics::*, Units, ValueType, ValueType::*};

use super::agent::{Agent, AgentValue, Metric, Values};
use super::table::{Row, SINGLE, metrics, units::*};

/// Number of pmdasample's domain.
const DOMAIN: u32 = 29;

/// Serial number of the instance domain of the three colours.
const COLOURS: u32 = 1;

/// Serial number of the instance domain of the nine bins.
const BINS: u32 = 2;

/// The values of a metric.
#[derive(Clone, Copy)]
enum Content {
    /// Always this number.
    Always(i64),
    /// A number that starts at 0 and grows by this much with each fetch.
    Grows(i64),
    /// The number that was stored last; 13 at first.
    Stored,
    /// The number of each bin.
    Bins,
    /// The number of every other bin.
    OddBins,
    /// The number of each bin, times the number of fetches.
    GrowingBins,
    /// 100, 200 and 300 for the colours, plus the number of fetches modulo 100.
    Colours,
    /// The names of three colours in turn.
    Lights,
    /// Always this text.
    Text(&'static str),
    /// No value.
    Nothing,
}

use Content::*;

const fn row(
    name: &'static str,
    item: u32,
    value_type: ValueType,
    semantics: Semantics,
    units: Units,
    source: Content,
    help: &'static str,
) -> Row<Content> {
    Row::new(name, Pmid::new(DOMAIN, 0, item), (value_type, semantics, units), source, help)
}

/// The table of metrics. Each numeric type has the same seven metrics: five
/// with consecutive item numbers from `$first` on, and two over the bins.
#[rustfmt::skip]
macro_rules! table {
    (
        [$($before:expr,)*]
        $(numbers $group:literal $type:ident $first:literal $bin:literal;)*
        [$($after:expr,)*]
    ) => {
        &[
            $($before,)*
            $(
                row(concat!("sample.", $group, ".one"), $first, $type, Instant, NONE, Always(1), "Always 1."),
                row(concat!("sample.", $group, ".ten"), $first + 1, $type, Instant, NONE, Always(10), "Always 10."),
                row(concat!("sample.", $group, ".hundred"), $first + 2, $type, Instant, NONE, Always(100), "Always 100."),
                row(concat!("sample.", $group, ".million"), $first + 3, $type, Instant, NONE, Always(1_000_000), "Always 1000000."),
                row(concat!("sample.", $group, ".write_me"), $first + 4, $type, Instant, NONE, Stored, "The value that was stored last; 13 at first."),
                row(concat!("sample.", $group, ".bin"), $bin, $type, Instant, NONE, Bins, "The number of each bin.").over(BINS),
                row(concat!("sample.", $group, ".bin_ctr"), $bin + 1, $type, Counter, KBYTE, GrowingBins, "The number of each bin, added once with every fetch.").over(BINS),
            )*
            $($after,)*
        ]
    };
}

/// The metrics. Names, numbers, types, semantics and units are those of
/// pmdasample(1).
#[rustfmt::skip]
static TABLE: &[Row<Content>] = table! {
    [
        row("sample.seconds", 2, U32, Counter, SEC, Grows(1), "Seconds since the first fetch."),
        row("sample.milliseconds", 3, F64, Counter, MILLISEC, Grows(1000), "Milliseconds since the first fetch."),
        row("sample.load", 4, I32, Instant, NONE, Always(42), "Always 42."),
        row("sample.colour", 5, I32, Instant, NONE, Colours, "Numbers that grow by 1 with each fetch and begin anew after 100.").over(COLOURS),
        row("sample.bin", 6, I32, Instant, NONE, Bins, "The number of each bin.").over(BINS),
        row("sample.noinst", 9, I32, Instant, NONE, Nothing, "Never has a value."),
    ]
    numbers "long" I32 10 103;
    numbers "float" F32 15 107;
    numbers "longlong" I64 20 109;
    numbers "double" F64 25 113;
    numbers "ulong" U32 93 105;
    numbers "ulonglong" U64 98 111;
    [
        row("sample.string.null", 30, String, Instant, NONE, Text(""), "Always the empty text."),
        row("sample.string.hullo", 31, String, Instant, NONE, Text("hullo world!"), "Always the same text."),
        row("sample.string.write_me", 32, String, Instant, NONE, Stored, "The value that was stored last; 13 at first."),
        row("sample.string.bin", 153, String, Instant, NONE, Bins, "The number of each bin, as text.").over(BINS),
        row("sample.aggregate.null", 33, Aggregate, Instant, NONE, Text(""), "Always no bytes."),
        row("sample.aggregate.hullo", 34, Aggregate, Instant, NONE, Text("hullo world!"), "Always the same bytes."),
        row("sample.lights", 46, String, Discrete, NONE, Lights, "Red, yellow and green, another with each fetch."),
        row("sample.part_bin", 50, I32, Instant, NONE, OddBins, "The number of every other bin.").over(BINS),
        row("sample.rapid", 64, U32, Counter, COUNT, Grows(80_000_000), "A counter that begins anew at 2^32 after 53 fetches."),
        row("sample.byte_ctr", 81, I32, Counter, BYTE, Grows(512), "Grows by 512 bytes with each fetch."),
        row("sample.kbyte_ctr", 83, I32, Counter, KBYTE, Grows(64), "Grows by 64 kilobytes with each fetch."),
    ]
};

/// Metrics below `sample` whose values are known beforehand. Metrics whose
/// names end in `write_me` accept new values (`pmStore(3)`).
///
/// ```
/// use pmderive_local::{LocalContext, SampleAgent};
/// use pmderive_core::model::{Value, ValueType};
/// use pmderive_core::source::{FetchSource, MetadataSource};
///
/// let mut context = LocalContext::with_agents(vec![Box::new(SampleAgent::new())])?;
/// let pmid = context.lookup_names(&["sample.double.million"])?[0]?;
/// let result = context.fetch_values(&[pmid])?;
/// assert_eq!(result.sets[0].decode(ValueType::F64)?, [(-1, Value::F64(1e6))]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SampleAgent {
    fetches: i64,
    rows: HashMap<Pmid, usize>,
    stored: HashMap<Pmid, model::Value>,
    colours: Arc<InstanceDomain>,
    bins: Arc<InstanceDomain>,
}

impl SampleAgent {
    /// An agent before its first fetch.
    pub fn new() -> SampleAgent {
        let colours = [(0, "red".into()), (1, "green".into()), (2, "blue".into())];
        let bins = bins().map(|bin| (bin, format!("bin-{bin}").into()));
        SampleAgent {
            fetches: -1,
            rows: TABLE.iter().zip(0..).map(|(row, position)| (row.pmid(), position)).collect(),
            stored: HashMap::new(),
            colours: Arc::new(InstanceDomain::new(colours.into())),
            bins: Arc::new(InstanceDomain::new(bins.collect())),
        }
    }
}

/// Numbers of the bins. A bin's number is also its value.
fn bins() -> impl Iterator<Item = InstId> {
    (1..10).map(|bin| 100 * bin)
}

impl Default for SampleAgent {
    fn default() -> SampleAgent {
        SampleAgent::new()
    }
}

/// Adds a number in the form of the metric's type. The number wraps as a
/// counter would.
fn put(out: &mut Values<'_, '_>, instance: InstId, number: i64) {
    let text;
    let value = match out.desc().value_type {
        I32 => AgentValue::I32(number as i32),
        U32 => AgentValue::U32(number as u32),
        I64 => AgentValue::I64(number),
        U64 => AgentValue::U64(number.cast_unsigned()),
        F32 => AgentValue::F32(number as f32),
        F64 => AgentValue::F64(number as f64),
        _ => {
            text = number.to_string();
            AgentValue::Text(&text)
        }
    };
    out.put(instance, value);
}

impl Agent for SampleAgent {
    fn name(&self) -> &str {
        "sample"
    }

    fn duplicate(&self) -> Option<Box<dyn Agent>> {
        Some(Box::new(self.clone()))
    }

    fn metrics(&self) -> Vec<Metric> {
        metrics(TABLE)
    }

    fn begin_fetch(&mut self) {
        self.fetches = self.fetches.saturating_add(1);
    }

    fn fetch(&mut self, pmid: Pmid, out: &mut Values<'_, '_>) -> Result<(), PmStatus> {
        let row = *self.rows.get(&pmid).ok_or(PmStatus::PMID)?;
        let fetches = self.fetches.max(0);
        match TABLE[row].value {
            Always(number) => put(out, SINGLE, number),
            Grows(step) => put(out, SINGLE, fetches.wrapping_mul(step)),
            Stored => match self.stored.get(&pmid) {
                None => put(out, SINGLE, 13),
                Some(model::Value::I32(number)) => out.put(SINGLE, AgentValue::I32(*number)),
                Some(model::Value::U32(number)) => out.put(SINGLE, AgentValue::U32(*number)),
                Some(model::Value::I64(number)) => out.put(SINGLE, AgentValue::I64(*number)),
                Some(model::Value::U64(number)) => out.put(SINGLE, AgentValue::U64(*number)),
                Some(model::Value::F32(number)) => out.put(SINGLE, AgentValue::F32(*number)),
                Some(model::Value::F64(number)) => out.put(SINGLE, AgentValue::F64(*number)),
                Some(model::Value::Text(text)) => out.put(SINGLE, AgentValue::Text(text)),
                Some(_) => return Err(PmStatus::TYPE),
            },
            Bins => bins().for_each(|bin| put(out, bin, bin.into())),
            OddBins => bins().step_by(2).for_each(|bin| put(out, bin, bin.into())),
            GrowingBins => {
                bins().for_each(|bin| put(out, bin, fetches.wrapping_mul(bin.into())));
            }
            Colours => (0..3)
                .for_each(|colour| put(out, colour, 100 * i64::from(colour + 1) + fetches % 100)),
            Lights => {
                let light = ["red", "yellow", "green"][(fetches % 3) as usize];
                out.put(SINGLE, AgentValue::Text(light));
            }
            Text(text) if out.desc().value_type == String => {
                out.put(SINGLE, AgentValue::Text(text))
            }
            Text(text) => out.put(SINGLE, AgentValue::Aggregate(text.as_bytes())),
            Nothing => {}
        }
        Ok(())
    }

    fn store(
        &mut self,
        pmid: Pmid,
        instance: InstId,
        value: &model::Value,
    ) -> Result<(), PmStatus> {
        let row = *self.rows.get(&pmid).ok_or(PmStatus::PMID)?;
        if !matches!(TABLE[row].value, Stored) {
            return Err(PmStatus::PERMISSION);
        }
        if instance != SINGLE {
            return Err(PmStatus::INST);
        }
        self.stored.insert(pmid, value.clone());
        Ok(())
    }

    fn instance_domain(&mut self, indom: InDom) -> Result<Arc<InstanceDomain>, PmStatus> {
        match (indom.domain(), indom.serial()) {
            (DOMAIN, COLOURS) => Ok(Arc::clone(&self.colours)),
            (DOMAIN, BINS) => Ok(Arc::clone(&self.bins)),
            _ => Err(PmStatus::INDOM),
        }
    }
}
