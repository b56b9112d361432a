//! The law of a fleet's values. Each value depends only on the plan's seed, the
//! host, the metric, the instance and the time. The stamp of a fetch therefore
//! gives its values, to the last digit.
//!
//! Names are `fleet.c0` (a counter) and `fleet.g0` (a gauge), and in a domain
//! `fleet.d0.c0`, `fleet.d0.g0` and `fleet.d0.b0` (a counter of bytes). `fleet.u0` is a
//! gauge with other units on hosts of other classes.

use pmderive_core::model::{
    InDom, InstId, MetricDesc, Pmid, Semantics, Timestamp, Units, Value, ValueType,
};

use super::plan::{Draw, Fate, Plan};
use crate::mix::mix;

/// The agent of the metrics.
const AGENT: u32 = 60;

/// 2026 began at this second. Before it, counters stand still.
const BEGINNING: i64 = 1_767_225_600;

/// Identifiers from here on belong to passing instances.
const FIRST_PASSING: InstId = 1_000_000;

const BYTES: Units = Units { dim_space: 1, ..Units::NONE };
/// Units of mixed metrics, by class, repeated. Values convert between the first two.
const MIXED: [Units; 3] =
    [BYTES, Units { scale_space: 1, ..BYTES }, Units { dim_time: 1, scale_time: 3, ..Units::NONE }];

/// A metric of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseMetric {
    /// Its name.
    pub name: String,
    /// Its descriptor, which depends on the class of the host.
    pub desc: MetricDesc,
    /// Its number on hosts of every class.
    pub number: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Bytes,
    Mixed,
}

impl Kind {
    fn letter(self) -> char {
        match self {
            Kind::Counter => 'c',
            Kind::Gauge => 'g',
            Kind::Bytes => 'b',
            Kind::Mixed => 'u',
        }
    }
}

/// Kinds of the metrics of a domain, repeated.
const KINDS: [Kind; 5] = [Kind::Counter, Kind::Counter, Kind::Gauge, Kind::Gauge, Kind::Bytes];
/// Kinds of the metrics with one value, repeated.
const SINGLE_KINDS: [Kind; 2] = [Kind::Counter, Kind::Gauge];

/// The place of a metric: its domain, its kind, and its number among those of the domain and kind.
struct Place {
    domain: Option<u32>,
    kind: Kind,
    rank: u32,
}

impl Place {
    fn among(kinds: &[Kind], domain: Option<u32>, position: u32) -> Place {
        let position = position as usize;
        let kind = kinds[position % kinds.len()];
        let before = |end: usize| kinds[..end].iter().filter(|one| **one == kind).count();
        let rank = position / kinds.len() * before(kinds.len()) + before(position % kinds.len());
        // Not larger than the position.
        Place { domain, kind, rank: rank as u32 }
    }
}

/// The first instances of a domain.
pub(super) fn lasting(count: u32) -> Vec<(InstId, Box<str>)> {
    (0..count).map(|id| (id.cast_signed(), format!("i{id}").into())).collect()
}

impl Plan {
    /// Number of metrics of a host.
    pub fn metric_count(&self) -> u32 {
        self.first_mixed() + self.mixed
    }

    /// The number of the first metric with mixed units.
    fn first_mixed(&self) -> u32 {
        self.singles + self.domains * self.per_domain
    }

    /// Number of single metrics of a kind.
    pub(super) fn singles_of(&self, kind: Kind) -> u32 {
        let of_kind = |number: &u32| Place::among(&SINGLE_KINDS, None, *number).kind == kind;
        // Not more than there are.
        (0..self.singles).filter(of_kind).count() as u32
    }

    /// The place of the metric with this number.
    fn place(&self, metric: u32) -> Place {
        if let Some(rank) = metric.checked_sub(self.first_mixed()) {
            return Place { domain: None, kind: Kind::Mixed, rank };
        }
        match metric.checked_sub(self.singles) {
            None => Place::among(&SINGLE_KINDS, None, metric),
            Some(over) => {
                let domain = over / self.per_domain.max(1);
                Place::among(&KINDS, Some(domain), over % self.per_domain.max(1))
            }
        }
    }

    /// A metric as hosts of a class have it. Classes differ in all identifiers, in which
    /// of the single counters have 32 bits, and in the units of mixed metrics.
    pub fn metric(&self, class: u32, number: u32) -> BaseMetric {
        let Place { domain, kind, rank } = self.place(number);
        let node = domain.map_or(String::new(), |domain| format!("d{domain}."));
        let semantics = match kind {
            Kind::Gauge | Kind::Mixed => Semantics::Instant,
            Kind::Counter | Kind::Bytes => Semantics::Counter,
        };
        let desc = MetricDesc {
            // A cluster has room for 1024 metrics.
            pmid: Pmid::new(AGENT, class + self.classes.max(1) * (number >> 10), number & 0x3ff),
            value_type: self.form(class, number).value_type(),
            indom: domain.map(|domain| self.indom(domain)),
            semantics,
            units: match kind {
                Kind::Bytes => BYTES,
                Kind::Mixed => MIXED[class as usize % MIXED.len()],
                Kind::Counter | Kind::Gauge => Units::NONE,
            },
        };
        BaseMetric { name: format!("fleet.{node}{}{rank}", kind.letter()), desc, number }
    }

    /// All metrics of hosts of a class.
    pub fn metrics(&self, class: u32) -> impl Iterator<Item = BaseMetric> {
        (0..self.metric_count()).map(move |number| self.metric(class, number))
    }

    /// The identifier of an instance domain.
    pub fn indom(&self, domain: u32) -> InDom {
        InDom::new(AGENT, domain)
    }

    /// Instances of a domain on a host at a time, ascending. Lasting instances are named `i0` and
    /// so on. A host that churns also has passing instances, named `p0` and so on.
    pub fn instances(&self, host: u32, domain: u32, time: Timestamp) -> Vec<(InstId, Box<str>)> {
        let mut instances = lasting(self.instance_count(host, domain));
        if domain == 0 && self.fate(host) == Fate::Churns {
            let seconds = time.sec.saturating_sub(BEGINNING).max(0);
            let turn = seconds / i64::from(self.churn_seconds.max(1));
            // Less than 32 bits hold.
            let turn = (turn % i64::from(self.passing.clamp(1, 1 << 30))) as InstId;
            instances.push((FIRST_PASSING + turn, format!("p{turn}").into()));
        }
        instances
    }

    /// The value of a metric of a host, -1 being the instance of one without a
    /// domain, at a time.
    pub fn value(&self, host: u32, metric: u32, instance: InstId, time: Timestamp) -> Value {
        self.value_in(self.class(host), host, metric, instance, time)
    }

    /// The same of a host that has become one of another class.
    pub fn value_in(
        &self,
        class: u32,
        host: u32,
        metric: u32,
        instance: InstId,
        time: Timestamp,
    ) -> Value {
        self.form(class, metric).value(self, host, metric, instance, time)
    }

    /// The form of a metric's values on hosts of a class.
    pub(super) fn form(&self, class: u32, metric: u32) -> Form {
        let Place { domain, kind, rank } = self.place(metric);
        let is_short = domain.is_none() && rank < u32::BITS && class >> rank & 1 == 1;
        match kind {
            Kind::Gauge | Kind::Mixed => Form::Gauge,
            Kind::Counter if is_short => Form::ShortCounter,
            Kind::Counter => Form::Counter,
            Kind::Bytes => Form::Bytes,
        }
    }
}

/// The form of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Gauge,
    /// Of 32 bits.
    ShortCounter,
    Counter,
    Bytes,
}

impl Form {
    fn value_type(self) -> ValueType {
        match self {
            Form::Gauge => ValueType::F64,
            Form::ShortCounter => ValueType::U32,
            Form::Counter | Form::Bytes => ValueType::U64,
        }
    }

    /// See [`Plan::value`].
    pub fn value(
        self,
        plan: &Plan,
        host: u32,
        metric: u32,
        instance: InstId,
        time: Timestamp,
    ) -> Value {
        let series = [host.into(), metric.into(), u64::from(instance.cast_unsigned())];
        let own = plan.draw(Draw::Value, &series);
        let seconds = time.sec.saturating_sub(BEGINNING).max(0).cast_unsigned();
        let grown = |per_second: u64| {
            let milliseconds =
                seconds.wrapping_mul(1000).wrapping_add(u64::from(time.nsec / 1_000_000));
            own % 1_000_000 + milliseconds.wrapping_mul(per_second) / 1000
        };
        match self {
            // From 1 to below 1000, with three digits behind the point.
            Form::Gauge => Value::F64((1_000 + mix(&[own, seconds]) % 999_000) as f64 / 1000.0),
            // It wraps, as counters of that width do.
            Form::ShortCounter => Value::U32(grown(100 + own % 900) as u32),
            Form::Counter => Value::U64(grown(100 + own % 900)),
            Form::Bytes => Value::U64(grown(10_000 + own % 1_000_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Shares;
    use super::*;

    #[test]
    fn names_follow_from_positions() {
        let plan = Plan { singles: 5, domains: 2, per_domain: 7, ..Plan::default() };
        let names: Vec<String> = plan.metrics(0).map(|metric| metric.name).collect();
        let of = |node: &str, names: &[&str]| -> Vec<String> {
            names.iter().map(|name| format!("fleet.{node}{name}")).collect()
        };
        let in_domain = ["c0", "c1", "g0", "g1", "b0", "c2", "c3"];
        let expected =
            [of("", &["c0", "g0", "c1", "g1", "c2"]), of("d0.", &in_domain), of("d1.", &in_domain)];
        assert_eq!(names, expected.concat());
        assert_eq!(plan.singles_of(Kind::Counter), 3);
        assert_eq!(plan.metric_count(), 19);
        let mixed = Plan { mixed: 2, ..plan };
        assert_eq!(mixed.metrics(0).map(|metric| metric.name).collect::<Vec<_>>()[..19], names);
        let units = |class| mixed.metric(class, 20).desc.units.to_string();
        assert_eq!(mixed.metric(0, 20).name, "fleet.u1");
        assert_eq!([0, 1, 2, 3].map(units), ["byte", "Kbyte", "sec", "byte"]);
    }

    #[test]
    fn classes_differ_in_identifiers_and_types() {
        let plan = Plan::default();
        let types = |class| plan.metrics(class).map(|metric| metric.desc.value_type).collect();
        let types: std::collections::HashSet<Vec<ValueType>> = (0..20).map(types).collect();
        assert_eq!(types.len(), 20);
        assert_ne!(plan.metric(1, 3).desc.pmid, plan.metric(2, 3).desc.pmid);
    }

    #[test]
    fn counters_grow_and_wrap() {
        let plan = Plan::default();
        let at = |seconds, metric| plan.value(1, metric, -1, Timestamp::new(seconds, 500_000_000));
        // Class 1 has a first counter of 32 bits.
        let Value::U32(before) = at(BEGINNING + 10_000_000, 0) else { panic!("32 bits") };
        let Value::U32(after) = at(BEGINNING + 10_000_010, 0) else { panic!("32 bits") };
        assert!((1_000..10_000).contains(&after.wrapping_sub(before)));
        let Value::U64(first) = at(i64::MIN, 2) else { panic!("64 bits") };
        assert!(matches!(at(BEGINNING - 1, 2), Value::U64(count) if count >= first));
        let Value::U64(long) = at(BEGINNING + 10_000_000, 2) else { panic!("64 bits") };
        assert!(long > 1 << 29, "one of 32 bits has wrapped by then");
        at(i64::MAX, 2);
    }

    #[test]
    fn one_instance_passes_after_another() {
        let churning = Shares { churning: 1.0, ..Shares::NONE };
        let plan = Plan { shares: churning, ..Plan::default() };
        let at = |second| plan.instances(7, 0, Timestamp::new(BEGINNING + second, 1));
        assert_eq!(at(42).last(), Some(&(1_000_042, "p42".into())));
        assert_eq!(at(43).last(), Some(&(1_000_043, "p43".into())));
        assert_eq!(at(42).len(), plan.instance_count(7, 0) as usize + 1);
        let slow = Plan { churn_seconds: 10, passing: 2, ..plan.clone() };
        let at = |second| slow.instances(7, 0, Timestamp::new(BEGINNING + second, 1)).pop();
        let names = [0, 9, 10, 19, 20].map(|second| at(second).expect("one").1);
        assert_eq!(names.each_ref().map(|name| &**name), ["p0", "p0", "p1", "p1", "p0"]);
        let other = plan.instances(7, 1, Timestamp::new(BEGINNING, 0));
        assert_eq!(other.len(), plan.instance_count(7, 1) as usize);
    }
}
