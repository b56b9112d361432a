//! The entries of a group. Each reads its values from a result, and keeps them until the next.

use std::sync::Arc;

use pmderive_core::model::{
    EVENT_FLAGS, EVENT_MISSED, EventFlags, EventRecord, InDom, InstId, InstanceDomain, PmStatus,
    Pmid, RawValueRef, Timestamp, Value,
};
use pmderive_core::result::ValueSet;

use super::recipe::{Recipe, Sample};
use super::samples::{FetchedResult, value_at, value_of};

/// The input of one update, the same for all entries.
#[derive(Clone, Copy)]
pub(super) struct Round<'r> {
    /// The latest result. `None` when the fetch failed.
    pub(super) latest: Option<&'r FetchedResult>,
    /// The result before, and the seconds between the two.
    pub(super) previous: Option<(&'r FetchedResult, f64)>,
    pub(super) counter_wraps: bool,
}

impl<'r> Round<'r> {
    fn metric(&self, position: usize) -> Option<ValueSet<'r>> {
        self.latest?.metric(position)
    }

    /// The metric's previous values, or the status if they cannot be used.
    fn previous(&self, position: usize) -> Result<(ValueSet<'r>, f64), PmStatus> {
        let (fetched, seconds) = self.previous.ok_or(PmStatus::AGAIN)?;
        Ok((fetched.metric(position).ok_or(PmStatus::VALUE)?, seconds))
    }
}

/// The value that an entry holds, and its status.
#[derive(Clone, Debug)]
pub(super) struct HeldValue {
    /// The value. If the status is an error, the value is an earlier one.
    pub(super) value: Option<Value>,
    pub(super) status: Result<(), PmStatus>,
}

impl HeldValue {
    pub(super) const NOTHING: HeldValue = HeldValue { value: None, status: Err(PmStatus::VALUE) };

    fn set(&mut self, value: Result<Value, PmStatus>) {
        match value {
            Ok(value) => *self = HeldValue { value: Some(value), status: Ok(()) },
            Err(status) => self.status = Err(status),
        }
    }

    fn of(value: Result<Value, PmStatus>) -> HeldValue {
        let mut held = HeldValue::NOTHING;
        held.set(value);
        held
    }
}

/// One value of a metric.
#[derive(Debug)]
pub(super) struct ItemSlot {
    /// Position of the metric among the fetched ones.
    pub(super) metric: usize,
    pub(super) instance: Option<InstId>,
    pub(super) recipe: Recipe,
    /// True if the entry keeps its value while no new one comes.
    pub(super) is_kept: bool,
    pub(super) held: HeldValue,
}

impl ItemSlot {
    pub(super) fn update(&mut self, round: Round<'_>) {
        let metric = round.metric(self.metric);
        match metric.map(|metric| metric.count) {
            Some(Ok(0)) if self.is_kept => return,
            Some(Ok(1..)) => self.held = HeldValue::NOTHING,
            _ if !self.is_kept => self.held = HeldValue::NOTHING,
            _ => {}
        }
        let value = metric.ok_or(PmStatus::VALUE).and_then(|metric| {
            let sample = Sample {
                value: value_of(&metric, self.instance)?,
                previous: round.previous(self.metric).and_then(|(previous, seconds)| {
                    Ok((value_of(&previous, self.instance)?, seconds))
                }),
            };
            self.recipe.value(sample, round.counter_wraps)
        });
        self.held.set(value);
    }
}

/// The values of all instances of a metric.
#[derive(Debug)]
pub(super) struct InstancesSlot {
    pub(super) metric: usize,
    pub(super) indom: Option<InDom>,
    pub(super) recipe: Recipe,
    pub(super) is_kept: bool,
    pub(super) most: usize,
    /// In ascending order of instances.
    pub(super) rows: Vec<(InstId, HeldValue)>,
    pub(super) status: Result<(), PmStatus>,
    pub(super) names: Option<Arc<InstanceDomain>>,
    /// The instances of the last question for names.
    pub(super) named: Vec<InstId>,
    /// Instances in ascending order, with the positions of their values.
    order: Vec<(InstId, usize)>,
    previous: Vec<(InstId, usize)>,
}

impl InstancesSlot {
    pub(super) fn new(
        metric: usize,
        indom: Option<InDom>,
        recipe: Recipe,
        is_kept: bool,
        most: usize,
    ) -> InstancesSlot {
        InstancesSlot {
            metric,
            indom,
            recipe,
            is_kept,
            most,
            rows: Vec::new(),
            status: Err(PmStatus::VALUE),
            names: None,
            named: Vec::new(),
            order: Vec::new(),
            previous: Vec::new(),
        }
    }

    pub(super) fn update(&mut self, round: Round<'_>) {
        let metric = round.metric(self.metric);
        let count = metric.map_or(Err(PmStatus::VALUE), |metric| metric.count);
        if self.is_kept && count == Ok(0) {
            return;
        }
        if !self.is_kept || count.is_ok() {
            self.rows.clear();
        }
        self.status = count.map(|_| ());
        let (Ok(_), Some(metric)) = (count, metric) else { return };
        sort(&mut self.order, metric);
        let previous = round.previous(self.metric);
        if let (true, Ok((previous, _))) = (self.recipe.is_rate, previous) {
            sort(&mut self.previous, previous);
        }
        let before = |instance: InstId| {
            let (metric, seconds) = previous?;
            metric.count?;
            if self.indom.is_none() {
                // An old agent may give its single value any instance number.
                return Ok((value_of(&metric, None)?, seconds));
            }
            let found = self.previous.binary_search_by_key(&instance, |(own, _)| *own);
            let (_, at) = self.previous[found.map_err(|_| PmStatus::VALUE)?];
            Ok((value_at(&metric, at)?, seconds))
        };
        if self.order.len() > self.most {
            self.status = Err(PmStatus::TOOBIG);
        }
        for (instance, at) in self.order.iter().take(self.most) {
            let value = value_at(&metric, *at).and_then(|value| {
                let sample = Sample { value, previous: before(*instance) };
                self.recipe.value(sample, round.counter_wraps)
            });
            self.rows.push((*instance, HeldValue::of(value)));
        }
    }

    /// True if there are instances whose names are still unknown.
    pub(super) fn has_new_instances(&self) -> bool {
        let instances = self.rows.iter().map(|(instance, _)| instance);
        self.indom.is_some() && !instances.eq(&self.named)
    }

    /// True when each row has a name.
    pub(super) fn is_named(&self) -> bool {
        let names = self.names.as_ref();
        names.is_some_and(|names| self.rows.iter().all(|(id, _)| names.name(*id).is_some()))
    }
}

/// Sorts the instances of a metric. Among equal instances the first delivered
/// comes first.
fn sort(order: &mut Vec<(InstId, usize)>, metric: ValueSet<'_>) {
    order.clear();
    order.extend(metric.instances().zip(0..));
    if !order.is_sorted() {
        order.sort_unstable();
    }
}

/// The values of a field of event records.
#[derive(Debug)]
pub(super) struct EventsSlot {
    pub(super) metric: usize,
    pub(super) instance: Option<InstId>,
    pub(super) field: Pmid,
    pub(super) recipe: Recipe,
    pub(super) most: usize,
    pub(super) rows: Vec<(Timestamp, HeldValue)>,
    pub(super) status: Result<(), PmStatus>,
}

impl EventsSlot {
    pub(super) fn update(&mut self, round: Round<'_>) {
        self.rows.clear();
        self.status = self.read(round);
    }

    fn read(&mut self, round: Round<'_>) -> Result<(), PmStatus> {
        let metric = round.metric(self.metric).ok_or(PmStatus::VALUE)?;
        metric.count?;
        // An instance without events is not delivered.
        let records = match value_of(&metric, self.instance) {
            Ok(value) => value.events()?,
            Err(PmStatus::VALUE) => return Ok(()),
            Err(status) => return Err(status),
        };
        for record in &records {
            self.read_record(record)?;
        }
        Ok(())
    }

    fn read_record(&mut self, record: &EventRecord) -> Result<(), PmStatus> {
        let flags =
            (record.flags != EventFlags::default()).then_some((EVENT_FLAGS, record.flags.0));
        let missed = record.missed.map(|count| (EVENT_MISSED, count));
        let own = flags.into_iter().chain(missed);
        let own = own.map(|(pmid, word)| (pmid, RawValueRef::InPlace(word)));
        let parameters = record.parameters.iter().map(|one| (one.pmid, one.value.borrowed()));
        for (_, value) in own.chain(parameters).filter(|(pmid, _)| *pmid == self.field) {
            if self.rows.len() == self.most {
                return Err(PmStatus::TOOBIG);
            }
            let sample = Sample { value, previous: Err(PmStatus::AGAIN) };
            let value = self.recipe.value(sample, false);
            self.rows.push((record.timestamp, HeldValue::of(value)));
        }
        Ok(())
    }
}
