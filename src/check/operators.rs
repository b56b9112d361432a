//! Checks binary operators, in libpcp's order: of several mistakes the first
//! one counts.

use pmderive_runtime::model::{Semantics, Units, ValueType};

use super::typed::{Scale, TypedId, TypedKind};
use super::units::{combine, dimensions_agree};
use super::{Checked, Checker, Operand, describe, not_a_counter, types, units_name};
use crate::bind::Desc;
use crate::diag::{Code, Diagnostic, Property};
use crate::dialect::Dialect;
use crate::syntax::ast::{BinaryOp, ExprId, NodeKind, UnaryOp};
use crate::text::Span;

/// An operator with its operands.
struct Operation {
    op: BinaryOp,
    op_span: Span,
    left: Operand,
    right: Operand,
}

impl Checker<'_> {
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        op_span: Span,
        left: ExprId,
        right: ExprId,
    ) -> Checked<TypedId> {
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        // Texts come first, as nothing below holds for them.
        if let Some(outcome) = self.text_equality((op, op_span), [left, right]) {
            return outcome;
        }
        let (l, r) = (left.desc, right.desc);
        let operation = Operation { op, op_span, left, right };
        self.counters(&operation)?;
        for operand in [left, right] {
            self.numeric(&operand, format_args!("`{}`", op.symbol()))?;
        }
        self.dimensions(&operation)?;
        self.extra_units(&operation)?;
        if let (Some(a), Some(b)) = (l.indom, r.indom)
            && !self.are_same_domain(a, b)
        {
            let message = format!("operands of `{}` have different instance domains", op.symbol());
            let refusal = self.refusal(&operation, Code::IndomMismatch, message);
            let help = "reduce one side to a single value with an aggregate or scalar()";
            return self.report(refusal.help(help));
        }
        // Numeric types always share one, and others were refused above.
        let Some(common) = types::common(l.value_type, r.value_type) else {
            return Err(super::Reported);
        };

        // libpcp gives the left operand to the rule, unless that is a constant.
        let left_is_constant = matches!(
            self.expr.node(left.expr).kind,
            NodeKind::Number(_) | NodeKind::MkConst { .. }
        );
        let base = if left_is_constant { &r } else { &l };
        let indom = l.indom.or(r.indom);
        let semantics = self.semantics(op, &l, &r, base);
        // A comparison has neither a scale nor units. Its operands are compared as
        // they are, in the type that they share.
        if !op.is_arithmetic() {
            let kind = TypedKind::Binary {
                op,
                left: left.typed,
                right: right.typed,
                common,
                scales: None,
            };
            let desc = Desc { value_type: ValueType::U32, indom, semantics, units: Units::NONE };
            return Ok(self.push(kind, desc));
        }
        let Ok(combined) = combine(op, &l.units, &r.units, left_is_constant, self.dialect) else {
            let message = "the result's dimension is beyond what units can express (-8 to 7)";
            return self.report(self.refusal(&operation, Code::DimensionOverflow, message));
        };
        // A quotient may have a fraction, and so may a number in another scale.
        let scales = Scale::both(combined.left, combined.right);
        let is_double = op == BinaryOp::Div || scales.is_some();
        let value_type = if is_double { ValueType::F64 } else { common };
        let kind = TypedKind::Binary {
            op,
            left: left.typed,
            right: right.typed,
            common: value_type,
            scales,
        };
        Ok(self.push(kind, Desc { value_type, indom, semantics, units: combined.units }))
    }

    fn semantics(&self, op: BinaryOp, l: &Desc, r: &Desc, base: &Desc) -> Semantics {
        let counter = [l, r].iter().any(|desc| desc.semantics == Semantics::Counter);
        let discrete = [l, r].iter().all(|desc| desc.semantics == Semantics::Discrete);
        let plain = if discrete { Semantics::Discrete } else { Semantics::Instant };
        match self.dialect {
            _ if !counter => plain,
            Dialect::Fixed if op.is_arithmetic() => Semantics::Counter,
            Dialect::Fixed => not_a_counter(plain),
            _ => base.semantics,
        }
    }

    /// The report on operands that an operator does not take together.
    fn refusal(&self, operation: &Operation, code: Code, message: impl Into<String>) -> Diagnostic {
        let Operation { left, right, .. } = operation;
        let property = match code {
            Code::CounterMisuse => Property::Semantics,
            Code::IndomMismatch => Property::Instances,
            _ => Property::Units,
        };
        let needs = match code {
            Code::CounterMisuse => "takes other operands",
            Code::IndomMismatch => "combines instance by instance",
            Code::ExtraUnits => "takes no extra units like these",
            Code::DimensionOverflow => "adds or subtracts exponents",
            _ => "does not take these units together",
        };
        Diagnostic::error(code, operation.op_span, message)
            .label(operation.op_span, needs)
            .label(self.span(left.expr), describe(&left.desc))
            .label(self.span(right.expr), describe(&right.desc))
            .derived(self.derivation(left.expr, "left operand", property))
            .derived(self.derivation(right.expr, "right operand", property))
    }

    fn counters(&mut self, operation: &Operation) -> Checked<()> {
        use BinaryOp::{Add, Div, Mul, Sub};
        let is_counter = |desc: &Desc| desc.semantics == Semantics::Counter;
        let (l, r) = (is_counter(&operation.left.desc), is_counter(&operation.right.desc));
        let allowed = match (l, r, operation.op) {
            (_, _, op) if !op.is_arithmetic() => true,
            (true, true, op) => matches!(op, Add | Sub),
            (true, false, op) => matches!(op, Mul | Div),
            (false, true, op) => op == Mul,
            (false, false, _) => true,
        };
        if allowed {
            return Ok(());
        }
        let symbol = operation.op.symbol();
        let (what, pcp) = match (l, r) {
            (true, true) => ("two counters", "counters"),
            (true, false) => ("a counter and a non-counter", "counter and non-counter"),
            _ => ("a non-counter and a counter", "non-counter and counter"),
        };
        let message = format!("`{symbol}` cannot combine {what}");
        let pcp = format!("Illegal operator for {pcp}");
        let name = |id: ExprId| self.name_of_counter(id);
        let help = match (l, r, operation.op) {
            (true, true, Div) => format!(
                "the quotient of their changes is `delta({}) / delta({})`",
                name(operation.left.expr),
                name(operation.right.expr)
            ),
            (true, true, _) => of_counter(name(operation.left.expr), true, true),
            (true, false, _) => self.advise(operation, &operation.left, &operation.right),
            _ => self.advise(operation, &operation.right, &operation.left),
        };
        let refusal = self.refusal(operation, Code::CounterMisuse, message);
        self.report(refusal.help(help).pcp(pcp))
    }

    fn dimensions(&mut self, operation: &Operation) -> Checked<()> {
        let Operation { op, left: Operand { desc: l, .. }, right: Operand { desc: r, .. }, .. } =
            operation;
        let symbol = op.symbol();
        let plain = |desc: &Desc| desc.units.is_dimensionless();
        let agree = match op {
            BinaryOp::Add | BinaryOp::Sub => dimensions_agree(&l.units, &r.units),
            BinaryOp::Mul | BinaryOp::Div => true,
            op if op.is_boolean() => plain(l) && plain(r),
            // Comparisons with plain numbers are always possible; libpcp
            // tells these by their type.
            _ => {
                let unsigned = |desc: &Desc| desc.value_type == ValueType::U32;
                unsigned(l) || unsigned(r) || dimensions_agree(&l.units, &r.units)
            }
        };
        if !agree {
            let (message, help) = if op.is_boolean() {
                let message = format!("operands of `{symbol}` must be plain numbers");
                (message, "compare them first, for example with > 0")
            } else {
                let (l, r) = (units_name(&l.units), units_name(&r.units));
                let message =
                    format!("operands of `{symbol}` have different dimensions: {l} and {r}");
                (message, "rescale() cannot change a dimension; divide to build a ratio")
            };
            let refusal = self.refusal(operation, Code::DimensionMismatch, message).help(help);
            let refusal = self.with_units(operation, refusal);
            return self.report(refusal.pcp("Dimensions are not the same"));
        }
        // A counter combines only with plain numbers, and with other counters.
        let counter = |desc: &Desc| desc.semantics == Semantics::Counter;
        let restricted = !matches!(op, BinaryOp::Add | BinaryOp::Sub) && !op.is_boolean();
        let (other, side) = match (counter(l), counter(r)) {
            (true, false) => (r, "right"),
            (false, true) => (l, "left"),
            _ => return Ok(()),
        };
        if restricted && !plain(other) {
            let units = units_name(&other.units);
            let message = format!("`{symbol}` of a counter and a value in {units}");
            let help = "a counter combines with plain numbers only; use rate() or delta() first";
            let pcp = format!("Non-counter and not dimensionless for {side} operand");
            let refusal = self.refusal(operation, Code::DimensionMismatch, message);
            return self.report(refusal.help(help).pcp(pcp));
        }
        Ok(())
    }

    /// Advice on a counter beside another operand: how to make it combine, as far as the
    /// operator then takes the dimensions of both.
    fn advise(&self, operation: &Operation, counter: &Operand, other: &Operand) -> String {
        let (l, r) = (counter.desc.units, other.desc.units);
        let is_free = match operation.op {
            BinaryOp::Mul | BinaryOp::Div => true,
            op => !op.is_arithmetic() && other.desc.value_type == ValueType::U32,
        };
        let per_second = Units { dim_time: l.dim_time.saturating_sub(1), ..l };
        of_counter(
            self.name_of_counter(counter.expr),
            is_free || dimensions_agree(&per_second, &r),
            is_free || dimensions_agree(&l, &r),
        )
    }

    /// The words of advice for a counter: its name, if it is a metric with a short name.
    fn name_of_counter(&self, id: ExprId) -> &str {
        match &self.expr.node(id).kind {
            NodeKind::Metric(name) if name.len() <= 60 => name,
            _ => "counter",
        }
    }

    /// Offers units for a plain number that is added to or compared with an
    /// operand that has units.
    fn with_units(&self, operation: &Operation, mut refusal: Diagnostic) -> Diagnostic {
        if operation.op.is_boolean() {
            return refusal;
        }
        let (left, right) = (operation.left, operation.right);
        for (number, other) in [(left, right), (right, left)] {
            let (sign, plain) = match &self.expr.node(number.expr).kind {
                NodeKind::Number(plain) => ("", plain),
                NodeKind::Unary { op: UnaryOp::Neg, operand, .. } => {
                    let NodeKind::Number(plain) = &self.expr.node(*operand).kind else { continue };
                    ("-", plain)
                }
                _ => continue,
            };
            // A counter does not compare with a number that has units.
            if other.desc.semantics == Semantics::Counter {
                refusal = refusal.help(self.advise(operation, &other, &number));
                continue;
            }
            let fixed = format!("{sign}mkconst({}, units=\"{}\")", plain.text, other.desc.units);
            refusal = refusal
                .help("mkconst() gives a number its units")
                .guess(self.span(number.expr), fixed);
        }
        refusal
    }

    fn extra_units(&mut self, operation: &Operation) -> Checked<()> {
        let Operation { op, left: Operand { desc: l, .. }, right: Operand { desc: r, .. }, .. } =
            operation;
        let (a, b) = (l.units.extra, r.units.extra);
        if a.quantity == 0 || b.quantity == 0 {
            return Ok(());
        }
        let symbol = op.symbol();
        let differ = || format!("operands of `{symbol}` have different extra units");
        let help = match a.quantity == b.quantity {
            _ if *op == BinaryOp::Mul => {
                "a value has one extra unit at most; dividing by mkconst(1, units=...) takes it away"
            }
            true => "rescale() brings one of them to the unit of the other",
            false => "different quantities cannot be added or compared",
        };
        let (message, pcp) = match op {
            BinaryOp::Mul => (
                format!("`{symbol}` of two values that both have extra units"),
                "Extra units not allowed for both operands of *",
            ),
            _ if a == b => return Ok(()),
            BinaryOp::Div => (differ(), "Different extra units not allowed for both operands of /"),
            _ => (differ(), "Operands have incompatible extra units or scale"),
        };
        let refusal = self.refusal(operation, Code::ExtraUnits, message);
        self.report(refusal.help(help).pcp(pcp))
    }
}

/// Advice about a counter whose rate, or whose change and value, combine with the other operand.
fn of_counter(name: &str, takes_rate: bool, takes_change: bool) -> String {
    let rate = format!("`rate({name})` is its change per second");
    let others = |change: &str| {
        format!(
            "`delta({name})` {change} since the previous sample, and `instant({name})` the counter \
             as it is"
        )
    };
    match (takes_rate, takes_change) {
        (true, false) => rate,
        (false, true) => others("is its change"),
        (true, true) => format!("{rate}, {}", others("that")),
        (false, false) => {
            format!("{rate}, {}; the other operand then needs their units", others("that"))
        }
    }
}
