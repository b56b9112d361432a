//! Derived metrics over the metrics of a fleet: two of five have a value for
//! each instance of a domain, and all are distinct.

use std::fmt::Write as _;

use super::law::Kind;
use super::plan::Plan;

/// The text of this many definitions, `fleet.derived.m0` and on, in the language with libpcp's
/// functions. The plan has domains with metrics of each kind, and single ones.
pub fn definitions(plan: &Plan, count: u32) -> String {
    let mut text = String::new();
    for index in 0..count {
        // Writing to a string never fails.
        let _ = writeln!(text, "{}", definition(plan, index, index));
    }
    text
}

/// The text of `fleet.derived.u0`: a metric whose units depend on the class, as it is.
pub fn mixed_definition() -> String {
    "fleet.derived.u0 = 1 * fleet.u0".to_owned()
}

/// The text of the definition of this index, with a constant in it.
pub fn definition(plan: &Plan, index: u32, constant: u32) -> String {
    let expression = match index % 5 {
        0 | 1 => of_domain(plan, index, constant),
        _ => single(plan, index, constant),
    };
    format!("fleet.derived.m{index} = {expression}")
}

/// A definition with a value for each instance. The constant makes it distinct.
fn of_domain(plan: &Plan, index: u32, constant: u32) -> String {
    let d = format!("fleet.d{}", index / 5 % plan.domains.max(1));
    match index / 5 % 8 {
        0 => format!("{constant} * rate({d}.c0)"),
        1 => format!("delta({d}.c0) / delta({d}.c1) + {constant}"),
        2 => format!("{d}.g0 + {constant} * {d}.g1"),
        3 => format!("100 * {d}.g0 / ({d}.g0 + {d}.g1 + {constant})"),
        4 => format!("rate({d}.c0) + {constant} * rate({d}.c1)"),
        5 => format!("{d}.g0 > {constant} ? {d}.g0 : {d}.g1"),
        6 => format!("{constant} * rescale({d}.b0, \"Kbyte\")"),
        _ => format!("{constant} * delta({d}.b0)"),
    }
}

/// A definition with one value.
fn single(plan: &Plan, index: u32, constant: u32) -> String {
    let d = format!("fleet.d{}", index % plan.domains.max(1));
    let pick = |kind, number: u32| number % plan.singles_of(kind).max(1);
    let [a, b] = [index, index + 1 + index / plan.singles.max(1)];
    let [c, other_c] = [a, b].map(|number| pick(Kind::Counter, number));
    let [g, other_g] = [a, b].map(|number| pick(Kind::Gauge, number));
    match index / 5 % 8 {
        0 => format!("{constant} * rate(fleet.c{c})"),
        1 => format!("delta(fleet.c{c}) / delta(fleet.c{other_c}) + {constant}"),
        2 => format!("fleet.g{g} + {constant} * fleet.g{other_g}"),
        3 => format!("100 * fleet.g{g} / (fleet.g{g} + fleet.g{other_g} + {constant})"),
        4 => format!("fleet.g{g} > {constant} ? fleet.g{g} : fleet.g{other_g}"),
        5 => format!("{constant} * sum({d}.g0)"),
        6 => format!("{constant} * avg(delta({d}.c1)) + fleet.g{g}"),
        _ => format!("{constant} * delta(fleet.c{c})"),
    }
}
