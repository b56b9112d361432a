//! The libpcp of this machine as a program that answers questions.

use crate::program::{Oracle, answer};

/// Stands for an option that is absent.
pub const ABSENT: &str = "\u{1}";

/// Asks libpcp; `None` without PCP, with a message on standard error. A
/// question is a list of fields, see `oracle.c`; so is an answer.
///
/// # Panics
/// If PCP is missing although `CI` is set, or if the program does not work.
pub fn answers(questions: &[Vec<String>]) -> Option<Vec<Vec<String>>> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/time/oracle.c");
    let oracle = Oracle::compile(source, &[])?;
    let mut input = String::new();
    for question in questions {
        assert!(question.iter().all(|field| !field.contains(['\t', '\n', '\0'])));
        input.push_str(&question.join("\t"));
        input.push('\n');
    }
    let mut command = oracle.command();
    command.env_remove("TZ");
    let text = answer(command, input);
    let answers: Vec<Vec<String>> = text
        .lines()
        .map(|line| line.split('\t').map(|field| field.replace("\\n", "\n")).collect())
        .collect();
    assert_eq!(answers.len(), questions.len(), "as many answers as questions");
    Some(answers)
}
