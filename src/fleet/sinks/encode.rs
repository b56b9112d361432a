//! Series as messages of remote write 1.0: protobuf, compressed by snappy. Who
//! gets them is not known here.
//!
//! ```text
//! WriteRequest  1: TimeSeries*
//! TimeSeries    1: Label*, by name      2: Sample*
//! Label         1: name  2: value
//! Sample        1: value (double)       2: time (milliseconds since 1970)
//! ```
//!
//! The labels of a series consist of its name, which all series of a metric
//! share, of what its instance gives, which all metrics of the domain share, and
//! of what its host gives. Each is encoded once; a [`Template`] knows how they
//! are put together, since labels have to be sorted by name.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use pmderive_runtime::program::Status;

use super::names::{Giver, HostLabels, Limits, SeriesLabels, Value, is_number, metric_name};
use super::number::{self, ENDED};
use super::numbers::Numbers;
use crate::fleet::frame::{Event, Frame, Instances, Lanes, Schema, Stale};
use crate::fleet::labels::Labels;
use crate::fleet::slot::Nanos;
use crate::fleet::target::Target;

/// Bytes of templates that are kept for the next frames.
const MAX_TEMPLATE_BYTES: usize = 16 << 20;
/// Schemas whose names are kept.
const MAX_SCHEMAS: usize = 1024;
/// What templates call hosts' labels by.
const MAX_SHAPES: usize = 4096;

/// A message, compressed.
#[derive(Debug)]
pub struct Message {
    /// What is sent.
    pub body: Vec<u8>,
    /// Samples in it.
    pub samples: usize,
    /// The time of the oldest sample.
    pub oldest: Nanos,
}

/// Makes messages of events.
#[derive(Debug)]
pub struct Encoder {
    sink: u32,
    limits: Limits,
    most_samples: usize,
    numbers: Arc<Numbers>,
    /// The message that is being written, before compression.
    raw: Vec<u8>,
    samples: usize,
    oldest: Nanos,
    full: VecDeque<Message>,
    shapes: HashMap<Shape, u32>,
    /// By address, which what is kept holds on to; so are templates.
    schemas: HashMap<usize, Names>,
    templates: HashMap<(usize, u32), (Arc<Instances>, Arc<Template>)>,
    template_bytes: usize,
    compressor: snap::raw::Encoder,
}

/// Names of a host's labels, and who gives them.
type Shape = Vec<(Giver, Box<str>)>;

/// The names of a schema's metrics as labels, encoded; nothing for those that are
/// not sent.
#[derive(Debug)]
struct Names {
    /// Keeps the address from being another's.
    schema: Arc<Schema>,
    names: Box<[Option<Box<[u8]>>]>,
}

/// How the labels of instances are put together, for hosts with labels of
/// certain names.
#[derive(Debug, Default)]
struct Template {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    /// The pieces of each instance, parallel to the identifiers.
    series: Vec<Range<usize>>,
    left_out: usize,
}

/// Labels that follow each other.
#[derive(Debug)]
enum Piece {
    /// Labels that are encoded in the template.
    Own(Range<usize>),
    /// The name of the metric.
    Name,
    /// Labels of the host, by their positions among the sorted ones.
    Host(Range<usize>),
    /// A label of the host under another name, which is encoded in the template.
    Renamed(Range<usize>, usize),
}

/// A host's labels, encoded.
struct Host {
    shape: u32,
    names: Shape,
    /// All of them, sorted by name.
    bytes: Vec<u8>,
    /// Where each of them ends, in that order.
    ends: Vec<usize>,
    /// Their values, encoded, in the order of the names.
    values: Vec<Vec<u8>>,
}

impl Encoder {
    /// An encoder of what a sink wants, with at most so many samples in a message.
    pub fn new(sink: u32, limits: Limits, most_samples: usize, numbers: Arc<Numbers>) -> Encoder {
        Encoder {
            sink,
            limits,
            most_samples: most_samples.max(1),
            numbers,
            raw: Vec::new(),
            samples: 0,
            oldest: Nanos::default(),
            full: VecDeque::new(),
            shapes: HashMap::new(),
            schemas: HashMap::new(),
            templates: HashMap::new(),
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

    /// Ends the message that is being written.
    pub fn flush(&mut self) {
        if self.samples == 0 {
            return;
        }
        // The only error is one of more than 4 GiB, which no message has.
        if let Ok(body) = self.compressor.compress_vec(&self.raw) {
            let (samples, oldest) = (self.samples, self.oldest);
            self.full.push_back(Message { body, samples, oldest });
        }
        self.samples = 0;
        self.raw.clear();
    }

    /// True if samples wait for a message to become full.
    pub fn is_begun(&self) -> bool {
        self.samples > 0
    }

    /// The next message that is full, or was ended.
    pub fn take(&mut self) -> Option<Message> {
        self.full.pop_front()
    }

    fn push_frame(&mut self, frame: &Frame) {
        let host = self.host(&frame.target, &frame.host_labels);
        let names = self.names(&frame.schema);
        for ((metric, column), name) in
            frame.schema.metrics.iter().zip(&frame.columns).zip(&names.names)
        {
            let (Some(name), Lanes::Numbers(lanes)) = (name, &column.lanes) else { continue };
            if column.status != Status::Values {
                continue;
            }
            let template = self.template(&host, &column.instances, true);
            for (bits, pieces) in lanes.iter().zip(&template.series) {
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
            // What has ended does not come again.
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
        if self.samples >= self.most_samples {
            self.flush();
        }
    }

    fn host(&mut self, target: &Target, of_pcp: &Labels) -> Host {
        let HostLabels { names, values } = HostLabels::new(target, of_pcp, &self.limits);
        if self.shapes.len() >= MAX_SHAPES && !self.shapes.contains_key(&names) {
            self.shapes.clear();
            self.forget();
        }
        let new = self.shapes.len() as u32;
        let shape = match self.shapes.get(&names) {
            Some(shape) => *shape,
            None => *self.shapes.entry(names.clone()).or_insert(new),
        };
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for (name, at) in sorted(&names) {
            put_label(&mut bytes, &name, &values[at]);
            ends.push(bytes.len());
        }
        let encoded = |value: &str| {
            let mut bytes = Vec::new();
            put_text(&mut bytes, 0x12, value);
            bytes
        };
        let values = values.iter().map(|value| encoded(value)).collect();
        Host { shape, bytes, ends, values, names }
    }

    /// Taken out, so that it can be read while the rest changes; [`Encoder::keep`]
    /// puts it back.
    fn names(&mut self, schema: &Arc<Schema>) -> Names {
        if let Some(names) = self.schemas.remove(&Arc::as_ptr(schema).addr()) {
            return names;
        }
        let name = |metric: &crate::fleet::frame::Exported| {
            let is_wanted = metric.sinks.checked_shr(self.sink).unwrap_or(0) & 1 == 1;
            (is_wanted && is_number(metric.value_type)).then(|| {
                let mut bytes = Vec::new();
                put_label(&mut bytes, "__name__", &metric_name(&metric.name));
                bytes.into()
            })
        };
        Names { names: schema.metrics.iter().map(name).collect(), schema: Arc::clone(schema) }
    }

    fn keep(&mut self, names: Names) {
        if self.schemas.len() >= MAX_SCHEMAS {
            self.schemas.retain(|_, names| Arc::strong_count(&names.schema) > 1);
            if self.schemas.len() >= MAX_SCHEMAS / 2 {
                self.schemas.clear();
            }
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
        let template = Arc::new(Template::new(&host.names, instances, &self.limits));
        self.numbers.labels_left_out.add(template.left_out as u64);
        if is_kept {
            if self.template_bytes > MAX_TEMPLATE_BYTES {
                self.forget_unused();
            }
            self.template_bytes += template.size();
            self.templates.insert(key, (Arc::clone(instances), Arc::clone(&template)));
        }
        template
    }

    /// Forgets templates of instances that are nobody's any more; all, if many are left.
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
    }
}

impl Host {
    fn labels(&self, range: &Range<usize>) -> &[u8] {
        let begin = range.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[range.end - 1]]
    }
}

/// The names that a host's labels have if nothing is against it, sorted, each
/// with its position.
fn sorted(names: &[(Giver, Box<str>)]) -> Vec<(String, usize)> {
    let safe = |(at, (_, name)): (usize, &(Giver, Box<str>))| (super::names::label_name(name), at);
    let mut sorted: Vec<_> = names.iter().enumerate().map(safe).collect();
    sorted.sort();
    sorted
}

impl Template {
    fn new(names: &Shape, instances: &Instances, limits: &Limits) -> Template {
        let sorted = sorted(names);
        // Where each label of the host is among the sorted ones.
        let mut places = vec![0; names.len()];
        for (place, (_, at)) in sorted.iter().enumerate() {
            places[*at] = place;
        }
        let mut template = Template::default();
        for at in 0..instances.ids.len() {
            let begin = template.pieces.len();
            let series = SeriesLabels::new(names, instances, at, limits);
            template.left_out += series.left_out;
            let mut has_name = false;
            for (name, value) in &series.labels {
                if !has_name && &**name > "__name__" {
                    template.pieces.push(Piece::Name);
                    has_name = true;
                }
                match value {
                    Value::Own(text) => template.own(begin, name, text),
                    Value::Host(at) if sorted[places[*at]].0 == *name => {
                        template.host(begin, places[*at]);
                    }
                    Value::Host(at) => {
                        let start = template.bytes.len();
                        put_text(&mut template.bytes, 0x0a, name);
                        template.pieces.push(Piece::Renamed(start..template.bytes.len(), *at));
                    }
                }
            }
            if !has_name {
                template.pieces.push(Piece::Name);
            }
            template.series.push(begin..template.pieces.len());
        }
        template
    }

    fn own(&mut self, begin: usize, name: &str, value: &str) {
        let start = self.bytes.len();
        put_label(&mut self.bytes, name, value);
        let end = self.bytes.len();
        match self.pieces[begin..].last_mut() {
            Some(Piece::Own(range)) => range.end = end,
            _ => self.pieces.push(Piece::Own(start..end)),
        }
    }

    fn host(&mut self, begin: usize, place: usize) {
        match self.pieces[begin..].last_mut() {
            Some(Piece::Host(range)) if range.end == place => range.end += 1,
            _ => self.pieces.push(Piece::Host(place..place + 1)),
        }
    }

    fn size(&self) -> usize {
        let series = self.series.len() * size_of::<Range<usize>>();
        self.bytes.len() + self.pieces.len() * size_of::<Piece>() + series + size_of::<Template>()
    }
}

fn put_label(out: &mut Vec<u8>, name: &str, value: &str) {
    let size = |text: &str| 1 + varint_size(text.len() as u64) + text.len();
    out.push(0x0a);
    put_varint(out, (size(name) + size(value)) as u64);
    put_text(out, 0x0a, name);
    put_text(out, 0x12, value);
}

fn put_text(out: &mut Vec<u8>, tag: u8, text: &str) {
    out.push(tag);
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint_size(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::frame::StaleReason;
    use crate::fleet::sinks::samples;
    use pmderive_runtime::model::{Semantics, ValueType};

    /// A series with its labels, and one sample.
    type Sample = (Vec<(String, String)>, u64, u64);

    /// What a message says, by the rules of protobuf alone.
    fn decoded(message: &Message) -> Vec<Sample> {
        let raw = snap::raw::Decoder::new().decompress_vec(&message.body).expect("snappy");
        let series = fields(&raw).into_iter().map(|(tag, series)| {
            assert_eq!(tag, 0x0a);
            let (mut labels, mut sample) = (Vec::new(), None);
            for (tag, inside) in fields(series) {
                match tag {
                    0x0a => {
                        let parts = fields(inside);
                        let text =
                            |at: usize| String::from_utf8(parts[at].1.to_vec()).expect("UTF-8");
                        assert_eq!(
                            parts.iter().map(|part| part.0).collect::<Vec<_>>(),
                            [0x0a, 0x12]
                        );
                        labels.push((text(0), text(1)));
                    }
                    0x12 => {
                        let (value, time) = inside[1..].split_at(8);
                        assert_eq!((inside[0], time[0]), (0x09, 0x10));
                        let (time, used) = varint(&time[1..]);
                        assert_eq!(used, inside.len() - 10);
                        let value = u64::from_le_bytes(value.try_into().expect("eight bytes"));
                        assert!(sample.replace((value, time)).is_none());
                    }
                    _ => panic!("{tag}"),
                }
            }
            assert!(labels.is_sorted_by(|a, b| a.0 < b.0), "{labels:?}");
            let (value, time) = sample.expect("a sample");
            (labels, value, time)
        });
        series.collect()
    }

    fn varint(bytes: &[u8]) -> (u64, usize) {
        let size = bytes.iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
        let value = bytes[..size].iter().rev().fold(0, |v, byte| v << 7 | u64::from(byte & 0x7f));
        (value, size)
    }

    /// Fields that have lengths, with their tags.
    fn fields(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
        let mut fields = Vec::new();
        while let Some((tag, rest)) = bytes.split_first() {
            let (size, used) = varint(rest);
            let (field, rest) = rest[used..].split_at(size as usize);
            fields.push((*tag, field));
            bytes = rest;
        }
        fields
    }

    fn messages(encoder: &mut Encoder) -> Vec<Message> {
        encoder.flush();
        std::iter::from_fn(|| encoder.take()).collect()
    }

    fn encoder(most_samples: usize) -> Encoder {
        Encoder::new(3, Limits::default(), most_samples, Arc::default())
    }

    /// Labels by the rule, without any template.
    fn plainly(
        name: &str,
        target: &Target,
        of_pcp: &Labels,
        instances: &Instances,
        at: usize,
    ) -> Vec<(String, String)> {
        let limits = Limits::default();
        let host = HostLabels::new(target, of_pcp, &limits);
        let series = SeriesLabels::new(&host.names, instances, at, &limits);
        let text = |value: &Value<'_>| match value {
            Value::Host(at) => host.values[*at].to_string(),
            Value::Own(text) => text.to_string(),
        };
        let labels = series.labels.iter().map(|(name, value)| (name.clone(), text(value)));
        let mut all: Vec<_> = labels.chain([("__name__".into(), metric_name(name))]).collect();
        all.sort();
        all
    }

    #[test]
    fn labels_are_put_together_as_if_made_alone() {
        let pools: [&[(&str, &str)]; 6] = [
            &[],
            &[("rack", "a"), ("Zone", "1")],
            &[("rack", "b"), ("hostname", "vm"), ("_x", "y"), ("a.b", "1"), ("a_b", "2")],
            &[("instid", "x"), ("instname", "y"), ("instance", "z"), ("Zone", "")],
            &[("device_name", "vda"), ("rack", "c"), ("A", "a")],
            &[("indom_name", "per disk"), ("z", "z"), ("exported_rack", "w")],
        ];
        let labels = |at: usize| Labels::from_iter(pools[at].iter().copied());
        let metric = samples::exported("disk.dev.read", ValueType::F64, Semantics::Counter, 8);
        let schema = Arc::new(Schema { metrics: [metric].into() });
        let mut encoder = encoder(usize::MAX);
        let mut expected = Vec::new();
        for turn in 0..2 * 6 * 6 * 6 * 6_usize {
            let at = |step: u32| turn / 6_usize.pow(step) % 6;
            let target = samples::target("web1:44321", labels(at(0)));
            let of_pcp = labels(at(1));
            let names: [Arc<str>; 2] = ["vda".into(), "".into()];
            let instances = Arc::new(match turn % 7 {
                0 => Instances { ids: [-1].into(), ..Instances::default() },
                _ => Instances {
                    ids: [0, 300].into(),
                    names: names.into(),
                    domain_labels: labels(at(2)),
                    labels: [labels(at(3)), labels(0)].into(),
                },
            });
            let bits: Vec<u64> = (0..instances.ids.len()).map(|_| 2.5_f64.to_bits()).collect();
            let column = samples::column(&instances, &bits);
            let mut event = samples::frame(&target, turn as u64, &schema, vec![column]);
            if let Event::Frame(frame) = &mut event {
                frame.host_labels = of_pcp.clone();
            }
            encoder.push(&event);
            for at in 0..instances.ids.len() {
                let labels = plainly("disk.dev.read", &target, &of_pcp, &instances, at);
                expected.push((labels, 2.5_f64.to_bits(), turn as u64 * 1000));
            }
        }
        let found: Vec<_> = messages(&mut encoder).iter().flat_map(decoded).collect();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn only_what_the_sink_wants_is_sent_and_series_end() {
        let metric = |name, value_type, sinks| {
            samples::exported(name, value_type, Semantics::Instant, sinks)
        };
        let metrics = [
            metric("a.wanted", ValueType::U32, 8),
            metric("b.of_others", ValueType::U32, 7),
            metric("c.text", ValueType::String, 8),
            metric("d.failed", ValueType::F64, 8),
        ];
        let schema = Arc::new(Schema { metrics: metrics.into() });
        let target = samples::target("web1:44321", Labels::default());
        let (two, one) = (samples::named(&["x", "y"]), samples::single());
        let mut failed = samples::column(&one, &[0]);
        failed.status = Status::Failed(pmderive_runtime::model::PmStatus(-12357));
        let texts = crate::fleet::frame::Column {
            lanes: Lanes::Texts([b"text"[..].into()].into()),
            ..samples::column(&one, &[])
        };
        let columns =
            vec![samples::column(&two, &[1, 2]), samples::column(&one, &[3]), texts, failed];
        let mut encoder = encoder(10);
        encoder.push(&samples::frame(&target, 5, &schema, columns));
        let ended = vec![(0, samples::named(&["x"])), (1, one.clone()), (2, one.clone()), (9, one)];
        encoder.push(&samples::stale(&target, 6, StaleReason::Vanished, &schema, ended));
        let series = |id: &str, name: &str, bits: u64, time| {
            let instance = ("instance", "web1:44321");
            let labels = [("__name__", "a_wanted"), instance, ("instid", id), ("instname", name)];
            (labels.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec(), bits, time)
        };
        let messages = messages(&mut encoder);
        assert_eq!(messages.len(), 1);
        assert_eq!((messages[0].samples, messages[0].oldest), (3, Nanos(5_000_000_000)));
        assert_eq!(
            decoded(&messages[0]),
            [
                series("0", "x", 1_f64.to_bits(), 5000),
                series("1", "y", 2_f64.to_bits(), 5000),
                series("0", "x", 0x7ff0_0000_0000_0002, 6000),
            ]
        );
    }

    #[test]
    fn messages_are_as_long_as_they_may_be() {
        let metric = samples::exported("n", ValueType::U64, Semantics::Instant, 8);
        let schema = Arc::new(Schema { metrics: [metric].into() });
        let target = samples::target("web1:44321", Labels::default());
        let names: Vec<String> = (0..7).map(|at| at.to_string()).collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let column = samples::column(&samples::named(&names), &[0; 7]);
        let mut encoder = encoder(5);
        encoder.push(&samples::frame(&target, 1, &schema, vec![column.clone()]));
        encoder.push(&samples::frame(&target, 2, &schema, vec![column]));
        assert!(encoder.is_begun());
        let messages = messages(&mut encoder);
        let sizes: Vec<_> = messages.iter().map(|m| (m.samples, decoded(m).len())).collect();
        assert_eq!(sizes, [(5, 5), (5, 5), (4, 4)]);
        assert!(!encoder.is_begun());
    }

    #[test]
    fn what_is_nobodys_is_forgotten() {
        let metric = samples::exported("n", ValueType::U64, Semantics::Instant, 8);
        let schema = Arc::new(Schema { metrics: [metric].into() });
        let target = samples::target("web1:44321", Labels::default());
        let long = "x".repeat(1000);
        let names: Vec<&str> = (0..100).map(|_| &*long).collect();
        let kept = samples::named(&names);
        let mut encoder = encoder(usize::MAX);
        let mut most = 0;
        // Some 100 KB each.
        for turn in 0..500 {
            let instances = if turn % 2 == 0 { Arc::clone(&kept) } else { samples::named(&names) };
            let column = samples::column(&instances, &[0; 100]);
            encoder.push(&samples::frame(&target, turn, &schema, vec![column]));
            encoder.flush();
            encoder.take().expect("a message");
            most = most.max(encoder.template_bytes);
            let counted: usize = encoder.templates.values().map(|(_, kept)| kept.size()).sum();
            assert_eq!(encoder.template_bytes, counted);
        }
        assert!(most > MAX_TEMPLATE_BYTES && most < MAX_TEMPLATE_BYTES + (1 << 20), "{most}");
        let of_kept = encoder.templates.keys().filter(|key| key.0 == Arc::as_ptr(&kept).addr());
        assert_eq!(of_kept.count(), 1);
    }

    #[test]
    fn numbers_of_variable_length() {
        for (value, size) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)]
        {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!((out.len(), varint_size(value), varint(&out)), (size, size, (value, size)));
        }
    }
}
