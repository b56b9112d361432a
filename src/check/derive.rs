//! Explains how an operand got the property that is wrong: its type, semantics,
//! units or instances. The explanation goes node by node from the metrics up.
//!
//! It reads checked nodes, knows the rules that gave them their metadata, and
//! names only nodes that change something.

use pmderive_runtime::model::{Semantics, ValueType};

use super::{Checker, Operand, instances_name, units_name};
use crate::bind::Desc;
use crate::diag::{Derivation, Property, Step};
use crate::syntax::ast::{
    Aggregate, Attributes, BinaryOp, ExprId, NodeKind, NumberValue, Temporal, UnaryOp,
};

/// Largest number of steps of a derivation. The steps nearest to the operand
/// stay.
const MAX_STEPS: usize = 64;

impl Checker<'_> {
    /// The derivation of a property of a checked operand. `None` for a metric
    /// or constant, which shows the property itself, and where nothing explains
    /// it.
    pub(super) fn derivation(
        &self,
        operand: ExprId,
        subject: &str,
        property: Property,
    ) -> Option<Derivation> {
        if matches!(
            self.expr.node(operand).kind,
            NodeKind::Metric(_) | NodeKind::Number(_) | NodeKind::MkConst { .. }
        ) {
            return None;
        }
        let mut steps = Vec::new();
        let mut waiting = vec![operand];
        while let Some(id) = waiting.pop() {
            if steps.len() == MAX_STEPS {
                break;
            }
            if let Ok(Operand { desc, .. }) = self.operand(id)
                && let Some(reason) = self.reason(id, &desc, property)
            {
                let value = match property {
                    Property::Type => desc.value_type.to_string(),
                    Property::Semantics => desc.semantics.to_string(),
                    Property::Units => units_name(&desc.units),
                    Property::Instances => instances_name(desc.indom),
                };
                steps.push(Step { span: self.span(id), value, reason });
            }
            // The right operand comes last.
            self.expr.operands(id, |operand| waiting.push(operand));
        }
        steps.reverse();
        let span = self.span(operand);
        // An operand that is a step itself must not be the only step.
        (!steps.is_empty()).then(|| Derivation {
            span,
            subject: subject.to_owned(),
            property,
            steps,
        })
    }

    /// The reason why a node has this property, if its operand does not explain
    /// it.
    fn reason(&self, id: ExprId, desc: &Desc, property: Property) -> Option<String> {
        let node = &self.expr.node(id).kind;
        match property {
            Property::Type => self.reason_of_type(node, desc),
            Property::Semantics => self.reason_of_semantics(node, desc),
            Property::Units => self.reason_of_units(node, desc),
            Property::Instances => match node {
                NodeKind::Metric(_) => Some(OWN.to_owned()),
                NodeKind::Aggregate { function, .. } => {
                    Some(format!("{}() makes one value of all", function.name()))
                }
                NodeKind::Scalar(_) => Some("scalar() takes the first".to_owned()),
                NodeKind::MkConst { attributes, .. } if desc.indom.is_some() => {
                    Some(given(attributes, attributes.indom.is_some(), "indom"))
                }
                _ => None,
            },
        }
    }

    fn desc_of(&self, id: ExprId) -> Option<Desc> {
        self.operand(id).ok().map(|operand| operand.desc)
    }

    fn reason_of_type(&self, node: &NodeKind, desc: &Desc) -> Option<String> {
        let reason = match node {
            NodeKind::Metric(_) => OWN,
            NodeKind::Number(number) => match number.value {
                NumberValue::Integer(_) => "a number without a point",
                NumberValue::Double(_) => "a number with a point",
            },
            NodeKind::MkConst { attributes, .. } => {
                return Some(match attributes.value_type.is_some() || attributes.meta.is_some() {
                    true => given(attributes, attributes.value_type.is_some(), "type"),
                    false => "without type=".to_owned(),
                });
            }
            NodeKind::Aggregate { function: Aggregate::Avg, .. } => "an average is a FLOAT",
            NodeKind::Aggregate { function: Aggregate::Count, .. } => "a number of instances",
            NodeKind::Aggregate { .. } => OWN,
            NodeKind::Temporal { function: Temporal::Rate, .. } => "a rate is always a DOUBLE",
            NodeKind::Temporal { function: Temporal::Delta, operand }
                if self.desc_of(*operand)?.value_type != desc.value_type =>
            {
                "wide enough for the difference"
            }
            NodeKind::Unary { op: UnaryOp::Neg, operand }
                if self.desc_of(*operand)?.value_type != desc.value_type =>
            {
                "negative numbers need a sign"
            }
            NodeKind::Binary { op: BinaryOp::Div, .. } => "a quotient is always a DOUBLE",
            NodeKind::Binary { op, left, right, .. } if op.is_arithmetic() => {
                let (l, r) = (self.desc_of(*left)?.value_type, self.desc_of(*right)?.value_type);
                match desc.value_type {
                    own if own == l && own == r => return None,
                    ValueType::F64 if l != ValueType::F64 && r != ValueType::F64 => {
                        "scales that are converted make it a DOUBLE"
                    }
                    _ => "the wider type of both",
                }
            }
            NodeKind::Binary { .. } | NodeKind::Unary { op: UnaryOp::Not, .. } => "a truth value",
            _ => return None,
        };
        Some(reason.to_owned())
    }

    fn reason_of_semantics(&self, node: &NodeKind, desc: &Desc) -> Option<String> {
        let is_counter = desc.semantics == Semantics::Counter;
        let was_counter =
            |id: ExprId| self.desc_of(id).is_some_and(|desc| desc.semantics == Semantics::Counter);
        let reason = match node {
            NodeKind::Metric(_) => OWN,
            NodeKind::Number(_) => "a constant",
            NodeKind::MkConst { attributes, .. } => {
                return Some(match attributes.semantics.is_some() || attributes.meta.is_some() {
                    true => given(attributes, attributes.semantics.is_some(), "semantics"),
                    false => "without semantics=".to_owned(),
                });
            }
            NodeKind::Aggregate { function: Aggregate::Sum, .. } if is_counter => {
                "a sum of counters"
            }
            NodeKind::Aggregate { function: Aggregate::Sum, .. } => OWN,
            NodeKind::Aggregate { .. } => "what an aggregate finds now",
            NodeKind::Temporal { function: Temporal::Rate | Temporal::Delta, .. } => {
                "a change is no counter"
            }
            NodeKind::Temporal { operand, .. } if was_counter(*operand) => {
                "instant() takes it as it is"
            }
            NodeKind::Unary { operand, .. } if was_counter(*operand) && !is_counter => {
                "no longer one that grows"
            }
            NodeKind::Binary { op, .. } if op.is_arithmetic() && is_counter => {
                "a counter with something else is one still"
            }
            NodeKind::Binary { op, .. } if !op.is_arithmetic() => "a truth value",
            _ => return None,
        };
        Some(reason.to_owned())
    }

    fn reason_of_units(&self, node: &NodeKind, desc: &Desc) -> Option<String> {
        let units = |id: ExprId| self.desc_of(id).map(|desc| desc.units);
        let reason = match node {
            NodeKind::Metric(_) => OWN,
            NodeKind::Aggregate { function: Aggregate::Count, .. } => "a number of instances",
            NodeKind::Aggregate { .. } => "those of the metric",
            NodeKind::MkConst { attributes, .. } if !desc.units.is_dimensionless() => {
                return Some(given(attributes, attributes.units.is_some(), "units"));
            }
            NodeKind::Temporal { function: Temporal::Rate, operand } => {
                match units(*operand)?.dim_time {
                    0 => "rate() divides by seconds",
                    _ => "rate() divides time by time",
                }
            }
            NodeKind::Rescale { .. } => "rescale() says so",
            NodeKind::Binary { op: op @ (BinaryOp::Mul | BinaryOp::Div), left, right, .. } => {
                let (l, r) = (units(*left)?, units(*right)?);
                if r.is_dimensionless() || (l.is_dimensionless() && *op == BinaryOp::Mul) {
                    return None;
                }
                let (l, r) = (units_name(&l), units_name(&r));
                return Some(match op {
                    BinaryOp::Mul => format!("{l} times {r}"),
                    _ => format!("{l} divided by {r}"),
                });
            }
            NodeKind::Binary { op: BinaryOp::Add | BinaryOp::Sub, left, right, .. } => {
                if units(*left)? == units(*right)? {
                    return None;
                }
                "both in the larger scale"
            }
            NodeKind::Binary { .. } | NodeKind::Unary { op: UnaryOp::Not, .. } => {
                "a truth value has none"
            }
            _ => return None,
        };
        Some(reason.to_owned())
    }
}

const OWN: &str = "the metric's own";

/// The origin of a constant's property: its own keyword, or a metric.
fn given(attributes: &Attributes, by_keyword: bool, keyword: &str) -> String {
    match &attributes.meta {
        Some(meta) if !by_keyword => format!("meta={}", meta.value),
        _ => format!("{keyword}= says so"),
    }
}
