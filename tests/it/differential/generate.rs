//! Random expressions over the metrics of an archive. They are made of smaller correct ones, so
//! that most of them bind.
//!
//! Left out are expressions that libpcp 6.0 answers from uninitialised or freed memory, or by
//! crashing, and those that every dialect corrects.

use std::fmt::Write as _;

use serde_json::Value;

use crate::answers::{Answer, fetches, is_ok};

/// A sequence of choices that a seed determines.
pub struct Choices(u64);

impl Choices {
    pub fn new(seed: u64) -> Choices {
        Choices(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    fn next(&mut self) -> u64 {
        // Vigna's splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).expect("below a usize")
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.below(list.len())]
    }
}

/// An expression with its answer.
pub struct Known {
    text: String,
    is_name: bool,
    value_type: String,
    semantics: String,
    indom: Option<String>,
    units: String,
    dim: [i64; 3],
    scale: [i64; 3],
    /// The instances of every fetch that has any, if they are always the same.
    instances: Option<Vec<i64>>,
}

impl Known {
    /// `None` for what did not bind.
    pub fn new(text: &str, is_name: bool, answer: &Answer) -> Option<Known> {
        if is_ok(answer, "bind") != Some(true) {
            return None;
        }
        let desc = &answer["desc"];
        let word = |key: &str| desc[key].as_str().map(str::to_string);
        let axes = |key: &str| [0, 1, 2].map(|axis| desc[key][axis].as_i64().unwrap_or_default());
        let mut lists = fetches(answer)
            .iter()
            .filter_map(|fetch| fetch["values"].as_array())
            .filter(|values| !values.is_empty())
            .map(|values| values.iter().filter_map(|value| value[0].as_i64()).collect::<Vec<_>>());
        let first = lists.next().unwrap_or_default();
        let steady = lists.all(|list| list == first);
        Some(Known {
            text: text.to_string(),
            is_name,
            value_type: word("type")?,
            semantics: word("sem")?,
            indom: word("indom"),
            units: word("units")?,
            dim: axes("dim"),
            scale: axes("scale"),
            instances: steady.then_some(first),
        })
    }

    fn is_numeric(&self) -> bool {
        ["32", "U32", "64", "U64", "FLOAT", "DOUBLE"].contains(&&*self.value_type)
    }

    fn operand(&self) -> String {
        if self.is_name { self.text.clone() } else { format!("({})", self.text) }
    }
}

/// Names that an archive offers.
pub struct Vocabulary {
    pub metrics: Vec<String>,
    pub instances: Vec<String>,
}

/// Expressions known to bind, over one archive from one time on.
pub struct Pool {
    pub vocabulary: Vocabulary,
    pub known: Vec<Known>,
}

const UNITS: &[&str] = &[
    "",
    "byte",
    "Kbyte",
    "Mbyte",
    "Tbyte",
    "count",
    "count x 10^3",
    "count x 10^-2",
    "sec",
    "millisec",
    "nanosec",
    "hour",
    "min",
    "byte/sec",
    "Kbyte / hour",
    "count/sec",
    "1 / sec",
    "/ byte",
    "byte^2",
    "Kbyte^2 / sec",
    "sec / count",
    "Kbyte count / millisec^2",
    "byte^7",
    "sec^-8",
    "2 byte",
    "KiB",
    "microsec",
    "/ count x 10^2",
    "foo",
    "byte/sec/sec",
    "byte byte",
    "Zbyte",
    "GB / h",
    "kbyte/byte",
];
const OPERATORS: &[&str] =
    &["+", "-", "*", "/", "+", "-", "*", "/", "<", "<=", "==", ">=", ">", "!=", "&&", "||"];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "10",
    "1000",
    "2147483648",
    "4294967295",
    "007",
    "0.5",
    "1.",
    ".25",
    "0.0",
    "123456789.125",
    ".",
];
const PATTERNS: &[&str] = &[
    "a",
    "^s",
    "[0-9]$",
    "d.",
    "e|b",
    "x",
    ".*",
    "^$",
    "[[:digit:]]+",
    "(s|n)d?",
    "a{1,2}",
    "..",
    "\\\\.",
    "[^a-z]",
    " ",
    "_",
];

impl Pool {
    fn metric(&self, choices: &mut Choices) -> String {
        match choices.below(60) {
            0 => "no.such.metric".to_string(),
            // One of those that libpcp defines for itself.
            1 => "event.flags".to_string(),
            _ => choices.pick(&self.vocabulary.metrics).clone(),
        }
    }

    fn any(&self, choices: &mut Choices) -> &Known {
        choices.pick(&self.known)
    }

    /// Most often something that goes well with `other`.
    fn like(&self, choices: &mut Choices, other: &Known) -> &Known {
        for _ in 0..60 {
            let known = self.any(choices);
            let near = known.dim == other.dim
                && (known.semantics == "counter") == (other.semantics == "counter")
                && (known.indom.is_none() || known.indom == other.indom);
            if near || choices.one_in(40) {
                return known;
            }
        }
        self.any(choices)
    }

    fn constant(&self, choices: &mut Choices) -> String {
        if choices.one_in(2) {
            return (*choices.pick(NUMBERS)).to_string();
        }
        let mut text = format!("mkconst({}", choices.pick(NUMBERS));
        for _ in 0..=choices.below(3) {
            let _ = match choices.below(3) {
                0 => write!(
                    text,
                    ", type={}",
                    choices.pick(&[
                        "32",
                        "u32",
                        "64",
                        "U64",
                        "float",
                        "DOUBLE",
                        "\"double\"",
                        "string"
                    ])
                ),
                1 => write!(
                    text,
                    ", semantics={}",
                    choices.pick(&["counter", "instant", "DISCRETE"])
                ),
                _ => write!(text, ", units=\"{}\"", choices.pick(UNITS)),
            };
        }
        text + ")"
    }

    /// A new expression, or `None` where the choices lead to what is left out.
    pub fn expression(&self, choices: &mut Choices) -> Option<String> {
        match choices.below(24) {
            0..=8 => self.binary(choices),
            9 | 10 => {
                let known = self.any(choices);
                Some(format!("-{}", known.operand()))
            }
            11 => {
                let known = self.any(choices);
                let written = ["32", "U32"].contains(&&*known.value_type);
                written.then(|| format!("!{}", known.operand()))
            }
            12 | 13 => {
                let function = choices.pick(&["avg", "sum", "max", "min", "count", "count"]);
                Some(format!("{function}({})", self.metric(choices)))
            }
            14..=16 => {
                let function = choices.pick(&["delta", "rate", "rate", "instant"]);
                Some(format!("{function}({})", self.metric(choices)))
            }
            17 => Some(format!("scalar({})", self.any(choices).text)),
            18 => {
                let known = self.any(choices);
                let units = if choices.one_in(2) {
                    self.like(choices, known).units.clone()
                } else {
                    (*choices.pick(UNITS)).to_string()
                };
                Some(format!("rescale({}, \"{units}\")", known.text))
            }
            19 => {
                let known = self.any(choices);
                // Text is freed twice, and a division is taken for a pattern.
                if known.value_type == "STRING" || known.text.contains('/') {
                    return None;
                }
                let not = choices.pick(&["", "", "!"]);
                Some(format!("matchinst({not}/{}/, {})", choices.pick(PATTERNS), known.text))
            }
            20 => {
                let instance = choices.pick(&self.vocabulary.instances);
                // Sometimes only its beginning, up to the first blank.
                let part = instance.split(' ').next().unwrap_or_default();
                let name = if choices.one_in(3) { part } else { instance };
                let name = name.replace('\\', "\\\\").replace(']', "\\]");
                Some(format!("{}[{name}]", self.metric(choices)))
            }
            21 | 22 => self.ternary(choices),
            _ => Some(match choices.below(4) {
                0 => format!("defined({})", self.metric(choices)),
                1 => format!(
                    "anon(PM_TYPE_{}) + 1",
                    choices.pick(&["32", "U32", "64", "U64", "FLOAT", "DOUBLE"])
                ),
                _ => self.constant(choices),
            }),
        }
    }

    fn binary(&self, choices: &mut Choices) -> Option<String> {
        let operator = choices.pick(OPERATORS);
        let left = self.any(choices);
        let right = self.like(choices, left);
        let (left, right) = if choices.one_in(2) { (left, right) } else { (right, left) };
        if ["+", "-", "*", "/"].contains(operator) && is_scaled_wrongly(left, right) {
            return None;
        }
        let blank = choices.pick(&["", " ", "  "]);
        Some(format!("{}{blank}{operator}{blank}{}", left.operand(), right.operand()))
    }

    fn ternary(&self, choices: &mut Choices) -> Option<String> {
        let yes = self.any(choices);
        let no = if choices.one_in(4) { self.any(choices) } else { self.same_desc(choices, yes) };
        let guard = match choices.below(3) {
            0 => self.any(choices),
            _ => self.like_instances(choices, yes),
        };
        // libpcp pairs by position and mistreats texts.
        let all = [guard, yes, no];
        if all.iter().any(|known| !known.is_numeric()) {
            return None;
        }
        let mut lists =
            all.iter().filter(|known| known.indom.is_some()).map(|known| known.instances.as_ref());
        if let Some(first) = lists.next() {
            let first = first?;
            if !lists.all(|list| list == Some(first)) {
                return None;
            }
        }
        Some(format!("{} ? {} : {}", guard.operand(), yes.operand(), no.operand()))
    }

    fn same_desc<'p>(&'p self, choices: &mut Choices, other: &'p Known) -> &'p Known {
        for _ in 0..100 {
            let known = self.any(choices);
            let fits = known.value_type == other.value_type
                && known.semantics == other.semantics
                && known.units == other.units
                && (known.indom.is_none() || other.indom.is_none() || known.indom == other.indom);
            if fits {
                return known;
            }
        }
        other
    }

    fn like_instances<'p>(&'p self, choices: &mut Choices, other: &'p Known) -> &'p Known {
        for _ in 0..30 {
            let known = self.any(choices);
            if known.is_numeric() && (known.indom.is_none() || known.instances == other.instances) {
                return known;
            }
        }
        other
    }
}

/// Where libpcp's factors are wrong: exponents other than one, operands of
/// opposite sense, factors beyond 31 bits. All dialects have the right ones.
fn is_scaled_wrongly(left: &Known, right: &Known) -> bool {
    const TIME: [f64; 5] = [1e3, 1e3, 1e3, 60.0, 60.0];
    let mut factors = [1.0, 1.0];
    for axis in 0..3 {
        let (l, r) = ((left.dim[axis], left.scale[axis]), (right.dim[axis], right.scale[axis]));
        if l.0 == 0 || r.0 == 0 || l.1 == r.1 {
            continue;
        }
        let is_left = l.1 < r.1;
        let (small, large) = if is_left { (l, r) } else { (r, l) };
        let opposite = axis != 2 && is_left && (l.0 > 0) != (r.0 > 0);
        if small.0.abs() != 1 || opposite {
            return true;
        }
        for step in small.1..large.1 {
            factors[usize::from(is_left)] *= match axis {
                0 => 1024.0,
                1 => usize::try_from(step)
                    .ok()
                    .and_then(|step| TIME.get(step))
                    .copied()
                    .unwrap_or(1.0),
                _ => 10.0,
            };
        }
    }
    factors.iter().any(|factor| *factor >= 2_147_483_648.0)
}

/// Tokens in no order, now and then an expression.
pub fn tokens(choices: &mut Choices) -> String {
    const TOKENS: &[&str] = &[
        "a",
        "b.c",
        "type",
        "units",
        "semantics",
        "meta",
        "indom",
        "1",
        "2.5",
        ".",
        "4294967296",
        "(",
        "(",
        ")",
        ")",
        ",",
        "?",
        ":",
        "=",
        "+",
        "-",
        "-",
        "*",
        "/",
        "!",
        "!",
        "<",
        "<=",
        "==",
        ">=",
        ">",
        "!=",
        "&&",
        "||",
        "[x]",
        "[y z]",
        "[",
        "\"byte\"",
        "\"foo\"",
        "\"",
        "avg(",
        "sum(a)",
        "delta(",
        "delta(a)",
        "rate(b.c)",
        "instant(",
        "defined(",
        "defined(a)",
        "scalar(",
        "rescale(",
        "rescale(a,\"byte\")",
        "mkconst(",
        "mkconst(1,type=u32)",
        "mkconst(1.5,",
        "mkconst(1,type=",
        "units=byte",
        "novalue()",
        "novalue(",
        "%",
        "&",
        "e5",
        " ",
        "avg",
        "rate (",
        "anon(PM_TYPE_32)",
        "anon(",
        "count(a)",
        "a",
        "a",
        "b",
        "c",
    ];
    let blank = if choices.one_in(2) { " " } else { "" };
    let count = 1 + choices.below(9);
    let picked: Vec<&str> = (0..count).map(|_| *choices.pick(TOKENS)).collect();
    picked.join(blank)
}

/// True if a fetch should not be compared: libpcp's extremes of no values are
/// left over from earlier ones.
pub fn is_stale_extreme(expr: &str, got: &Value) -> bool {
    (expr.contains("max(") || expr.contains("min(")) && got["n"] == 0
}
