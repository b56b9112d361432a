//! Values of the definitions, computed without the engine from the answers of hosts.

use pmderive_runtime::model::Value;
use pmderive_testkit::fleet::Plan;
use pmderive_testkit::sim::Answer;
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

impl Base {
    /// The value of a metric of the instance that is at a position later.
    fn of(&self, metric: usize, domain: Option<u32>, later: &Base, at: usize) -> Option<f64> {
        let Some(domain) = domain else { return Some(self.values[metric][0]) };
        let [ids, ids_later] = [self, later].map(|base| &base.instances[domain as usize]);
        let id = ids_later[at];
        // Mostly they are those that they were.
        let at = if ids.get(at) == Some(&id) { at } else { ids.binary_search(&id).ok()? };
        Some(self.values[metric][at])
    }
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
    pub fn base(&self, plan: &Plan, answer: Answer) -> Base {
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

    /// Fills in what a definition with a constant comes to. False if it is a difference,
    /// and there is nothing before.
    pub fn expected(
        &self,
        index: usize,
        constant: u32,
        now: &Base,
        before: Option<&Base>,
        values: &mut Vec<(i32, f64)>,
    ) -> bool {
        values.clear();
        let (k, form) = (f64::from(constant), self.forms[index]);
        // A host's clock may have been set back; there is no rate then.
        let elapsed = before
            .map(|before| now.answer.stamp.seconds_since(before.answer.stamp))
            .filter(|elapsed| *elapsed > 0.0);
        let is_there = match form {
            Form::Rate(_) | Form::Rates(..) => elapsed.is_some(),
            Form::Quotient(..) | Form::Delta(_) => before.is_some(),
            _ => true,
        };
        if !is_there {
            return false;
        }
        // Values by the position of the instance.
        let delta = |metric: usize, at: usize| {
            Some(now.values[metric][at] - before?.of(metric, self.domains[metric], now, at)?)
        };
        let rate = |metric: usize, at: usize| Some(delta(metric, at)? / elapsed?);
        let each = |metric: usize, value: &dyn Fn(usize) -> Option<f64>, values: &mut Vec<_>| {
            let ids = self.domains[metric].map_or(&[-1][..], |of| &now.instances[of as usize]);
            let all = ids.iter().enumerate();
            values.extend(all.filter_map(|(at, id)| Some((*id, value(at)?))));
        };
        let now = |metric: usize, at: usize| now.values[metric][at];
        match form {
            Form::Rate(a) => each(a, &|at| Some(k * rate(a, at)?), values),
            Form::Quotient(a, b) => {
                each(a, &|at| Some(delta(a, at)? / delta(b, at)? + k), values);
            }
            Form::Linear(a, b) => each(a, &|at| Some(now(a, at) + k * now(b, at)), values),
            Form::Share(a, b) => {
                each(a, &|at| Some(100.0 * now(a, at) / (now(a, at) + now(b, at) + k)), values);
            }
            Form::Rates(a, b) => each(a, &|at| Some(rate(a, at)? + k * rate(b, at)?), values),
            Form::Choice(a, b) => {
                let larger = |at| if now(a, at) > k { now(a, at) } else { now(b, at) };
                each(a, &|at| Some(larger(at)), values);
            }
            Form::Mixed(a) => each(a, &|at| Some(now(a, at)), values),
            // A whole number stays one.
            Form::Rescaled(a) => {
                each(a, &|at| Some(k * (now(a, at) / 1024.0).round()), values);
            }
            Form::Delta(a) => each(a, &|at| Some(k * delta(a, at)?), values),
            Form::Sum(a) => {
                each(a, &|at| Some(now(a, at)), values);
                let sum: f64 = values.iter().map(|(_, value)| value).sum();
                values.clear();
                values.push((-1, k * sum));
            }
            Form::MeanDelta(a, b) => {
                each(a, &|at| delta(a, at), values);
                let sum: f64 = values.iter().map(|(_, value)| value).sum();
                // The mean of nothing is zero, as libpcp has it.
                let mean = sum / values.len().max(1) as f64;
                values.clear();
                values.push((-1, k * mean + now(b, 0)));
            }
        }
        true
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
