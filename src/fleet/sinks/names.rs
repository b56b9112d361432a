#![doc = include_str!("names.md")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use pmderive_runtime::model::{Semantics, ValueType};
use pmderive_runtime::program::scalar_of;

use super::text::Kind;
use crate::fleet::frame::Instances;
use crate::fleet::labels::Labels;
use crate::fleet::targets::target::Target;

/// True for the name of a series of the program's own, or of its process.
pub fn is_own(series: &str) -> bool {
    ["pmderive_", "process_"].iter().any(|start| series.starts_with(start))
}

/// Most labels of a series.
pub const MOST_LABELS: usize = 29;
/// Most bytes of the name of a label.
const MOST_NAME_BYTES: usize = 128;
/// Most bytes of the value of a label.
const MOST_VALUE_BYTES: usize = 1024;

/// The name of a metric's series, or of a label, with every forbidden character replaced.
pub fn safe_name(name: &str) -> String {
    let mut safe = String::with_capacity(name.len() + 1);
    if name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        safe.push('_');
    }
    safe.extend(name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
    safe
}

/// The type of a metric's series.
pub fn kind_of(semantics: Semantics) -> Kind {
    match semantics {
        Semantics::Counter => Kind::Counter,
        _ => Kind::Gauge,
    }
}

/// True if values of the type can be exported as numbers.
pub fn is_number(value_type: ValueType) -> bool {
    scalar_of(value_type).is_some()
}

/// Metrics whose series would have the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The name.
    pub series: String,
    /// The metrics, by name; a single metric collides with a name of the program's own.
    pub metrics: Vec<String>,
}

/// The groups of metrics that cannot be exported together, by the name of the series. `metrics` may
/// repeat a metric.
pub fn collisions<'n>(metrics: impl IntoIterator<Item = &'n str>) -> Vec<Collision> {
    let mut by_name: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for metric in metrics {
        by_name.entry(safe_name(metric)).or_default().push(metric);
    }
    let collision = |(series, mut metrics): (String, Vec<&str>)| {
        metrics.sort_unstable();
        metrics.dedup();
        let collides = metrics.len() > 1 || is_own(&series);
        let metrics = metrics.into_iter().map(str::to_owned).collect();
        collides.then_some(Collision { series, metrics })
    };
    by_name.into_iter().filter_map(collision).collect()
}

/// The origin of a host's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Giver {
    /// Its file of targets, or we ourselves.
    Target,
    /// PCP.
    Pcp,
}

/// Labels that all series of a host have, unless a series has such a label itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostLabels {
    /// Their names and origins: the same for many hosts.
    pub names: Vec<(Giver, Box<str>)>,
    /// Their values, parallel to the names.
    pub values: Vec<Box<str>>,
}

impl HostLabels {
    /// The labels of a host.
    pub fn new(target: &Target, of_pcp: &Labels) -> HostLabels {
        let mut all = HostLabels::default();
        if !target.is_fleet() && target.labels.get("instance").is_none_or(str::is_empty) {
            all.names.push((Giver::Target, "instance".into()));
            all.values.push(target.name.clone());
        }
        for (giver, labels) in [(Giver::Target, &target.labels), (Giver::Pcp, of_pcp)] {
            let kept = labels.iter().filter(|(name, value)| is_kept(name, value));
            // No series gets more labels than this.
            for (name, value) in kept.take(MOST_LABELS) {
                all.names.push((giver, name.into()));
                all.values.push(cut(value).into());
            }
        }
        all
    }
}

/// The place of a label's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'v> {
    /// With the host: position in [`HostLabels::values`].
    Host(usize),
    /// Here.
    Own(Cow<'v, str>),
}

/// Labels of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesLabels<'v> {
    /// Names and values, by name.
    pub labels: Vec<(String, Value<'v>)>,
    /// Number of labels left out, because there were too many or the name is too long.
    pub left_out: usize,
    /// True for an instance of a host in a ranking over the fleet, which has its name as a label.
    is_ranked: bool,
}

impl<'v> SeriesLabels<'v> {
    /// The labels of an instance, given the names of its host's.
    pub fn new(
        host: &[(Giver, Box<str>)],
        instances: &'v Instances,
        at: usize,
    ) -> SeriesLabels<'v> {
        let mut series = SeriesLabels::default();
        let given = |giver: Giver| {
            let labels = host.iter().enumerate().filter(move |(_, (by, _))| *by == giver);
            labels.map(|(at, (_, name))| (&**name, Value::Host(at)))
        };
        // The label that names an instance comes first, so other labels do not cut it short.
        let instance = given(Giver::Target).find(|(name, _)| *name == "instance");
        // Groups of hosts are told apart by their labels.
        let has_labels = instances.labels.get(at).is_some_and(|labels| !labels.is_empty());
        let is_group = instance.is_none() && has_labels;
        series.is_ranked = is_group && instances.labels[at].get("instance").is_some();
        if let Some((name, value)) = instance {
            series.claim(name, value);
        }
        let named = instances.ids.get(at).zip(instances.names.get(at));
        if let Some((id, name)) = named.filter(|_| !is_group) {
            series.labels.push(("instid".to_owned(), Value::Own(id.to_string().into())));
            if !name.is_empty() {
                series.labels.push(("instname".to_owned(), Value::Own(cut(name).into())));
            }
        }
        for (name, value) in given(Giver::Target).filter(|(name, _)| *name != "instance") {
            series.claim(name, value);
        }
        let none = Labels::default();
        let own = instances.labels.get(at).unwrap_or(&none);
        let own = own.iter().map(|(name, _)| name).collect::<Vec<_>>();
        let domain = &instances.domain_labels;
        if let Some(labels) = instances.labels.get(at) {
            series.claim_all(labels.iter());
        }
        let is_own = |name: &str| own.binary_search(&name).is_ok();
        series.claim_all(domain.iter().filter(|(name, _)| !is_own(name)));
        for (name, value) in given(Giver::Pcp) {
            if !is_own(name) && domain.get(name).is_none() {
                series.claim(name, value);
            }
        }
        series.labels.sort_by(|(a, _), (b, _)| a.cmp(b));
        series
    }

    /// The names and values for a host.
    pub fn of_host<'l>(&'l self, host: &'l HostLabels) -> impl Iterator<Item = (&'l str, &'l str)> {
        self.labels.iter().map(|(name, value)| match value {
            Value::Host(at) => (&**name, &*host.values[*at]),
            Value::Own(text) => (&**name, &**text),
        })
    }

    fn claim_all(&mut self, labels: impl Iterator<Item = (&'v str, &'v str)>) {
        for (name, value) in labels.filter(|(name, value)| is_kept(name, value)) {
            self.claim(name, Value::Own(cut(value).into()));
        }
    }

    fn claim(&mut self, name: &str, value: Value<'v>) {
        let mut name = safe_name(name);
        if self.labels.len() >= MOST_LABELS {
            self.left_out += 1;
            return;
        }
        let is_reserved = |name: &str| match name {
            "instid" => true,
            "instname" => !self.is_ranked,
            _ => false,
        };
        while is_reserved(&name) || self.labels.iter().any(|(n, _)| *n == name) {
            name.insert_str(0, "exported_");
        }
        if name.len() > MOST_NAME_BYTES {
            self.left_out += 1;
            return;
        }
        self.labels.push((name, value));
    }
}

fn is_kept(name: &str, value: &str) -> bool {
    // Receivers give a meaning to names that begin with two underscores. That includes names that
    // begin so once they are safe.
    !name.is_empty() && !value.is_empty() && !safe_name(name).starts_with("__")
}

/// The beginning of a text that is the value of a label. To PCP and to parsers of receivers
/// it ends where a NUL is.
fn cut(text: &str) -> &str {
    let text = text.split('\0').next().unwrap_or_default();
    &text[..text.floor_char_boundary(MOST_VALUE_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::sinks::samples;

    const DOCUMENT: &str = include_str!("names.md");

    /// The rows of the table with this head.
    fn table(head: &str) -> Vec<Vec<&'static str>> {
        let mut lines = DOCUMENT.lines().skip_while(|line| !line.starts_with(head)).skip(2);
        let cells = |line: &'static str| {
            let line = line.strip_prefix('|')?.strip_suffix('|')?;
            Some(line.split('|').map(|cell| cell.trim().trim_matches('`')).collect())
        };
        std::iter::from_fn(|| cells(lines.next()?)).collect()
    }

    #[test]
    fn names_are_those_of_the_document() {
        let rows = table("| metric | series |");
        assert_eq!(rows.len(), 4);
        for row in rows {
            assert_eq!(safe_name(row[0]), row[1]);
        }
    }

    #[test]
    fn limits_are_those_of_the_document() {
        let said: Vec<usize> =
            table("| limit |").iter().map(|row| row[1].parse().expect("a number")).collect();
        assert_eq!(said, [MOST_LABELS, MOST_NAME_BYTES, MOST_VALUE_BYTES]);
    }

    /// Labels as in `{a="b",c="d"}`, and the text behind them.
    fn labels(text: &str) -> (Vec<(&str, &str)>, &str) {
        let (inside, rest) = text.strip_prefix('{').and_then(|t| t.split_once('}')).expect("{}");
        let all = inside.split(',').filter(|label| !label.is_empty()).map(|label| {
            let (name, value) = label.split_once('=').expect("=");
            (name, value.trim_matches('"'))
        });
        (all.collect(), rest)
    }

    /// The labels of a series as `{a="b",c="d"}`.
    fn shown(host: &HostLabels, series: &SeriesLabels<'_>) -> String {
        let labels = series.of_host(host).map(|(name, value)| format!("{name}={value:?}"));
        format!("{{{}}}", labels.collect::<Vec<_>>().join(","))
    }

    #[test]
    fn labels_are_those_of_the_document() {
        let cases = DOCUMENT.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
        let mut count = 0;
        for case in cases.expect("cases").split("\n\n") {
            let (mut target, mut host) = (Labels::default(), Labels::default());
            let mut instances = Instances::default();
            for line in case.lines() {
                let (what, rest) = line.split_once(' ').expect("a word");
                match what {
                    "target" => target = labels(rest).0.into_iter().collect(),
                    "host" => host = labels(rest).0.into_iter().collect(),
                    "instance" => {
                        let [id, name, rest] =
                            rest.splitn(3, ' ').collect::<Vec<_>>()[..].try_into().expect("three");
                        let (own, rest) = labels(rest);
                        let domain = labels(rest.strip_prefix(" of ").expect("of")).0;
                        instances = Instances {
                            ids: [id.parse().expect("a number")].into(),
                            names: [name.into()].into(),
                            domain_labels: domain.into_iter().collect(),
                            labels: [own.into_iter().collect()].into(),
                        };
                    }
                    "series" => {
                        let target = samples::target("web1:44321", target.clone());
                        let host = HostLabels::new(&target, &host);
                        let series = SeriesLabels::new(&host.names, &instances, 0);
                        assert_eq!(shown(&host, &series), rest, "{case}");
                        count += 1;
                    }
                    _ => panic!("{line}"),
                }
            }
        }
        assert_eq!(count, 6);
    }

    #[test]
    fn what_is_beyond_the_limits_is_left_out_or_cut() {
        let (long_name, long_value) =
            ("n".repeat(MOST_NAME_BYTES + 1), "ä".repeat(MOST_VALUE_BYTES));
        let name = format!("{}:44321", "w".repeat(MOST_VALUE_BYTES));
        let long_value = format!("h{long_value}");
        let own = [(&*long_name, "x"), ("a", &*long_value)];
        let target = samples::target(&name, Labels::from_iter(own));
        let numbered: Vec<String> = (0..MOST_LABELS).map(|at| format!("l{at:02}")).collect();
        let of_pcp: Labels = numbered.iter().map(|name| (&**name, "1")).collect();
        let host = HostLabels::new(&target, &of_pcp);
        let single = Instances::default();
        let series = SeriesLabels::new(&host.names, &single, 0);
        let value = |at: usize| match &series.labels[at] {
            (name, Value::Host(at)) => (&**name, &*host.values[*at]),
            (name, Value::Own(_)) => panic!("{name} is of the instance"),
        };
        assert_eq!(value(0), ("a", &long_value[..MOST_VALUE_BYTES - 1]));
        assert_eq!(value(1), ("instance", &*name));
        assert_eq!(series.labels.len(), MOST_LABELS);
        assert_eq!(value(MOST_LABELS - 1).0, "l26");
        assert_eq!(series.left_out, 3);
    }

    #[test]
    fn the_fleet_itself_is_no_instance() {
        let host = HostLabels::new(&Target::fleet(), &Labels::default());
        assert_eq!(host, HostLabels::default());
    }

    #[test]
    fn rankings_name_instances_of_hosts() {
        let shown = |own: &str| {
            let instances = Instances {
                ids: [3].into(),
                names: ["any".into()].into(),
                domain_labels: Labels::default(),
                labels: [labels(own).0.into_iter().collect()].into(),
            };
            let host = HostLabels::new(&Target::fleet(), &Labels::default());
            shown(&host, &SeriesLabels::new(&host.names, &instances, 0))
        };
        let ranked = r#"{instance="web1:44321",instname="vda",rack="a"}"#;
        assert_eq!(shown(ranked), ranked);
        // A label of targets by which hosts are grouped has another name.
        assert_eq!(shown(r#"{instname="x",rack="a"}"#), r#"{exported_instname="x",rack="a"}"#);
    }

    #[test]
    fn names_that_collide_are_found() {
        let metrics = ["a_b.c", "x.y", "a.b_c", "x.y", "pmderive.up", "z"];
        let found = collisions(metrics);
        let found: Vec<_> = found.iter().map(|c| (&*c.series, c.metrics.join(" "))).collect();
        assert_eq!(
            found,
            [("a_b_c", "a.b_c a_b.c".into()), ("pmderive_up", "pmderive.up".to_owned())]
        );
    }
}
