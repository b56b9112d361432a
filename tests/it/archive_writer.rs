//! Writes small archives with whatever a test needs in them, see LOGARCHIVE(5):
//! version 2, one volume.

use std::collections::HashMap;
use std::path::Path;

use pmderive_runtime::model::{InDom, MetricDesc, Pmid, RawValue, Value};

/// Seconds and microseconds.
pub type Stamp = (u32, u32);

/// Values of a metric in a record, by instance; or a status instead.
pub type Values = Result<Vec<(i32, Value)>, i32>;

/// An archive in the making.
pub struct ArchiveWriter {
    index: Vec<u8>,
    meta: Vec<u8>,
    volume: Vec<u8>,
    last: Stamp,
    metrics: HashMap<&'static str, Pmid>,
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A record between its two lengths.
fn framed(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 8).expect("a short record").to_be_bytes();
    [&length[..], body, &length].concat()
}

fn position(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a short file")
}

impl ArchiveWriter {
    /// An archive of the host `odd-host` in UTC.
    pub fn new(start: Stamp) -> ArchiveWriter {
        let label = |volume: i32| {
            let mut body = words(&[0x5005_2602, 4242, start.0, start.1, volume.cast_unsigned()]);
            for (text, room) in [("odd-host", 64), ("UTC", 40)] {
                body.extend(text.bytes().chain(std::iter::repeat(0)).take(room));
            }
            framed(&body)
        };
        let (index, meta, volume) = (label(-2), label(-1), label(0));
        let metrics = HashMap::new();
        let mut writer = ArchiveWriter { index, meta, volume, last: start, metrics };
        writer.index_entry(start);
        writer
    }

    fn index_entry(&mut self, at: Stamp) {
        let entry = [at.0, at.1, 0, position(&self.meta), position(&self.volume)];
        self.index.extend(words(&entry));
    }

    /// Adds a metric.
    pub fn metric(&mut self, name: &'static str, desc: MetricDesc) {
        let mut body = words(&[
            1,
            desc.pmid.0,
            desc.value_type.code().cast_unsigned(),
            InDom::to_wire(desc.indom),
            desc.semantics.code().cast_unsigned(),
            desc.units.to_wire(),
            1,
            position(name.as_bytes()),
        ]);
        body.extend(name.bytes());
        self.meta.extend(framed(&body));
        self.metrics.insert(name, desc.pmid);
    }

    /// The instances of a domain from now on, in ascending order.
    pub fn instances(&mut self, at: Stamp, indom: InDom, instances: &[(i32, &str)]) {
        let mut body = words(&[2, at.0, at.1, indom.0, instances.len() as u32]);
        let mut names = Vec::new();
        let mut offsets = Vec::new();
        for (id, name) in instances {
            body.extend(id.to_be_bytes());
            offsets.extend(position(&names).to_be_bytes());
            names.extend(name.bytes().chain([0]));
        }
        self.meta.extend(framed(&[body, offsets, names].concat()));
        self.index_entry(at);
    }

    /// Adds a record.
    pub fn record(&mut self, at: Stamp, sets: &[(&'static str, Values)]) {
        let size = |(_, values): &(_, Values)| match values {
            Ok(values) if !values.is_empty() => 12 + 8 * values.len(),
            _ => 8,
        };
        // Offsets of blocks count from the length in front.
        let mut end = 16 + sets.iter().map(size).sum::<usize>();
        let mut body = words(&[at.0, at.1, sets.len() as u32]);
        let mut blocks = Vec::new();
        for (name, values) in sets {
            body.extend(self.metrics[name].0.to_be_bytes());
            let values = match values {
                Err(status) => {
                    body.extend(status.to_be_bytes());
                    continue;
                }
                Ok(values) => values,
            };
            body.extend(words(&[values.len() as u32]));
            let values: Vec<_> =
                values.iter().map(|(id, value)| (*id, RawValue::encode(value))).collect();
            if let Some((_, first)) = values.first() {
                body.extend(words(&[u32::from(matches!(first, RawValue::Block { .. }))]));
            }
            for (id, value) in values {
                body.extend(id.to_be_bytes());
                match value {
                    RawValue::InPlace(word) => body.extend(word.to_be_bytes()),
                    RawValue::Block { code, bytes } => {
                        body.extend(words(&[((end + 8) / 4) as u32]));
                        let length = bytes.len() as u32 + 4;
                        let start = blocks.len();
                        blocks.extend(words(&[u32::from(code) << 24 | length]));
                        blocks.extend(bytes);
                        blocks.resize(blocks.len().next_multiple_of(4), b'~');
                        end += blocks.len() - start;
                    }
                }
            }
        }
        self.volume.extend(framed(&[body, blocks].concat()));
        self.last = at;
    }

    /// Says that logging was suspended.
    pub fn mark(&mut self, at: Stamp) {
        self.volume.extend(framed(&words(&[at.0, at.1, 0])));
        self.last = at;
    }

    /// Writes the files.
    pub fn finish(mut self, base: &Path) {
        self.index_entry(self.last);
        for (suffix, bytes) in [("0", self.volume), ("meta", self.meta), ("index", self.index)] {
            std::fs::write(base.with_extension(suffix), bytes).expect("a file");
        }
    }
}
