//! Checking: from a parsed expression and the meaning of its names to a typed
//! expression. Without one, the result is diagnostics that say why.
//!
//! Nodes are checked in post-order. A node with a wrong operand is not checked
//! itself, so one mistake is reported once. Independent mistakes are all
//! reported. This stage never asks the source for anything.

pub(crate) mod call;
mod derive;
mod functions;
pub(crate) mod names;
mod operators;
mod pcp;
pub(crate) mod ternary;
mod texts;
pub mod typed;
mod typed_cache;
pub(crate) mod types;
pub mod units;

use std::fmt::Display;

use pmderive_runtime::model::{InDom, Semantics, Units, ValueType};
use pmderive_runtime::pattern::Pattern;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bind::{Desc, Name, Names};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::dialect::{Dialect, Language};
use crate::syntax::Group;
use crate::syntax::ast::{Attributes, Expr, ExprId, Node, NodeKind, NumberValue, PerNode, UnaryOp};
use crate::text::Span;
use pcp::Wording;
use typed::{TypedExpr, TypedId, TypedKind, TypedNode};
pub(crate) use typed_cache::TypedCache;

/// Names to suggest in place of unknown ones.
pub trait Suggest {
    /// The known name that is most similar to an unknown one. Names of definitions count
    /// if derived metrics may be operands.
    fn nearest(&self, name: &str, with_derived: bool) -> Option<String>;
    /// The metrics of the source whose names begin with that of a group.
    fn below(&self, group: &str) -> Group;
    /// True for an expression of its own: a name alone may be that of a definition then.
    fn is_unnamed(&self) -> bool;
    /// True if an unknown name was compared with all known ones: the names of the source are
    /// known, and there were not too many comparisons.
    fn compares_all(&self) -> bool;
}

/// Checks an expression without error nodes. `suggest` has names to suggest in
/// place of unknown ones.
///
/// `None` for an expression with mistakes; `diagnostics` then has them.
pub fn check(
    expr: &Expr,
    names: &Names,
    language: impl Into<Language>,
    suggest: &dyn Suggest,
    diagnostics: &mut Diagnostics,
) -> Option<TypedExpr> {
    let examined = examine(expr, names, language, suggest, diagnostics);
    examined.is_whole.then_some(examined.typed)
}

/// The results of checking an expression, right or wrong.
#[derive(Clone, Debug, Default)]
pub struct Examined {
    /// The typed nodes, as far as they go.
    pub typed: TypedExpr,
    /// True if nothing is wrong, so that `typed` is a whole expression.
    pub is_whole: bool,
    /// Typed node of each node of the expression. A wrong node has none, nor
    /// has one that needs a wrong node or is never chosen.
    pub nodes: PerNode<Option<TypedId>>,
    /// The nodes that remain without the branches that are never chosen.
    pub live: PerNode<bool>,
    /// Each node as a guard: constant, decided by names, or dependent on
    /// values.
    pub guards: PerNode<ternary::Guard>,
}

impl Examined {
    /// True if lints see all of the expression: nothing is wrong with it, and no branch is
    /// left out.
    pub(crate) fn is_seen_whole(&self) -> bool {
        self.is_whole && self.live.iter().all(|live| *live)
    }
}

/// Checks an expression as [`check`] does and keeps everything that was found.
pub fn examine(
    expr: &Expr,
    names: &Names,
    language: impl Into<Language>,
    suggest: &dyn Suggest,
    diagnostics: &mut Diagnostics,
) -> Examined {
    let Language { dialect, extensions } = language.into();
    let before = diagnostics.len();
    let guards = ternary::known_guards(expr, names, dialect);
    let live = ternary::live(expr, &guards);
    let mut checker = Checker {
        expr,
        names,
        dialect,
        extensions,
        suggest,
        diagnostics,
        guards,
        typed: TypedExpr::with_room(expr),
        done: PerNode::all(expr.len(), None),
        blamed: FxHashSet::default(),
        hyphenated: names::hyphenated(expr, names, suggest),
    };
    let wording = Wording::new(expr, dialect);
    let mut is_whole = true;
    for (id, node) in expr.nodes() {
        let reached = live[id];
        let first = checker.diagnostics.len();
        let checked = match reached {
            true => checker.hyphen(id).and_then(|()| checker.node(node)).map(Some),
            false => checker.mention(node).map(|()| None),
        };
        match checked {
            Ok(typed) => checker.done[id] = typed,
            Err(Reported) => {
                wording.complete(id, checker.diagnostics.since_mut(first));
                is_whole = false;
            }
        }
    }
    wording.keep_first(checker.diagnostics.since_mut(before));
    let Checker { guards, typed, done: nodes, .. } = checker;
    Examined { typed, is_whole, nodes, live, guards }
}

/// The possible uses of values that are not numbers.
const NOT_COMPUTED: &str = "only `count()` and selectors work on values that are not numbers";

/// A node that cannot be checked further; its mistake is reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported;

/// An operand that is right by itself.
#[derive(Clone, Copy)]
pub(crate) struct Operand {
    /// Its place in the expression.
    pub expr: ExprId,
    /// Its typed node.
    pub typed: TypedId,
    /// Metadata of its values.
    pub desc: Desc,
}

/// The result of checking. Without one, a mistake was reported.
pub(crate) type Checked<T> = Result<T, Reported>;

pub(crate) struct Checker<'c> {
    expr: &'c Expr,
    names: &'c Names,
    dialect: Dialect,
    extensions: bool,
    suggest: &'c dyn Suggest,
    diagnostics: &'c mut Diagnostics,
    /// Each node as a guard, as far as it is known already.
    guards: PerNode<ternary::Guard>,
    typed: TypedExpr,
    /// Typed node of each expression node that was checked.
    done: PerNode<Option<TypedId>>,
    /// Derived metrics that cannot be used, and were reported.
    blamed: FxHashSet<Box<str>>,
    /// Parts of names with hyphens.
    hyphenated: FxHashMap<ExprId, Option<names::Hyphenated>>,
}

impl Checker<'_> {
    fn report<T>(&mut self, diagnostic: Diagnostic) -> Checked<T> {
        self.diagnostics.push(diagnostic);
        Err(Reported)
    }

    fn push(&mut self, kind: TypedKind, desc: Desc) -> TypedId {
        let id = TypedId(self.typed.nodes.len() as u32);
        self.typed.nodes.push(TypedNode { kind, desc });
        id
    }

    /// A checked operand. An operand without one was reported.
    fn operand(&self, expr: ExprId) -> Checked<Operand> {
        let typed = self.done[expr].ok_or(Reported)?;
        Ok(Operand { expr, typed, desc: self.typed.node(typed).desc })
    }

    fn span(&self, id: ExprId) -> Span {
        self.expr.node(id).span
    }

    /// True for instance domains whose instances an operator can pair.
    fn are_same_domain(&self, a: InDom, b: InDom) -> bool {
        let equivalent = &self.names.equivalent_domains;
        a == b || self.dialect.is_version_7() && equivalent.are_equivalent(a, b)
    }

    /// Notes the metrics of a branch that is never chosen. Such a branch may
    /// mention unknown metrics, but none without metadata and no derived ones.
    fn mention(&mut self, node: &Node) -> Checked<()> {
        let (name, span) = match &node.kind {
            NodeKind::Metric(name) => (name, node.span),
            NodeKind::Aggregate { metric, .. } | NodeKind::Defined(metric) => {
                (&metric.value, metric.span)
            }
            _ => return Ok(()),
        };
        match self.names.get(name) {
            Name::Metric(desc) if !matches!(node.kind, NodeKind::Defined(_)) => {
                self.typed.mentioned.push(desc);
                Ok(())
            }
            Name::NoDescriptor(_) | Name::Derived(_) => self.metric(name, span).map(drop),
            _ => Ok(()),
        }
    }

    /// Checks one node, whose operands are checked already. Kinds with longer
    /// rules have a method of their own. The short rules are here, so one place
    /// shows all kinds.
    fn node(&mut self, node: &Node) -> Checked<TypedId> {
        let span = node.span;
        match &node.kind {
            NodeKind::Error => Err(Reported),
            NodeKind::Call { callee, literal, operands } => {
                self.call(*callee, literal.as_deref(), operands)
            }
            NodeKind::Grouped { labels, .. } => {
                let at = match (labels.first(), labels.last()) {
                    (Some(first), Some(last)) => first.span.to(last.span),
                    _ => span,
                };
                self.report(by_without_fleet(at))
            }
            NodeKind::Text(text) => {
                let desc = constant_desc(ValueType::String);
                Ok(self.push(TypedKind::Text(text.clone()), desc))
            }
            NodeKind::Metric(name) => self.metric(name, span),
            NodeKind::Number(number) => {
                let (value_type, bits) = match number.value {
                    NumberValue::Integer(value) => (ValueType::U32, u64::from(value)),
                    NumberValue::Double(value) => (ValueType::F64, value.to_bits()),
                };
                Ok(self.push(TypedKind::Constant(bits), constant_desc(value_type)))
            }
            NodeKind::Aggregate { function, metric } => self.aggregate(*function, metric),
            NodeKind::Defined(metric) => match self.names.get(&metric.value) {
                Name::NoDescriptor(_) => self.metric(&metric.value, metric.span),
                // Version 6 accepts a usable one.
                Name::Derived(desc) if self.dialect.is_version_7() || desc.is_none() => {
                    self.metric(&metric.value, metric.span)
                }
                meaning => {
                    let is_derived = matches!(meaning, Name::Derived(_));
                    let bits = u64::from(ternary::is_usable(meaning) || is_derived);
                    let desc = constant_desc(ValueType::U32);
                    Ok(self.push(TypedKind::Constant(bits), desc))
                }
            },
            NodeKind::Anon(value_type) => {
                Ok(self.push(TypedKind::Nothing, constant_desc(*value_type)))
            }
            NodeKind::MkConst { number, attributes } => {
                self.constant(number.value.value, attributes, span)
            }
            NodeKind::NoValue(attributes) => {
                let desc = self.attributes(attributes, ValueType::I32)?;
                Ok(self.push(TypedKind::NoValue, desc))
            }
            NodeKind::Unary { op, operand } => self.unary(*op, *operand),
            NodeKind::Binary { op, op_span, left, right } => {
                self.binary(*op, *op_span, *left, *right)
            }
            NodeKind::Ternary { guard, yes, no } => self.ternary(*guard, *yes, *no),
            NodeKind::Temporal { function, operand } => self.temporal(*function, *operand),
            NodeKind::Scalar(operand) => {
                let Operand { typed, desc, .. } = self.operand(*operand)?;
                let desc = Desc { indom: None, ..desc };
                Ok(self.push(TypedKind::Scalar(typed), desc))
            }
            NodeKind::Rescale { operand, units } => self.rescale(*operand, units.value, units.span),
            NodeKind::Select { operand, instance } => {
                let Operand { typed: operand, desc, .. } = self.operand(*operand)?;
                let name = instance.value.clone();
                Ok(self.push(TypedKind::Named { operand, name }, desc))
            }
            NodeKind::Match { pattern, negated, operand } => {
                let Operand { typed: operand, desc, .. } = self.operand(*operand)?;
                if let Some(diagnostic) = unusable_pattern(&pattern.value, pattern.span) {
                    return self.report(diagnostic);
                }
                let pattern = pattern.value.clone();
                let kind = TypedKind::Matching { operand, pattern, negated: *negated };
                Ok(self.push(kind, desc))
            }
        }
    }

    /// `mkconst(number, ...)`
    fn constant(
        &mut self,
        number: NumberValue,
        attributes: &Attributes,
        span: Span,
    ) -> Checked<TypedId> {
        let default = match number {
            NumberValue::Integer(_) => ValueType::U32,
            NumberValue::Double(_) => ValueType::F64,
        };
        let desc = self.attributes(attributes, default)?;
        if !desc.value_type.is_numeric() {
            let at = attributes.meta.as_ref().map_or(span, |meta| meta.span);
            let message = format!("a constant cannot have type {}", desc.value_type);
            return self.report(
                Diagnostic::error(Code::NotNumeric, at, message)
                    .label(at, describe(&desc))
                    .help("add type= with a numeric type"),
            );
        }
        let bits = constant_bits(number, desc.value_type);
        Ok(self.push(TypedKind::Constant(bits), desc))
    }

    /// True if derived metrics can be operands. Version 6 accepts any derived
    /// metric, and 7.2 one that is the whole expression. Fetching it then gives
    /// no value.
    fn takes_derived(&self) -> bool {
        match self.dialect {
            _ if self.extensions => false,
            Dialect::Pcp6_0 => true,
            Dialect::Pcp7_2 => {
                let root = self.expr.nodes().next_back().map(|(_, node)| &node.kind);
                self.expr.len() == 1 && matches!(root, Some(NodeKind::Metric(_)))
            }
            Dialect::Fixed => false,
        }
    }

    /// The metadata that keywords of `mkconst()` and `novalue()` give.
    fn attributes(&mut self, attributes: &Attributes, default: ValueType) -> Checked<Desc> {
        let mut desc = constant_desc(default);
        if let Some(meta) = &attributes.meta {
            desc = match self.names.get(&meta.value) {
                Name::Derived(Some(desc)) => desc.into(),
                _ => {
                    let typed = self.metric(&meta.value, meta.span)?;
                    let desc = self.typed.node(typed).desc;
                    // Only the metadata is needed.
                    self.typed.nodes.pop();
                    desc
                }
            };
        }
        let given = attributes;
        desc.value_type = given.value_type.as_ref().map_or(desc.value_type, |v| v.value);
        desc.semantics = given.semantics.as_ref().map_or(desc.semantics, |v| v.value);
        desc.units = given.units.as_ref().map_or(desc.units, |v| v.value);
        desc.indom = given.indom.as_ref().map_or(desc.indom, |v| v.value);
        Ok(desc)
    }

    /// Refuses operands of other than numeric types.
    fn numeric(&mut self, operand: &Operand, what: impl Display) -> Checked<()> {
        self.numeric_at(self.span(operand.expr), &operand.desc, what)
    }

    fn numeric_at(&mut self, span: Span, desc: &Desc, what: impl Display) -> Checked<()> {
        if desc.value_type.is_numeric() {
            return Ok(());
        }
        let message = format!("{what} needs a number, not {}", desc.value_type);
        self.report(
            Diagnostic::error(Code::NotNumeric, span, message)
                .label(span, describe(desc))
                .help(NOT_COMPUTED),
        )
    }

    fn unary(&mut self, op: UnaryOp, operand: ExprId) -> Checked<TypedId> {
        let operand = self.operand(operand)?;
        let Operand { typed, desc, .. } = operand;
        match op {
            UnaryOp::Neg => {
                self.numeric(&operand, "unary minus")?;
                let value_type = types::negated(desc.value_type);
                let desc = Desc { value_type, semantics: Semantics::Instant, ..desc };
                Ok(self.push(TypedKind::Negate(typed), desc))
            }
            UnaryOp::Not => {
                self.numeric(&operand, "`!`")?;
                let desc = match self.dialect {
                    Dialect::Fixed => Desc {
                        value_type: ValueType::U32,
                        units: Units::NONE,
                        semantics: not_a_counter(desc.semantics),
                        ..desc
                    },
                    // The operand's metadata, including its type if a 32-bit
                    // result fits it.
                    _ if desc.value_type == ValueType::I32 => desc,
                    _ => Desc { value_type: ValueType::U32, ..desc },
                };
                Ok(self.push(TypedKind::Not(typed), desc))
            }
        }
    }
}

/// The mistake of a pattern that is valid and cannot be used, as it is too large.
pub(crate) fn unusable_pattern(pattern: &str, at: Span) -> Option<Diagnostic> {
    let error = Pattern::new(pattern).err()?;
    let diagnostic = Diagnostic::error(Code::BadPattern, at, "this pattern cannot be used");
    Some(diagnostic.label(at, error.to_string()))
}

/// Metadata of a constant without keywords.
pub(crate) const fn constant_desc(value_type: ValueType) -> Desc {
    Desc { value_type, indom: None, semantics: Semantics::Discrete, units: Units::NONE }
}

/// Counters become instantaneous, others stay.
pub(crate) fn not_a_counter(semantics: Semantics) -> Semantics {
    match semantics {
        Semantics::Counter => Semantics::Instant,
        other => other,
    }
}

/// Reports labels of hosts as groups: they make no groups on one host.
fn by_without_fleet(at: Span) -> Diagnostic {
    Diagnostic::error(Code::ByWithoutFleet, at, "a single host has no groups")
        .label(at, "labels tell hosts apart, and this is computed on each host")
        .help(
            "`by` belongs into definitions over a fleet (`--fleet`, and `[fleet]` in the \
             configuration of `serve`); here, leave it out",
        )
}

/// Bits of a constant in its type. Integers keep their low bits. A number with
/// a point loses its fraction if metadata make it an integer.
fn constant_bits(value: NumberValue, value_type: ValueType) -> u64 {
    match (value, value_type) {
        (NumberValue::Integer(value), ValueType::F32) => {
            // Double precision comes first, as in reading.
            u64::from((f64::from(value) as f32).to_bits())
        }
        (NumberValue::Integer(value), ValueType::F64) => f64::from(value).to_bits(),
        (NumberValue::Integer(value), _) => u64::from(value),
        (NumberValue::Double(value), ValueType::F32) => u64::from((value as f32).to_bits()),
        (NumberValue::Double(value), ValueType::F64) => value.to_bits(),
        (NumberValue::Double(value), ValueType::I32 | ValueType::U32) => value as u64 & 0xffff_ffff,
        (NumberValue::Double(value), _) => value as u64,
    }
}

/// Units for messages; "none" where there are none.
pub fn units_name(units: &Units) -> String {
    match units.to_string() {
        text if text.is_empty() => "none".to_string(),
        text => text,
    }
}

/// The instances in words, for messages.
fn instances_name(indom: Option<InDom>) -> String {
    indom.map_or("single value".to_string(), |indom| format!("instances of {indom}"))
}

/// The inferred metadata of an operand, for labels.
pub fn describe(desc: &Desc) -> String {
    describe_with(desc, &instances_name(desc.indom))
}

/// The same with words for its instances.
pub fn describe_with(desc: &Desc, instances: &str) -> String {
    let Desc { value_type, semantics, units, .. } = desc;
    format!("{value_type}, {semantics}, units {}, {instances}", units_name(units))
}
