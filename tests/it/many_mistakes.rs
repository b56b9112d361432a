//! Very many mistakes at once, as when a file of another kind is read as definitions. Some are
//! drawn, the rest are counted, and none is lost.
//!
//! If the work per mistake grows with their number, this test becomes visibly slow.

use std::io::Write;

use tempfile::NamedTempFile;

use crate::command;
use command::{Run, run};

const COUNT: usize = 5_000;

/// A definition file of that many lines.
fn file(line: impl Fn(usize) -> String) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a file");
    let text: String = (0..COUNT).map(|number| line(number) + "\n").collect();
    file.write_all(text.as_bytes()).expect("a file");
    file
}

fn check(file: &NamedTempFile, options: &[&str]) -> Run {
    let path = file.path().to_str().expect("UTF-8");
    run(&[&["check", path], options].concat())
}

/// Reports that are drawn, by their first lines.
fn drawn(run: &Run) -> usize {
    run.err.lines().filter(|line| line.starts_with("[PMD")).count()
}

#[test]
fn the_first_are_drawn_and_all_are_counted() {
    let files = [
        (file(|number| format!("bad.m{number} = (disk.dev.read +")), COUNT),
        (file(|_| "same.name = disk.dev.read".to_owned()), COUNT - 1),
        (file(|_| "no definition at all".to_owned()), COUNT),
        (file(|number| format!("a.m{number} = b\na.m{number}(oneline) = x y\n ")), COUNT),
    ];
    for (file, count) in &files {
        for (options, most) in [(&[][..], 100), (&["--max-diagnostics", "3"], 3)] {
            let run = check(file, options);
            assert_eq!(drawn(&run), most);
            let (rest, noun) = match run.err.contains("warnings;") {
                true => (count - most, "warning"),
                false => (count - most, "error"),
            };
            let told = format!("\n{rest} more {noun}s; `--max-diagnostics N` shows more of them\n");
            assert!(run.err.contains(&told), "{told}: {}", &run.err[run.err.len() - 300..]);
        }
        let run = check(file, &["--format", "json"]);
        assert_eq!(run.out.lines().count(), *count);
    }
    let run = check(&files[1].0, &["--diag", "pcp"]);
    assert_eq!(run.err.matches("Duplicate global derived metric name").count(), COUNT - 1);
}

/// Not even where an error comes after more warnings than are drawn.
#[test]
fn no_error_is_left_out_for_a_warning() {
    let file = file(|number| match number + 1 == COUNT {
        false => " ".to_owned(),
        true => "the error".to_owned(),
    });
    let run = check(&file, &[]);
    assert_eq!((run.status, drawn(&run)), (Some(2), 100), "{}", run.err);
    assert!(run.err.contains("there is no `=` in this line"), "{}", run.err);
    let rest = format!("\n{} more warnings; ", COUNT - 100);
    assert!(run.err.contains(&rest), "{}", run.err);
}

/// Mistakes that only a source tells, and in other commands.
#[test]
fn definitions_of_metrics_that_are_not_there() {
    let file = file(|number| format!("bad.m{number} = no.such{number}.metric"));
    let path = file.path().to_str().expect("UTF-8");
    let source = ["-a", "tests/archives/own-types"];
    let checked = check(&file, &[&source[..], &["--format", "json"]].concat());
    assert_eq!((checked.status, checked.out.lines().count()), (Some(2), COUNT));
    let options = ["eval", "-c", path, "-s", "1", "--format", "csv"];
    let evaluated = run(&[&options, &source[..]].concat());
    assert_eq!((evaluated.status, drawn(&evaluated)), (Some(1), 100));
    assert!(evaluated.err.contains("\n4900 more errors; "), "{}", evaluated.err);
}
