//! Presents the results of a whole fleet as one sample of one source, for reports of single
//! hosts. An instance of a host's metric is named `{instance="web1:44321",instname="sda"}`; an
//! instance of an aggregate is a group.

use std::collections::HashSet;
use std::sync::Arc;

use pmderive_runtime::eval::{Value, Values};
use pmderive_runtime::model::{InDom, InstId, InstanceDomain, PmStatus, Timestamp, ValueType};
use pmderive_runtime::program::{OutputId, Reason, Status};

use super::columns::Column;
use crate::bind::Desc;
use crate::engine::{Metric, ReportSample, Results};
use crate::fleet::aggregates::FleetDomain;
use crate::fleet::frame::{ExportedMetric, Frame};

/// The domain number of all instance domains here.
const DOMAIN: u32 = 1;

/// One row of the report: a metric.
#[derive(Clone, Debug)]
pub enum Row {
    /// A metric of each host, by its name in frames.
    OfHosts(Arc<str>),
    /// A definition or expression over the fleet, by its name in frames.
    OfFleet(Arc<str>),
}

/// Makes samples from frames.
pub struct Sheet {
    rows: Vec<Row>,
    /// Instances of hosts, which keep their numbers.
    of_hosts: FleetDomain<(Arc<str>, Arc<str>)>,
    /// The instances of the sample before.
    before: Vec<Vec<InstId>>,
}

/// The form of one metric in the sample. A row has several if its hosts differ in metadata.
struct Shape {
    name: Arc<str>,
    /// The metadata, or the status to show if no host has the metric.
    desc: Result<Desc, PmStatus>,
    values: MetricValues,
    names: Vec<(InstId, Box<str>)>,
    mistake: Option<String>,
}

/// Values of one metric.
#[derive(Clone, Debug, Default)]
struct MetricValues {
    /// The first failure, which counts if there are no instances.
    status: Option<PmStatus>,
    ids: Vec<InstId>,
    bits: Vec<u64>,
    /// All texts. Their places are in `bits`.
    blobs: Vec<u8>,
}

impl Sheet {
    /// A sheet with these rows.
    pub fn new(rows: Vec<Row>) -> Sheet {
        Sheet { rows, of_hosts: FleetDomain::default(), before: Vec::new() }
    }

    /// Passes a sample to `show`. Its input is the frames of hosts by name, and that of the
    /// fleet. `mistake` returns the mistake of a row that no host can compute.
    ///
    /// # Errors
    /// The error of `show`.
    pub fn show<E>(
        &mut self,
        time: Timestamp,
        hosts: &[Frame],
        fleet: Option<&Frame>,
        mistake: impl Fn(&str) -> Option<String>,
        show: impl FnOnce(&ReportSample<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.forget();
        let mut shapes: Vec<Shape> = Vec::new();
        for row in self.rows.clone() {
            let before = shapes.len();
            let name = match &row {
                Row::OfHosts(name) => {
                    self.of_hosts(name, hosts, &mut shapes);
                    name
                }
                Row::OfFleet(name) => {
                    of_fleet(name, fleet, &mut shapes);
                    name
                }
            };
            if shapes.len() == before {
                let mistake = mistake(name);
                let (status, mistake) = match mistake {
                    Some(mistake) => (PmStatus::BADDERIVE, mistake),
                    None if hosts.is_empty() => (PmStatus::AGAIN, "no host has answered".into()),
                    None => (PmStatus::AGAIN, "no host has this metric".into()),
                };
                shapes.push(Shape {
                    name: Arc::clone(name),
                    desc: Err(status),
                    values: MetricValues::default(),
                    names: Vec::new(),
                    mistake: Some(mistake),
                });
            }
        }
        let (mut metrics, mut domains, mut mistakes) = (Vec::new(), Vec::new(), Vec::new());
        let mut values = Vec::new();
        for shape in shapes {
            let serial = u32::try_from(values.len()).unwrap_or(0);
            let mut metric =
                Metric { name: shape.name, desc: shape.desc, output: None, is_hidden: false };
            let mut domain = None;
            if let Ok(desc) = &mut metric.desc {
                desc.indom = desc.indom.map(|_| InDom::new(DOMAIN, serial));
                metric.output = Some(OutputId(serial));
                domain = desc.indom.map(|_| Arc::new(InstanceDomain::new(shape.names)));
                values.push((desc.value_type, shape.values));
            }
            metrics.push(metric);
            domains.push(domain);
            mistakes.push(shape.mistake);
        }
        let outputs: Vec<Values<'_>> =
            values.iter().map(|(value_type, values)| values.shown(*value_type)).collect();
        let shown = show(&ReportSample {
            source: "the fleet",
            metrics: &metrics,
            values: Results::Given(time, &outputs),
            domains: &domains,
            mistakes: &mistakes,
            lacking: &[],
        });
        self.before = values.into_iter().map(|(_, values)| values.ids).collect();
        shown
    }

    /// Forgets instances of hosts that the sample before lacked, once there are many.
    fn forget(&mut self) {
        if !self.of_hosts.is_full() {
            return;
        }
        // Numbers of groups count as well, so a few more stay.
        let before: HashSet<InstId> = self.before.iter().flatten().copied().collect();
        self.of_hosts.keep(|entry| before.contains(&entry.id));
    }

    /// The values of a metric on all hosts. Hosts with the same metadata share a shape.
    fn of_hosts(&mut self, name: &Arc<str>, hosts: &[Frame], shapes: &mut Vec<Shape>) {
        let first = shapes.len();
        for frame in hosts {
            let Some((at, metric)) = frame.schema.find(name) else { continue };
            let Some(column) = frame.columns.get(at) else { continue };
            let desc = Desc { indom: Some(InDom::new(DOMAIN, 0)), ..desc_of(metric) };
            let known = shapes[first..].iter().position(|shape| shape.desc == Ok(desc));
            let at = known.map_or(shapes.len(), |at| first + at);
            if known.is_none() {
                let (values, names) = (MetricValues::default(), Vec::new());
                let name = Arc::clone(name);
                shapes.push(Shape { name, desc: Ok(desc), values, names, mistake: None });
            }
            let shape = &mut shapes[at];
            let instances = column.instances;
            if let Status::Failed(status) = column.status {
                shape.values.status.get_or_insert(status);
            }
            let host: Arc<str> = Arc::from(&*frame.target.name);
            for (lane, _) in instances.ids.iter().enumerate() {
                let instance = instances.names.get(lane).cloned().unwrap_or_default();
                let key = (Arc::clone(&host), instance);
                let place = [("instance", &*key.0), ("instname", &*key.1)];
                let labels = place.into_iter().filter(|(_, value)| !value.is_empty());
                let entry = self.of_hosts.entry(&key, || labels);
                shape.values.ids.push(entry.id);
                shape.names.push((entry.id, Box::from(&*entry.name)));
            }
            shape.values.add(metric.value_type, &column);
        }
    }
}

/// The values of a definition over the fleet.
fn of_fleet(name: &Arc<str>, fleet: Option<&Frame>, shapes: &mut Vec<Shape>) {
    let Some(fleet) = fleet else { return };
    let Some((at, metric)) = fleet.schema.find(name) else { return };
    let Some(column) = fleet.columns.get(at) else { return };
    let instances = column.instances;
    let mut values = MetricValues { ids: instances.ids.to_vec(), ..MetricValues::default() };
    if let Status::Failed(status) = column.status {
        values.status = Some(status);
    }
    values.add(metric.value_type, &column);
    let names = instances.ids.iter().zip(&instances.names);
    let names = names.map(|(id, name)| (*id, Box::from(&**name))).collect();
    let desc = Ok(desc_of(metric));
    shapes.push(Shape { name: Arc::clone(name), desc, values, names, mistake: None });
}

fn desc_of(metric: &ExportedMetric) -> Desc {
    Desc {
        value_type: metric.value_type,
        indom: metric.has_instances.then(|| InDom::new(DOMAIN, 0)),
        semantics: metric.semantics,
        units: metric.units,
    }
}

impl MetricValues {
    fn add(&mut self, value_type: ValueType, column: &Column<'_>) {
        for (lane, bits) in column.bits.iter().enumerate() {
            self.bits.push(match column.value(value_type, lane) {
                Value::Text(bytes) | Value::Bytes(bytes) => {
                    let start = self.blobs.len() as u64;
                    self.blobs.extend_from_slice(bytes);
                    start << 32 | bytes.len() as u64
                }
                _ => *bits,
            });
        }
    }

    /// The values of a metric of this type, as reports take them.
    fn shown(&self, value_type: ValueType) -> Values<'_> {
        let status = match (self.ids.is_empty(), self.status) {
            (true, Some(status)) => Status::Failed(status),
            (true, None) => Status::Empty(Reason::OperandEmpty),
            (false, _) => Status::Values,
        };
        Values::of(status, value_type, &self.ids, &self.bits, &self.blobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::aggregates::MAX_KNOWN;
    use crate::fleet::frame::Event;
    use crate::fleet::sinks::samples::{frame_of, named};

    /// Processes come and go on each host, and `eval --targets` may run for long.
    #[test]
    fn instances_that_went_are_forgotten() {
        const MANY: usize = MAX_KNOWN / 2;
        let mut sheet = Sheet::new(vec![Row::OfHosts("n".into())]);
        for slot in 0..6 {
            let names: Vec<String> = (0..MANY).map(|at| format!("{slot} {at}")).collect();
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            let event = Arc::unwrap_or_clone(frame_of(slot, &named(&names)));
            let Event::Frame(frame) = event else { panic!("a frame") };
            let shown = sheet.show(
                Timestamp::default(),
                &[frame],
                None,
                |_| None,
                |shown| {
                    let output = shown.metrics[0].output.expect("values");
                    assert_eq!(shown.values.get(output).len(), MANY);
                    Ok::<(), ()>(())
                },
            );
            assert_eq!(shown, Ok(()));
        }
        let known = sheet.of_hosts.instances().len();
        assert!(known <= MAX_KNOWN + MANY, "{known}");
    }
}
