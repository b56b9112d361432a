//! The newest frame of a host as text for scraping.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use pmderive_runtime::program::Status;

use super::names::{HostLabels, SeriesLabels, is_number, is_own, kind_of, safe_name};
use super::newest_frames::HostFrame;
use super::number;
use super::text::{Format, Kind, Writer, labels};
use crate::check::{not_a_counter, units_name};
use crate::fleet::frame::columns::Column;
use crate::fleet::frame::{ExportedMetric, Instances};
use crate::fleet::sinks::sink_set::SinkPlace;

/// The choice of metrics and form.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Place of the sink whose metrics are written ([`ExportedMetric::sinks`]).
    pub sink: SinkPlace,
    /// Whether samples have their times.
    pub times: bool,
}

/// A metric of the frame.
#[derive(Clone, Copy)]
struct Member<'s> {
    exported: &'s ExportedMetric,
    column: Column<'s>,
}

/// Counts of the written lines and the omitted labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Lines with values.
    pub samples: usize,
    /// Labels that were left out.
    pub left_out: usize,
}

/// Writes a frame.
pub fn write(writer: &mut Writer<'_>, shown: &HostFrame, choice: &Choice) -> Written {
    let families = families(shown, choice);
    let is_fleet = shown.frame().target.is_fleet();
    let mut texts = LabelTexts::new(shown);
    let ended = shown.ended();
    let times = choice.times.then(|| shown.frame().at.milliseconds());
    let mut samples = 0;
    for (name, Member { exported, column }) in &families {
        let mut has_begun = false;
        let (ids, texts) = (&column.instances.ids, texts.of(column.instances));
        for ((bits, text), id) in column.bits.iter().zip(texts.iter()).zip(ids) {
            let Some(text) = text else { continue };
            if ended.contains(&(&*exported.name, *id)) {
                continue;
            }
            if !has_begun {
                begin(writer, name, exported, is_fleet, &families);
                has_begun = true;
            }
            writer.line(name, text, times, |out| number::write(out, exported.value_type, *bits));
            samples += 1;
        }
    }
    Written { samples, left_out: texts.left_out }
}

/// Metrics by series name. If names collide, the first metric stays.
type Families<'s> = BTreeMap<String, Member<'s>>;

fn families<'s>(shown: &'s HostFrame, choice: &Choice) -> Families<'s> {
    let mut families: Families<'s> = BTreeMap::new();
    let frame = shown.frame();
    for (exported, column) in frame.schema.metrics.iter().zip(frame.columns.iter()) {
        let is_wanted = exported.sinks.contains(choice.sink);
        if !is_wanted || !is_number(exported.value_type) || column.status != Status::Values {
            continue;
        }
        let name = safe_name(&exported.name);
        // The program's own metrics are written elsewhere.
        if !is_own(&name) {
            let member = Member { exported, column };
            let first = families.entry(name).or_insert(member);
            if exported.name < first.exported.name {
                *first = member;
            }
        }
    }
    families
}

fn begin(
    writer: &mut Writer<'_>,
    name: &str,
    exported: &ExportedMetric,
    is_fleet: bool,
    families: &Families<'_>,
) {
    // A sum over the fleet falls when a host goes.
    let semantics = match is_fleet {
        true => not_a_counter(exported.semantics),
        false => exported.semantics,
    };
    let domain = if exported.has_instances { "-" } else { "PM_INDOM_NULL" };
    let units = units_name(&exported.units);
    writer.comment(&format!(
        "PCP5 {} PM_ID_NULL {} {domain} {} {units}",
        exported.name,
        exported.value_type.name().to_ascii_lowercase(),
        semantics
    ));
    let mut kind = kind_of(semantics);
    // In OpenMetrics the family of a counter has the name without `_total`, and `_created` at
    // the end of that is its own, too.
    let is_taken = |family: &str| {
        let ends = ["", "_created", "_created_total"];
        ends.iter().any(|end| families.contains_key(&format!("{family}{end}")))
    };
    if writer.format() == Format::OpenMetrics && name.strip_suffix("_total").is_some_and(is_taken) {
        kind = if kind == Kind::Counter { Kind::Unknown } else { kind };
    }
    writer.family(name, kind, exported.help.as_deref());
}

/// The labels of instances. One that comes again has none, so that its last value counts.
type Texts = Rc<[Option<Box<str>>]>;

/// Labels of series as text, made once for instances that metrics share.
struct LabelTexts {
    host: HostLabels,
    made: HashMap<*const Instances, Texts>,
    left_out: usize,
}

impl LabelTexts {
    fn new(shown: &HostFrame) -> LabelTexts {
        let frame = shown.frame();
        let host = HostLabels::new(&frame.target, &frame.host_labels);
        LabelTexts { host, made: HashMap::new(), left_out: 0 }
    }

    /// The texts for instances of the frame, parallel to the identifiers.
    fn of(&mut self, instances: &Arc<Instances>) -> Texts {
        // The frame holds the instances, so the address identifies them.
        let key = Arc::as_ptr(instances);
        if let Some(made) = self.made.get(&key) {
            return Rc::clone(made);
        }
        let comes_again = instances.come_again();
        let mut text = |at: usize| {
            let series = SeriesLabels::new(&self.host.names, instances, at);
            self.left_out += series.left_out;
            labels(series.of_host(&self.host)).into()
        };
        let all = 0..instances.ids.len();
        // Prometheus refuses a scrape with two samples of a series.
        let made: Texts = all.map(|at| (!comes_again(at)).then(|| text(at))).collect();
        self.made.insert(key, Rc::clone(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use pmderive_runtime::model::{Semantics, ValueType};

    use super::*;
    use crate::fleet::frame::Schema;
    use crate::fleet::labels::Labels;
    use crate::fleet::sinks::newest_frames::NewestFrames;
    use crate::fleet::sinks::outlets::Outlet;
    use crate::fleet::sinks::samples::{column, exported, frame, named, sinks, target};

    #[test]
    fn the_last_value_of_an_instance_is_shown() {
        let place = SinkPlace(0);
        let metric = exported("m", ValueType::U32, Semantics::Instant, sinks(&[0]));
        let schema = Arc::new(Schema { metrics: [metric].into() });
        let named = named(&["a", "b", "a", "c"]);
        let instances =
            Instances { ids: [0, 1, 0, 2].into(), ..Arc::into_inner(named).expect("not shared") };
        let given = column(&Arc::new(instances), &[5, 6, 7, 8]);
        let newest = NewestFrames::default();
        newest.push(&Arc::new(frame(&target("h", Labels::default()), 1, &schema, &[given])));
        let shown = newest.frame_of("h").expect("a frame");
        let mut text = String::new();
        let mut writer = Writer::new(&mut text, Format::OpenMetrics);
        let written = write(&mut writer, &shown, &Choice { sink: place, times: false });
        let values: Vec<&str> = text
            .lines()
            .filter_map(|line| Some(line.strip_prefix("m{")?.rsplit_once(' ')?.1))
            .collect();
        assert_eq!((values, written.samples), (vec!["6", "7", "8"], 3), "{text}");
    }
}
