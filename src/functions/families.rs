//! Rules that several functions share: rounding, ranks, statistics over
//! instances, windows of time.

use pmderive_runtime::kernel::ReduceOp;
use pmderive_runtime::model::{Semantics, ValueType};

use super::LaneRule;
use crate::check::call::{Call, Checked};
use crate::check::typed::{Desc, TypedId, TypedKind, WindowFunction};

/// `floor ceil round`: integers are whole already, and a counter's whole part
/// counts as well.
pub(super) fn rounded(call: &mut Call<'_, '_>, rule: &'static LaneRule) -> Checked<TypedId> {
    let [x] = call.numbers()?;
    Ok(match x.desc.value_type {
        within @ (ValueType::F32 | ValueType::F64) => call.lanes(rule, &[x.typed], within, x.desc),
        _ => call.node(TypedKind::Same(x.typed), x.desc),
    })
}

/// `topk bottomk`
pub(super) fn ranked(call: &mut Call<'_, '_>, top: bool) -> Checked<TypedId> {
    let k = call.rank()?;
    let [x] = call.numbers()?;
    Ok(call.node(TypedKind::Ranked { k, top, operand: x.typed }, x.desc))
}

/// `quantile stdev`
pub(super) fn statistic(call: &mut Call<'_, '_>, op: ReduceOp) -> Checked<TypedId> {
    let [x] = call.numbers()?;
    let desc = Desc {
        value_type: ValueType::F64,
        indom: None,
        semantics: Semantics::Instant,
        units: x.desc.units,
    };
    Ok(call.node(TypedKind::Statistic { op, operand: x.typed }, desc))
}

/// `avg_over max_over min_over ewma`
pub(super) fn window(call: &mut Call<'_, '_>, function: WindowFunction) -> Checked<TypedId> {
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
