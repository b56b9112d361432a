//! Rows in which we deliberately answer otherwise than libpcp 6.0.

/// Rows of a table whose answers differ.
pub struct Difference {
    /// `FILE/TABLE`.
    pub table: &'static str,
    /// The beginning of such a row's text; a star stands for anything. The
    /// first matching difference counts.
    pub row: &'static str,
    /// Our answer, if it is the same for all these rows.
    pub ours: Option<&'static str>,
    /// The reason.
    pub reason: &'static str,
}

const fn differ(
    table: &'static str,
    row: &'static str,
    ours: Option<&'static str>,
    reason: &'static str,
) -> Difference {
    Difference { table, row, ours, reason }
}

const BOTH: &str = "one function unpacks both kinds of arrays";
const IDS: &str = "libpcp subtracts identifiers in 32 bits";
const TEXT: &str = "PCP 7 makes text of numbers";
const FORMAT: &str = "a value is either in place or in a block";
const NAN: &str = "NaN is no integer; libpcp delivers a number";
const LOW: &str = "the number is too small for the type; libpcp delivers another one";
const ZERO: &str = "zero is a FLOAT; libpcp takes the least normal number for the least of all";
const EXACT: &str = "libpcp overflows and delivers some number";
const DIES: &str = "libpcp dies";
const NULL: &str = "there is no value that has no type or is missing";
const BLOCK: &str = "opaque bytes do not remember which type their block claimed";
const GARBLED: &str = "libpcp loses parts of nested values and names, and writes names twice";
const DIGIT: &str = "PCP 7 allows names that begin so";
const BROKEN: &str = "a text that is no object is refused";
const COUNT: &str = "PCP 7 says of what, and PCP 6 could not read it";

/// Every difference.
#[rustfmt::skip]
pub const DIFFERENCES: &[Difference] = &[
    differ("atoms/atom_str", "[6,null,", None, NULL),
    differ("atoms/atom_str", "[7,null,", None, NULL),
    differ("atoms/atom_str", "[-1,", None, NULL),
    differ("atoms/atom_str", "[255,", None, NULL),
    differ("atoms/atom_str", "[11,", None, NULL),
    differ("atoms/atom_str", "[99,", None, NULL),
    differ("atoms/atom_str", "[-5,", None, NULL),
    differ("atoms/atom_str", "[7,\"deadbeef\",8,", Some("[type=AGGREGATE len=4] deadbeef"), BLOCK),
    differ("atoms/atom_str", "[8,\"deadbeef\",8,", Some("[type=AGGREGATE len=4] deadbeef"), BLOCK),
    differ("atoms/atom_str", "[7,\"68656c6c6f\",6,", Some("[type=AGGREGATE len=5] 68656c6c 6f"), BLOCK),
    differ("atoms/atom_str", "[8,\"68656c6c6f\",6,", Some("[type=AGGREGATE len=5] 68656c6c 6f"), BLOCK),
    differ("atoms/atom_str", "[7,\"0102030405060708\",2,", None, BLOCK),
    differ("atoms/atom_str", "[8,\"0102030405060708\",2,", None, BLOCK),
    differ("atoms/atom_str", "[7,\"ff\",255,", Some("[type=AGGREGATE len=1] ff"), BLOCK),
    differ("atoms/atom_str", "[8,\"ff\",255,", Some("[type=AGGREGATE len=1] ff"), BLOCK),
    differ("atoms/string_value", "[\"0\",4,", Some("0"), ZERO),
    differ("atoms/string_value", "[\"\",4,", Some("0"), ZERO),
    differ("conv_scale/crash", "[", Some("-12362"), DIES),
    differ("conv_scale/overflow_quirks", "[4,", Some("-12362"), EXACT),
    differ("conv_scale/overflow_quirks", "[5,", Some("-12362"), EXACT),
    differ("conv_scale/overflow_quirks", "[", None, EXACT),
    differ("events/sort_instances", "[[0,-2147483648", None, IDS),
    differ("events/sort_instances", "[[2147483647,", None, IDS),
    differ("events/unpack", "[0,10,36,", None, BOTH),
    differ("events/unpack", "[1,9,44,", None, BOTH),
    differ("extract/quirks", "[1,2,", Some("-12363"), LOW),
    differ("extract/quirks", "[1,4,4,8,\"3d1001df\"", Some("-12363"), LOW),
    differ("extract/quirks", "[1,4,4,8,\"caf249f1\"", Some("-12363"), LOW),
    differ("extract/quirks", "[1,4,4,8,\"000080ff\"", Some("-12363"), LOW),
    differ("extract/quirks", "[1,5,5,12,\"40643f970722e0c3\"", Some("-12363"), LOW),
    differ("extract/quirks", "[1,5,5,12,\"ea8ca039593e29c6\"", Some("-12363"), LOW),
    differ("extract/quirks", "[1,5,5,12,\"000000000000f0ff\"", Some("-12363"), LOW),
    differ("extract/quirks", "[*0000c07f\"", Some("-12362"), NAN),
    differ("extract/quirks", "[1,5,5,12,\"000000000000f87f\"", Some("-12362"), NAN),
    differ("extract/rows", "[3,2,2,12,", Some("5"), FORMAT),
    differ("extract/rows", "[0,0,-1,-1,*\",6,-12362", None, TEXT),
    differ("extract/rows", "[0,1,-1,-1,*\",6,-12362", None, TEXT),
    differ("extract/rows", "[0,4,-1,-1,*\",6,-12362", None, TEXT),
    differ("extract/rows", "[0,255,-1,-1,*\",6,-12362", None, TEXT),
    differ("extract/rows", "[1,2,2,12,*\",6,-12362", None, TEXT),
    differ("extract/rows", "[1,3,3,12,*\",6,-12362", None, TEXT),
    differ("extract/rows", "[1,4,4,8,*\",6,-12362", None, TEXT),
    differ("extract/rows", "[1,5,5,12,*\",6,-12362", None, TEXT),
    differ("strings/merge_labels", r#"[["{ \"a\" : 1 , \"b\" : [1, 2, 3] }"]"#, Some(r#"{"a":1,"b":[1,2,3]}"#), GARBLED),
    differ("strings/merge_labels", r#"[["{\"a\":{\"b\":1,\"c\":2}}","{\"a\":{\"b\":9}}"]"#, Some(r#"{"a.b":9,"a.c":2}"#), GARBLED),
    differ("strings/merge_labels", r#"[["{\"a\":5}","{\"a\":{\"b\":1}}"]"#, Some(r#"{"a":5,"a.b":1}"#), GARBLED),
    differ("strings/merge_labels", r#"[["{\"a.b\":1}","{\"a\":{\"b\":2}}"]"#, Some(r#"{"a.b":2}"#), GARBLED),
    differ("strings/merge_labels", r#"[["{\"1a\":1}"]"#, Some(r#"{"1a":1}"#), DIGIT),
    differ("strings/merge_labels", r#"[["{\"_a\":1}"]"#, Some(r#"{"_a":1}"#), DIGIT),
    differ("strings/merge_labels", r#"[["{\"a\":[{\"b\":1}]}"]"#, Some(r#"{"a":[{"b":1}]}"#), GARBLED),
    differ("strings/merge_labels", r#"[["{\"a\":1"]"#, Some(r#"-22"#), BROKEN),
    differ("strings/merge_labels", r#"[["[1,2]"]"#, Some(r#"-22"#), BROKEN),
    differ("strings/merge_labels", r#"[["{\"a\":1,\"b\":{\"c\":{\"d\":{\"e\":1}}}}"]"#, Some(r#"{"a":1,"b.c.d.e":1}"#), GARBLED),
    differ("units/format", "[[0,0,0,0,0,*x 10", None, COUNT),
    differ("units/format", "[[0,0,0,5,5,1],\"x 10", Some("count x 10 348416"), COUNT),
    differ("units/parse_abort", "[", None, DIES),
];
