//! Functions of other languages, and what to write in their place.
//!
//! A row serves calls of its names with that many arguments; case does not
//! matter. In the replacement, `$1` to `$3` are the arguments, each without a
//! window of time, and `$w` is that window.

use crate::dialect::{Dialect, Language};
use crate::syntax::names::is_metric_name;
use crate::syntax::token::{Token, TokenAt};

use super::{Understood, filled, understood, uses, window, window_in_quotes};

/// A function of other languages.
struct ForeignCall {
    /// Its names, with `|` between them.
    names: &'static str,
    /// Smallest and largest number of its arguments.
    arguments: (usize, usize),
    /// The replacement. Empty where our language has none.
    write: &'static str,
    /// The difference.
    note: &'static str,
    /// True if nothing else can be meant.
    is_certain: bool,
    /// True if all arguments but the first are results of a choice, and
    /// therefore not texts.
    chooses: bool,
}

const fn call(
    names: &'static str,
    arguments: (usize, usize),
    write: &'static str,
    note: &'static str,
) -> ForeignCall {
    ForeignCall { names, arguments, write, note, is_certain: false, chooses: false }
}

/// Nothing else can be meant.
const fn certain(row: ForeignCall) -> ForeignCall {
    ForeignCall { is_certain: true, ..row }
}

const BOUND: &str = "a bound is a choice, and both results have the same type, units and semantics";
const CHOICE: &str =
    "a choice is written with `?` and `:`; both results have the same type, units and semantics";
const RESCALE: &str = "`rescale()` converts units";
const LATEST: &str = "the change per second since the previous sample";
const NO_BUCKETS: &str = "PCP has no buckets, but a quantile of the values of instances";
const PREVIOUS: &str = "the value of the previous sample";
const NO_EDGES: &str = "pmie's; a definition sees the values of a moment, and no edges";
const NO_WINDOW: &str =
    "with extensions `avg_over()`, `min_over()` and `max_over()` look back in time";
const ONE_HOST: &str = "a definition is of one host; `serve` and `eval --targets` combine hosts, \
     as in `sum(NAME) by (job)`";
const NO_ANGLES: &str = "there are no functions of angles";
const NO_CHANCE: &str = "equal samples give equal answers, so nothing is random";
const NO_SUMS: &str = "nothing adds up samples; a counter has done so already";
const NO_NAN: &str = "what cannot be computed has no value; `defined(NAME)` tells whether the source \
     has a metric";
const NO_CASTS: &str = "types are not converted by hand: `/` always gives a double";
const PERCENTILE: &str = "with extensions the 95th percentile of the values of instances is \
     `quantile(0.95, NAME)`";
const WHOLE: &str = "`/` gives a double, of which `floor()` makes a whole number";
const GUARDED: &str = "a metric that may be missing is guarded";
const COUNTED: &str =
    "a comparison is 1 or 0, so with extensions their sum counts: `sum(NAME > 5)`";
const TRUTH: &str = "a comparison is 1 or 0, so the least or greatest of them tells";

/// Names outside this list are compared with our own names letter by letter.
const FOREIGN: &[ForeignCall] = &[
    // PromQL
    call("irate|non_negative_derivative|nonNegativeDerivative", (1, 2), "rate($1)", LATEST),
    call("increase|idelta", (1, 2), "delta($1)", "the change since the previous sample"),
    call("deriv", (1, 2), "rate(instant($1))", LATEST),
    call(
        "absent|absent_over_time|isnull",
        (1, 1),
        "!defined($1)",
        "whether the source has a metric",
    ),
    call("avg_over_time", (1, 2), "avg_over($1, \"$w\")", "the mean of a window of time"),
    call("max_over_time", (1, 2), "max_over($1, \"$w\")", "the greatest of a window of time"),
    call("min_over_time", (1, 2), "min_over($1, \"$w\")", "the least of a window of time"),
    call("clamp_max", (2, 2), "($1 < $2 ? $1 : $2)", BOUND),
    call("clamp_min", (2, 2), "($1 > $2 ? $1 : $2)", BOUND),
    call("last_over_time|value", (1, 1), "$1", "a metric is its latest value"),
    call("quantile_over_time", (2, 2), "", NO_WINDOW),
    call("sum_over_time|count_over_time|stddev_over_time|sum_sample", (1, 1), "", NO_WINDOW),
    call(
        "changes",
        (1, 1),
        "delta($1) != 0",
        "nothing counts changes; this tells of one since the previous sample",
    ),
    call("resets", (1, 1), "", "nothing counts resets; `rate()` has no value across one"),
    call("count_values", (1, 2), "", "nothing counts equal values; `count(NAME)` counts instances"),
    call("group", (1, 1), "", "there are no groups of instances"),
    call("timestamp", (1, 1), "", "the time of a sample is no value"),
    call("histogram_quantile", (2, 2), "quantile($1, $2)", NO_BUCKETS),
    call("stddev", (1, 1), "stdev($1)", "of the values of instances"),
    call("vector", (1, 1), "$1", "a number is a value as it is"),
    call(
        "label_replace|label_join",
        (1, 9),
        "",
        "instances have names only; choose them with `matchinst()`",
    ),
    call("sort|sort_desc", (1, 1), "$1", "instances have the order of their domain"),
    call("time|now", (0, 0), "", "the time of a sample is no value"),
    call("predict_linear", (2, 2), "", "nothing here looks into the future"),
    call("stdvar|variance", (1, 1), "pow(stdev($1), 2)", "of the values of instances"),
    call("exp", (1, 1), "pow(2.718281828459045, $1)", "a power of e"),
    call("sgn|sign", (1, 1), "", "a comparison with 0 tells the sign"),
    call("sin|cos|tan", (1, 1), "", NO_ANGLES),
    call("hour|day_of_week", (0, 1), "", "the time of a sample is no value"),
    // InfluxDB, Graphite
    call("non_negative_difference", (1, 1), "delta($1)", "the change since the previous sample"),
    call("perSecond", (1, 1), "rate($1)", LATEST),
    call(
        "movingAverage|moving_average|average|mean",
        (2, 2),
        "avg_over($1, \"$w\")",
        "the mean of a window of time",
    ),
    call("asPercent|percent", (2, 2), "100 * $1 / $2", "a percentage is a plain number"),
    call("scale|convert", (2, 2), "rescale($1, $2)", RESCALE),
    call("scale", (2, 2), "$1 * $2", "a product"),
    call("alias", (2, 2), "$1", "the definition's name is left of its `=`"),
    call("integral", (1, 2), "", NO_SUMS),
    call("cumulative_sum|cumsum", (1, 1), "", NO_SUMS),
    call("rising", (1, 1), "$1", NO_EDGES),
    call("falling", (1, 1), "!($1)", NO_EDGES),
    // SQL and spreadsheets
    call("nullif", (2, 2), "($1 == $2 ? novalue() : $1)", CHOICE),
    call("greatest", (2, 2), "($1 > $2 ? $1 : $2)", CHOICE),
    call("least", (2, 2), "($1 < $2 ? $1 : $2)", CHOICE),
    call("len|length", (1, 1), "count($1)", "how many instances a metric has"),
    call("div", (2, 2), "floor($1 / $2)", WHOLE),
    call("between", (3, 3), "($1 >= $2 && $1 <= $3)", "a range is two comparisons"),
    certain(ForeignCall {
        chooses: true,
        ..call("if|iif|ifelse", (3, 3), "($1 ? $2 : $3)", CHOICE)
    }),
    call("coalesce|ifnull|nvl", (2, 2), "(defined($1) ? $1 : $2)", GUARDED),
    call("coalesce", (3, 3), "(defined($1) ? $1 : (defined($2) ? $2 : $3))", GUARDED),
    call("iferror", (2, 2), "$1", "what cannot be computed has no value anyway"),
    call("countif", (2, 2), "", COUNTED),
    call(
        "sumif",
        (2, 3),
        "",
        "a sum takes all instances; `matchinst()` chooses some by their names",
    ),
    certain(call("and", (2, 2), "($1 && $2)", "`&&` stands between the two")),
    certain(call("or", (2, 2), "($1 || $2)", "`||` stands between the two")),
    call("average|mean", (1, 1), "avg($1)", "of the instances of a metric"),
    call("average|mean", (2, 2), "($1 + $2) / 2", "the mean of two values"),
    call("average", (3, 3), "($1 + $2 + $3) / 3", "the mean of three values"),
    call("median|p50", (1, 1), "quantile(0.5, $1)", "of the values of instances"),
    call("percentile", (1, 2), "", PERCENTILE),
    call("p90", (1, 1), "quantile(0.9, $1)", "of the values of instances"),
    call("p95", (1, 1), "quantile(0.95, $1)", "of the values of instances"),
    call("p99", (1, 1), "quantile(0.99, $1)", "of the values of instances"),
    call("rank", (1, 9), "", "with extensions the greatest are `topk(5, NAME)`"),
    call("isnan|is_nan", (1, 1), "", NO_NAN),
    call("nz", (1, 2), "", NO_NAN),
    call("any|some_inst", (1, 1), "max($1)", TRUTH),
    call("all|all_inst", (1, 1), "min($1)", TRUTH),
    call("random|rand", (0, 2), "", NO_CHANCE),
    call("power", (2, 2), "pow($1, $2)", "a power"),
    call("mod", (2, 2), "$1 - $2 * floor($1 / $2)", "the remainder"),
    // C and Python
    call("double|float", (1, 1), "$1", NO_CASTS),
    call("int", (1, 1), "floor($1)", "a whole number"),
    call("str|to_string", (1, 1), "", "values are shown as they are, and make no texts"),
    call("format", (1, 9), "", "values are shown as they are, and make no texts"),
    call("log10", (1, 1), "log($1) / 2.302585092994046", "`log()` is the natural logarithm"),
    call("log2", (1, 1), "log($1) / 0.6931471805599453", "`log()` is the natural logarithm"),
    call("fabs", (1, 1), "abs($1)", "the magnitude"),
    call("cbrt", (1, 1), "pow($1, 1 / 3)", "a power"),
    call("square|sqr", (1, 1), "$1 * $1", "a product"),
    call("hypot", (2, 2), "sqrt($1 * $1 + $2 * $2)", "the root of a sum of products"),
    call("trunc|truncate", (1, 1), "($1 < 0 ? ceil($1) : floor($1))", "a whole number"),
    call("prev|previous|lag", (1, 1), "instant($1) - delta($1)", PREVIOUS),
    // pmie
    call("sum_inst", (1, 1), "sum($1)", "of all instances"),
    call("avg_inst", (1, 1), "avg($1)", "of all instances"),
    call("max_inst", (1, 1), "max($1)", "of all instances"),
    call("min_inst", (1, 1), "min($1)", "of all instances"),
    call("count_inst", (1, 1), "sum($1)", "a comparison is 1 or 0, so their sum counts"),
    call("sum_host|avg_host|max_host|min_host|count_host|all_host|some_host", (1, 1), "", ONE_HOST),
    call("avg_sample", (1, 1), "avg_over($1, \"$w\")", "the mean of a window of time"),
    call("max_sample", (1, 1), "max_over($1, \"$w\")", "the greatest of a window of time"),
    call("min_sample", (1, 1), "min_over($1, \"$w\")", "the least of a window of time"),
];

/// The report on a call of a foreign function.
pub(in crate::syntax) struct Advice {
    /// The difference.
    pub note: String,
    /// The replacement for the whole call.
    pub write: Option<String>,
    /// True if nothing else can be meant.
    pub is_certain: bool,
    /// Arguments, from 0, that the replacement does not use.
    pub unused: Vec<usize>,
}

/// The replacement for a call whose arguments are these texts.
pub(in crate::syntax) fn advise(
    name: &str,
    arguments: &[&str],
    language: Language,
) -> Option<Advice> {
    let is_meant = |one: &&ForeignCall| {
        let (least, most) = one.arguments;
        one.names.split('|').any(|one| one.eq_ignore_ascii_case(name))
            && (least..=most).contains(&arguments.len())
    };
    let bare: Vec<&str> = arguments.iter().map(|one| without_window(one)).collect();
    let behind = arguments.get(1).map(|text| text.trim()).and_then(|text| {
        window_in_quotes(text).or_else(|| window(text.trim_matches(['[', ']', '\''])))
    });
    // Of several rows, one that needs a window as second argument comes first. The first row
    // with an understood result counts.
    let rows: Vec<&ForeignCall> = FOREIGN.iter().filter(is_meant).collect();
    let is_of_window = |one: &ForeignCall| uses(one.write, 'w') && !uses(one.write, '2');
    let is_apt = |one: &&&ForeignCall| {
        rows.len() == 1 || arguments.len() < 2 || is_of_window(one) == behind.is_some()
    };
    let is_right = |one: &&&ForeignCall| {
        let arguments = ('1'..='9').zip(arguments.iter().copied());
        let places: Vec<(char, &str)> =
            arguments.chain(behind.as_deref().map(|window| ('w', window))).collect();
        let text = filled(one.write, &places, language);
        text.is_some_and(|text| understood(&text, language) != Understood::Never)
    };
    let apt = || rows.iter().filter(is_apt);
    let foreign = *apt().find(is_right).or(apt().next()).or(rows.first())?;
    let given = arguments.iter().find_map(|one| window_of(one)).or(behind.clone());
    let ForeignCall { write, note, is_certain, chooses, .. } = *foreign;
    let interval = given.unwrap_or_else(|| "5 min".to_owned());
    let mut places: Vec<(char, &str)> = ('1'..='9').zip(bare.iter().copied()).collect();
    places.push(('w', &interval));
    let unused = ('1'..='9').zip(0..arguments.len()).filter(|(place, _)| !uses(write, *place));
    let unused = unused.map(|(_, index)| index).collect();
    let advice = |note: &str, write| Advice { note: note.to_owned(), write, is_certain, unused };
    // An argument that must be a name, and is not.
    let needs_name = |place: char| write.contains(&format!("defined(${place})"));
    let mut all = ('1'..='9').zip(&bare);
    if all.any(|(place, text)| needs_name(place) && !is_metric_name(text.trim())) {
        return Some(advice("`defined(NAME)` tells whether the source has a metric", None));
    }
    if chooses && arguments.iter().skip(1).any(|one| is_whole_text(one)) {
        let note =
            "a choice is written with `?` and `:`, and its results are numbers, such as 1 and 0";
        return Some(advice(note, None));
    }
    if language.dialect == Dialect::Pcp6_0 && is_guard(write) {
        return Some(advice(NO_GUARD, None));
    }
    let template = write;
    let write = filled(template, &places, language).filter(|write| !write.is_empty());
    let Some(write) = write else { return Some(advice(note, None)) };
    Some(match understood(&write, language) {
        Understood::WithExtensions if !language.extensions => {
            advice(&format!("{note}: `{write}`, with extensions"), None)
        }
        // The arguments have a mistake, so placeholders replace them.
        Understood::Never => {
            let letters = [('1', "a"), ('2', "b"), ('3', "c"), ('w', &*interval)];
            match filled(template, &letters, language).filter(|text| text != "a") {
                Some(text) => advice(&format!("{note}: `{text}`"), None),
                None => advice(note, None),
            }
        }
        _ => advice(note, Some(write)),
    })
}

/// Advice about calls that only later versions can replace.
pub(super) const NO_GUARD: &str = "before PCP 7 nothing takes the place of a missing value";

/// True for a replacement that gives a missing value another one.
pub(super) fn is_guard(write: &str) -> bool {
    write.contains("novalue()") || write.contains("(defined($1) ? ")
}

/// True for one text between quotation marks.
fn is_whole_text(text: &str) -> bool {
    let text = text.trim();
    ['"', '\''].into_iter().any(|mark| {
        let inside = text.strip_prefix(mark).and_then(|text| text.strip_suffix(mark));
        inside.is_some_and(|inside| !inside.contains(mark))
    })
}

/// `rate(sum(NAME))` for `sum` and the tokens `(rate(NAME[5m]))` of a text, or for another
/// change of a metric there. An aggregate needs a name. The change of a maximum is not the
/// maximum of changes.
pub(in crate::syntax) fn change_of_aggregate(
    aggregate: &str,
    text: &str,
    tokens: &[TokenAt<'_>],
    language: Language,
) -> Option<String> {
    let [open, function, inner, metric, .., last, end] = tokens else { return None };
    // Label matchers are no tokens, and would be lost.
    let behind = text.get(metric.end as usize..last.start as usize)?.trim();
    let is_call = [open, inner].iter().all(|at| at.token == Token::LeftParen)
        && [last, end].iter().all(|at| at.token == Token::RightParen)
        && (behind.is_empty() || behind.starts_with('[') && without_window(behind).is_empty());
    let Token::Name(metric) = metric.token else { return None };
    let name = text.get(function.start as usize..function.end as usize)?;
    let change = match function.token {
        Token::Temporal(_) => format!("{name}({metric})"),
        _ => advise(name, &[metric], language)?.write?,
    };
    let change = change.strip_suffix(&format!("({metric})"))?;
    let is_same = matches!(change, "rate" | "delta")
        && ["sum", "avg"].iter().any(|known| known.eq_ignore_ascii_case(aggregate));
    (is_call && is_same).then(|| format!("{change}({aggregate}({metric}))"))
}

/// The report on a name that is a function elsewhere.
pub(crate) fn function_elsewhere(name: &str, language: Language) -> Option<String> {
    let Advice { note, write, .. } = advise(name, &["NAME"], language)?;
    let here = write.filter(|text| text != "NAME");
    let here = here.map_or(note, |text| format!("here it is `{text}`"));
    Some(format!("`{name}` is a function elsewhere; {here}"))
}

/// The window of time at the end of an argument, in PCP's form.
fn window_of(argument: &str) -> Option<String> {
    let inside = argument.trim_end().strip_suffix(']')?;
    window(&inside[inside.rfind('[')? + 1..])
}

/// An argument without the window of time at its end.
fn without_window(argument: &str) -> &str {
    match (window_of(argument), argument.rfind('[')) {
        (Some(_), Some(at)) => argument[..at].trim_end(),
        _ => argument,
    }
}

/// True for an instance selector that is a window of time elsewhere.
pub(in crate::syntax) fn is_window(token: Token<'_>) -> bool {
    matches!(token, Token::Instance(text) if window(text).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions;

    #[test]
    fn calls_are_written_anew_with_their_own_arguments() {
        let write = |name: &str, arguments: &[&str], extensions| {
            let language = Language { dialect: Dialect::Fixed, extensions };
            advise(name, arguments, language)?.write
        };
        for (name, arguments, expected) in [
            ("irate", &["disk.dev.read[5m]"][..], Some("rate(disk.dev.read)")),
            ("IF", &["a > 1", " 2", " 3"], Some("(a > 1 ? 2 : 3)")),
            ("avg_over_time", &["a[10m]"], Some("avg_over(a, \"10 min\")")),
            ("avg_over_time", &["a", " 5m"], Some("avg_over(a, \"5 min\")")),
            ("coalesce", &["a", "0"], Some("(defined(a) ? a : 0)")),
            ("coalesce", &["a + b", "0"], None),
            ("if", &["a"], None),
            ("nothing_of_the_kind", &["a"], None),
        ] {
            assert_eq!(write(name, arguments, true).as_deref(), expected, "{name}");
        }
        assert_eq!(write("median", &["a"], false), None);
        let advice = advise("median", &["a"], Dialect::Fixed.into()).expect("a function of others");
        assert!(advice.note.ends_with("`quantile(0.5, a)`, with extensions"), "{}", advice.note);
    }

    #[test]
    fn a_change_takes_an_aggregate_and_loses_nothing() {
        let language = Dialect::Fixed.into();
        for (text, expected) in [
            ("(rate(a))", Some("rate(sum(a))")),
            ("(irate(a[5m]))", Some("rate(sum(a))")),
            ("(rate(a{b=\"c\"}[5m]))", None),
        ] {
            let tokens = crate::syntax::lexer::lex(text, language);
            let meant = change_of_aggregate("sum", text, &tokens, language);
            assert_eq!(meant.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn no_function_of_ours_is_foreign() {
        for name in FOREIGN.iter().flat_map(|one| one.names.split('|')) {
            assert!(functions::named(name).is_none(), "{name}");
        }
    }
}
