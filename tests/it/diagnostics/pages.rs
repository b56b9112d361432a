//! The pages of the codes are true. A text that a page calls wrong has exactly the diagnostic
//! of the page; one that it calls right has none, lints included.
//!
//! Examples are fenced blocks `wrong` and `right`. After the word may follow `named NAME`, to
//! test only that definition; `extensions`, to allow them; or `with CODE`, for another mistake
//! that causes the page's.

use pmderive::diag::{Code, page};

use crate::diagnostics::fleet::{Asked, compile};

/// Codes whose examples are too large, or no definitions at all.
const WITHOUT_EXAMPLE: [Code; 7] = [
    Code::TooComplex,
    Code::UnreadableFile,
    Code::FleetOperand,
    Code::UnknownLabel,
    Code::BadTestFile,
    Code::BadServeFile,
    Code::BadConfigFile,
];

/// A fenced block of a page.
struct Example<'p> {
    is_right: bool,
    asked: Asked<'p>,
    cause: Option<Code>,
    text: &'p str,
}

fn examples(page: &str) -> Vec<Example<'_>> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks
        .map(|block| {
            let (info, text) = block.split_once('\n').expect("a block has lines");
            let mut words = info.split(' ');
            let is_right = match words.next() {
                Some("right") => true,
                Some("wrong") => false,
                other => panic!("a block called {other:?}"),
            };
            let mut cause = None;
            let mut asked = Asked { lint: true, ..Asked::default() };
            while let Some(word) = words.next() {
                match word {
                    "named" => asked.wanted = words.next(),
                    "with" => {
                        let code = words.next().expect("a code follows `with`");
                        cause = Some(code.parse().expect("a code"));
                    }
                    "extensions" => asked.extensions = true,
                    other => panic!("`{other}` means nothing"),
                }
            }
            Example { is_right, asked, cause, text }
        })
        .collect()
}

#[test]
fn examples_are_as_wrong_and_as_right_as_the_pages_say() {
    let mut failures = Vec::new();
    for code in Code::ALL {
        let examples = examples(page(*code));
        let sides: Vec<bool> = examples.iter().map(|example| example.is_right).collect();
        match WITHOUT_EXAMPLE.contains(code) {
            true => assert!(sides.is_empty(), "{code} has an example after all"),
            false => assert_eq!(sides, [false, true], "{code}: one wrong, then one right"),
        }
        for example in &examples {
            let mut expected: Vec<Code> = example.cause.into_iter().collect();
            expected.extend(Some(*code).filter(|_| !example.is_right));
            let found = compile("page", &format!("{}\n", example.text), example.asked);
            let mut codes: Vec<Code> = found.diagnostics.iter().map(|found| found.code).collect();
            codes.sort();
            codes.dedup();
            if codes != expected {
                let side = if example.is_right { "right" } else { "wrong" };
                failures.push(format!("{code} {side}: {codes:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
