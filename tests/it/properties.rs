//! Laws for any input: of units, and of printing and parsing. Those of evaluation are in
//! `src/engine/fuzz.rs`, beside the code that they inspect.

use pmderive::SourceMap;
use pmderive::diag::Diagnostics;
use pmderive::dialect::Dialect;
use pmderive::fuzz::fuzz_parse;
use pmderive::internal::check::units::combine;
use pmderive::syntax::ast::BinaryOp;
use pmderive::syntax::{parse_expr, print_expr};
use pmderive_runtime::model::{Conversion, ExtraUnit, Units};
use proptest::prelude::*;

/// Units whose axes without a dimension have no scale.
fn units(most: i8) -> impl Strategy<Value = Units> {
    let axis = |top: i8| {
        (-most..=most, 0..=top).prop_map(|(dim, scale)| (dim, if dim == 0 { 0 } else { scale }))
    };
    let count =
        (-most..=most, -8i8..=7).prop_map(|(dim, scale)| (dim, if dim == 0 { 0 } else { scale }));
    (axis(6), axis(5), count).prop_map(|(space, time, count)| Units {
        dim_space: space.0,
        scale_space: space.1 as u8,
        dim_time: time.0,
        scale_time: time.1 as u8,
        dim_count: count.0,
        scale_count: count.1,
        extra: ExtraUnit::default(),
    })
}

/// How many bytes, seconds and counts one of the units is.
fn factor(units: &Units) -> f64 {
    const SECONDS: [f64; 6] = [1e-9, 1e-6, 1e-3, 1.0, 60.0, 3600.0];
    1024f64.powi(i32::from(units.scale_space) * i32::from(units.dim_space))
        * SECONDS[usize::from(units.scale_time)].powi(i32::from(units.dim_time))
        * 10f64.powi(i32::from(units.scale_count) * i32::from(units.dim_count))
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// The dimensions of `units` in the scales of `other`.
fn in_other_scales(units: &Units, other: &Units) -> Units {
    Units {
        scale_space: if units.dim_space == 0 { 0 } else { other.scale_space },
        scale_time: if units.dim_time == 0 { 0 } else { other.scale_time },
        scale_count: if units.dim_count == 0 { 0 } else { other.scale_count },
        ..*units
    }
}

/// A value in its units.
type Quantity = (f64, Units);

fn apply(op: BinaryOp, (a, left): Quantity, (b, right): Quantity) -> Option<Quantity> {
    let combined = combine(op, &left, &right, false, Dialect::Fixed).ok()?;
    let a = a / combined.left.div * combined.left.mul;
    let b = b / combined.right.div * combined.right.mul;
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        _ => a / b,
    };
    Some((value, combined.units))
}

/// The same amount of the same thing.
fn same((a, left): Quantity, (b, right): Quantity) -> bool {
    let dims = |units: &Units| (units.dim_space, units.dim_time, units.dim_count);
    dims(&left) == dims(&right) && near(a * factor(&left), b * factor(&right))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// But for powers of counts of another scale: PCP has one text for the
    /// square of tens and for hundreds.
    #[test]
    fn printed_units_are_parsed_as_the_same(units in units(7)) {
        let squared = units.dim_count.abs() > 1 && units.scale_count != 0;
        let units = if squared { Units { scale_count: 0, ..units } } else { units };
        let text = units.to_string();
        let parsed = Units::parse(&text).map(|parsed| parsed.units);
        prop_assert_eq!(parsed, Ok(units), "{}", text);
    }

    /// The units of a result say what its value is: the operation in plain
    /// bytes, seconds and counts gives the same.
    #[test]
    fn units_of_results_are_those_of_their_values(
        left in units(3), right in units(3), a in 1.0f64..1e3, b in 1.0f64..1e3,
    ) {
        for op in [BinaryOp::Mul, BinaryOp::Div] {
            let Some((value, units)) = apply(op, (a, left), (b, right)) else { continue };
            let (a, b) = (a * factor(&left), b * factor(&right));
            let plain = if op == BinaryOp::Mul { a * b } else { a / b };
            prop_assert!(near(value * factor(&units), plain), "{left} {op:?} {right} is {units}");
        }
    }

    #[test]
    fn sums_are_in_the_larger_scale(units in units(3), other in units(3), a in 1.0f64..1e3, b in 1.0f64..1e3) {
        let other = in_other_scales(&units, &other);
        let (value, result) = apply(BinaryOp::Add, (a, units), (b, other)).expect("equal dimensions");
        prop_assert!(near(value * factor(&result), a * factor(&units) + b * factor(&other)));
        prop_assert_eq!(result.scale_space, units.scale_space.max(other.scale_space));
        prop_assert_eq!(result.scale_time, units.scale_time.max(other.scale_time));
        prop_assert_eq!(result.scale_count, units.scale_count.max(other.scale_count));
        let swapped = apply(BinaryOp::Add, (b, other), (a, units)).expect("equal dimensions");
        prop_assert!(same((value, result), swapped));
    }

    #[test]
    fn products_commute_and_associate_and_quotients_undo_them(
        x in units(2), y in units(2), z in units(2), a in 1.0f64..1e3, b in 1.0f64..1e3, c in 1.0f64..1e3,
    ) {
        use BinaryOp::{Div, Mul};
        let (x, y, z) = ((a, x), (b, y), (c, z));
        let xy = apply(Mul, x, y).expect("small dimensions");
        prop_assert!(same(xy, apply(Mul, y, x).expect("small dimensions")));
        prop_assert!(same(apply(Div, xy, y).expect("small dimensions"), x));
        let yz = apply(Mul, y, z).expect("small dimensions");
        let left = apply(Mul, xy, z).expect("small dimensions");
        prop_assert!(same(left, apply(Mul, x, yz).expect("small dimensions")));
    }

    #[test]
    fn conversions_there_and_back_change_nothing(from in units(3), to in units(3), a in 1.0f64..1e3) {
        let to = in_other_scales(&from, &to);
        let (Ok(there), Ok(back)) = (Conversion::between(from, to), Conversion::between(to, from)) else {
            return Ok(());
        };
        prop_assert!(near(back.apply_f64(there.apply_f64(a)), a), "{} to {}", from, to);
        prop_assert!(near(there.apply_f64(a) * factor(&to), a * factor(&from)), "{} to {}", from, to);
    }

    /// What is printed is parsed as the same tree, which is printed the same.
    #[test]
    fn printed_expressions_are_parsed_as_the_same(text in expression()) {
        fuzz_parse(text.as_bytes());
        let parse = |text: &str| {
            let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
            let source = sources.add("<property>", text);
            let parsed = parse_expr(source, text, 0, Dialect::Fixed, &mut diagnostics);
            assert!(parsed.error.is_none(), "{text}: {:?}", parsed.error);
            parsed.expr
        };
        let (before, printed) = (parse(&text), print_expr(&parse(&text)));
        let after = parse(&printed);
        prop_assert_eq!(before.len(), after.len(), "{} and {}", text, printed);
        prop_assert_eq!(print_expr(&after), printed);
    }
}

/// Expressions that are right, with and without parentheses.
fn expression() -> impl Strategy<Value = String> {
    let metric = prop::sample::select(vec!["a", "b.c", "x_1.y2", "type.x", "rate", "avg.b"]);
    let leaf = prop_oneof![
        metric.clone().prop_map(str::to_string),
        prop::sample::select(vec!["1", "0", "007", "2.5", ".5", "1.", "4294967295"])
            .prop_map(str::to_string),
        metric.clone().prop_map(|name| format!("avg({name})")),
        metric.clone().prop_map(|name| format!("count( {name} )")),
        metric.clone().prop_map(|name| format!("defined({name})")),
        metric.prop_map(|name| format!("{name}[x y\\]z]")),
        prop::sample::select(vec![
            "mkconst(1, type=u64, units=\"byte / sec\")",
            "mkconst(2.5, type=\"float\", semantics=counter)",
            "mkconst(3, indom=1.2, meta=a)",
            "anon(PM_TYPE_U32)",
        ])
        .prop_map(str::to_string),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let operator = prop::sample::select(vec![
            "+", "-", "*", "/", "<", "<=", "==", ">=", ">", "!=", "&&", "||",
        ]);
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("{a} ? {b} : {c}")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("({a} ? {b} : novalue(type=32))")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.clone().prop_map(|a| format!("-{a}")),
            inner.clone().prop_map(|a| format!("!{a}")),
            inner.clone().prop_map(|a| format!("({a})[i]")),
            inner.clone().prop_map(|a| format!("delta({a})")),
            inner.clone().prop_map(|a| format!("rate({a})")),
            inner.clone().prop_map(|a| format!("scalar({a})")),
            inner.clone().prop_map(|a| format!("rescale({a}, \"Kbyte\")")),
            inner.prop_map(|a| format!("matchinst(!/a\\/b/, {a})")),
        ]
    })
}
