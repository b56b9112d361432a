//! Turns a tree back into text.
//!
//! It puts one blank around infix operators, and prints only the parentheses
//! that the tree needs. The text of a tree without error nodes parses to the
//! same tree. Units get their usual spelling.

use super::ast::{Attributes, BinaryOp, Expr, ExprId, Literal, NodeKind, PerNode, UnaryOp};
use super::keywords::{ANON_TYPES, spelling};

/// The text of an expression. Error nodes print as `?`, which no parser
/// accepts.
pub fn print_expr(expr: &Expr) -> String {
    let classes = classes(expr);
    let mut out = String::new();
    if expr.is_empty() {
        return out;
    }
    // Parts still to write, the last first.
    let mut todo = vec![Part::Node(expr.root())];
    while let Some(part) = todo.pop() {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Owned(text) => out.push_str(&text),
            Part::Operand(id, wanted) if wanted.accepts(classes[id]) => {
                todo.push(Part::Node(id));
            }
            Part::Operand(id, _) => {
                todo.extend([Part::Text(")"), Part::Node(id), Part::Text("(")]);
            }
            Part::Node(id) => {
                let parts = parts(expr, id);
                todo.extend(parts.into_iter().rev());
            }
        }
    }
    out
}

/// A piece of the output.
enum Part {
    Text(&'static str),
    Owned(String),
    /// A node without parentheses.
    Node(ExprId),
    /// A node in a place that does not accept every form.
    Operand(ExprId, OperandPlace),
}

/// The form of a node printed without parentheses: the level of its operator
/// and, as in the grammar, its end.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Primary,
    /// `-a`
    Minus,
    /// `!a`, `-!a`
    Not,
    Product(End),
    Sum(End),
    Relation(End),
    Boolean,
    Ternary,
}

/// The end of an expression: an operand that no later token can join, or one
/// below a prefix operator that captures later tokens.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Closed,
    OpenMinus,
    OpenNot,
}

/// Places of operands, by the forms that they accept.
#[derive(Clone, Copy)]
enum OperandPlace {
    /// Only a name.
    Selectable,
    /// Left of `* /`.
    LeftOfProduct,
    /// Right of `* /`.
    RightOfProduct,
    /// Left of `+ -`.
    LeftOfSum,
    /// Right of `+ -`.
    RightOfSum,
    /// Left of a comparison.
    LeftOfRelation,
    /// Right of a comparison.
    RightOfRelation,
    /// Right of `&& ||`, or below `!`.
    Relation,
    /// Left of `&& ||`, or the last branch of a ternary.
    Boolean,
    /// Below unary `-`.
    BelowMinus,
}

impl Class {
    /// Level of its operator, loosest first.
    fn level(self) -> u8 {
        match self {
            Class::Ternary => 0,
            Class::Boolean => 1,
            Class::Relation(_) => 2,
            Class::Sum(_) => 3,
            Class::Product(_) | Class::Minus | Class::Not => 4,
            Class::Primary => 5,
        }
    }

    fn end(self) -> End {
        match self {
            Class::Minus => End::OpenMinus,
            Class::Not => End::OpenNot,
            Class::Product(end) | Class::Sum(end) | Class::Relation(end) => end,
            Class::Primary | Class::Boolean | Class::Ternary => End::Closed,
        }
    }
}

impl OperandPlace {
    fn accepts(self, class: Class) -> bool {
        let open_not = class.end() == End::OpenNot;
        match self {
            OperandPlace::Selectable => false,
            OperandPlace::LeftOfProduct => class.level() >= 4 && class.end() == End::Closed,
            OperandPlace::RightOfProduct => {
                matches!(class, Class::Primary | Class::Minus | Class::Not)
            }
            OperandPlace::LeftOfSum => class.level() >= 3 && !open_not,
            OperandPlace::RightOfSum | OperandPlace::BelowMinus => class.level() >= 4,
            OperandPlace::LeftOfRelation => class.level() >= 2 && !open_not,
            OperandPlace::RightOfRelation => class.level() >= 3,
            OperandPlace::Relation => class.level() >= 2,
            OperandPlace::Boolean => class.level() >= 1,
        }
    }
}

/// The form of each node.
fn classes(expr: &Expr) -> PerNode<Class> {
    let mut classes = PerNode::<Class>::default();
    for (_, node) in expr.nodes() {
        // The end of an operand in the last place, if it has no parentheses there.
        let end = |id: ExprId, wanted: OperandPlace| {
            let class = classes[id];
            if wanted.accepts(class) { class.end() } else { End::Closed }
        };
        // A sum or relation ends openly only after `!`: a `-` at its end captures nothing that they
        // could.
        let sum_end = |end| if end == End::OpenNot { End::OpenNot } else { End::Closed };
        let class = match &node.kind {
            NodeKind::Unary { op: UnaryOp::Not, .. } => Class::Not,
            NodeKind::Unary { op: UnaryOp::Neg, operand } => {
                match end(*operand, OperandPlace::BelowMinus) {
                    End::OpenNot => Class::Not,
                    _ => Class::Minus,
                }
            }
            NodeKind::Binary { op, right, .. } => match op {
                BinaryOp::Mul | BinaryOp::Div => {
                    Class::Product(end(*right, OperandPlace::RightOfProduct))
                }
                BinaryOp::Add | BinaryOp::Sub => {
                    Class::Sum(sum_end(end(*right, OperandPlace::RightOfSum)))
                }
                BinaryOp::And | BinaryOp::Or => Class::Boolean,
                _ => Class::Relation(sum_end(end(*right, OperandPlace::RightOfRelation))),
            },
            NodeKind::Ternary { .. } => Class::Ternary,
            _ => Class::Primary,
        };
        classes.push(class);
    }
    classes
}

/// The text of one node. `operand` gives the text of each operand.
pub fn print_node(expr: &Expr, id: ExprId, mut operand: impl FnMut(ExprId) -> String) -> String {
    let pieces = parts(expr, id).into_iter().map(|part| match part {
        Part::Text(text) => text.to_owned(),
        Part::Owned(text) => text,
        Part::Node(id) | Part::Operand(id, _) => operand(id),
    });
    pieces.collect()
}

/// The pieces of a node, first to last.
fn parts(expr: &Expr, id: ExprId) -> Vec<Part> {
    let call = |name: &'static str, operand: ExprId| {
        vec![Part::Text(name), Part::Text("("), Part::Node(operand), Part::Text(")")]
    };
    match &expr.node(id).kind {
        NodeKind::Number(number) => vec![Part::Owned(number.text.to_string())],
        NodeKind::Metric(name) => vec![Part::Owned(name.to_string())],
        NodeKind::Select { operand, instance } => {
            let selector = format!("[{}]", escaped(&instance.value, ']'));
            let operand = match expr.node(*operand).kind {
                NodeKind::Metric(_) => Part::Node(*operand),
                _ => Part::Operand(*operand, OperandPlace::Selectable),
            };
            vec![operand, Part::Owned(selector)]
        }
        NodeKind::Match { pattern, negated, operand } => {
            let negation = if *negated { "!" } else { "" };
            let pattern = escaped(&pattern.value, '/');
            vec![
                Part::Owned(format!("matchinst({negation}/{pattern}/, ")),
                Part::Node(*operand),
                Part::Text(")"),
            ]
        }
        NodeKind::Unary { op, operand } => match op {
            UnaryOp::Neg => {
                vec![Part::Text("-"), Part::Operand(*operand, OperandPlace::BelowMinus)]
            }
            UnaryOp::Not => vec![Part::Text("!"), Part::Operand(*operand, OperandPlace::Relation)],
        },
        NodeKind::Binary { op, left, right, .. } => {
            let (wanted_left, wanted_right) = match op {
                BinaryOp::Mul | BinaryOp::Div => {
                    (OperandPlace::LeftOfProduct, OperandPlace::RightOfProduct)
                }
                BinaryOp::Add | BinaryOp::Sub => {
                    (OperandPlace::LeftOfSum, OperandPlace::RightOfSum)
                }
                BinaryOp::And | BinaryOp::Or => (OperandPlace::Boolean, OperandPlace::Relation),
                _ => (OperandPlace::LeftOfRelation, OperandPlace::RightOfRelation),
            };
            vec![
                Part::Operand(*left, wanted_left),
                Part::Text(" "),
                Part::Text(op.symbol()),
                Part::Text(" "),
                Part::Operand(*right, wanted_right),
            ]
        }
        NodeKind::Ternary { guard, yes, no } => vec![
            Part::Node(*guard),
            Part::Text(" ? "),
            Part::Node(*yes),
            Part::Text(" : "),
            Part::Operand(*no, OperandPlace::Boolean),
        ],
        NodeKind::Aggregate { function, metric } => {
            vec![Part::Owned(format!("{}({})", function.name(), metric.value))]
        }
        NodeKind::Defined(metric) => vec![Part::Owned(format!("defined({})", metric.value))],
        NodeKind::Anon(value_type) => {
            let name = spelling(&ANON_TYPES, *value_type).unwrap_or("?");
            vec![Part::Owned(format!("anon({name})"))]
        }
        NodeKind::Temporal { function, operand } => call(function.name(), *operand),
        NodeKind::Scalar(operand) => call("scalar", *operand),
        NodeKind::Rescale { operand, units } => vec![
            Part::Text("rescale("),
            Part::Node(*operand),
            Part::Owned(format!(", \"{}\")", units.value)),
        ],
        NodeKind::MkConst { number, attributes } => {
            let mut text = format!("mkconst({}", number.value.text);
            for keyword in keywords(attributes) {
                text.push_str(", ");
                text.push_str(&keyword);
            }
            vec![Part::Owned(text), Part::Text(")")]
        }
        NodeKind::NoValue(attributes) => {
            vec![Part::Owned(format!("novalue({})", keywords(attributes).join(", ")))]
        }
        NodeKind::Call { callee, literal, operands } => {
            call_parts(callee.name(), literal.as_ref().map(|literal| &literal.value), operands)
        }
        NodeKind::Grouped { operand, labels } => {
            let names: Vec<&str> = labels.iter().map(|label| &*label.value).collect();
            vec![Part::Node(*operand), Part::Owned(format!(" by ({})", names.join(", ")))]
        }
        NodeKind::Text(text) => vec![Part::Owned(format!("\"{text}\""))],
        NodeKind::Error => vec![Part::Text("?")],
    }
}

/// The pieces of a call with a literal.
fn call_parts(name: &'static str, literal: Option<&Literal>, operands: &[ExprId]) -> Vec<Part> {
    // The literal comes first, except for intervals.
    let (first, last) = match literal {
        None => (None, None),
        Some(Literal::Rank(k)) => (Some(format!("{k}, ")), None),
        Some(Literal::Fraction(q)) => (Some(format!("{}, ", q.text)), None),
        Some(Literal::Pattern { pattern, negated }) => {
            let negation = if *negated { "!" } else { "" };
            (Some(format!("{negation}/{}/, ", escaped(pattern, '/'))), None)
        }
        Some(Literal::Interval { text, .. }) => (None, Some(format!(", \"{text}\""))),
    };
    let mut parts = vec![Part::Text(name), Part::Text("(")];
    parts.extend(first.map(Part::Owned));
    for (position, operand) in operands.iter().enumerate() {
        let comma = if position > 0 { ", " } else { "" };
        parts.extend([Part::Text(comma), Part::Node(*operand)]);
    }
    parts.extend(last.map(Part::Owned));
    parts.push(Part::Text(")"));
    parts
}

/// The given keywords, in their written form.
fn keywords(attributes: &Attributes) -> Vec<String> {
    let mut list = Vec::new();
    if let Some(value_type) = &attributes.value_type {
        list.push(format!("type={}", value_type.value.name().to_ascii_lowercase()));
    }
    if let Some(semantics) = &attributes.semantics {
        list.push(format!("semantics={}", semantics.value));
    }
    if let Some(units) = &attributes.units {
        list.push(format!("units=\"{}\"", units.value));
    }
    if let Some(indom) = &attributes.indom {
        list.push(match indom.value {
            Some(indom) => format!("indom={indom}"),
            None => "indom=null".to_owned(),
        });
    }
    if let Some(meta) = &attributes.meta {
        list.push(format!("meta={}", meta.value));
    }
    list
}

/// A text with a backslash before each backslash and each `end`.
fn escaped(text: &str, end: char) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\\' || character == end {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dialect::{Dialect, Language};
    use crate::functions::functions;
    use crate::syntax::arguments::{NumberKind, Shape, interval};
    use crate::syntax::ast::{Aggregate, Callee, Spanned, Temporal};
    use crate::text::{SourceId, Span};

    use crate::syntax::keywords::number;
    use crate::syntax::tests::{dump, parse};

    #[test]
    fn only_needed_parentheses_are_printed() {
        for (text, printed) in [
            ("((a))+(b*c)", "a + b * c"),
            ("(a+b)*c", "(a + b) * c"),
            ("a-(b-c)", "a - (b - c)"),
            ("(a-b)-c", "a - b - c"),
            ("(-a)*b", "(-a) * b"),
            ("-(a*b)", "-a * b"),
            ("-(a+b)", "-(a + b)"),
            ("--a", "--a"),
            ("a*(-b)", "a * -b"),
            ("(a*-b)*c", "(a * -b) * c"),
            ("a*(-b)+c", "a * -b + c"),
            ("(a+!b)+c", "(a + !b) + c"),
            ("(!a)+b", "(!a) + b"),
            ("!(a&&b)", "!(a && b)"),
            ("!(a<b)", "!a < b"),
            ("(!a)<b", "(!a) < b"),
            ("-(!a)", "-!a"),
            ("(-!a)*b", "(-!a) * b"),
            ("a?b:(c?d:e)", "a ? b : (c ? d : e)"),
            ("(a?b:c)?d:e", "a ? b : c ? d : e"),
            ("a?(b?c:d):e", "a ? b ? c : d : e"),
            ("(a?b:c)+d", "(a ? b : c) + d"),
            ("a?b:novalue()+1", "(a ? b : novalue()) + 1"),
            ("a&&(b||c)", "a && (b || c)"),
            ("(a)[x\\]y\\\\]", "a[x\\]y\\\\]"),
            ("(a[x])[y]", "(a[x])[y]"),
            ("(delta(a))[x]", "(delta(a))[x]"),
            ("matchinst(!/a\\/b\\\\./,a)", "matchinst(!/a\\/b\\\\./, a)"),
            ("mkconst(1.50,meta=x,units=kbyte,TYPE=1,type=DOUBLE)", ""),
            (
                "mkconst(1.50,meta=x,units=kbyte,indom=\"NULL\",type=DOUBLE,semantics=Counter)",
                "mkconst(1.50, type=double, semantics=counter, units=\"Kbyte\", indom=null, meta=x)",
            ),
            ("rescale(a,\"mbyte/second\")", "rescale(a, \"Mbyte / sec\")"),
            ("anon(PM_TYPE_U64)", "anon(PM_TYPE_U64)"),
        ] {
            let (parsed, _) = parse(text, Dialect::Fixed);
            if printed.is_empty() {
                assert!(parsed.error.is_some(), "{text}");
                continue;
            }
            assert_eq!(parsed.error, None, "{text}");
            assert_eq!(print_expr(&parsed.expr), printed, "{text}");
        }
    }

    #[test]
    fn extensions_print_as_they_are_written() {
        let language = Language { dialect: Dialect::Fixed, extensions: true };
        for (text, printed) in [
            ("abs( -a )", "abs(-a)"),
            ("clamp(a,(0),b+c)", "clamp(a, 0, b + c)"),
            ("topk(3,(a?b:c))", "topk(3, a ? b : c)"),
            ("quantile(.90,a)", "quantile(.90, a)"),
            ("ewma((a),\"1  min\")", "ewma(a, \"1  min\")"),
            ("matchvalue(!/a\\/b/,c)", "matchvalue(!/a\\/b/, c)"),
            ("max((a*b))", "max(a * b)"),
            ("(abs(a))[x]", "(abs(a))[x]"),
            ("(\"x\"==a)==b", "\"x\" == a == b"),
            ("\"x\"==(a==b)", "\"x\" == (a == b)"),
            ("(a!=\"x\")*2", "(a != \"x\") * 2"),
            ("1e6", "1e6"),
            ("sum( a )by(rack ,type)", "sum(a) by (rack, type)"),
            ("(sum(a) by (rack))[x]", "(sum(a) by (rack))[x]"),
            ("(max(sum(a) by (x)) by (y))", "max(sum(a) by (x)) by (y)"),
            ("topk(3,a) by (delta)", "topk(3, a) by (delta)"),
            ("by / sum(by)", "by / sum(by)"),
        ] {
            let (parsed, diagnostics) = parse(text, language);
            assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
            assert_eq!(print_expr(&parsed.expr), printed, "{text}");
        }
    }

    /// A call of a function that libpcp does not have, of operands from a stack.
    fn extension(choice: usize, stack: &mut Vec<ExprId>, span: Span) -> Option<NodeKind> {
        let function = functions().nth(choice)?;
        let literal = |value| Some(Box::new(Spanned { value, span }));
        let (count, literal) = match function.shape {
            Shape::OneValue => (1, None),
            Shape::TwoValues => (2, None),
            Shape::ThreeValues => (3, None),
            Shape::NumberFirst(NumberKind::Fraction) => {
                (1, literal(Literal::Fraction(number("0.25"))))
            }
            Shape::NumberFirst(NumberKind::Rank) => (1, literal(Literal::Rank(3))),
            Shape::IntervalLast => {
                let length = interval("5 min").expect("an interval");
                (1, literal(Literal::Interval { text: "5 min".into(), length }))
            }
            Shape::PatternFirst => {
                let pattern = "a/\\.".into();
                (1, literal(Literal::Pattern { pattern, negated: true }))
            }
        };
        let first = stack.len().checked_sub(count)?;
        let operands = stack.drain(first..).collect();
        Some(NodeKind::Call { callee: Callee::Function(function), literal, operands })
    }

    /// A tree that a stack machine makes, driven by these bytes.
    fn tree(bytes: &[u8]) -> Expr {
        let mut expr = Expr::default();
        let span = Span::new(SourceId(0), 0, 0);
        let name = |text: &str| Spanned { value: text.into(), span };
        let mut stack: Vec<ExprId> = Vec::new();
        let binary = [
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::Div,
            BinaryOp::Lt,
            BinaryOp::Le,
            BinaryOp::Eq,
            BinaryOp::Ge,
            BinaryOp::Gt,
            BinaryOp::Ne,
            BinaryOp::And,
            BinaryOp::Or,
        ];
        for byte in bytes {
            let metric = Spanned { value: "x".into(), span };
            let choice = usize::from(byte >> 4);
            let kind = match byte & 0xf {
                0..=5 if stack.len() > 1 => {
                    let right = stack.pop().expect("two operands");
                    let left = stack.pop().expect("two operands");
                    NodeKind::Binary { op: binary[choice % 12], op_span: span, left, right }
                }
                6 | 7 if stack.len() > 2 => {
                    let no = stack.pop().expect("three operands");
                    let yes = stack.pop().expect("three operands");
                    let guard = stack.pop().expect("three operands");
                    NodeKind::Ternary { guard, yes, no }
                }
                8 | 9 if !stack.is_empty() => {
                    let op = if choice % 2 == 0 { UnaryOp::Neg } else { UnaryOp::Not };
                    NodeKind::Unary { op, operand: stack.pop().expect("an operand") }
                }
                10 if !stack.is_empty() => {
                    let operand = stack.pop().expect("an operand");
                    match choice % 5 {
                        0 => NodeKind::Select { operand, instance: name("a\\b] c") },
                        1 => NodeKind::Match {
                            operand,
                            pattern: name("a/\\.\\\\"),
                            negated: choice > 8,
                        },
                        2 => NodeKind::Temporal { function: Temporal::Rate, operand },
                        3 => NodeKind::Scalar(operand),
                        _ => NodeKind::Rescale {
                            operand,
                            units: Spanned { value: Default::default(), span },
                        },
                    }
                }
                14 => match extension(choice, &mut stack, span) {
                    Some(kind) => kind,
                    None => NodeKind::Number(number("1e5")),
                },
                11 => NodeKind::Number(number("1.50")),
                12 => NodeKind::Aggregate { function: Aggregate::Sum, metric },
                13 => NodeKind::Defined(metric),
                _ => NodeKind::Metric("a.b".into()),
            };
            stack.push(expr.push(kind, span));
        }
        while let Some(right) = stack.pop() {
            let Some(left) = stack.pop() else { break };
            let op = BinaryOp::Sub;
            stack.push(expr.push(NodeKind::Binary { op, op_span: span, left, right }, span));
        }
        expr
    }

    proptest! {
        // Inputs that fail are kept as inputs of the fuzz target.
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        #[test]
        fn printed_trees_parse_to_themselves(bytes in prop::collection::vec(any::<u8>(), 1..120)) {
            let expr = tree(&bytes);
            let text = print_expr(&expr);
            let language = Language { dialect: Dialect::Fixed, extensions: true };
            let (parsed, diagnostics) = parse(&text, language);
            prop_assert!(diagnostics.is_empty(), "{}: {:?}", text, diagnostics);
            prop_assert_eq!(dump(&parsed.expr), dump(&expr), "{}", text);
            prop_assert_eq!(print_expr(&parsed.expr), text);
        }
    }

    #[test]
    fn deep_trees_print_without_recursion() {
        let text = format!("{}a", "-".repeat(9_000));
        let (parsed, _) = parse(&text, Dialect::Fixed);
        assert_eq!(print_expr(&parsed.expr), text);
    }
}
