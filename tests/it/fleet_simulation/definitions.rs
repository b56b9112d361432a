//! What the definitions come to, computed from what hosts answered, without the
//! engine.

use pmderive_runtime::model::Value;
use pmderive_testkit::fleet::Plan;
use pmderive_testkit::sim::{Answer, Fleet};
use rustc_hash::FxHashMap;

/// What a definition of `pmderive_testkit::fleet::definitions` is, with the numbers of
/// the metrics that it reads.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// A constant times `rate(a)`.
    Rate(usize),
    /// `delta(a) / delta(b)` and a constant.
    Quotient(usize, usize),
    /// `a`, and a constant times `b`.
    Linear(usize, usize),
    /// `100 * a / (a + b + constant)`.
    Share(usize, usize),
    /// `rate(a)`, and a constant times `rate(b)`.
    Rates(usize, usize),
    /// `a` if it is above a constant, else `b`.
    Choice(usize, usize),
    /// A constant times `a` in units of 1024.
    Rescaled(usize),
    /// A constant times `delta(a)`.
    Delta(usize),
    /// A constant times `sum(a)`.
    Sum(usize),
    /// A constant times `avg(delta(a))`, and `b`.
    MeanDelta(usize, usize),
    /// `a` as it is, in units that depend on the host.
    Mixed(usize),
}

/// All definitions.
pub struct Definitions {
    names: Vec<String>,
    /// Positions of the names.
    positions: FxHashMap<String, usize>,
    forms: Vec<Form>,
    /// The domain of each metric.
    domains: Vec<Option<u32>>,
}

/// What a host had when it answered.
#[derive(Debug)]
pub struct Base {
    pub answer: Answer,
    /// By domain.
    instances: Vec<Vec<i32>>,
    /// By metric, parallel to the instances of its domain.
    values: Vec<Vec<f64>>,
}

/// What a definition has to come to.
#[derive(Debug)]
pub enum Expected {
    /// These values.
    Values(Vec<(i32, f64)>),
    /// It is a difference, and there is nothing before.
    Nothing,
}

impl Definitions {
    /// The first ones for the hosts of a plan.
    pub fn new(plan: &Plan, count: u32) -> Definitions {
        let metrics: Vec<_> = plan.metrics(0).collect();
        let number = |name: String| {
            let name = format!("fleet.{name}");
            metrics.iter().position(|metric| metric.name == name).expect("a metric of the fleet")
        };
        let with = |letter: char| {
            let prefix = format!("fleet.{letter}");
            metrics.iter().filter(|metric| metric.name.starts_with(&prefix)).count() as u32
        };
        let form = |index: u32| {
            if index % 5 < 2 {
                let d = index / 5 % plan.domains;
                let of = |name: &str| number(format!("d{d}.{name}"));
                return match index / 5 % 8 {
                    0 => Form::Rate(of("c0")),
                    1 => Form::Quotient(of("c0"), of("c1")),
                    2 => Form::Linear(of("g0"), of("g1")),
                    3 => Form::Share(of("g0"), of("g1")),
                    4 => Form::Rates(of("c0"), of("c1")),
                    5 => Form::Choice(of("g0"), of("g1")),
                    6 => Form::Rescaled(of("b0")),
                    _ => Form::Delta(of("b0")),
                };
            }
            let of_domain = |name: &str| number(format!("d{}.{name}", index % plan.domains));
            let other = index + 1 + index / plan.singles;
            let [c, other_c] = [index, other].map(|one| number(format!("c{}", one % with('c'))));
            let [g, other_g] = [index, other].map(|one| number(format!("g{}", one % with('g'))));
            match index / 5 % 8 {
                0 => Form::Rate(c),
                1 => Form::Quotient(c, other_c),
                2 => Form::Linear(g, other_g),
                3 => Form::Share(g, other_g),
                4 => Form::Choice(g, other_g),
                5 => Form::Sum(of_domain("g0")),
                6 => Form::MeanDelta(of_domain("c1"), g),
                _ => Form::Delta(c),
            }
        };
        let domains = metrics.iter().map(|metric| metric.desc.indom.map(|indom| indom.serial()));
        let mut forms: Vec<Form> = (0..count).map(form).collect();
        let mut names: Vec<String> =
            (0..count).map(|index| format!("fleet.derived.m{index}")).collect();
        for mixed in 0..plan.mixed {
            forms.push(Form::Mixed(number(format!("u{mixed}"))));
            names.push(format!("fleet.derived.u{mixed}"));
        }
        let positions = names.iter().cloned().zip(0..).collect();
        Definitions { names, positions, forms, domains: domains.collect() }
    }

    /// What a definition is called.
    pub fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// The definition that is called so.
    pub fn index(&self, name: &str) -> usize {
        self.positions.get(name).copied().expect("a definition")
    }

    /// True if the units of a definition depend on the class of the host.
    pub fn is_mixed(&self, index: usize) -> bool {
        matches!(self.forms[index], Form::Mixed(_))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.forms.len()
    }

    /// What a host had when it answered.
    pub fn base(&self, fleet: &Fleet, answer: Answer) -> Base {
        let plan = fleet.plan();
        let instances = |domain| {
            let all = plan.instances(answer.host, domain, answer.time);
            all.iter().map(|(id, _)| *id).collect()
        };
        let instances: Vec<Vec<i32>> = (0..plan.domains).map(instances).collect();
        let values = |(number, domain): (u32, &Option<u32>)| {
            let of = |instance: i32| {
                float(&plan.value_in(answer.class, answer.host, number, instance, answer.time))
            };
            match domain {
                None => vec![of(-1)],
                Some(domain) => instances[*domain as usize].iter().map(|one| of(*one)).collect(),
            }
        };
        let values = (0..).zip(&self.domains).map(values).collect();
        Base { answer, instances, values }
    }

    /// What a definition with a constant comes to.
    pub fn expected(
        &self,
        index: usize,
        constant: u32,
        now: &Base,
        before: Option<&Base>,
    ) -> Expected {
        let k = f64::from(constant);
        let of = |metric: usize| -> Vec<(i32, f64)> {
            let values = now.values[metric].iter().copied();
            match self.domains[metric] {
                None => vec![(-1, now.values[metric][0])],
                Some(domain) => {
                    now.instances[domain as usize].iter().copied().zip(values).collect()
                }
            }
        };
        let delta = |metric: usize| -> Option<Vec<(i32, f64)>> {
            let before = before?;
            let was = |id: i32| {
                let Some(domain) = self.domains[metric] else {
                    return before.values[metric].first();
                };
                let at = before.instances[domain as usize].binary_search(&id).ok()?;
                before.values[metric].get(at)
            };
            let differences = of(metric).into_iter();
            Some(differences.filter_map(|(id, now)| Some((id, now - was(id)?))).collect())
        };
        // A host's clock may have been set back; there is no rate then.
        let elapsed = before
            .map(|before| now.answer.stamp.seconds_since(before.answer.stamp))
            .filter(|elapsed| *elapsed > 0.0);
        let rate = |metric: usize| {
            let elapsed = elapsed?;
            Some(delta(metric)?.into_iter().map(|(id, change)| (id, change / elapsed)).collect())
        };
        let each = |values: Vec<(i32, f64)>, change: &dyn Fn(f64) -> f64| {
            values.into_iter().map(|(id, value)| (id, change(value))).collect::<Vec<_>>()
        };
        let both = |a: Vec<(i32, f64)>, b: Vec<(i32, f64)>, join: &dyn Fn(f64, f64) -> f64| {
            a.iter().zip(&b).map(|((id, a), (_, b))| (*id, join(*a, *b))).collect::<Vec<_>>()
        };
        let found = match self.forms[index] {
            Form::Rate(a) => rate(a).map(|a| each(a, &|a| k * a)),
            Form::Quotient(a, b) => {
                delta(a).zip(delta(b)).map(|(a, b)| both(a, b, &|a, b| a / b + k))
            }
            Form::Linear(a, b) => Some(both(of(a), of(b), &|a, b| a + k * b)),
            Form::Share(a, b) => Some(both(of(a), of(b), &|a, b| 100.0 * a / (a + b + k))),
            Form::Rates(a, b) => rate(a).zip(rate(b)).map(|(a, b)| both(a, b, &|a, b| a + k * b)),
            Form::Choice(a, b) => Some(both(of(a), of(b), &|a, b| if a > k { a } else { b })),
            Form::Mixed(a) => Some(of(a)),
            // A whole number stays one.
            Form::Rescaled(a) => Some(each(of(a), &|a| k * (a / 1024.0).round())),
            Form::Delta(a) => delta(a).map(|a| each(a, &|a| k * a)),
            Form::Sum(a) => Some(vec![(-1, k * of(a).iter().map(|(_, a)| a).sum::<f64>())]),
            Form::MeanDelta(a, b) => {
                let differences = delta(a).unwrap_or_default();
                let sum: f64 = differences.iter().map(|(_, a)| a).sum();
                // The mean of nothing is zero, as libpcp has it.
                let mean = sum / differences.len().max(1) as f64;
                Some(vec![(-1, k * mean + of(b)[0].1)])
            }
        };
        match found {
            Some(values) => Expected::Values(values),
            None => Expected::Nothing,
        }
    }

    /// True if a definition has no values without what was before.
    pub fn is_difference(&self, index: usize) -> bool {
        let form = self.forms[index];
        matches!(form, Form::Rate(_) | Form::Quotient(..) | Form::Rates(..) | Form::Delta(_))
    }

    /// How far values may be from what is expected, as a part of them. Sums of numbers
    /// depend on their order, and a mean has 32 bits.
    pub fn tolerance(&self, index: usize) -> f64 {
        if matches!(self.forms[index], Form::MeanDelta(..)) { 1e-6 } else { 1e-12 }
    }

    /// True if a definition reads what was before.
    pub fn reads_before(&self, index: usize) -> bool {
        self.is_difference(index) || matches!(self.forms[index], Form::MeanDelta(..))
    }
}

fn float(value: &Value) -> f64 {
    match value {
        Value::U32(value) => (*value).into(),
        Value::U64(value) => *value as f64,
        Value::F64(value) => *value,
        other => panic!("{other:?} is no number of the fleet"),
    }
}
