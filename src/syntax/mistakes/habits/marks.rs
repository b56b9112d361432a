//! Notation of other languages that consists of marks, mostly of characters
//! without a meaning in ours: `a ?? b`, `a |> rate()`, `#vda`.
//!
//! [`super::forms`] finds them before [`super::characters`] reports single
//! characters.

use super::clauses::{Clause, certain, clause};
use crate::syntax::token::Token;

const BRACKETS: &str = "an instance stands in brackets";
const MISSING: &str = "`? :` gives a missing value a default";
const NO_EDGES: &str = "a definition sees the values of a moment, and no edges";
const NO_HOST: &str = "hosts and `#` are pmie's";
const NO_PIPES: &str = "there are no pipes";
const NO_POWER: &str = "there is no power operator";
const ONE_EACH: &str =
    "each definition has a line of its own, and an argument stands in its call's parentheses";
const PATTERN: &str = "`matchinst()` chooses instances by a pattern";
const REMAINDER: &str = "with extensions it is `a - b * floor(a / b)`";
const SAMPLES: &str = "a window of time";
const SHELL: &str = "`$0` is the shell's";
const UNMARKED: &str = "metrics are named as they are, without a mark";
const WHERE: &str = "there is no `WHERE`";

/// Among rows with the same first mark, the longer ones come first.
pub(super) const MARKS: &[Clause] = &[
    // PromQL, SQL
    clause("@1 where ~3 = \"2", "$1[$2]", WHERE, BRACKETS),
    clause("@1 where ~3 == \"2", "$1[$2]", WHERE, BRACKETS),
    clause("@1 where ~3 like \"2", "matchinst(/$L/, $1)", WHERE, PATTERN),
    clause("@1 like \"2", "matchinst(/$L/, $1)", "there is no `LIKE`", PATTERN),
    clause("%1 @ #2 #3", "$1", "values are those of one moment", "leave `@` and the times out"),
    clause("%1 @ #2", "$1", "values are those of one moment", "leave `@` and the time out"),
    clause(
        "%1 -- ~2 ~3 $4 .",
        "$1",
        "`--` begins no comment",
        "a comment has a line of its own, which begins with `#`",
    ),
    clause(
        "%1 -- ~2 ~3 .",
        "$1",
        "`--` begins no comment",
        "a comment has a line of its own, which begins with `#`",
    ),
    clause(
        "+ inf",
        "",
        "there is no infinity",
        "compare with a number, or leave the comparison out",
    ),
    // C, JavaScript, Python, shells
    clause("@1 ?? %2", "(defined($1) ? $1 : $2)", "there is no `$0`", MISSING),
    clause("@1 ?: %2", "(defined($1) ? $1 : $2)", "there is no `$0`", MISSING),
    clause("%1 ^^ %2", "", "`$0` is no operator", "multiply for a power, or use pow()"),
    clause("%1 %% %2", "", "there is no operator for remainders", REMAINDER),
    certain("@1 ** 2", "$1 * $1", NO_POWER, "multiply"),
    // In C and Python it is an operator on bits.
    clause("@1 ^ 2", "$1 * $1", NO_POWER, "multiply"),
    clause("%1 ** %2", "pow($1, $2)", NO_POWER, "multiply, or use pow()"),
    clause("%1 ^ %2", "pow($1, $2)", NO_POWER, "multiply, or use pow()"),
    clause("%1 ~= %2", "$1 != $2", "`~=` is no operator", "inequality is written `!=`")
        .binding(Token::Equal),
    clause("%1 ++ %2", "$1 + $2", "`++` is no operator", "a sum has one `+`"),
    clause("%1 ++", "$1 + 1", "`++` is no operator", "a definition changes nothing"),
    clause("%1 -- .", "$1 - 1", "`--` is no operator", "a definition changes nothing"),
    certain("` @1 `", "$1", "names have no backquotes", UNMARKED),
    clause("%1 -eq %2", "$1 == $2", SHELL, "equality is written `==`").binding(Token::Equal),
    clause("%1 -ne %2", "$1 != $2", SHELL, "inequality is written `!=`").binding(Token::Equal),
    clause("%1 -gt %2", "$1 > $2", SHELL, "comparisons have signs").binding(Token::Equal),
    clause("%1 -ge %2", "$1 >= $2", SHELL, "comparisons have signs").binding(Token::Equal),
    clause("%1 -lt %2", "$1 < $2", SHELL, "comparisons have signs").binding(Token::Equal),
    clause("%1 -le %2", "$1 <= $2", SHELL, "comparisons have signs").binding(Token::Equal),
    certain("^ { $1 ; } .", "$1", "braces and `;` mean nothing here", "leave them out"),
    certain("^ { $1 } .", "$1", "braces mean nothing here", "leave them out"),
    clause("%1 |> ~2 ( )", "$2($1)", NO_PIPES, "calls stand inside each other"),
    clause("%1 |> ~2", "$2($1)", NO_PIPES, "calls stand inside each other"),
    clause("%1 | ~2 ( )", "$2($1)", NO_PIPES, "calls stand inside each other"),
    certain("^ f \"1 .", "$B", "expressions have no quotes", "leave `f` and the quotes out"),
    clause("^ $1 , @2 = $3 .", "", "this line has two definitions", ONE_EACH),
    // pmie, pmrep
    clause("@1 : =2 # =3", "$1[$3]", NO_HOST, BRACKETS),
    clause("@1 # =2 : =3", "$1[$2]", NO_HOST, BRACKETS),
    clause("^ @1 , \"2 .", "$1[$2]", "columns after a metric are pmrep's", BRACKETS),
    clause(
        "%1 %_inst $2",
        "avg($2) >= $R",
        "`%_inst` is pmie's",
        "a comparison is 1 or 0, so the mean is a share",
    )
    .binding(Token::Equal),
    clause("%1 %_sample $2", "avg_over($2, \"5 min\") >= $R", "`%_sample` is pmie's", SAMPLES)
        .binding(Token::Equal),
    clause("max_sample $1 @ $2", "max_over($1, \"5 min\")", "`max_sample` is pmie's", SAMPLES),
    clause("min_sample $1 @ $2", "min_over($1, \"5 min\")", "`min_sample` is pmie's", SAMPLES),
    clause("avg_sample $1 @ $2", "avg_over($1, \"5 min\")", "`avg_sample` is pmie's", SAMPLES),
    clause("some_sample $1 @ $2", "max_over($1, \"5 min\")", "`some_sample` is pmie's", SAMPLES),
    clause("all_sample $1 @ $2", "min_over($1, \"5 min\")", "`all_sample` is pmie's", SAMPLES),
    clause("^ rising $1 .", "$1", "`rising` is pmie's", NO_EDGES),
    clause("^ falling $1 .", "!($1)", "`falling` is pmie's", NO_EDGES),
];
