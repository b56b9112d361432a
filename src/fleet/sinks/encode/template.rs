//! Combines the labels of series. The parts from instances are encoded once for all hosts with
//! labels of the same names. The part from a host is encoded once for all of its series.

use std::ops::Range;

use super::protobuf::{put_label, put_text};
use crate::fleet::frame::Instances;
use crate::fleet::sinks::names::{Giver, SeriesLabels, Value, safe_name};

/// Names of a host's labels, and the origin of each.
pub type Shape = Vec<(Giver, Box<str>)>;

/// The order of the labels of instances, for hosts with labels of certain names.
#[derive(Debug, Default)]
pub struct Template {
    pub bytes: Vec<u8>,
    pub pieces: Vec<Piece>,
    /// The pieces of each instance, parallel to the identifiers. None for one that comes again,
    /// as receivers refuse two samples of a series.
    pub series: Vec<Range<usize>>,
    /// Labels that were left out.
    pub left_out: usize,
}

/// A run of labels.
#[derive(Debug)]
pub enum Piece {
    /// Labels that are encoded in the template.
    Own(Range<usize>),
    /// The name of the metric.
    Name,
    /// Labels of the host, by their positions in sorted order.
    Host(Range<usize>),
    /// A label of the host under another name, which is encoded in the template.
    Renamed(Range<usize>, usize),
}

/// A host's labels, encoded.
pub struct Host {
    pub shape: u32,
    pub names: Shape,
    /// All of them, sorted by name.
    bytes: Vec<u8>,
    /// The end of each label in `bytes`, in that order.
    ends: Vec<usize>,
    /// Their values, encoded, in the order of the names.
    pub values: Vec<Vec<u8>>,
}

impl Host {
    /// The labels of a host, given their values.
    pub fn new(shape: u32, names: Shape, values: &[Box<str>]) -> Host {
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

    /// Labels by their positions in sorted order.
    pub fn labels(&self, range: &Range<usize>) -> &[u8] {
        let begin = range.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[range.end - 1]]
    }
}

/// The usual names of a host's labels, sorted, each with its position.
fn sorted(names: &[(Giver, Box<str>)]) -> Vec<(String, usize)> {
    let safe = |(at, (_, name)): (usize, &(Giver, Box<str>))| (safe_name(name), at);
    let mut sorted: Vec<_> = names.iter().enumerate().map(safe).collect();
    sorted.sort();
    sorted
}

impl Template {
    /// A template for instances of hosts with labels of these names.
    pub fn new(names: &Shape, instances: &Instances) -> Template {
        let sorted = sorted(names);
        // The position of each label of the host in sorted order.
        let mut places = vec![0; names.len()];
        for (place, (_, at)) in sorted.iter().enumerate() {
            places[*at] = place;
        }
        let mut template = Template::default();
        let comes_again = instances.come_again();
        for at in 0..instances.ids.len() {
            let begin = template.pieces.len();
            if comes_again(at) {
                template.series.push(begin..begin);
                continue;
            }
            let series = SeriesLabels::new(names, instances, at);
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

    /// Bytes of memory.
    pub fn size(&self) -> usize {
        let series = self.series.len() * size_of::<Range<usize>>();
        self.bytes.len() + self.pieces.len() * size_of::<Piece>() + series + size_of::<Template>()
    }
}
