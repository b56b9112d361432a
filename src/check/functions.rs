//! Checks calls of libpcp's own functions: aggregates, `rate()`, `delta()`, `instant()` and
//! `rescale()`. The families in [`crate::functions`] check their calls themselves.

use std::sync::Arc;

use pmderive_runtime::model::{Conversion, Semantics, Units, ValueType};

use super::typed::{Decrease, Precision, TypedId, TypedKind};
use super::{Checked, Checker, Operand, describe, not_a_counter, types, units, units_name};
use crate::bind::Desc;
use crate::diag::{Code, Diagnostic, Property};
use crate::dialect::Dialect;
use crate::syntax::ast::{Aggregate, ExprId, NodeKind, Spanned, Temporal};
use crate::text::Span;

impl Checker<'_> {
    pub(super) fn aggregate(
        &mut self,
        function: Aggregate,
        metric: &Spanned<Arc<str>>,
    ) -> Checked<TypedId> {
        let operand = self.metric(&metric.value, metric.span)?;
        let desc = self.typed.node(operand).desc;
        self.reduce(function, (operand, desc), metric.span)
    }

    /// An aggregate of an operand that stands at `at`.
    pub(super) fn reduce(
        &mut self,
        function: Aggregate,
        (operand, desc): (TypedId, Desc),
        at: Span,
    ) -> Checked<TypedId> {
        if function != Aggregate::Count {
            self.numeric_at(at, &desc, format_args!("`{}()`", function.name()))?;
        }
        let (value_type, semantics, units) = match function {
            Aggregate::Avg => (ValueType::F32, Semantics::Instant, desc.units),
            Aggregate::Sum => (desc.value_type, desc.semantics, desc.units),
            Aggregate::Max | Aggregate::Min => (desc.value_type, Semantics::Instant, desc.units),
            Aggregate::Count => {
                let count = Units { dim_count: 1, ..Units::NONE };
                (ValueType::U32, Semantics::Instant, count)
            }
        };
        let desc = Desc { value_type, indom: None, semantics, units };
        Ok(self.push(TypedKind::Aggregate { function, operand }, desc))
    }

    pub(super) fn temporal(&mut self, function: Temporal, operand: ExprId) -> Checked<TypedId> {
        let checked = self.operand(operand)?;
        let Operand { typed, desc, .. } = checked;
        if function == Temporal::Instant {
            let desc = Desc { semantics: not_a_counter(desc.semantics), ..desc };
            return Ok(self.push(TypedKind::Same(typed), desc));
        }
        self.numeric(&checked, format_args!("`{}()`", function.name()))?;
        let (kind, desc) = match function {
            Temporal::Rate => {
                let time = desc.units.dim_time;
                if time != 0 && time != 1 {
                    let at = self.span(operand);
                    let message =
                        "`rate()` of a value that is already per time, or of time squared";
                    return self.report(
                        Diagnostic::error(Code::RateDimension, at, message)
                            .derived(self.derivation(operand, "operand", Property::Units))
                            .label(at, describe(&desc))
                            .help(
                                "use delta() for the change, or the value itself if it is a rate",
                            ),
                    );
                }
                let decrease = match (self.dialect, desc.semantics) {
                    (Dialect::Fixed, Semantics::Counter) => Decrease::Drop,
                    (Dialect::Fixed, _) => Decrease::Negative,
                    (Dialect::Pcp7_2, Semantics::Counter) if desc.value_type != ValueType::I32 => {
                        Decrease::Drop
                    }
                    _ => Decrease::Wrap,
                };
                let time_factor = (time == 1).then(|| units::seconds(desc.units.scale_time));
                let kind = TypedKind::Rate { operand: typed, decrease, time_factor };
                let units = units::per_second(&desc.units);
                (kind, Desc { value_type: ValueType::F64, units, ..desc })
            }
            _ => {
                let value_type = types::delta(desc.value_type);
                let precision = match (self.precision(), desc.semantics) {
                    (Precision::Exact, Semantics::Counter) => Precision::OfCounter,
                    (precision, _) => precision,
                };
                let kind = TypedKind::Delta { operand: typed, precision };
                (kind, Desc { value_type, ..desc })
            }
        };
        let desc = Desc { semantics: Semantics::Instant, ..desc };
        let never = self.dialect == Dialect::Pcp7_2
            && matches!(
                self.expr.node(operand).kind,
                NodeKind::Select { .. } | NodeKind::Defined(_)
            );
        // libpcp 7.2 keeps no previous sample of these operands.
        let kind = if never { TypedKind::Nothing } else { kind };
        Ok(self.push(kind, desc))
    }

    fn precision(&self) -> Precision {
        match self.dialect {
            Dialect::Fixed => Precision::Exact,
            Dialect::Pcp6_0 | Dialect::Pcp7_2 => Precision::AsLibpcp,
        }
    }

    pub(super) fn rescale(
        &mut self,
        operand: ExprId,
        units: Units,
        units_span: Span,
    ) -> Checked<TypedId> {
        let checked = self.operand(operand)?;
        let Operand { typed, desc, .. } = checked;
        self.numeric(&checked, "`rescale()`")?;
        let conversion = match self.dialect {
            Dialect::Fixed => Conversion::between(desc.units, units),
            Dialect::Pcp6_0 | Dialect::Pcp7_2 => Conversion::of_libpcp(desc.units, units),
        };
        match conversion {
            Ok(conversion) => {
                let (conversion, precision) = (Box::new(conversion), self.precision());
                let kind = TypedKind::Rescale { operand: typed, conversion, precision };
                Ok(self.push(kind, Desc { units, ..desc }))
            }
            Err(_) => {
                let (from, to) = (units_name(&desc.units), units_name(&units));
                let at = self.span(operand);
                let message = format!("cannot convert {from} to {to}");
                let error = Diagnostic::error(Code::IncompatibleUnits, units_span, message)
                    .label(at, describe(&desc))
                    .label(units_span, format!("{to} wanted"))
                    .derived(self.derivation(operand, "operand", Property::Units));
                self.report(match (self.metric_name(operand), rate_of(&desc)) {
                    (Some(name), Some(rate)) if Conversion::between(rate, units).is_ok() => error
                        .help("the change of a counter per second is its `rate()`")
                        .guess(at, format!("rate({name})")),
                    _ if units::dimensions_agree(&desc.units, &units) => error.help(
                        "the factor between them has more than 64 bits; convert in two steps",
                    ),
                    _ => error.help("rescale() changes the scale, never the dimension"),
                })
            }
        }
    }
}

/// Units of the rate of a counter.
fn rate_of(desc: &Desc) -> Option<Units> {
    let is_counter = desc.semantics == Semantics::Counter && desc.units.dim_time == 0;
    is_counter.then(|| units::per_second(&desc.units))
}
