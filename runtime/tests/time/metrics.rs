//! Specifications of metrics, and intervals.

use std::time::Duration;

use pmderive_runtime::model::{MetricSpec, SpecSource, parse_interval};

use crate::golden;
use crate::oracle::{ABSENT, answers};
use pmderive_testkit::choices::Choices;

fn default(kind: i64, source: Option<&str>) -> SpecSource {
    match kind {
        0 => SpecSource::Host(source.map(str::to_owned)),
        1 => SpecSource::Archive(source.map(str::to_owned)),
        _ => SpecSource::Local,
    }
}

/// The library's answer, in the fields of the oracle.
fn ours(text: &str, default: SpecSource) -> Vec<String> {
    match MetricSpec::parse(text, default) {
        Err(error) => vec!["-12345".to_owned(), format!("{error}\n")],
        Ok(spec) => {
            let (kind, source) = match spec.source {
                SpecSource::Host(source) => ("0", source),
                SpecSource::Archive(source) => ("1", source),
                SpecSource::Local => ("2", None),
            };
            let source = source.unwrap_or_else(|| ABSENT.to_owned());
            let mut fields = vec!["0".to_owned(), kind.to_owned(), source, spec.metric];
            fields.extend(spec.instances);
            fields
        }
    }
}

/// The library does not keep the `@` of a local source.
fn without_at(mut fields: Vec<String>) -> Vec<String> {
    if fields.get(1).is_some_and(|kind| kind == "2") {
        fields[2] = ABSENT.to_owned();
    }
    fields
}

#[test]
fn metrics_are_specified_as_for_libpcp() {
    let data = golden("metric_specs.json");
    let rows = data["tables"]["metric"]["rows"].as_array().unwrap();
    assert!(rows.len() > 100, "{}", rows.len());
    for row in rows {
        let default = default(row[1].as_i64().unwrap(), row[2].as_str());
        let mut expected = vec![row[3].to_string()];
        if let Some(spec) = row[4].as_array() {
            expected.push(spec[0].to_string());
            expected.push(spec[1].as_str().unwrap_or(ABSENT).to_owned());
            expected.push(spec[2].as_str().unwrap().to_owned());
            let instances = spec[3].as_array().unwrap();
            expected.extend(instances.iter().map(|name| name.as_str().unwrap().to_owned()));
        } else {
            expected.push(row[5].as_str().unwrap().to_owned());
        }
        assert_eq!(ours(row[0].as_str().unwrap(), default), without_at(expected), "{row}");
    }
}

#[test]
fn random_specifications_are_those_of_libpcp() {
    let pieces =
        ["a", "b.c", "sample", ":", "/", "[", "]", "\"", ",", " ", "\\", "@", "x y", "1", ".", "é"];
    let mut choices = Choices(5);
    let mut questions = Vec::new();
    for _ in 0..6_000 {
        let mut text = String::new();
        if choices.below(2) == 0 {
            text.push_str(choices.of(&["", "h:", "a/", "metric[", "x:m[\"", "m [a,"]));
        }
        for _ in 0..choices.below(8) {
            text.push_str(choices.of(&pieces));
        }
        let source = choices.of(&[ABSENT, "def"]);
        questions
            .push(["metric", &text, choices.of(&["0", "1"]), source].map(str::to_owned).into());
    }
    let Some(answers) = answers(&questions) else { return };
    let mut wrong = Vec::new();
    for (question, answer) in questions.iter().zip(answers) {
        let source = Some(&*question[3]).filter(|source| *source != ABSENT);
        let ours = ours(&question[1], default(question[2].parse().unwrap(), source));
        let answer = without_at(answer);
        if ours != answer {
            wrong.push(format!("{question:?}\n  libpcp {answer:?}\n  ours   {ours:?}"));
        }
    }
    let shown = wrong[..wrong.len().min(20)].join("\n");
    assert!(wrong.is_empty(), "{} of {}:\n{shown}", wrong.len(), questions.len());
}

#[test]
fn random_intervals_are_those_of_libpcp() {
    let pieces = [
        "1",
        "2.5",
        "10",
        "0",
        "1e3",
        ".5",
        "0x10",
        "s",
        "sec",
        "min",
        "m",
        "ms",
        "hours",
        "h",
        "days",
        "d",
        "msec",
        "usec",
        "nsec",
        "millisecond",
        "microseconds",
        "+",
        "-",
        " ",
        "\u{b}",
        "x",
        ".",
        "SECS",
        "ss",
    ];
    let mut choices = Choices(9);
    let mut questions = Vec::new();
    for _ in 0..6_000 {
        let mut text = String::new();
        for _ in 0..choices.below(6) {
            text.push_str(choices.of(&pieces));
        }
        questions.push(vec!["interval".to_owned(), text]);
    }
    let Some(answers) = answers(&questions) else { return };
    let mut wrong = Vec::new();
    for (question, answer) in questions.iter().zip(answers) {
        let ours = parse_interval(&question[1]);
        let same = match &ours {
            Err(error) => answer == ["-1".to_owned(), format!("{error}\n")],
            Ok(interval) if answer[0] == "0" => {
                let (sec, nsec) = answer[1].split_once(' ').unwrap();
                let [sec, nsec] = [sec, nsec].map(|number| number.parse().unwrap());
                let theirs = Duration::from_secs(sec) + Duration::from_nanos(nsec);
                // libpcp adds up in a double, which knows 15 digits, and of half
                // nanoseconds not which way to go.
                let has_half = question[1].contains(".5") && question[1].contains("nsec");
                let half = if has_half { 1e-9 } else { 0.0 };
                let difference = interval.abs_diff(theirs);
                difference.as_secs_f64() <= interval.as_secs_f64() * 1e-15 + half
            }
            Ok(_) => false,
        };
        if !same {
            wrong.push(format!("{question:?}\n  libpcp {answer:?}\n  ours   {ours:?}"));
        }
    }
    let shown = wrong[..wrong.len().min(20)].join("\n");
    assert!(wrong.is_empty(), "{} of {}:\n{shown}", wrong.len(), questions.len());
}
