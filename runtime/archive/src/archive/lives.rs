//! All instances that a domain ever has, and when each exists.
//!
//! Input: the records of a domain in order of time. Output: the instances of the newest
//! record, then those that only the one before it has, and so on. The instances of one
//! record keep its order, and the newest name counts. No record is looked at twice.

use std::collections::HashMap;

use pmderive_core::model::{InstId, InstanceDomain, Timestamp};

use crate::archive::domain_record::{DomainRecord, Name, text_of_name};

/// The times during which the instances of a domain exist.
#[derive(Clone, Debug, Default)]
pub(super) struct Lives {
    /// All that the domain ever has, the newest first.
    pub(super) instances: Vec<Life>,
    /// Largest number of instances after one record.
    pub(super) largest: usize,
}

/// The time during which an instance exists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) instance: InstId,
    /// Time of the first record with the instance.
    pub(super) birth: Timestamp,
    /// Time of the record after the last one with the instance.
    pub(super) death: Option<Timestamp>,
}

/// Gathers instances from record to record.
#[derive(Debug, Default)]
pub(super) struct LivesBuilder {
    /// Times of the records.
    stamps: Vec<Timestamp>,
    /// The instances after the last record, ascending.
    ids: Vec<InstId>,
    /// Parallel to `ids`, their positions in `spans`.
    places: Vec<usize>,
    spans: Vec<Span>,
    place_of: HashMap<InstId, usize>,
    largest: usize,
}

/// An instance with the numbers of the first and the last record that have it.
#[derive(Debug)]
struct Span {
    instance: InstId,
    first: usize,
    last: usize,
    /// Its position after the last record.
    position: usize,
    name: Box<[u8]>,
}

impl LivesBuilder {
    /// Adds the next record.
    pub(super) fn take(&mut self, stamp: Timestamp, record: &DomainRecord<'_>) {
        let number = self.stamps.len();
        self.stamps.push(stamp);
        let list = record.list(&self.ids);
        self.largest = self.largest.max(list.len());
        let mut places = Vec::with_capacity(list.len());
        let mut at = 0;
        for (position, (id, name)) in list.iter().enumerate() {
            while self.ids.get(at).is_some_and(|before| before < id) {
                at += 1;
            }
            let place = match self.ids.get(at) == Some(id) {
                true => self.places[at],
                false => *self.place_of.entry(*id).or_insert(self.spans.len()),
            };
            places.push(place);
            if place == self.spans.len() {
                let (instance, name) = (*id, Box::default());
                self.spans.push(Span { instance, first: number, last: number, position, name });
            } else if self.spans[place].last == number {
                // The first of equal identifiers in a list counts.
                continue;
            }
            let span = &mut self.spans[place];
            (span.last, span.position) = (number, position);
            if let Name::New(name) = name
                && *span.name != **name
            {
                span.name = (*name).into();
            }
        }
        self.ids.clear();
        self.ids.extend(list.iter().map(|(id, _)| *id));
        self.places = places;
    }

    /// The domain with all instances, and the times of their lives.
    pub(super) fn finish(self) -> (InstanceDomain, Lives) {
        let LivesBuilder { stamps, mut spans, largest, .. } = self;
        spans.sort_unstable_by_key(|span| (usize::MAX - span.last, span.position));
        let life = |span: &Span| Life {
            instance: span.instance,
            birth: stamps[span.first],
            death: stamps.get(span.last + 1).copied(),
        };
        let instances = spans.iter().map(life).collect();
        let mut in_bytes = Vec::new();
        let named = spans.into_iter().map(|Span { instance, name, .. }| {
            let (name, is_in_bytes) = text_of_name(&name);
            in_bytes.extend(is_in_bytes.then_some(instance));
            (instance, name)
        });
        let domain = InstanceDomain::new(named.collect()).with_names_in_bytes(in_bytes);
        (domain, Lives { instances, largest })
    }
}
