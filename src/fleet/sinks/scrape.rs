//! Newest frames of hosts as text that is scraped.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use pmderive_runtime::model::InstId;
use pmderive_runtime::program::Status;

use super::names::{HostLabels, Limits, OWN, SeriesLabels, Value, is_number, kind_of, metric_name};
use super::newest::Shown;
use super::number;
use super::text::{Family, Format, Kind, Writer, labels};
use crate::fleet::columns::Column;
use crate::fleet::frame::{Exported, Instances};

/// What of frames is written.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Position of the sink, whose metrics are written ([`Exported::sinks`]).
    pub sink: u32,
    /// Whether samples have their times.
    pub times: bool,
    /// Bounds of labels.
    pub limits: Limits,
}

/// A metric in one of the frames.
#[derive(Clone, Copy)]
struct Member<'s> {
    host: usize,
    exported: &'s Exported,
    column: Column<'s>,
}

/// Writes frames. Returns how many labels were left out.
pub fn write(writer: &mut Writer<'_>, hosts: &[Shown], choice: &Choice) -> usize {
    let families = families(hosts, choice);
    let mut texts = LabelTexts::new(hosts, choice);
    let ended: Vec<HashSet<(&str, InstId)>> = hosts.iter().map(Shown::ended).collect();
    for (name, members) in &families {
        // Of metrics whose names collide the first is there.
        let Some(first) = members.iter().map(|member| member.exported).min_by_key(|e| &e.name)
        else {
            continue;
        };
        let (mut has_begun, mut seen) = (false, HashSet::new());
        for member in members.iter().filter(|member| member.exported.name == first.name) {
            let ids = &member.column.instances.ids;
            let texts = texts.of(member.host, member.column.instances);
            let milliseconds = hosts[member.host].frame().at.milliseconds();
            let times = choice.times.then_some(milliseconds);
            for ((bits, text), id) in member.column.bits.iter().zip(texts.iter()).zip(ids) {
                if ended[member.host].contains(&(&*first.name, *id)) {
                    continue;
                }
                // A series that is there twice would spoil all others.
                if members.len() > 1 && !seen.insert(Rc::clone(text)) {
                    continue;
                }
                if !has_begun {
                    begin(writer, name, first, &families);
                    has_begun = true;
                }
                writer.line(name, text, times, |out| {
                    number::write(out, member.exported.value_type, *bits);
                });
            }
        }
    }
    texts.left_out
}

type Families<'s> = BTreeMap<String, Vec<Member<'s>>>;

fn families<'s>(hosts: &'s [Shown], choice: &Choice) -> Families<'s> {
    let mut families: Families<'s> = BTreeMap::new();
    for (host, shown) in hosts.iter().enumerate() {
        let frame = shown.frame();
        for (exported, column) in frame.schema.metrics.iter().zip(frame.columns.iter()) {
            let is_wanted = exported.sinks.checked_shr(choice.sink).unwrap_or(0) & 1 == 1;
            if !is_wanted || !is_number(exported.value_type) || column.status != Status::Values {
                continue;
            }
            let name = metric_name(&exported.name);
            // The program's own are written elsewhere.
            if !name.starts_with(OWN) {
                let member = Member { host, exported, column };
                families.entry(name).or_default().push(member);
            }
        }
    }
    families
}

fn begin(writer: &mut Writer<'_>, name: &str, exported: &Exported, families: &Families<'_>) {
    let domain = if exported.has_instances { "-" } else { "PM_INDOM_NULL" };
    let mut units = exported.units.to_string();
    if units.is_empty() {
        units.push_str("none");
    }
    writer.comment(&format!(
        "PCP5 {} PM_ID_NULL {} {domain} {} {units}",
        exported.name,
        exported.value_type.name().to_ascii_lowercase(),
        exported.semantics
    ));
    let mut kind = kind_of(exported.semantics);
    // In OpenMetrics the family of a counter has the name without `_total`.
    let is_taken = |name: &str| families.contains_key(name);
    if writer.format() == Format::OpenMetrics && name.strip_suffix("_total").is_some_and(is_taken) {
        kind = if kind == Kind::Counter { Kind::Unknown } else { kind };
    }
    writer.family(&Family { name, kind, help: exported.help.as_deref() });
}

/// Labels of series as text, made once for the instances that metrics share.
struct LabelTexts {
    hosts: Vec<HostLabels>,
    limits: Limits,
    made: HashMap<(usize, *const Instances), Rc<[Rc<str>]>>,
    left_out: usize,
}

impl LabelTexts {
    fn new(frames: &[Shown], choice: &Choice) -> LabelTexts {
        let host = |shown: &Shown| {
            let frame = shown.frame();
            HostLabels::new(&frame.target, &frame.host_labels, &choice.limits)
        };
        let hosts = frames.iter().map(host).collect();
        LabelTexts { hosts, limits: choice.limits, made: HashMap::new(), left_out: 0 }
    }

    /// Those of instances of a frame, parallel to the identifiers.
    fn of(&mut self, host: usize, instances: &Arc<Instances>) -> Rc<[Rc<str>]> {
        // The frames keep the instances alive, so the address stands for them.
        let key = (host, Arc::as_ptr(instances));
        if let Some(made) = self.made.get(&key) {
            return Rc::clone(made);
        }
        let given = &self.hosts[host];
        let mut text = |at: usize| {
            let series = SeriesLabels::new(&given.names, instances, at, &self.limits);
            self.left_out += series.left_out;
            Rc::from(labels(series.labels.iter().map(|(name, value)| match value {
                Value::Host(at) => (&**name, &*given.values[*at]),
                Value::Own(text) => (&**name, &**text),
            })))
        };
        let made: Rc<[Rc<str>]> = (0..instances.ids.len()).map(&mut text).collect();
        self.made.insert(key, Rc::clone(&made));
        made
    }
}
