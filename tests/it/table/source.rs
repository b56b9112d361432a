//! A source in memory: a table of metrics that a test may change.

use std::collections::HashMap;

use pmderive_runtime::memory::{Feed, MemoryMetadata, MemorySource};
use pmderive_runtime::model::{
    InDom, InstId, MetricDesc, PmStatus, Pmid, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{FetchEvents, FetchList, SourceError};

/// The one instance domain: `a` and `b`.
pub const DOMAIN: InDom = InDom::new(7, 1);

/// What a metric has at present.
#[derive(Clone, Debug)]
pub enum Values {
    Failed(PmStatus),
    U32(Vec<(InstId, u32)>),
    U64(Vec<(InstId, u64)>),
    F64(Vec<(InstId, f64)>),
    Text(&'static str),
}

pub type TableSource = MemorySource<Table>;

/// What all metrics have at present.
#[derive(Default)]
pub struct Table {
    values: HashMap<Pmid, Values>,
    fetches: i64,
    fails_next: bool,
    fetched: Vec<Vec<Pmid>>,
}

/// `t.one`, `t.set`, `t.counter`, `t.text` and `t.other`, whose items count
/// from `first` on.
pub fn table_from(first: u32) -> TableSource {
    let mut metadata = MemoryMetadata::default();
    metadata.set_instances(DOMAIN, vec![(0, "a".into()), (1, "b".into())]);
    let mut source = MemorySource::new("a table", metadata, Table::default());
    let set = Some(DOMAIN);
    for (item, (name, value_type, indom, values)) in (first..).zip([
        ("t.one", ValueType::U32, None, Values::U32(vec![(-1, 1)])),
        ("t.set", ValueType::U32, set, Values::U32(vec![(0, 10), (1, 20)])),
        ("t.counter", ValueType::U64, set, Values::U64(vec![(0, 100), (1, 200)])),
        ("t.text", ValueType::String, None, Values::Text("hello")),
        ("t.other", ValueType::F64, set, Values::F64(vec![(0, 1.5), (1, 2.5)])),
    ]) {
        add(&mut source, name, item, value_type, indom, values);
    }
    source
}

/// Adds a metric.
pub fn add(
    source: &mut TableSource,
    name: &str,
    item: u32,
    value_type: ValueType,
    indom: Option<InDom>,
    values: Values,
) {
    let semantics = match value_type {
        ValueType::U64 => Semantics::Counter,
        ValueType::String => Semantics::Discrete,
        _ => Semantics::Instant,
    };
    let pmid = Pmid::new(7, 0, item);
    let desc = MetricDesc { pmid, value_type, indom, semantics, units: Units::NONE };
    source.metadata().add_metric(name, desc);
    source.feed().values.insert(pmid, values);
}

/// Gives a metric other values.
pub fn set(source: &mut TableSource, name: &str, values: Values) {
    let pmid = source.metadata().lookup(name).expect("a metric of the table").pmid;
    source.feed().values.insert(pmid, values);
}

impl Table {
    /// Lets the next fetch time out.
    pub fn fail_next(&mut self) {
        self.fails_next = true;
    }

    /// The lists that were fetched since.
    pub fn take_fetched(&mut self) -> Vec<Vec<Pmid>> {
        std::mem::take(&mut self.fetched)
    }
}

impl Feed for Table {
    fn fetch(
        &mut self,
        list: &FetchList,
        _: &mut MemoryMetadata,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        if std::mem::take(&mut self.fails_next) {
            return Err(SourceError::Timeout { target: "a table".to_owned(), seconds: 1.0 });
        }
        self.fetches += 1;
        self.fetched.push(list.pmids().to_vec());
        // In two parts, as fetches that are too long for one request.
        let (first, second) = list.pmids().split_at(list.pmids().len() / 2);
        for (delay, pmids) in [(0, first), (1, second)] {
            let stamp = Timestamp::new(1000 + self.fetches, delay);
            let mut writer = ResultWriter::new(batch.add_part(), stamp);
            for pmid in pmids {
                writer.set(*pmid);
                match self.values.get(pmid) {
                    None => writer.fail(PmStatus::PMID),
                    Some(Values::Failed(status)) => writer.fail(*status),
                    Some(Values::U32(values)) => {
                        values.iter().for_each(|(id, value)| writer.in_place(*id, *value));
                    }
                    Some(Values::U64(values)) => {
                        for (id, value) in values {
                            writer.block(*id, BlockValue::U64(*value));
                        }
                    }
                    Some(Values::F64(values)) => {
                        for (id, value) in values {
                            writer.block(*id, BlockValue::F64(*value));
                        }
                    }
                    Some(Values::Text(text)) => writer.block(-1, BlockValue::Text(text)),
                }
            }
        }
        Ok(FetchEvents::default())
    }
}

/// The value sets of a result in words: `instance=value`, a status, or `none`.
pub fn decode(batch: &ResultBatch, descs: &[Result<MetricDesc, PmStatus>]) -> Vec<(Pmid, String)> {
    batch
        .sets()
        .zip(descs)
        .map(|(set, desc)| {
            let words = match set.count {
                Err(status) => status.0.to_string(),
                Ok(0) => "none".to_owned(),
                Ok(_) => {
                    // The definition may have gone since.
                    let declared = desc.ok().map(|desc| desc.value_type);
                    let values = set.values().map(|(instance, value)| {
                        let value = match value.expect("a value").encoded(&mut [0; 8]) {
                            Err(word) => word.to_string(),
                            Ok((code, data)) => {
                                let value_type = ValueType::from_code(code.into());
                                assert_eq!(declared.unwrap_or(value_type), value_type);
                                of_block(value_type, data)
                            }
                        };
                        format!("{instance}={value}")
                    });
                    values.collect::<Vec<_>>().join(" ")
                }
            };
            (set.pmid, words)
        })
        .collect()
}

fn of_block(value_type: ValueType, data: &[u8]) -> String {
    let bits = |data: &[u8]| u64::from_be_bytes(data.try_into().expect("8 bytes"));
    match value_type {
        ValueType::I64 => bits(data).cast_signed().to_string(),
        ValueType::U64 => bits(data).to_string(),
        ValueType::F32 => f32::from_be_bytes(data.try_into().expect("4 bytes")).to_string(),
        ValueType::F64 => f64::from_bits(bits(data)).to_string(),
        ValueType::String => {
            let text = data.strip_suffix(&[0]).expect("a text ends with NUL");
            String::from_utf8(text.to_vec()).expect("UTF-8")
        }
        other => panic!("no value of type {other} here"),
    }
}
