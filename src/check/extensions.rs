//! Checks of what libpcp does not have: its functions, comparisons of texts,
//! aggregates of expressions.
//!
//! Each rule is one of the table in `grammar/extensions.md`. Where libpcp's
//! rules for operators would wrap or cut off numbers, the types here are wide
//! enough instead.

use pmderive_runtime::model::{Conversion, InDom, Semantics, Units, ValueType};

use super::typed::{
    Desc, MathFunction, MathFunction2, Scale, Statistic, TypedId, TypedKind, WindowFunction,
};
use super::units::dimensions_agree;
use super::{Checked, Checker, constant_desc, describe, not_a_counter, types, units_name};
use crate::diag::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::ast::{
    BinaryOp, ExprId, Function, Literal, NodeKind, NumberValue, Spanned, UnaryOp,
};

/// An operand with its place in the text.
#[derive(Clone, Copy)]
struct Operand {
    expr: ExprId,
    typed: TypedId,
    desc: Desc,
}

impl Checker<'_> {
    /// A call of a function that libpcp does not have.
    pub(super) fn call(
        &mut self,
        function: Function,
        literal: Option<&Spanned<Literal>>,
        operands: &[ExprId],
        span: Span,
    ) -> Checked<TypedId> {
        let mut known: Vec<Operand> = Vec::with_capacity(operands.len());
        for expr in operands {
            let (typed, desc) = self.operand(*expr)?;
            known.push(Operand { expr: *expr, typed, desc });
        }
        let Some(&first) = known.first() else { return Err(super::Reported) };
        match function {
            Function::Aggregate(aggregate) => {
                let at = self.span(first.expr);
                return self.reduce(aggregate, (first.typed, first.desc), at, span);
            }
            Function::MatchValue => return self.match_value(first, literal, span),
            _ => {}
        }
        let name = function.name();
        for operand in &known {
            self.numeric(operand.expr, &operand.desc, &format!("`{name}()`"))?;
        }
        let literal = literal.map(|literal| &literal.value);
        match function {
            Function::Abs => self.math(MathFunction::Abs, first, span),
            Function::Floor => self.math(MathFunction::Floor, first, span),
            Function::Ceil => self.math(MathFunction::Ceil, first, span),
            Function::Round => self.math(MathFunction::Round, first, span),
            Function::Sqrt => self.square_root(first, span),
            Function::Log => self.logarithm(first, span),
            Function::Pow => self.power(first, known[1], span),
            Function::Clamp => self.clamp([first, known[1], known[2]], span),
            Function::TopK => self.ranked(true, literal, first, span),
            Function::BottomK => self.ranked(false, literal, first, span),
            Function::Quantile => self.quantile(literal, first, span),
            Function::StdDev => self.statistic(Statistic::StdDev, first, span),
            Function::AvgOver => self.window(WindowFunction::Avg, name, literal, first, span),
            Function::MaxOver => self.window(WindowFunction::Max, name, literal, first, span),
            Function::MinOver => self.window(WindowFunction::Min, name, literal, first, span),
            Function::Ewma => self.window(WindowFunction::Ewma, name, literal, first, span),
            Function::Aggregate(_) | Function::MatchValue => Err(super::Reported),
        }
    }

    /// Refuses counters, of whose values only the change means anything.
    fn not_counting(&mut self, operand: Operand, name: &str) -> Checked<()> {
        if operand.desc.semantics != Semantics::Counter {
            return Ok(());
        }
        let span = self.span(operand.expr);
        self.report(
            Diagnostic::error(Code::CounterMisuse, span, format!("`{name}()` of a counter"))
                .label(span, describe(&operand.desc))
                .help(
                    "use rate() or delta() for the counter's change, or instant() to take it \
                     as it is",
                ),
        )
    }

    /// Refuses units other than none and those of a plain count.
    fn plain_number(&mut self, operand: Operand, what: &str, help: &str) -> Checked<()> {
        if dimensions_agree(&operand.desc.units, &Units::NONE) {
            return Ok(());
        }
        let span = self.span(operand.expr);
        let units = units_name(&operand.desc.units);
        let message = format!("{what} has to be a plain number or a count, not {units}");
        self.report(
            Diagnostic::error(Code::DimensionMismatch, span, message)
                .label(span, describe(&operand.desc))
                .help(help),
        )
    }

    /// The instance domain that values computed from all operands have.
    fn one_indom(&mut self, operands: &[Operand], what: &str) -> Checked<Option<InDom>> {
        let mut found: Option<(Operand, InDom)> = None;
        for operand in operands {
            let Some(indom) = operand.desc.indom else { continue };
            let Some((other, known)) = found else {
                found = Some((*operand, indom));
                continue;
            };
            if !self.are_same_domain(known, indom) {
                let (first, second) = (self.span(other.expr), self.span(operand.expr));
                let message = format!("operands of {what} have different instance domains");
                return self.report(
                    Diagnostic::error(Code::IndomMismatch, second, message)
                        .label(first, describe(&other.desc))
                        .label(second, describe(&operand.desc))
                        .help("reduce one side to a single value with an aggregate or scalar()"),
                );
            }
        }
        Ok(found.map(|(_, indom)| indom))
    }

    /// `abs floor ceil round`
    fn math(&mut self, function: MathFunction, operand: Operand, span: Span) -> Checked<TypedId> {
        let Operand { typed, mut desc, .. } = operand;
        let is_float = matches!(desc.value_type, ValueType::F32 | ValueType::F64);
        let kind = match function {
            MathFunction::Abs => {
                desc.semantics = not_a_counter(desc.semantics);
                match desc.value_type {
                    ValueType::U32 | ValueType::U64 => TypedKind::Same(typed),
                    _ => TypedKind::Math { function, operand: typed },
                }
            }
            // A counter's whole part counts as well.
            _ if is_float => TypedKind::Math { function, operand: typed },
            _ => TypedKind::Same(typed),
        };
        Ok(self.push(kind, desc, span))
    }

    fn square_root(&mut self, operand: Operand, span: Span) -> Checked<TypedId> {
        self.not_counting(operand, "sqrt")?;
        let units = operand.desc.units;
        let dimensions = [units.dim_space, units.dim_time, units.dim_count];
        let even = dimensions.iter().all(|dimension| dimension % 2 == 0);
        if !even || units.extra.quantity != 0 {
            let at = self.span(operand.expr);
            let message = format!("the square root of {} has no units", units_name(&units));
            return self.report(
                Diagnostic::error(Code::DimensionOverflow, at, message)
                    .label(at, describe(&operand.desc))
                    .help("each dimension has to be even, such as byte^2; divide to get a ratio"),
            );
        }
        let units = Units {
            dim_space: units.dim_space / 2,
            dim_time: units.dim_time / 2,
            dim_count: units.dim_count / 2,
            ..units
        };
        let kind = TypedKind::Math { function: MathFunction::Sqrt, operand: operand.typed };
        let desc = Desc { value_type: ValueType::F64, units, ..operand.desc };
        Ok(self.push(kind, desc, span))
    }

    fn logarithm(&mut self, operand: Operand, span: Span) -> Checked<TypedId> {
        self.not_counting(operand, "log")?;
        let help = "divide by a value of the same dimension to get a ratio";
        self.plain_number(operand, "the operand of `log()`", help)?;
        let kind = TypedKind::Math { function: MathFunction::Log, operand: operand.typed };
        let desc = Desc { value_type: ValueType::F64, units: Units::NONE, ..operand.desc };
        Ok(self.push(kind, desc, span))
    }

    /// Units of a value to the power of a literal.
    fn power_units(&mut self, base: Operand, exponent: i64) -> Checked<Units> {
        let units = base.desc.units;
        let dimension = |dimension: i8| {
            let product = i64::from(dimension).checked_mul(exponent)?;
            i8::try_from(product).ok().filter(|dimension| (-8..=7).contains(dimension))
        };
        if exponent == 0 {
            return Ok(Units::NONE);
        }
        let dimensions =
            (dimension(units.dim_space), dimension(units.dim_time), dimension(units.dim_count));
        let at = self.span(base.expr);
        match dimensions {
            _ if units.extra.quantity != 0 && exponent != 1 => self.report(
                Diagnostic::error(Code::ExtraUnits, at, "`pow()` of a value that has extra units")
                    .label(at, describe(&base.desc)),
            ),
            (Some(dim_space), Some(dim_time), Some(dim_count)) => {
                Ok(Units { dim_space, dim_time, dim_count, ..units })
            }
            _ => {
                let message = "the result's dimension is beyond what units can express (-8 to 7)";
                self.report(
                    Diagnostic::error(Code::DimensionOverflow, at, message)
                        .label(at, describe(&base.desc)),
                )
            }
        }
    }

    fn power(&mut self, base: Operand, exponent: Operand, span: Span) -> Checked<TypedId> {
        self.not_counting(base, "pow")?;
        self.not_counting(exponent, "pow")?;
        self.plain_number(exponent, "the exponent of `pow()`", "divide to get a ratio")?;
        let units = match self.literal(exponent.expr) {
            Some(NumberText::Integer(exponent)) => self.power_units(base, exponent)?,
            _ => {
                let help = "a value with a dimension takes a literal whole number as exponent";
                self.plain_number(base, "the base of `pow()`", help)?;
                Units::NONE
            }
        };
        let indom = self.one_indom(&[base, exponent], "`pow()`")?;
        let value_type = ValueType::F64;
        let kind = TypedKind::Math2 {
            function: MathFunction2::Pow,
            left: base.typed,
            right: exponent.typed,
            common: value_type,
        };
        let semantics = plain_semantics(&[base.desc, exponent.desc]);
        Ok(self.push(kind, Desc { value_type, indom, semantics, units }, span))
    }

    /// `clamp(value, low, high)`: the lesser of `high` and the greater of
    /// `value` and `low`.
    fn clamp(&mut self, operands: [Operand; 3], span: Span) -> Checked<TypedId> {
        let [value, low, high] = operands;
        for operand in operands {
            self.not_counting(operand, "clamp")?;
        }
        let mut common = value.desc.value_type;
        let [low, high] = [self.bound(value, low)?, self.bound(value, high)?];
        for (bound, given) in [(low, operands[1]), (high, operands[2])] {
            // A literal that the value's type holds does not change it.
            if bound.typed != given.typed || !self.fits(bound.expr, common) {
                common = types::lossless(common, bound.desc.value_type);
            }
        }
        let indom = self.one_indom(&[value, low, high], "`clamp()`")?;
        let semantics = plain_semantics(&operands.map(|operand| operand.desc));
        let desc = Desc { value_type: common, indom, semantics, ..value.desc };
        let raised = TypedKind::Math2 {
            function: MathFunction2::Max,
            left: value.typed,
            right: low.typed,
            common,
        };
        let without_high = [value.desc.indom, low.desc.indom].into_iter().flatten().next();
        let raised = self.push(raised, Desc { indom: without_high, ..desc }, span);
        let kind = TypedKind::Math2 {
            function: MathFunction2::Min,
            left: raised,
            right: high.typed,
            common,
        };
        Ok(self.push(kind, desc, span))
    }

    /// A bound in the units of the value, in double precision if it has to be converted.
    fn bound(&mut self, value: Operand, bound: Operand) -> Checked<Operand> {
        let (from, to) = (bound.desc.units, value.desc.units);
        let at = self.span(bound.expr);
        let conversion = match dimensions_agree(&from, &to) && from.extra == to.extra {
            true => Conversion::between(from, to).ok(),
            false => None,
        };
        let Some(conversion) = conversion else {
            let (from, to) = (units_name(&from), units_name(&to));
            let value_at = self.span(value.expr);
            let diagnostic = Diagnostic::error(
                Code::DimensionMismatch,
                at,
                format!(
                    "a bound of `clamp()` has another dimension than the value: {from}, not {to}"
                ),
            )
            .label(value_at, describe(&value.desc))
            .label(at, describe(&bound.desc));
            let number = match &self.expr.node(bound.expr).kind {
                NodeKind::Number(number) => Some(&number.text),
                _ => None,
            };
            return self.report(match number {
                Some(number) => diagnostic
                    .help("give the constant units with mkconst()")
                    .fix(at, format!("mkconst({number}, units=\"{to}\")")),
                None => diagnostic.help("rescale() cannot change a dimension"),
            });
        };
        if conversion.is_identity() {
            return Ok(bound);
        }
        let factor = conversion.mult as f64 / conversion.div as f64;
        let value_type = ValueType::F64;
        let constant = TypedKind::Constant(factor.to_bits());
        let constant = self.push(constant, constant_desc(value_type), at);
        let kind = TypedKind::Binary {
            op: BinaryOp::Mul,
            left: bound.typed,
            right: constant,
            common: value_type,
            left_scale: Scale::ONE,
            right_scale: Scale::ONE,
        };
        let desc = Desc { value_type, units: to, ..bound.desc };
        Ok(Operand { typed: self.push(kind, desc, at), desc, ..bound })
    }

    /// The number that an expression spells.
    fn literal(&self, id: ExprId) -> Option<NumberText> {
        match &self.expr.node(id).kind {
            NodeKind::Number(number) => Some(match number.value {
                NumberValue::Integer(value) => NumberText::Integer(i64::from(value)),
                NumberValue::Double(value) => NumberText::Double(value),
            }),
            NodeKind::Unary { op: UnaryOp::Neg, operand } => {
                let NodeKind::Number(number) = &self.expr.node(*operand).kind else { return None };
                Some(match number.value {
                    NumberValue::Integer(value) => NumberText::Integer(-i64::from(value)),
                    NumberValue::Double(value) => NumberText::Double(-value),
                })
            }
            _ => None,
        }
    }

    /// True if an expression spells a number that a type holds exactly.
    fn fits(&self, id: ExprId, value_type: ValueType) -> bool {
        match (self.literal(id), value_type) {
            (None, _) => false,
            (Some(NumberText::Integer(value)), ValueType::I32) => i32::try_from(value).is_ok(),
            (Some(NumberText::Integer(value)), ValueType::U32) => u32::try_from(value).is_ok(),
            (Some(NumberText::Integer(value)), ValueType::U64) => value >= 0,
            // More digits than 24 bits are the only thing that single precision lacks here.
            (Some(NumberText::Integer(value)), ValueType::F32) => value.unsigned_abs() <= 1 << 24,
            (Some(NumberText::Integer(_)), _) => true,
            (Some(NumberText::Double(value)), ValueType::F32) => f64::from(value as f32) == value,
            (Some(NumberText::Double(_)), value_type) => value_type == ValueType::F64,
        }
    }

    /// `topk bottomk`
    fn ranked(
        &mut self,
        top: bool,
        literal: Option<&Literal>,
        operand: Operand,
        span: Span,
    ) -> Checked<TypedId> {
        let Some(&Literal::Rank(k)) = literal else { return Err(super::Reported) };
        let kind = TypedKind::Ranked { k, top, operand: operand.typed };
        Ok(self.push(kind, operand.desc, span))
    }

    fn quantile(
        &mut self,
        literal: Option<&Literal>,
        operand: Operand,
        span: Span,
    ) -> Checked<TypedId> {
        let Some(Literal::Fraction(number)) = literal else { return Err(super::Reported) };
        let fraction = match number.value {
            NumberValue::Integer(value) => f64::from(value),
            NumberValue::Double(value) => value,
        };
        self.statistic(Statistic::Quantile(fraction.to_bits()), operand, span)
    }

    /// `quantile stdev`
    fn statistic(&mut self, function: Statistic, operand: Operand, span: Span) -> Checked<TypedId> {
        let kind = TypedKind::Statistic { function, operand: operand.typed };
        let desc = Desc {
            value_type: ValueType::F64,
            indom: None,
            semantics: Semantics::Instant,
            units: operand.desc.units,
        };
        Ok(self.push(kind, desc, span))
    }

    /// `avg_over max_over min_over ewma`
    fn window(
        &mut self,
        function: WindowFunction,
        name: &str,
        literal: Option<&Literal>,
        operand: Operand,
        span: Span,
    ) -> Checked<TypedId> {
        let Some(Literal::Interval { length, .. }) = literal else { return Err(super::Reported) };
        self.not_counting(operand, name)?;
        let value_type = match function {
            WindowFunction::Max | WindowFunction::Min => operand.desc.value_type,
            WindowFunction::Avg | WindowFunction::Ewma => ValueType::F64,
        };
        let seconds = length.as_secs_f64().to_bits();
        let kind = TypedKind::Window { function, operand: operand.typed, seconds };
        let desc = Desc { value_type, semantics: Semantics::Instant, ..operand.desc };
        Ok(self.push(kind, desc, span))
    }

    /// `matchvalue(/pattern/, operand)`
    fn match_value(
        &mut self,
        operand: Operand,
        literal: Option<&Spanned<Literal>>,
        span: Span,
    ) -> Checked<TypedId> {
        let Some(Literal::Pattern { pattern, negated }) = literal.map(|literal| &literal.value)
        else {
            return Err(super::Reported);
        };
        if operand.desc.value_type != ValueType::String {
            let at = self.span(operand.expr);
            let message = format!("`matchvalue()` needs a text, not {}", operand.desc.value_type);
            return self.report(
                Diagnostic::error(Code::NotNumeric, at, message)
                    .label(at, describe(&operand.desc))
                    .help("numbers are compared by `==`; matchinst() filters by instance names"),
            );
        }
        let (pattern, negated) = (pattern.clone(), *negated);
        let kind = TypedKind::TextMatch { operand: operand.typed, pattern, negated };
        let desc = outcome_desc(operand.desc.indom, &[operand.desc]);
        Ok(self.push(kind, desc, span))
    }

    /// `left == right` or `left != right` if one of them is a text, else `None`.
    pub(super) fn text_equality(
        &mut self,
        (op, op_span): (BinaryOp, Span),
        operands: [(ExprId, TypedId, Desc); 2],
        span: Span,
    ) -> Option<Checked<TypedId>> {
        let is_text = |(_, _, desc): &(ExprId, TypedId, Desc)| desc.value_type == ValueType::String;
        let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        if !self.extensions || !equality || !operands.iter().any(is_text) {
            return None;
        }
        let operands = operands.map(|(expr, typed, desc)| Operand { expr, typed, desc });
        Some(self.compare_texts(op, op_span, operands, span))
    }

    fn compare_texts(
        &mut self,
        op: BinaryOp,
        op_span: Span,
        operands: [Operand; 2],
        span: Span,
    ) -> Checked<TypedId> {
        let symbol = op.symbol();
        let [left, right] = operands;
        if left.desc.value_type != right.desc.value_type {
            let message = format!(
                "`{symbol}` compares {} with {}",
                left.desc.value_type, right.desc.value_type
            );
            let (l, r) = (self.span(left.expr), self.span(right.expr));
            return self.report(
                Diagnostic::error(Code::NotNumeric, op_span, message)
                    .label(l, describe(&left.desc))
                    .label(r, describe(&right.desc))
                    .help("a text equals texts only, which stand in double quotes"),
            );
        }
        let indom = self.one_indom(&operands, &format!("`{symbol}`"))?;
        let kind = TypedKind::TextEqual {
            left: left.typed,
            right: right.typed,
            negated: op == BinaryOp::Ne,
        };
        let desc = outcome_desc(indom, &[left.desc, right.desc]);
        Ok(self.push(kind, desc, span))
    }
}

/// A number as it is spelled in an expression, with its sign.
#[derive(Clone, Copy)]
enum NumberText {
    Integer(i64),
    Double(f64),
}

/// Discrete if all are, which literals are.
fn plain_semantics(descs: &[Desc]) -> Semantics {
    match descs.iter().all(|desc| desc.semantics == Semantics::Discrete) {
        true => Semantics::Discrete,
        false => Semantics::Instant,
    }
}

/// Metadata of an outcome that is 0 or 1.
fn outcome_desc(indom: Option<InDom>, operands: &[Desc]) -> Desc {
    let semantics = plain_semantics(operands);
    Desc { value_type: ValueType::U32, indom, semantics, units: Units::NONE }
}
