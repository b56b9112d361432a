//! A call of a function that libpcp does not have, as the function's rule sees
//! it.
//!
//! [`crate::functions`] has the rules. This module has the parts that several rules need: operands,
//! literal arguments, refusals, and the nodes that rules make. Where libpcp's rules for operators
//! would wrap or cut off numbers, result types are wide enough instead.

use std::time::Duration;

use pmderive_runtime::model::{InDom, Semantics, Units, ValueType};

use super::typed::{TypedId, TypedKind};
use super::units::dimensions_agree;
use super::{Checker, describe, units_name, unusable_pattern};
use crate::bind::Desc;
use crate::diag::{Code, Diagnostic};
use crate::functions::Function;
use crate::lanes::LaneRule;
use crate::syntax::ast::{Callee, ExprId, Literal, NodeKind, NumberValue, Spanned, UnaryOp};
use crate::text::Span;

pub(crate) use super::{Checked, Operand, Reported};

/// A number as it is spelled in an expression, with its sign.
#[derive(Clone, Copy)]
pub(crate) enum Spelled {
    Integer(i64),
    Double(f64),
}

/// A call whose operands are checked.
pub(crate) struct Call<'a, 'c> {
    checker: &'a mut Checker<'c>,
    function: &'static Function,
    literal: Option<&'a Spanned<Literal>>,
    operands: &'a [Operand],
}

impl Checker<'_> {
    /// A call of a function that libpcp does not have.
    pub(super) fn call(
        &mut self,
        callee: Callee,
        literal: Option<&Spanned<Literal>>,
        operands: &[ExprId],
    ) -> Checked<TypedId> {
        let operands: Vec<Operand> =
            operands.iter().map(|expr| self.operand(*expr)).collect::<Checked<_>>()?;
        match callee {
            Callee::Aggregate(aggregate) => {
                let [operand] = operands[..] else { return Err(Reported) };
                self.reduce(aggregate, (operand.typed, operand.desc), self.span(operand.expr))
            }
            Callee::Function(function) => {
                let mut call = Call { checker: self, function, literal, operands: &operands };
                (function.check)(&mut call)
            }
        }
    }

    /// The instance domain that values computed from all operands have.
    pub(super) fn one_indom(&mut self, operands: &[Operand], what: &str) -> Checked<Option<InDom>> {
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
}

impl Call<'_, '_> {
    /// The operands; as many as the function's [`Shape`](crate::syntax::Shape) says.
    pub fn operands<const N: usize>(&self) -> Checked<[Operand; N]> {
        self.operands.try_into().map_err(|_| Reported)
    }

    /// The operands, all of which are numbers.
    pub fn numbers<const N: usize>(&mut self) -> Checked<[Operand; N]> {
        let operands = self.operands()?;
        let what = format!("`{}()`", self.function.name);
        for operand in &operands {
            self.checker.numeric(operand, &what)?;
        }
        Ok(operands)
    }

    /// The number of a [`NumberKind::Rank`](crate::syntax::NumberKind).
    pub fn rank(&self) -> Checked<u32> {
        let Some(&Literal::Rank(k)) = self.value_of_literal() else { return Err(Reported) };
        Ok(k)
    }

    /// The number of a [`NumberKind::Fraction`](crate::syntax::NumberKind).
    pub fn fraction(&self) -> Checked<f64> {
        let Some(Literal::Fraction(number)) = self.value_of_literal() else { return Err(Reported) };
        Ok(number.value.as_f64())
    }

    /// The interval.
    pub fn interval(&self) -> Checked<Duration> {
        let Some(Literal::Interval { length, .. }) = self.value_of_literal() else {
            return Err(Reported);
        };
        Ok(*length)
    }

    /// The pattern, and whether `!` stands before it. One that cannot be used is reported.
    pub fn pattern(&mut self) -> Checked<(Box<str>, bool)> {
        let Some(Spanned { value: Literal::Pattern { pattern, negated }, span }) = self.literal
        else {
            return Err(Reported);
        };
        match unusable_pattern(pattern, *span) {
            Some(diagnostic) => self.report(diagnostic),
            None => Ok((pattern.clone(), *negated)),
        }
    }

    fn value_of_literal(&self) -> Option<&Literal> {
        self.literal.map(|literal| &literal.value)
    }

    /// The place of an operand in the text.
    pub fn span_of(&self, operand: Operand) -> Span {
        self.checker.span(operand.expr)
    }

    /// The spelling of an operand that is a number without a sign.
    pub fn number_text(&self, operand: Operand) -> Option<&str> {
        match &self.checker.expr.node(operand.expr).kind {
            NodeKind::Number(number) => Some(&number.text),
            _ => None,
        }
    }

    /// The number that an operand is spelled as.
    pub fn spelled(&self, operand: Operand) -> Option<Spelled> {
        let kind = |id: ExprId| &self.checker.expr.node(id).kind;
        let (number, sign) = match kind(operand.expr) {
            NodeKind::Number(number) => (number, 1),
            NodeKind::Unary { op: UnaryOp::Neg, operand } => match kind(*operand) {
                NodeKind::Number(number) => (number, -1),
                _ => return None,
            },
            _ => return None,
        };
        Some(match number.value {
            NumberValue::Integer(value) => Spelled::Integer(sign * i64::from(value)),
            NumberValue::Double(value) => Spelled::Double(sign as f64 * value),
        })
    }

    /// Refuses the call.
    pub fn report<T>(&mut self, diagnostic: Diagnostic) -> Checked<T> {
        self.checker.report(diagnostic)
    }

    /// Refuses counters: only changes of their values have a meaning.
    pub fn not_counting(&mut self, operand: Operand) -> Checked<()> {
        if operand.desc.semantics != Semantics::Counter {
            return Ok(());
        }
        let span = self.span_of(operand);
        let message = format!("`{}()` of a counter", self.function.name);
        self.report(
            Diagnostic::error(Code::CounterMisuse, span, message)
                .label(span, describe(&operand.desc))
                .help(
                    "use rate() or delta() for the counter's change, or instant() to take it \
                     as it is",
                ),
        )
    }

    /// Refuses units other than none and a plain count. A count of thousands is
    /// refused too, because its number differs from that of the count.
    pub fn plain_number(&mut self, operand: Operand, what: &str, help: &str) -> Checked<()> {
        let Desc { units, .. } = operand.desc;
        let span = self.span_of(operand);
        let is_scaled = units.dim_count != 0 && units.scale_count != 0;
        let help = match dimensions_agree(&units, &Units::NONE) {
            true if !is_scaled => return Ok(()),
            true => "`rescale(..., \"count\")` makes plain counts of it",
            false => help,
        };
        let units = units_name(&units);
        let message = format!("{what} has to be a plain number or a count, not {units}");
        self.report(
            Diagnostic::error(Code::DimensionMismatch, span, message)
                .label(span, describe(&operand.desc))
                .help(help),
        )
    }

    /// The instance domain that values computed from these operands have.
    pub fn one_domain(&mut self, operands: &[Operand]) -> Checked<Option<InDom>> {
        self.checker.one_indom(operands, &format!("`{}()`", self.function.name))
    }

    /// A node for the call, for a part of it, or for a converted operand.
    pub fn node(&mut self, kind: TypedKind, desc: Desc) -> TypedId {
        self.checker.push(kind, desc)
    }

    /// A node that computes from the values of one or two operands, instance
    /// by instance, in the type `within`.
    pub fn lanes(
        &mut self,
        rule: &'static LaneRule,
        operands: &[TypedId],
        within: ValueType,
        desc: Desc,
    ) -> TypedId {
        self.node(TypedKind::Lanes { rule, operands: operands.into(), within }, desc)
    }
}

/// Discrete if all operands are discrete, as literals are.
pub(crate) fn plain_semantics(descs: &[Desc]) -> Semantics {
    match descs.iter().all(|desc| desc.semantics == Semantics::Discrete) {
        true => Semantics::Discrete,
        false => Semantics::Instant,
    }
}

/// Metadata of a result that is 0 or 1.
pub(crate) fn truth_desc(indom: Option<InDom>, operands: &[Desc]) -> Desc {
    let semantics = plain_semantics(operands);
    Desc { value_type: ValueType::U32, indom, semantics, units: Units::NONE }
}
