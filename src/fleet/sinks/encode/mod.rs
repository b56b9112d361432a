//! Series as messages of remote write 1.0: protobuf, compressed by snappy.
//!
//! ```text
//! WriteRequest  1: TimeSeries*
//! TimeSeries    1: Label*, by name      2: Sample*
//! Label         1: name  2: value
//! Sample        1: value (double)       2: time (milliseconds since 1970)
//! ```
//!
//! The labels of a series have three parts. All series of a metric share its name. All metrics
//! of a domain share the labels of an instance. All series of a host share the host's labels.
//! Each part is encoded once. A [`Template`] tells how to combine them, as labels must be
//! sorted by name.

mod protobuf;
mod template;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use pmderive_runtime::position::Per;
use pmderive_runtime::program::Status;
use rustc_hash::FxHashMap;

use super::names::{HostLabels, is_number, safe_name};
use super::number::{self, ENDED};
use super::numbers::SinkNumbers;
use crate::fleet::frame::{Event, ExportedId, ExportedMetric, Frame, Instances, Schema, Stale};
use crate::fleet::labels::Labels;
use crate::fleet::sinks::sink_set::SinkPlace;
use crate::fleet::slot::Nanos;
use crate::fleet::targets::target::Target;
use protobuf::{put_label, put_varint, varint_size};
use template::{Host, Piece, Shape, Template};

/// Size of a full message in bytes, before compression. Receivers refuse a message that is much
/// longer, and would do so for ever.
const FULL_BYTES: usize = 8 << 20;
/// Bytes of templates that are kept for later frames.
const MAX_TEMPLATE_BYTES: usize = 16 << 20;
/// Schemas whose names are kept.
const MAX_SCHEMAS: usize = 1024;
/// Different sets of host label names that are kept.
const MAX_SHAPES: usize = 4096;

/// A message, compressed.
#[derive(Debug)]
pub struct Message {
    /// The bytes to send.
    pub body: Vec<u8>,
    /// Samples in it.
    pub samples: usize,
    /// The time of the oldest sample.
    pub oldest: Nanos,
}

/// Makes messages from events.
#[derive(Debug)]
pub struct Encoder {
    sink: SinkPlace,
    most_samples: usize,
    numbers: Arc<SinkNumbers>,
    /// The present message, before compression.
    raw: Vec<u8>,
    samples: usize,
    oldest: Nanos,
    full: VecDeque<Message>,
    shapes: HashMap<Shape, u32>,
    /// Names by the address of the schema, which the entry holds. Templates are kept in the
    /// same way.
    schemas: FxHashMap<usize, Names>,
    templates: FxHashMap<(usize, u32), (Arc<Instances>, Arc<Template>)>,
    template_bytes: usize,
    compressor: snap::raw::Encoder,
}

/// The names of a schema's metrics as encoded labels; nothing for metrics that are not sent.
#[derive(Debug)]
struct Names {
    /// Held so that no other schema gets its address.
    schema: Arc<Schema>,
    names: Per<ExportedId, Option<Box<[u8]>>>,
}

impl Encoder {
    /// An encoder of a sink's metrics, with a limit of samples in a message.
    pub fn new(sink: SinkPlace, most_samples: usize, numbers: Arc<SinkNumbers>) -> Encoder {
        Encoder {
            sink,
            most_samples: most_samples.max(1),
            numbers,
            raw: Vec::new(),
            samples: 0,
            oldest: Nanos::default(),
            full: VecDeque::new(),
            shapes: HashMap::new(),
            schemas: FxHashMap::default(),
            templates: FxHashMap::default(),
            template_bytes: 0,
            compressor: snap::raw::Encoder::new(),
        }
    }

    /// Adds an event.
    pub fn push(&mut self, event: &Event) {
        match event {
            Event::Frame(frame) => self.push_frame(frame),
            Event::Stale(stale) => self.push_stale(stale),
        }
    }

    /// Completes the present message.
    pub fn flush(&mut self) {
        if self.samples == 0 {
            return;
        }
        // The only error is an input above 4 GiB, which no message reaches.
        if let Ok(body) = self.compressor.compress_vec(&self.raw) {
            let (samples, oldest) = (self.samples, self.oldest);
            self.full.push_back(Message { body, samples, oldest });
        }
        self.samples = 0;
        self.raw.clear();
    }

    /// True if the present message has samples.
    pub fn is_begun(&self) -> bool {
        self.samples > 0
    }

    /// Takes the next complete message.
    pub fn take(&mut self) -> Option<Message> {
        self.full.pop_front()
    }

    fn push_frame(&mut self, frame: &Frame) {
        let host = self.host(&frame.target, &frame.host_labels);
        let names = self.names(&frame.schema);
        for ((metric, column), name) in
            frame.schema.metrics.iter().zip(frame.columns.iter()).zip(&names.names)
        {
            let Some(name) = name.as_ref().filter(|_| column.status == Status::Values) else {
                continue;
            };
            let template = self.template(&host, column.instances, true);
            for (bits, pieces) in column.bits.iter().zip(&template.series) {
                let double = number::as_double(metric.value_type, *bits);
                self.series(&host, &template, pieces, name, double, frame.at);
            }
        }
        self.keep(names);
    }

    fn push_stale(&mut self, stale: &Stale) {
        let host = self.host(&stale.target, &stale.host_labels);
        let names = self.names(&stale.schema);
        for (metric, instances) in &stale.series {
            let Some(Some(name)) = names.names.get(*metric) else { continue };
            // Series that have ended do not come again.
            let template = self.template(&host, instances, false);
            for pieces in &template.series {
                self.series(&host, &template, pieces, name, ENDED, stale.at);
            }
        }
        self.keep(names);
    }

    fn series(
        &mut self,
        host: &Host,
        template: &Template,
        pieces: &Range<usize>,
        name: &[u8],
        value: f64,
        at: Nanos,
    ) {
        let pieces = &template.pieces[pieces.clone()];
        if pieces.is_empty() {
            return;
        }
        let size = |piece: &Piece| match piece {
            Piece::Own(range) => range.len(),
            Piece::Name => name.len(),
            Piece::Host(range) => host.labels(range).len(),
            Piece::Renamed(label, at) => {
                let inside = label.len() + host.values[*at].len();
                1 + varint_size(inside as u64) + inside
            }
        };
        let milliseconds = at.milliseconds() as u64;
        let sample = 1 + 8 + 1 + varint_size(milliseconds);
        let labels: usize = pieces.iter().map(size).sum();
        let out = &mut self.raw;
        out.push(0x0a);
        put_varint(out, (labels + 1 + varint_size(sample as u64) + sample) as u64);
        for piece in pieces {
            match piece {
                Piece::Own(range) => out.extend_from_slice(&template.bytes[range.clone()]),
                Piece::Name => out.extend_from_slice(name),
                Piece::Host(range) => out.extend_from_slice(host.labels(range)),
                Piece::Renamed(label, at) => {
                    out.push(0x0a);
                    put_varint(out, (label.len() + host.values[*at].len()) as u64);
                    out.extend_from_slice(&template.bytes[label.clone()]);
                    out.extend_from_slice(&host.values[*at]);
                }
            }
        }
        out.push(0x12);
        put_varint(out, sample as u64);
        out.push(0x09);
        out.extend_from_slice(&value.to_bits().to_le_bytes());
        out.push(0x10);
        put_varint(out, milliseconds);
        self.oldest = if self.samples == 0 { at } else { self.oldest.min(at) };
        self.samples += 1;
        if self.samples >= self.most_samples || self.raw.len() >= FULL_BYTES {
            self.flush();
        }
    }

    fn host(&mut self, target: &Target, of_pcp: &Labels) -> Host {
        let HostLabels { names, values } = HostLabels::new(target, of_pcp);
        if self.shapes.len() >= MAX_SHAPES && !self.shapes.contains_key(&names) {
            self.shapes.clear();
            self.forget();
        }
        let new = self.shapes.len() as u32;
        let shape = match self.shapes.get(&names) {
            Some(shape) => *shape,
            None => *self.shapes.entry(names.clone()).or_insert(new),
        };
        Host::new(shape, names, &values)
    }

    /// Takes the names out, so that they can be read while other state changes;
    /// [`Encoder::keep`] puts them back.
    fn names(&mut self, schema: &Arc<Schema>) -> Names {
        if let Some(names) = self.schemas.remove(&Arc::as_ptr(schema).addr()) {
            return names;
        }
        let name = |metric: &ExportedMetric| {
            let is_wanted = metric.sinks.contains(self.sink);
            (is_wanted && is_number(metric.value_type)).then(|| {
                let mut bytes = Vec::new();
                put_label(&mut bytes, "__name__", &safe_name(&metric.name));
                bytes.into()
            })
        };
        Names { names: schema.metrics.iter().map(name).collect(), schema: Arc::clone(schema) }
    }

    fn keep(&mut self, names: Names) {
        // Drops the schemas of definitions before a reload.
        self.schemas.retain(|_, names| Arc::strong_count(&names.schema) > 1);
        if self.schemas.len() >= MAX_SCHEMAS {
            self.schemas.clear();
        }
        self.schemas.insert(Arc::as_ptr(&names.schema).addr(), names);
    }

    fn template(
        &mut self,
        host: &Host,
        instances: &Arc<Instances>,
        is_kept: bool,
    ) -> Arc<Template> {
        let key = (Arc::as_ptr(instances).addr(), host.shape);
        if let Some((_, template)) = self.templates.get(&key) {
            return Arc::clone(template);
        }
        let template = Arc::new(Template::new(&host.names, instances));
        self.numbers.labels_left_out.add(template.left_out as u64);
        if is_kept {
            if self.template_bytes > MAX_TEMPLATE_BYTES {
                self.forget_unused();
            }
            self.template_bytes += template.size();
            self.numbers.label_bytes.set(self.template_bytes as u64);
            self.templates.insert(key, (Arc::clone(instances), Arc::clone(&template)));
        }
        template
    }

    /// Drops templates of instances that no host has any more, or all if too many would be
    /// left.
    fn forget_unused(&mut self) {
        self.templates.retain(|_, (instances, _)| Arc::strong_count(instances) > 1);
        self.template_bytes = self.templates.values().map(|(_, template)| template.size()).sum();
        if self.template_bytes > MAX_TEMPLATE_BYTES / 2 {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.templates.clear();
        self.template_bytes = 0;
        self.numbers.label_bytes.set(0);
    }
}
