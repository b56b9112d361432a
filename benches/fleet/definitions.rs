//! The metrics of a simulated host and the definitions over them: 70 single
//! metrics, 30 over 6 instance domains, and 1,000 distinct definitions, of which
//! 400 have a value for each instance. With 10 instances in each domain they
//! have 4,600 values.
//!
//! Names are `fleet.c0` (a counter) and `fleet.g0` (a gauge), and in a domain
//! `fleet.d0.c0`, `fleet.d0.g0` and `fleet.d0.b0` (a counter of bytes).

use std::fmt::Write as _;

use pmderive_runtime::model::{InDom, InstId, Units, ValueType};
use pmderive_testkit::fake_pmcd::{Metric, Script, World};

use super::plan::{DOMAINS, Plan};

/// Counters of a host, and as many gauges.
const SINGLE: u32 = 35;
/// Definitions.
pub const DEFINITIONS: u32 = 1_000;
/// Values of all definitions, with 10 instances in each domain.
pub const VALUES: usize = 4_600;
/// The agent of the metrics.
const AGENT: u32 = 60;
const BYTES: Units = Units { dim_space: 1, ..Units::NONE };

/// Number of an instance domain.
pub fn domain(number: u32) -> InDom {
    InDom::new(AGENT, number)
}

/// The world of a host of a class.
pub fn world(plan: Plan, host: u32) -> World {
    let class = plan.class(host);
    let mut world = World::new();
    // Classes differ in types, and in the identifiers of all that follows.
    for number in 0..class {
        world.add(Metric::new(format!("fleet.other{number}"), Script::constant(1u32)));
    }
    let counter = |rate: u32| Script::counter(f64::from(100 + 7 * rate)).varied(0.5);
    let gauge = || Script::Random { low: 1.0, high: 1000.0 };
    for number in 0..SINGLE {
        let count = Metric::new(format!("fleet.c{number}"), counter(number));
        let differs = class > 0 && number == class - 1;
        world.add(if differs { count.of_type(ValueType::U32) } else { count });
        world.add(Metric::new(format!("fleet.g{number}"), gauge()));
    }
    for number in 0..DOMAINS {
        let instances: Vec<(InstId, String)> = (0..plan.instances(host, number))
            .map(|instance| (instance.cast_signed(), format!("i{instance}")))
            .collect();
        let instances: Vec<(InstId, &str)> =
            instances.iter().map(|(instance, name)| (*instance, &**name)).collect();
        world.set_instances(domain(number), &instances);
        let mut add = |name: &str, script, units| {
            let metric = Metric::new(format!("fleet.d{number}.{name}"), script);
            world.add(metric.per(domain(number)).in_units(units));
        };
        add("c0", counter(number), Units::NONE);
        add("c1", counter(number + 6), Units::NONE);
        add("g0", gauge(), Units::NONE);
        add("g1", gauge(), Units::NONE);
        add("b0", counter(number + 12), BYTES);
    }
    world
}

/// The text of the definitions.
pub fn text() -> String {
    let mut text = String::new();
    for index in 0..DEFINITIONS {
        let expression = match index % 5 {
            0 | 1 => of_domain(index),
            _ => single(index),
        };
        let _ = writeln!(text, "fleet.derived.m{index} = {expression}");
    }
    text
}

/// A definition with a value for each instance. The constant makes it distinct.
fn of_domain(index: u32) -> String {
    let d = format!("fleet.d{}", index / 5 % DOMAINS);
    match index / 5 % 8 {
        0 => format!("{index} * rate({d}.c0)"),
        1 => format!("delta({d}.c0) / delta({d}.c1) + {index}"),
        2 => format!("{d}.g0 + {index} * {d}.g1"),
        3 => format!("100 * {d}.g0 / ({d}.g0 + {d}.g1 + {index})"),
        4 => format!("rate({d}.c0) + {index} * rate({d}.c1)"),
        5 => format!("{d}.g0 > {index} ? {d}.g0 : {d}.g1"),
        6 => format!("{index} * rescale({d}.b0, \"Kbyte\")"),
        _ => format!("{index} * delta({d}.b0)"),
    }
}

/// A definition with one value.
fn single(index: u32) -> String {
    let d = format!("fleet.d{}", index % DOMAINS);
    let [a, b] = [index % SINGLE, (index + 1 + index / SINGLE) % SINGLE];
    match index / 5 % 8 {
        0 => format!("{index} * rate(fleet.c{a})"),
        1 => format!("delta(fleet.c{a}) / delta(fleet.c{b}) + {index}"),
        2 => format!("fleet.g{a} + {index} * fleet.g{b}"),
        3 => format!("100 * fleet.g{a} / (fleet.g{a} + fleet.g{b} + {index})"),
        4 => format!("fleet.g{a} > {index} ? fleet.g{a} : fleet.g{b}"),
        5 => format!("{index} * sum({d}.g0)"),
        6 => format!("{index} * avg(delta({d}.c1)) + fleet.g{a}"),
        _ => format!("{index} * delta(fleet.c{a})"),
    }
}
