//! Whatever a server says, every command comes to its end, with a status of
//! its own and without a panic, and what it prints of an exchange in which no
//! word was changed is right.
//!
//! `PMDERIVE_HOSTILE=N` makes it N times as many runs. What single replies can
//! do is tested without sockets, in far more runs, in `runtime/tests/hostile`.

use std::time::Duration;

use pmderive_runtime::pdu::PduType;
use pmderive_testkit::choices;
use pmderive_testkit::fake_pmcd::{FakePmcd, Fault, Garble, Rule};

use self::choices::Choices;
use super::command::{Run, finished, pmderive};
use super::pmcd;

/// Runs unless the environment asks for more.
const RUNS: u64 = 60;

/// Servers and commands at the same time.
const THREADS: u64 = 6;

/// An expression that is 7 wherever it has a value.
const WITH_RATE: &str = "m.count + 0 * rate(m.total)";

/// Commands, and how often the right value is in what they print, at most.
const COMMANDS: [(&[&str], usize); 6] = [
    (&["eval", "-s", "3", "-t", "1msec", "--format", "csv", "m.count"], 3),
    (&["eval", "-s", "2", "-t", "1msec", "--format", "csv", WITH_RATE], 2),
    (&["export", "-s", "3", "-t", "1msec", "m.count"], 3),
    (&["val", "-s", "3", "-t", "1msec", "m.count"], 3),
    (&["info", "-f", "m.count"], 1),
    (&["probe", "-v", "m.count"], 1),
];

/// A fault that changes no word of a reply, and one that does.
fn fault(choices: &mut Choices, is_honest: bool) -> Fault {
    let after = choices.below(40);
    let piece = vec![[0, 1, 0xff][choices.below(3)]; 1 + choices.below(64)];
    let kinds = if is_honest { 7 } else { 12 };
    match choices.below(kinds) {
        0 => Fault::Close { after },
        1 => Fault::Reset { after },
        2 => Fault::Stall { after },
        3 => Fault::Drip { every: Duration::from_millis(1 + choices.below(30) as u64) },
        4 => Fault::Late { after, by: Duration::from_millis(1 + choices.below(400) as u64) },
        5 => Fault::Append(piece),
        6 => Fault::Endless { after: usize::MAX, piece },
        7 => Fault::Endless { after, piece },
        8 => Fault::Garble(Garble::Word { at: 4 * choices.below(20), value: odd(choices) }),
        9 => Fault::Garble(Garble::ExchangeWords(4 * choices.below(20), 4 * choices.below(20))),
        10 => Fault::Garble(Garble::Truncate(after)),
        _ => Fault::Replace(piece),
    }
}

/// A number that stands out as a length or a count.
fn odd(choices: &mut Choices) -> u32 {
    [0, 1, 3, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0x0400_0000, 24][choices.below(8)]
}

fn rule(choices: &mut Choices, is_honest: bool) -> Rule {
    const REQUESTS: [PduType; 4] =
        [PduType::HighresFetch, PduType::PmnsNames, PduType::DescIds, PduType::PmnsTraverse];
    let rule = Rule::new(fault(choices, is_honest)).after(choices.below(3) as u32);
    let rule = match choices.below(6) {
        0 => rule.on_greeting(),
        request @ 1..=4 => rule.on(REQUESTS[request - 1]),
        _ => rule,
    };
    if choices.below(3) == 0 { rule.always() } else { rule }
}

fn run_at(pmcd: &FakePmcd, arguments: &[&str]) -> Run {
    let mut command = pmderive(&[arguments, &["-h", &pmcd.spec().to_string()]].concat());
    command.args(["--retry", "200msec"]);
    command.env("PMCD_REQUEST_TIMEOUT", "0.3").env("PMCD_CONNECT_TIMEOUT", "5");
    finished(command.output().expect("the command runs"))
}

#[test]
fn every_command_ends_and_tells_what_was_wrong() {
    let times = std::env::var("PMDERIVE_HOSTILE").ok().and_then(|text| text.parse().ok());
    let runs = RUNS * times.unwrap_or(1u64);
    // Most of the time is spent waiting.
    std::thread::scope(|scope| {
        for first in 0..THREADS {
            scope.spawn(move || (first..runs).step_by(THREADS as usize).for_each(try_seed));
        }
    });
}

fn try_seed(seed: u64) {
    let mut choices = Choices(seed);
    let (arguments, most) = COMMANDS[choices.below(COMMANDS.len())];
    let is_honest = choices.below(2) == 0;
    let pmcd = pmcd();
    for _ in 0..=choices.below(2) {
        pmcd.host().inject(rule(&mut choices, is_honest));
    }
    let Run { status, out, err } = run_at(&pmcd, arguments);
    let shown = format!("seed {seed}, {arguments:?}: {status:?}\n{out}\n{err}");
    assert!(status.is_some_and(|status| (0..=3).contains(&status)), "{shown}");
    assert!(!err.contains("panicked"), "{shown}");
    if status != Some(0) {
        assert!(!err.is_empty() || out.contains("m.count -"), "{shown}");
    }
    if is_honest {
        let values: Vec<&str> = out.lines().filter_map(value).collect();
        assert!(values.iter().all(|value| *value == "7" || *value == "7.0"), "{shown}");
        // A rate has no value after a gap.
        let least = if arguments.contains(&WITH_RATE) { 0 } else { most };
        let range = if status == Some(0) { least..=most } else { 0..=most };
        assert!(range.contains(&values.len()), "{shown}");
    }
}

/// The value that a line of any of the commands holds.
fn value(line: &str) -> Option<&str> {
    if let Some(row) = line.strip_prefix("20") {
        let value = row.split(',').rev().find(|field| !field.is_empty());
        return value.filter(|value| value.starts_with(|c: char| c.is_ascii_digit()));
    }
    let line = line.trim();
    let value = line.strip_prefix("value ").or(line.strip_prefix("m.count 1 ")).unwrap_or(line);
    (!value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())).then_some(value)
}
