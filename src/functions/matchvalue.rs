//! `matchvalue(/pattern/, x)`: where a pattern occurs in a text.

use pmderive_runtime::model::ValueType;

use super::{Example, Function, ResultRule};
use crate::check::call::{Call, Checked, truth_desc};
use crate::check::describe;
use crate::check::typed::{TypedId, TypedKind};
use crate::diag::{Code, Diagnostic};
use crate::syntax::Shape;

pub static FAMILY: &[&Function] = &[&MATCHVALUE];

static MATCHVALUE: Function = Function {
    name: "matchvalue",
    usage: "matchvalue(/pattern/, x)",
    shape: Shape::PatternFirst,
    result: ResultRule {
        value_type: "U32",
        semantics: "discrete if x is, else instant",
        units: "none",
        instances: "of x",
    },
    values: "1 where the POSIX extended regular expression occurs in the text x, else 0; the other way round with `!` before the pattern.",
    example: Example {
        call: "matchvalue(/^mq-/, disk.dev.scheduler)",
        gives: "U32, discrete, units none, instances of 60.1",
    },
    takes_by: false,
    explained: None,
    check,
};

fn check(call: &mut Call<'_, '_>) -> Checked<TypedId> {
    let (pattern, negated) = call.pattern()?;
    let [x] = call.operands()?;
    if x.desc.value_type != ValueType::String {
        let at = call.span_of(x);
        let message = format!("`matchvalue()` needs a text, not {}", x.desc.value_type);
        return call.report(
            Diagnostic::error(Code::NotNumeric, at, message)
                .label(at, describe(&x.desc))
                .help("numbers are compared by `==`; matchinst() filters by instance names"),
        );
    }
    let kind = TypedKind::TextMatch { operand: x.typed, pattern, negated };
    Ok(call.node(kind, truth_desc(x.desc.indom, &[x.desc])))
}
