//! The samples of a case, as a source of metrics.
//!
//! One fetch is one step. After a fetch that fails or is left out there is a gap, as
//! after the absence of a host.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{InDom, InstId, PmStatus, Timestamp, ValueType};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};

use super::file::{Case, Samples, TestFile};
use super::timeline::{Item, Number};

/// Time of the first step, in seconds since the epoch.
const START: i64 = 1_700_000_000;

/// Name of the source in messages.
const NAME: &str = "the samples of the test";

/// The source of a case.
pub type SeriesSource<'c> = MemorySource<Series<'c>>;

/// Delivers the samples of a case, step by step.
#[derive(Clone, Debug)]
pub struct Series<'c> {
    file: &'c TestFile,
    case: &'c Case,
    samples: &'c Samples,
    step: usize,
    /// True if the previous fetch failed, or was left out.
    is_behind_gap: bool,
}

/// The samples of one host in a case as a source, before its first step.
pub fn source<'c>(file: &'c TestFile, case: &'c Case, samples: &'c Samples) -> SeriesSource<'c> {
    let feed = Series { file, case, samples, step: 0, is_behind_gap: false };
    let mut metadata = file.metadata.clone();
    for (name, desc) in &samples.metadata {
        metadata.add_metric(name.clone(), *desc);
    }
    MemorySource::new(NAME, metadata, feed)
}

/// The time of a step.
pub fn stamp_of(case: &Case, step: usize) -> Timestamp {
    let time = time_of(case, step);
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::new(START.saturating_add(seconds), i64::from(time.subsec_nanos()))
}

/// Time from the first step to another.
pub fn time_of(case: &Case, step: usize) -> Duration {
    u32::try_from(step).map_or(Duration::MAX, |step| case.interval.saturating_mul(step))
}

impl Series<'_> {
    /// Skips a step at which the host is not asked.
    #[cfg(feature = "fleet")]
    pub fn pass(&mut self) {
        self.step += 1;
        self.is_behind_gap = true;
    }

    /// Sets the instances of each domain: those with a value of some metric at this step. A
    /// metric that fails is ignored. If all metrics of a domain fail, the domain stays the
    /// same.
    fn instances(&self, step: usize, metadata: &mut MemoryMetadata) {
        let mut present: BTreeMap<InDom, Vec<(InstId, Box<str>)>> = BTreeMap::new();
        for (pmid, timelines) in &self.samples.of_metrics {
            let Some(indom) = metadata.desc(*pmid).and_then(|desc| desc.indom) else { continue };
            let names = self.file.instances.get(&indom).map_or(&[][..], |names| names);
            let items: Vec<Item> = timelines.iter().map(|(_, line)| line.at(step)).collect();
            if items.iter().any(|item| matches!(item, Item::Failed(_))) {
                continue;
            }
            let here = present.entry(indom).or_default();
            for ((id, _), item) in timelines.iter().zip(items) {
                let name = usize::try_from(*id).ok().and_then(|id| names.get(id));
                if let (Some(name), Item::Number { .. } | Item::Text(_)) = (name, item) {
                    here.push((*id, name.clone()));
                }
            }
        }
        for (indom, mut instances) in present {
            instances.sort_unstable();
            instances.dedup();
            metadata.set_instances(indom, instances);
        }
    }
}

impl Feed for Series<'_> {
    fn fetch(
        &mut self,
        list: &FetchList,
        metadata: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        let step = self.step;
        self.step += 1;
        let fail = |status| SourceError::Status { target: NAME.to_owned(), status };
        if step >= self.case.steps {
            return Err(fail(PmStatus::EOL));
        }
        if let Some(status) = self.samples.failures.get(&step) {
            self.is_behind_gap = true;
            return Err(fail(*status));
        }
        self.instances(step, metadata);
        let mut writer = ResultWriter::new(batch.add_part(), stamp_of(self.case, step));
        for pmid in list.pmids() {
            writer.set(*pmid);
            let Some(desc) = metadata.desc(*pmid) else {
                writer.fail(PmStatus::PMID);
                continue;
            };
            for (id, timeline) in self.samples.of_metrics.get(pmid).into_iter().flatten() {
                match timeline.at(step) {
                    Item::Failed(status) => {
                        writer.fail(status);
                        break;
                    }
                    Item::Number { start, .. } => write(&mut writer, *id, desc.value_type, start),
                    Item::Text(text) => writer.block(*id, BlockValue::Text(&text)),
                    Item::Absent | Item::NoValues(_) | Item::Any => {}
                }
            }
        }
        let gap = self.samples.gaps.contains(&step) || self.is_behind_gap;
        self.is_behind_gap = false;
        Ok(FetchEvents { gap, ..FetchEvents::default() })
    }
}

/// Writes a number that is valid for the type.
fn write(writer: &mut ResultWriter<'_>, id: InstId, value_type: ValueType, number: Number) {
    let integer = match number {
        Number::Integer(integer) => integer,
        Number::Real(_) => 0,
    };
    let fallback = |_| 0;
    match value_type {
        ValueType::I32 => {
            let value: i32 = i32::try_from(integer).unwrap_or_else(fallback);
            writer.in_place(id, value.cast_unsigned());
        }
        ValueType::U32 => writer.in_place(id, u32::try_from(integer).unwrap_or(0)),
        ValueType::I64 => {
            writer.block(id, BlockValue::I64(i64::try_from(integer).unwrap_or(0)));
        }
        ValueType::U64 => {
            writer.block(id, BlockValue::U64(u64::try_from(integer).unwrap_or(0)));
        }
        ValueType::F32 => writer.block(id, BlockValue::F32(number.as_f64() as f32)),
        _ => writer.block(id, BlockValue::F64(number.as_f64())),
    }
}

/// Name of an instance; `None` for a metric with a single value.
pub(super) fn name_of(names: &[Box<str>], id: InstId) -> Option<Cow<'_, str>> {
    if id == -1 {
        return None;
    }
    let known = usize::try_from(id).ok().and_then(|id| names.get(id));
    Some(known.map_or_else(|| id.to_string().into(), |name| Cow::from(&**name)))
}
