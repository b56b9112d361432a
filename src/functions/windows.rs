//! Functions over the latest interval of time: `avg_over(x, "interval")` and the like,
//! and `ewma(x, "half-life")`, a mean in which the past counts less and less.

use pmderive_runtime::model::{Semantics, ValueType};

use super::{Example, Function, ResultRule};
use crate::bind::Desc;
use crate::check::call::{Call, Checked};
use crate::check::typed::{TypedId, TypedKind, WindowFunction};
use crate::syntax::Shape;

const fn result(value_type: &'static str) -> ResultRule {
    ResultRule { value_type, semantics: "instant; no counter", units: "of x", instances: "of x" }
}

pub static FAMILY: &[&Function] = &[&AVG_OVER, &MAX_OVER, &MIN_OVER, &EWMA];

static AVG_OVER: Function = Function {
    name: "avg_over",
    usage: "avg_over(x, \"interval\")",
    shape: Shape::IntervalLast,
    result: result("DOUBLE"),
    values: "Plain mean of the samples of the latest interval, the one just that old not included, from the first sample on. An instance that goes begins anew when it comes back, as does each after a gap. A record without any value is no sample.",
    example: Example {
        call: "avg_over(kernel.all.load, \"5 min\")",
        gives: "DOUBLE, instant, units none, instances of 60.2",
    },
    takes_by: false,
    explained: None,
    check: |call| window(call, WindowFunction::Avg),
};

static MAX_OVER: Function = Function {
    name: "max_over",
    usage: "max_over(x, \"interval\")",
    shape: Shape::IntervalLast,
    result: result("of x"),
    values: "Greatest of those samples; NaN if one is.",
    example: Example {
        call: "max_over(kernel.all.load, \"5 min\")",
        gives: "FLOAT, instant, units none, instances of 60.2",
    },
    takes_by: false,
    explained: None,
    check: |call| window(call, WindowFunction::Max),
};

static MIN_OVER: Function = Function {
    name: "min_over",
    usage: "min_over(x, \"interval\")",
    shape: Shape::IntervalLast,
    result: result("of x"),
    values: "Least of those samples; NaN if one is.",
    example: Example {
        call: "min_over(mem.util.free, \"1 hour\")",
        gives: "U64, instant, units Kbyte, single value",
    },
    takes_by: false,
    explained: None,
    check: |call| window(call, WindowFunction::Min),
};

static EWMA: Function = Function {
    name: "ewma",
    usage: "ewma(x, \"half-life\")",
    shape: Shape::IntervalLast,
    result: result("DOUBLE"),
    values: "Moving average in which the past loses half its weight in each half-life, from the first sample on.",
    example: Example {
        call: "ewma(rate(disk.dev.total), \"30 sec\")",
        gives: "DOUBLE, instant, units count / sec, instances of 60.1",
    },
    takes_by: false,
    explained: None,
    check: |call| window(call, WindowFunction::Ewma),
};

fn window(call: &mut Call<'_, '_>, function: WindowFunction) -> Checked<TypedId> {
    let length = call.interval()?;
    let [x] = call.numbers()?;
    call.not_counting(x)?;
    let value_type = match function {
        WindowFunction::Max | WindowFunction::Min => x.desc.value_type,
        WindowFunction::Avg | WindowFunction::Ewma => ValueType::F64,
    };
    let seconds = length.as_secs_f64().to_bits();
    let kind = TypedKind::Window { function, operand: x.typed, seconds };
    Ok(call.node(kind, Desc { value_type, semantics: Semantics::Instant, ..x.desc }))
}
