//! A source in memory: a table of metrics that a test may change.

use std::sync::Arc;

use pmderive_runtime::model::{
    InDom, InstId, InstanceDomain, LabelLevel, LabelSet, MetricDesc, PmStatus, Pmid, Semantics,
    TextKind, TextSubject, Timestamp, Units, ValueType,
};
use pmderive_runtime::result::{BlockValue, ResultBatch, ResultWriter};
use pmderive_runtime::source::{
    FetchEvents, FetchList, FetchSource, Freshness, MetadataSource, SourceError,
};

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

pub struct TableSource {
    metrics: Vec<(&'static str, MetricDesc, Values)>,
    domain: Arc<InstanceDomain>,
    epoch: u64,
    fetches: i64,
    fails_next: bool,
    fetched: Vec<Vec<Pmid>>,
}

impl Default for TableSource {
    /// `t.one`, `t.set`, `t.counter`, `t.text` and `t.other`.
    fn default() -> TableSource {
        let domain = InstanceDomain::new(vec![(0, "a".into()), (1, "b".into())]);
        let mut source = TableSource {
            metrics: Vec::new(),
            domain: Arc::new(domain),
            epoch: 0,
            fetches: 0,
            fails_next: false,
            fetched: Vec::new(),
        };
        let set = Some(DOMAIN);
        source.add("t.one", 0, ValueType::U32, None, Values::U32(vec![(-1, 1)]));
        source.add("t.set", 1, ValueType::U32, set, Values::U32(vec![(0, 10), (1, 20)]));
        source.add("t.counter", 2, ValueType::U64, set, Values::U64(vec![(0, 100), (1, 200)]));
        source.add("t.text", 3, ValueType::String, None, Values::Text("hello"));
        source.add("t.other", 4, ValueType::F64, set, Values::F64(vec![(0, 1.5), (1, 2.5)]));
        source
    }
}

impl TableSource {
    pub fn add(
        &mut self,
        name: &'static str,
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
        self.metrics.push((name, desc, values));
        self.epoch += 1;
    }

    pub fn set(&mut self, name: &str, values: Values) {
        let metric = self.metrics.iter_mut().find(|(known, ..)| *known == name);
        metric.expect("a metric of the table").2 = values;
    }

    pub fn renumber(&mut self, name: &str, item: u32) {
        let metric = self.metrics.iter_mut().find(|(known, ..)| *known == name);
        metric.expect("a metric of the table").1.pmid = Pmid::new(7, 0, item);
    }

    /// Lets the next fetch time out.
    pub fn fail_next(&mut self) {
        self.fails_next = true;
    }

    /// The lists that were fetched since.
    pub fn take_fetched(&mut self) -> Vec<Vec<Pmid>> {
        std::mem::take(&mut self.fetched)
    }
}

impl MetadataSource for TableSource {
    fn lookup_names(&mut self, names: &[&str]) -> Result<Vec<Result<Pmid, PmStatus>>, SourceError> {
        let find = |name: &&str| {
            let found = self.metrics.iter().find(|(known, ..)| known == name);
            found.map(|(_, desc, _)| desc.pmid).ok_or(PmStatus::NAME)
        };
        Ok(names.iter().map(find).collect())
    }

    fn lookup_descs(
        &mut self,
        pmids: &[Pmid],
    ) -> Result<Vec<Result<MetricDesc, PmStatus>>, SourceError> {
        let find = |pmid: &Pmid| {
            let found = self.metrics.iter().find(|(_, desc, _)| desc.pmid == *pmid);
            found.map(|(_, desc, _)| *desc).ok_or(PmStatus::PMID)
        };
        Ok(pmids.iter().map(find).collect())
    }

    fn instance_domain(
        &mut self,
        indom: InDom,
        _: Freshness,
    ) -> Result<Result<Arc<InstanceDomain>, PmStatus>, SourceError> {
        Ok(if indom == DOMAIN { Ok(Arc::clone(&self.domain)) } else { Err(PmStatus::INDOM) })
    }

    fn traverse(&mut self, prefix: &str) -> Result<Vec<String>, SourceError> {
        let is_below = |name: &str| match name.strip_prefix(prefix) {
            Some(rest) => prefix.is_empty() || rest.is_empty() || rest.starts_with('.'),
            None => false,
        };
        let names = self.metrics.iter().map(|(name, ..)| *name).filter(|name| is_below(name));
        let names: Vec<String> = names.map(str::to_owned).collect();
        match names.is_empty() {
            true => Err(SourceError::Status { target: self.name(), status: PmStatus::NAME }),
            false => Ok(names),
        }
    }

    fn text(
        &mut self,
        of: TextSubject,
        kind: TextKind,
    ) -> Result<Result<Box<str>, PmStatus>, SourceError> {
        Ok(Ok(match of {
            TextSubject::Metric(pmid) => format!("{kind:?} of {pmid}").into(),
            TextSubject::Domain(indom) => format!("{kind:?} of domain {indom}").into(),
        }))
    }

    fn labels(
        &mut self,
        level: LabelLevel,
    ) -> Result<Result<Vec<LabelSet>, PmStatus>, SourceError> {
        Ok(match level {
            LabelLevel::Domain(511) => Err(PmStatus::NOAGENT),
            _ => Ok(vec![LabelSet::empty(-1)]),
        })
    }

    fn name(&self) -> String {
        "a table".to_owned()
    }

    fn metadata_epoch(&self) -> u64 {
        self.epoch
    }
}

impl FetchSource for TableSource {
    fn fetch(
        &mut self,
        list: &FetchList,
        batch: &mut ResultBatch,
    ) -> Result<FetchEvents, SourceError> {
        batch.clear();
        if std::mem::take(&mut self.fails_next) {
            return Err(SourceError::Timeout { target: self.name(), seconds: 1.0 });
        }
        self.fetches += 1;
        self.fetched.push(list.pmids().to_vec());
        // In two parts, as fetches that are too long for one request.
        let (first, second) = list.pmids().split_at(list.pmids().len() / 2);
        for (delay, pmids) in [(0, first), (1, second)] {
            let stamp = Timestamp::new(1000 + self.fetches, delay);
            let mut writer = ResultWriter::new(batch.add_part(), stamp);
            for pmid in pmids {
                let metric = self.metrics.iter().find(|(_, desc, _)| desc.pmid == *pmid);
                writer.set(*pmid);
                match metric.map(|(.., values)| values) {
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
            writer.finish();
        }
        for indom in list.domains() {
            let domain = self.instance_domain(*indom, Freshness::Current)?;
            batch.domains.push(domain);
        }
        Ok(FetchEvents::default())
    }
}

/// The value sets of a result in words: `instance=value`, a status, or `none`.
pub fn decode(batch: &ResultBatch, descs: &[Result<MetricDesc, PmStatus>]) -> Vec<(Pmid, String)> {
    let sets = batch.parts().iter().flat_map(|part| part.sets().map(move |set| (part, set)));
    sets.zip(descs)
        .map(|((part, set), desc)| {
            let words = match set.count {
                Err(status) => status.0.to_string(),
                Ok(0) => "none".to_owned(),
                Ok(_) => {
                    // The definition may have gone since.
                    let declared = desc.ok().map(|desc| desc.value_type);
                    let lanes = set.lanes().map(|lane| {
                        let value = match set.in_blocks {
                            false => lane.word.to_string(),
                            true => {
                                let (code, data) = part.block(lane.word).expect("a block");
                                let value_type = ValueType::from_code(code.into());
                                assert_eq!(declared.unwrap_or(value_type), value_type);
                                of_block(value_type, data)
                            }
                        };
                        format!("{}={value}", lane.instance)
                    });
                    lanes.collect::<Vec<_>>().join(" ")
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
