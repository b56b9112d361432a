//! Notes in words about facts of a node that are not obvious.
//!
//! All facts come from the typed node that checking made. The notes give only
//! the results of the language's rules.

use pmderive_runtime::kernel::ReduceOp;
use pmderive_runtime::model::{Conversion, Semantics, Units, ValueType};

use crate::bind::{Desc, Name, Names};
use crate::check::ternary::Guard;
use crate::check::typed::{Decrease, Scale, TypedId, TypedKind, WindowFunction};
use crate::check::{Examined, describe, units_name};
use crate::dialect::Dialect;
use crate::functions::Function;
use crate::syntax::ast::{Aggregate, BinaryOp, Callee, Expr, ExprId, NodeKind};
use crate::syntax::counted;

/// An expression with the results of checking.
pub struct CheckedExpression<'n> {
    pub expr: &'n Expr,
    pub examined: &'n Examined,
    pub names: &'n Names,
    pub dialect: Dialect,
}

impl CheckedExpression<'_> {
    /// Sentences about a node, without full stops.
    pub fn notes(&self, id: ExprId) -> Vec<String> {
        let mut notes = Vec::new();
        let kind = &self.expr.node(id).kind;
        match kind {
            NodeKind::Defined(name) => notes.extend(match self.names.get(&name.value) {
                Name::Metric(_) => Some("the source has it, so this is always 1".to_owned()),
                Name::Unknown(status) => Some(format!("always 0, since the source says: {status}")),
                Name::Nested { .. } => {
                    Some("a derived metric that can be used, so this is always 1".to_owned())
                }
                Name::Unusable => {
                    Some("always 0, since the definition of that name is refused".to_owned())
                }
                Name::NoDescriptor(_) | Name::Derived(_) => None,
            }),
            NodeKind::MkConst { attributes, .. } | NodeKind::NoValue(attributes) => {
                notes.extend(attributes.meta.as_ref().map(|meta| {
                    format!("metadata of {}, except where keywords say otherwise", meta.value)
                }));
            }
            NodeKind::Call {
                callee: Callee::Function(Function { explained: Some(note), .. }),
                ..
            } => {
                notes.push((*note).to_owned());
                return notes;
            }
            NodeKind::Grouped { .. } => {
                notes.push("a value for each group of hosts with the same labels".to_owned());
                return notes;
            }
            NodeKind::Anon(_) => {
                notes.push("stands for an operand that never has a value".to_owned());
                return notes;
            }
            NodeKind::Ternary { guard, yes, .. } => {
                if let Some(Guard::Known(known)) = self.examined.guards.get(*guard) {
                    let branch = if self.examined.live[*yes] { "first" } else { "second" };
                    let value = if *known { "true" } else { "false" };
                    notes.push(format!(
                        "decided when names are looked up: the guard is {value} whatever the \
                         values are, so the {branch} branch is taken"
                    ));
                }
            }
            _ => {}
        }
        if let Some(typed) = self.examined.nodes[id] {
            self.typed(typed, &mut notes);
        }
        notes
    }

    fn desc(&self, id: TypedId) -> &Desc {
        &self.examined.typed.node(id).desc
    }

    /// Adds the facts that checking found about a node.
    fn typed(&self, id: TypedId, notes: &mut Vec<String>) {
        let node = &self.examined.typed.node(id);
        let (kind, desc) = (&node.kind, &node.desc);
        let mut note = |text: &str| notes.push(text.to_owned());
        match kind {
            TypedKind::Metric(_) | TypedKind::Constant(_) | TypedKind::Text(_) => {}
            TypedKind::Derived(_) => note("a derived metric, which is explained by itself"),
            // The note is at the guard.
            TypedKind::Chosen { .. } => {}
            TypedKind::NoValue => note("removes the value where it is chosen"),
            TypedKind::Nothing => {
                note("never has a value: libpcp 7.2 keeps no previous sample of such an operand");
            }
            TypedKind::Negate(operand) => {
                let from = self.desc(*operand).value_type;
                if from != desc.value_type {
                    notes.push(format!("{from} becomes {}, which has a sign", desc.value_type));
                }
            }
            TypedKind::Not(_) => note("1 where the operand is 0, else 0"),
            TypedKind::Binary { op, left, right, common, scales } => {
                self.binary(*op, [*left, *right], scales.as_deref(), (*common, desc), notes);
            }
            TypedKind::Choose { guard, yes, no } => {
                self.choice(*guard, [*yes, *no], note);
            }
            TypedKind::Aggregate { function, operand } => {
                note(aggregate_words(*function));
                if let TypedKind::Metric(_) = self.examined.typed.node(*operand).kind {
                    notes.push(format!("the metric is {}", describe(self.desc(*operand))));
                }
            }
            TypedKind::Delta { operand, .. } => {
                note("this sample less the one before; no value in the first sample");
                let (from, to) = (self.desc(*operand).value_type, desc.value_type);
                if from != to {
                    notes.push(format!("{from} becomes {to}, as a difference may be negative"));
                }
            }
            TypedKind::Rate { operand, decrease, time_factor } => {
                note(
                    "the difference from the previous sample, by the seconds between them; no \
                      value in the first sample",
                );
                note(decrease_words(*decrease, self.desc(*operand).value_type));
                if let Some(factor) = time_factor {
                    notes.push(format!(
                        "units: {} per second is a plain number when multiplied by {factor}",
                        units_name(&self.desc(*operand).units)
                    ));
                }
            }
            TypedKind::Same(operand) => note(match self.desc(*operand).semantics {
                Semantics::Counter => "the counter's values, unchanged, as measurements",
                _ => "changes nothing",
            }),
            TypedKind::Scalar(operand) => note(match self.desc(*operand).indom {
                Some(_) => "the value of the first instance",
                None => "changes nothing: it is a single value already",
            }),
            TypedKind::Rescale { conversion, operand, .. } => {
                let from = self.desc(*operand);
                notes.push(conversion_words(conversion, from, &desc.units, self.dialect));
            }
            TypedKind::Named { name, .. } => notes
                .push(format!("the instance called `{name}`, or whose name begins with that word")),
            TypedKind::Matching { negated, .. } => note(match negated {
                false => "instances whose names, up to the first blank, match",
                true => "instances whose names, up to the first blank, do not match",
            }),
            TypedKind::Lanes { rule, operands, within } => {
                note(rule.note);
                if operands.len() > 1 {
                    notes.push(format!("computed as {within}"));
                }
            }
            TypedKind::Statistic { op, .. } => note(match op {
                ReduceOp::Quantile(_) => {
                    "over the instances in the sample, linear between the closest ranks"
                }
                _ => "over the instances in the sample, as of a whole population",
            }),
            TypedKind::Ranked { k, top, .. } => {
                let which = if *top { "greatest" } else { "least" };
                notes.push(format!(
                    "at most {k} instances, those with the {which} values, in their own order"
                ));
            }
            TypedKind::Window { function, seconds, .. } => {
                notes.push(window_words(*function, f64::from_bits(*seconds)));
            }
            TypedKind::TextEqual { negated, .. } => note(match negated {
                false => "1 where the texts are equal, else 0",
                true => "1 where the texts are different, else 0",
            }),
            TypedKind::TextMatch { negated, .. } => note(match negated {
                false => "1 where the pattern occurs in the text, else 0",
                true => "1 where the pattern does not occur in the text, else 0",
            }),
        }
    }

    /// Adds how values choose between branches.
    fn choice(&self, guard: TypedId, branches: [TypedId; 2], mut note: impl FnMut(&str)) {
        let never = |id| matches!(self.examined.typed.node(id).kind, TypedKind::NoValue);
        match branches.map(never) {
            [true, _] => note("no value where the guard is not 0"),
            [_, true] => note("no value where the guard is 0"),
            _ => {}
        }
        note(match self.desc(guard).indom {
            Some(_) => "decided by the values of each sample, instance by instance",
            None => "decided by the guard's value in each sample, for all instances",
        });
    }

    /// Adds how an operator treats its operands.
    fn binary(
        &self,
        op: BinaryOp,
        operands: [TypedId; 2],
        scales: Option<&[Scale; 2]>,
        (common, desc): (ValueType, &Desc),
        notes: &mut Vec<String>,
    ) {
        let [l, r] = operands.map(|id| self.desc(id));
        let [left_scale, right_scale] = scales.copied().unwrap_or([Scale::ONE; 2]);
        let sides = [("left", left_scale, l, r), ("right", right_scale, r, l)];
        for (side, scale, own, other) in sides {
            if !scale.is_one() {
                notes.push(format!(
                    "the {side} operand is {}, which brings its {} to the scale of {}",
                    scale_words(scale),
                    units_name(&own.units),
                    units_name(&other.units)
                ));
            }
        }
        let dimensioned = !l.units.is_dimensionless() && !r.units.is_dimensionless();
        if op.is_arithmetic() {
            if op == BinaryOp::Div {
                notes.push("a quotient is always DOUBLE; 0 divided by anything is 0".to_owned());
            } else if scales.is_some() && l.value_type.max(r.value_type) != ValueType::F64 {
                notes.push("DOUBLE, since an operand is brought to another scale".to_owned());
            } else if l.value_type != r.value_type {
                notes.push(format!("{} and {} meet in {common}", l.value_type, r.value_type));
            }
            let verb = match op {
                BinaryOp::Mul if dimensioned => Some("times"),
                BinaryOp::Div if dimensioned => Some("divided by"),
                _ => None,
            };
            if let Some(verb) = verb {
                let [l, r, result] = [&l.units, &r.units, &desc.units].map(units_name);
                notes.push(format!("units: {l} {verb} {r} is {result}"));
            }
            let counters =
                [l, r].iter().filter(|desc| desc.semantics == Semantics::Counter).count();
            if counters == 1 && desc.semantics == Semantics::Counter {
                notes.push("a counter, since one operand is".to_owned());
            }
        } else {
            notes.push("1 where it is true, else 0".to_owned());
            if !op.is_boolean() && l.value_type != r.value_type {
                notes.push(format!("compared as {common}"));
            }
            if !op.is_boolean() && dimensioned && l.units != r.units {
                let [l, r] = [&l.units, &r.units].map(units_name);
                notes.push(format!("compared as they are: neither {l} nor {r} is converted"));
            }
        }
        match (l.indom, r.indom) {
            (Some(_), Some(_)) => {
                notes.push("for each instance that both operands have".to_owned());
            }
            (Some(_), None) | (None, Some(_)) => {
                let side = if l.indom.is_none() { "left" } else { "right" };
                notes.push(format!("the one value on the {side} meets each instance"));
            }
            (None, None) => {}
        }
        if self.dialect != Dialect::Fixed && scales.is_some() {
            notes.push("the result's units are labelled as in this version of libpcp".to_owned());
        }
    }
}

fn aggregate_words(function: Aggregate) -> &'static str {
    match function {
        Aggregate::Avg => "over the instances in the sample, always FLOAT and instant",
        Aggregate::Count => "the number of values, 0 if there are none",
        Aggregate::Max => "the greatest value of the sample, always instant",
        Aggregate::Min => "the least value of the sample, always instant",
        Aggregate::Sum => "over the instances in the sample",
    }
}

fn decrease_words(decrease: Decrease, value_type: ValueType) -> &'static str {
    match decrease {
        // What has a sign gives a negative difference as it is.
        Decrease::Wrap if !matches!(value_type, ValueType::U32 | ValueType::U64) => {
            decrease_words(Decrease::Negative, value_type)
        }
        Decrease::Drop => "no value where a counter fell: it was reset",
        Decrease::Wrap => "a value below the one before counts as one that wrapped",
        Decrease::Negative => "negative where the value fell",
    }
}

fn window_words(function: WindowFunction, seconds: f64) -> String {
    match function {
        WindowFunction::Ewma => {
            format!("older values count half as much after {}", counted(seconds, "second"))
        }
        _ => format!("over the samples of the last {}, by instance", counted(seconds, "second")),
    }
}

fn scale_words(scale: Scale) -> String {
    match (scale.div == 1.0, scale.mul == 1.0) {
        (false, true) => format!("divided by {}", scale.div),
        (true, false) => format!("multiplied by {}", scale.mul),
        _ => format!("divided by {} and multiplied by {}", scale.div, scale.mul),
    }
}

fn conversion_words(conversion: &Conversion, from: &Desc, to: &Units, dialect: Dialect) -> String {
    let (before, after) = (units_name(&from.units), units_name(to));
    if conversion.is_identity() {
        return format!("changes nothing: it is already in {before}");
    }
    let (mult, div) = conversion.of_integers();
    let mut steps = Vec::new();
    if mult != 1 {
        steps.push(format!("multiplied by {mult}"));
    }
    if div != 1 {
        steps.push(format!("divided by {div}"));
    }
    if conversion.extra.is_some() {
        steps.push("moved to the other zero point or unit".to_owned());
    }
    let rounded = match from.value_type {
        ValueType::F32 | ValueType::F64 => "",
        _ if conversion.extra.is_some() && dialect != Dialect::Fixed => {
            ", without what is behind the point"
        }
        _ if div != 1 || conversion.extra.is_some() => ", rounded to a whole number",
        _ => "",
    };
    format!("{before} to {after}: {}{rounded}", steps.join(", "))
}
