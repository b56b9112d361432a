//! The cost of instances that come and go at each fetch, relative to fetches
//! without such changes. There is no network. Values come from memory, already
//! encoded except for those that change. The figures leave out the source's own
//! time.

use std::error::Error;
use std::time::{Duration, Instant};

use pmderive::engine::Backend;
use pmderive_runtime::eval::{Evaluator, Workspace};
use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, InstId, MetricDesc, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};

use super::Sizes;
use super::client::ClientDefinitions;
use super::oracle;
use super::rows::Row;

const DOMAIN: u32 = 250;

/// Counters of each instance domain.
const COUNTERS: u32 = 10;

/// The changes in the first domain at each fetch.
#[derive(Clone, Copy, PartialEq)]
enum Churn {
    /// No changes.
    None,
    /// The first instance leaves, and another one joins behind the last.
    Ends,
    /// An instance leaves from between the others, and the one that left before
    /// comes back.
    Within,
}

/// Counters over some instance domains.
struct Counters {
    instances: InstId,
    churn: Churn,
    fetch: u64,
    spent: Duration,
}

impl Feed for Counters {
    fn fetch(
        &mut self,
        list: &FetchList,
        _: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        let begin = Instant::now();
        self.fetch += 1;
        let time = Timestamp::new(self.fetch.cast_signed(), 0);
        let mut writer = ResultWriter::new(batch.add_part(), time);
        for pmid in list.pmids() {
            let is_first = pmid.cluster() == 0 && pmid.item() < COUNTERS;
            let fetch = self.fetch as InstId;
            let (first, gone) = match self.churn {
                Churn::Ends if is_first => (fetch, None),
                Churn::Within if is_first => (0, Some(fetch * 37 % self.instances)),
                _ => (0, None),
            };
            let end = first + self.instances + InstId::from(gone.is_some());
            writer.set(*pmid);
            for instance in (first..end).filter(|id| Some(*id) != gone) {
                let rate = 1_000 + u64::from(instance.cast_unsigned() % 97);
                writer.block(instance, BlockValue::U64(rate * self.fetch));
            }
        }
        self.spent += begin.elapsed();
        Ok(FetchEvents::default())
    }
}

struct Run {
    source: MemorySource<Counters>,
    evaluator: Evaluator,
    workspace: Workspace,
}

impl Run {
    /// `rate()` of each counter of so many domains.
    fn new(domains: u32, instances: InstId, churn: Churn) -> Result<Run, Box<dyn Error>> {
        let mut metadata = MemoryMetadata::default();
        let mut text = String::new();
        for number in 0..domains * COUNTERS {
            let (cluster, item) = (number / 1000, number % 1000);
            let indom = InDom::new(DOMAIN, number / COUNTERS);
            metadata.add_metric(
                format!("churn.m{number}"),
                MetricDesc {
                    pmid: Pmid::new(DOMAIN, cluster, item),
                    value_type: ValueType::U64,
                    indom: Some(indom),
                    semantics: Semantics::Counter,
                    units: Units::NONE,
                },
            );
            text += &format!("churn.rate{number} = rate(churn.m{number})\n");
        }
        let feed = Counters { instances, churn, fetch: 0, spent: Duration::ZERO };
        let mut source = MemorySource::new("memory", metadata, feed);
        let compiled = ClientDefinitions::new(&text, Backend::Jit).compile(&mut source)?;
        let evaluator = compiled.evaluator();
        Ok(Run { source, evaluator, workspace: Workspace::default() })
    }

    /// Fetches; returns the time without the source's, and a digest of the last
    /// values.
    fn fetch(&mut self, times: u32) -> Result<(Duration, u64), Box<dyn Error>> {
        let (spent, begin) = (self.source.feed().spent, Instant::now());
        let mut print = None;
        for time in 1..=times {
            let (values, _) = self.evaluator.fetch(&mut self.source, &mut self.workspace)?;
            print = (time == times).then(|| (begin.elapsed(), oracle::print(&values)));
        }
        let (time, print) = print.ok_or("no fetch")?;
        Ok((time.saturating_sub(self.source.feed().spent - spent), print))
    }
}

/// Microseconds of a steady fetch, and the time of one with churn as a multiple
/// of it: medians of runs that alternate.
fn compare(
    domains: u32,
    instances: InstId,
    churn: Churn,
    sizes: Sizes,
) -> Result<[f64; 2], Box<dyn Error>> {
    let mut steady = Run::new(domains, instances, Churn::None)?;
    let mut churning = Run::new(domains, instances, churn)?;
    let mut oracle = Run::new(domains, instances, churn)?;
    oracle.evaluator.use_general_path();
    let (mut steadies, mut proportions) = (Vec::new(), Vec::new());
    steady.fetch(3)?;
    churning.fetch(3)?;
    oracle.fetch(3)?;
    for _ in 0..sizes.turns {
        let (calm, _) = steady.fetch(sizes.rounds)?;
        let (changing, print) = churning.fetch(sizes.rounds)?;
        steadies.push(calm.as_secs_f64() * 1e6 / f64::from(sizes.rounds));
        proportions.push(changing.as_secs_f64() / calm.as_secs_f64());
        if oracle.fetch(sizes.rounds)?.1 != print {
            return Err("with churn the values are not those of the interpreter".into());
        }
    }
    Ok([steadies, proportions].map(|mut all| {
        all.sort_unstable_by(f64::total_cmp);
        all[all.len() / 2]
    }))
}

/// The figures of all.
pub fn all(sizes: Sizes) -> Result<Vec<Row>, Box<dyn Error>> {
    let many = sizes.domains.cast_signed() * 10;
    let rates = sizes.domains * COUNTERS;
    let one_domain = format!("{rates} rates over {} domains of 10 instances", sizes.domains);
    let one_instance = format!("{COUNTERS} rates of {many} instances");
    let ends = "one leaves, one joins at each fetch";
    let within = "one leaves from between the others, one comes back";
    let mut rows = Vec::new();
    for (key, domains, instances, what, churn, how) in [
        ("churn-one-domain", sizes.domains, 10, &one_domain, Churn::Ends, "churn in one domain"),
        ("churn-instances", 1, many, &one_instance, Churn::Ends, ends),
        ("churn-within", 1, many, &one_instance, Churn::Within, within),
    ] {
        let [steady, times] = compare(domains, instances, churn, sizes)?;
        rows.push(Row::new(&format!("{key}-steady"), &format!("{what}, steady"), steady, "us"));
        rows.push(Row::new(key, &format!("the same, {how}"), times, "x steady"));
    }
    Ok(rows)
}
