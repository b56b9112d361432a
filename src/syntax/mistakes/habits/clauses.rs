//! Clauses of other languages that begin or contain words: their forms, and what to
//! write in their places. [`super::forms`] finds them.

use crate::syntax::token::Token;

/// A clause of another language.
pub(super) struct Clause {
    /// Its words, in any case, and its places; see
    /// [`Part`](super::forms::Part).
    pub form: &'static str,
    /// The replacement. Empty where our language has none. The part in braces
    /// is repeated for each element of the list `$2`.
    pub write: &'static str,
    /// The mistake; `$0` is the word or mark.
    pub message: &'static str,
    /// Advice.
    pub help: &'static str,
    /// True if nothing else can be meant.
    pub is_certain: bool,
    /// The operator of our language that binds like its word, if the clause has an operand before
    /// it.
    pub binds_like: Option<Token<'static>>,
}

impl Clause {
    /// True for a clause that is not an operand.
    pub const fn leaves_nothing(&self) -> bool {
        self.write.len() == 1 && self.write.as_bytes()[0] == b'-'
    }

    /// The same clause with a word that binds like an operator of our language.
    pub(super) const fn binding(self, like: Token<'static>) -> Clause {
        Clause { binds_like: Some(like), ..self }
    }
}

pub(super) const fn clause(
    form: &'static str,
    write: &'static str,
    message: &'static str,
    help: &'static str,
) -> Clause {
    Clause { form, write, message, help, is_certain: false, binds_like: None }
}

pub(super) const fn certain(
    form: &'static str,
    write: &'static str,
    message: &'static str,
    help: &'static str,
) -> Clause {
    Clause { form, write, message, help, is_certain: true, binds_like: None }
}

const CHOICE: &str = "a choice is written with `?` and `:`";
const NO_ELSE: &str = "a choice is written `condition ? value : other value`";
const NO_CASE: &str = "there is no `CASE`";
const QUOTIENT: &str = "`/` always gives a double, and other types follow from the operands";
const NO_IF: &str = "there is no `if`";
const NO_NAN: &str = "what cannot be computed has no value";
const NO_NULL: &str = "there is no NULL";
const GUARD: &str = "`defined()` tells whether the source has a metric";
const NO_VECTORS: &str = "instances have no labels to match";
const MATCHED: &str = "values meet by their instances; leave it out";
const NO_OFFSET: &str = "values are those of one moment";
const DELTA: &str = "the change since the previous sample is `delta()`";
const NO_GROUPS: &str = "an aggregate takes all instances of a metric";
const UNEQUAL: &str = "inequality is written `!=`";
const MISSING: &str = "`? :` gives a missing value a default";
const GROUPS: &str = "an aggregate takes all instances; over a fleet it is `sum(NAME) by (LABEL)`";
const PMIE: &str = "`$0` is pmie's";
const NO_EDGES: &str = "a definition sees the values of a moment, and no edges";
const NO_OF: &str = "there is no `of`";
const CALLS: &str = "a call has parentheses";
const RANGE: &str = "a range is two comparisons";
const WITHOUT: &str = "there are no groups of instances; leave the labels out";

/// Among rows with the same first word, the longer ones come first.
pub(super) const CLAUSES: &[Clause] = &[
    certain("if $1 then $2 else $3", "$1 ? $2 : $3", NO_IF, CHOICE),
    certain(
        "case when $1 then $2 when $3 then $4 else $5 end",
        "$1 ? $2 : ($3 ? $4 : $5)",
        NO_CASE,
        CHOICE,
    ),
    certain("case when $1 then $2 else $3 end", "$1 ? $2 : $3", NO_CASE, CHOICE),
    clause("case when $1 then $2 end", "$1 ? $2 : novalue()", NO_CASE, CHOICE),
    clause("case $1 when $2 then $3 else $4 end", "$1 == $2 ? $3 : $4", NO_CASE, CHOICE),
    clause("case $1 when $2 then $3 end", "$1 == $2 ? $3 : novalue()", NO_CASE, CHOICE),
    clause("cast ( $1 as ~2 )", "$1", "types are not converted by hand", QUOTIENT),
    certain("$2 if $1 else $3", "$1 ? $2 : $3", NO_IF, CHOICE),
    clause("if $1", "", NO_IF, NO_ELSE),
    clause("$1 then $2 else $3", "$1 ? $2 : $3", "there is no `then`", CHOICE),
    clause("%1 then", "", "there is no `then`", NO_ELSE),
    clause("bool %1", "$1", "there is no `bool`", "a comparison is 1 or 0 as it is, also `x != 0`"),
    clause("%1 is not null", "defined($1)", NO_NULL, GUARD),
    clause("%1 is null", "!defined($1)", NO_NULL, GUARD),
    clause("%1 is not none", "defined($1)", NO_NULL, GUARD),
    clause("%1 is none", "!defined($1)", NO_NULL, GUARD),
    clause("%1 is not nan", "", "there is no NaN", NO_NAN),
    clause("%1 is nan", "", "there is no NaN", NO_NAN),
    clause("%1 is true", "$1", "there is no `is`", "a comparison is 1 or 0 as it is"),
    clause("%1 is false", "!($1)", "there is no `is`", "a comparison is 1 or 0 as it is"),
    certain("%1 not between %2 and %3", "($1 < $2 || $1 > $3)", "there is no `BETWEEN`", RANGE)
        .binding(Token::Equal),
    certain("%1 between %2 and %3", "($1 >= $2 && $1 <= $3)", "there is no `BETWEEN`", RANGE)
        .binding(Token::Equal),
    // This table cannot tell where the last bound ends.
    clause(
        "%1 not between $2 and $3",
        "",
        "there is no `BETWEEN`",
        "a range is two comparisons: `a < 2 || a > 5`",
    ),
    clause(
        "%1 between $2 and $3",
        "",
        "there is no `BETWEEN`",
        "a range is two comparisons: `a >= 2 && a <= 5`",
    ),
    clause("%1 not in (2)", "!({$1 == $2})", "there is no `IN`", "compare with each of them")
        .binding(Token::Equal),
    clause("%1 in (2)", "({$1 == $2})", "there is no `IN`", "compare with each of them")
        .binding(Token::Equal),
    clause("%1 in %2", "", "there is no `IN`", "compare with each of them: `a == 1 || a == 2`"),
    clause("%1 in", "", "there is no `IN`", "compare with each of them: `a == 1 || a == 2`"),
    clause("select $1 from $2", "$1", "a definition is no query", "write what is computed alone"),
    clause("select $1", "$1", "a definition is no query", "write what is computed alone"),
    clause("%1 offset %2", "$1", NO_OFFSET, DELTA),
    clause(
        "%1 or vector ( $2 )",
        "$1",
        "nothing fills in values that are missing",
        "`||` is true or false; a metric that a host may lack is guarded by `defined(NAME) ? ...`",
    ),
    clause("^ @1 or #2 .", "(defined($1) ? $1 : $2)", "`or` chooses no values", MISSING),
    clause("on (0) group_left (0)", "-", NO_VECTORS, MATCHED),
    clause("on (0) group_left", "-", NO_VECTORS, MATCHED),
    clause("on (0) group_right (0)", "-", NO_VECTORS, MATCHED),
    clause("on (0) group_right", "-", NO_VECTORS, MATCHED),
    clause("on (0)", "-", NO_VECTORS, MATCHED),
    clause("ignoring (0) group_left (0)", "-", NO_VECTORS, MATCHED),
    clause("ignoring (0) group_left", "-", NO_VECTORS, MATCHED),
    clause("ignoring (0)", "-", NO_VECTORS, MATCHED),
    clause(
        "@1 unless @2",
        "(defined($2) ? novalue() : $1)",
        "there is no `unless`",
        "a value that may be missing is a choice",
    ),
    clause(
        "%1 unless %2",
        "",
        "there is no `unless`",
        "where a metric may be missing, write `defined(NAME) ? ... : novalue()`",
    ),
    clause("%1 without (0) (2)", "$1$2", NO_GROUPS, WITHOUT),
    clause("%1 without (0)", "$1", NO_GROUPS, WITHOUT),
    clause("%1 by (0) (2)", "$1$2", NO_GROUPS, WITHOUT),
    clause("%1 by (0)", "$1", "values of instances are not grouped", "leave the labels out"),
    clause(
        "%1 mod %2",
        "",
        "there is no operator for remainders",
        "with extensions it is `a - b * floor(a / b)`",
    ),
    clause(
        "%1 div %2",
        "floor($1 / $2)",
        "there is no `div`",
        "`/` gives a double, of which `floor()` makes a whole number",
    )
    .binding(Token::Slash),
    clause(
        "%1 xor %2",
        "",
        "there is no `xor`",
        "of two comparisons just one is true where they are unequal: `(a) != (b)`",
    ),
    clause("%1 is not %2", "$1 != $2", "there is no `is`", UNEQUAL).binding(Token::Equal),
    certain("%1 is %2", "$1 == $2", "there is no `is`", "equality is written `==`")
        .binding(Token::Equal),
    clause(
        "count ( distinct @1 )",
        "count($1)",
        "values are not made distinct",
        "`count()` counts the instances of a metric",
    ),
    clause("@1 fill ( $2 )", "(defined($1) ? $1 : $2)", "there is no `fill`", MISSING),
    clause("sum of @1", "sum($1)", NO_OF, CALLS),
    clause("avg of @1", "avg($1)", NO_OF, CALLS),
    clause("max of @1", "max($1)", NO_OF, CALLS),
    clause("min of @1", "min($1)", NO_OF, CALLS),
    clause("count of @1", "count($1)", NO_OF, CALLS),
    clause("rate of @1", "rate($1)", NO_OF, CALLS),
    clause("rescale @1 , \"2", "rescale($1, \"$2\")", "`rescale()` is a function", CALLS),
    clause("@1 as \"2", "rescale($1, \"$2\")", "there is no `as`", "`rescale()` converts units"),
    clause("$1 as ~2", "$1", "a definition's name is left of its `=`", "leave `AS` out"),
    clause("%1 over (0)", "$1", "there is no `OVER`", WITHOUT),
    clause("$1 group by $2", "$1", "there is no `GROUP BY`", GROUPS),
    clause(
        "$1 having $2",
        "",
        "there is no `HAVING`",
        "a choice is written `CONDITION ? VALUE : OTHER`",
    ),
    clause(
        "$1 order by $2",
        "$1",
        "there is no `ORDER BY`",
        "instances have the order of their domain",
    ),
    clause("$1 limit %2", "topk($2, $1)", "there is no `LIMIT`", "the greatest of the instances"),
    certain("lambda : $1", "$1", "there is no `lambda`", "a definition is its expression alone"),
    clause("lambda ~2 : $1", "$1", "there is no `lambda`", "a definition is its expression alone"),
    certain("^ return $1", "$1", "there is no `return`", "a definition is its expression alone"),
    clause("sum_inst %1", "sum($1)", PMIE, "`sum()` adds all instances of a metric"),
    clause("avg_inst %1", "avg($1)", PMIE, "`avg()` is the mean of all instances of a metric"),
    clause("max_inst %1", "max($1)", PMIE, "`max()` is the greatest of all instances of a metric"),
    clause("min_inst %1", "min($1)", PMIE, "`min()` is the least of all instances of a metric"),
    clause("some_inst $1", "max($1)", PMIE, "a comparison is 1 or 0, so the greatest tells"),
    clause("all_inst $1", "min($1)", PMIE, "a comparison is 1 or 0, so the least tells"),
    clause("count_inst $1", "sum($1)", PMIE, "a comparison is 1 or 0, so their sum counts"),
    clause("rising $1", "$1", PMIE, NO_EDGES),
    clause("falling $1", "!($1)", PMIE, NO_EDGES),
];
