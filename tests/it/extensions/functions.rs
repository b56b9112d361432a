//! Each function, compared with a plain model, and over a real pmcd.

use pmderive_testkit::real_pmcd::RealPmcd;

use crate::extensions::shared::{Values, assert_same, backends, evaluate};

/// Compares a call with a model of it, sample by sample. The model sees all
/// samples of the operand from the last gap up to the one in question.
fn against(archive: &str, operand: &str, call: &str, model: impl Fn(&[Values]) -> Values) {
    let definitions = format!("t.operand = {operand}\nt.call = {call}\n");
    for backend in backends() {
        let samples = evaluate(archive, &definitions, backend);
        let operands: Vec<Values> =
            samples.iter().map(|sample| sample.metrics[0].clone()).collect();
        let known = operands.iter().filter(|values| !values.is_empty()).count();
        assert!(known > 1, "{operand} has values");
        let mut start = 0;
        for (at, sample) in samples.iter().enumerate() {
            if sample.begins_anew {
                start = at;
            }
            let expected = model(&operands[start..=at]);
            assert_same(
                &format!("{call} of sample {at} by {backend:?}"),
                &sample.metrics[1],
                &expected,
            );
        }
    }
}

/// A model of each instance by itself.
fn each(function: impl Fn(f64) -> f64) -> impl Fn(&[Values]) -> Values {
    move |samples| {
        let now = samples.last().expect("a sample");
        now.iter().map(|(instance, value)| (*instance, function(*value))).collect()
    }
}

#[test]
fn functions_of_one_value() {
    for operand in ["a.i.f64", "delta(a.c.f32)", "-s.i.i32", "a.i.i32 / 7", "dyn"] {
        let (archive, operand) = match operand {
            "dyn" => ("own-dyn", "dyn.i.f64 - 100.5"),
            operand => ("own-types", operand),
        };
        // The least integer of its type has no magnitude there.
        let magnitude = |x: f64| if x == f64::from(i32::MIN) { x } else { x.abs() };
        against(archive, operand, &format!("abs({operand})"), each(magnitude));
        against(archive, operand, &format!("floor({operand})"), each(f64::floor));
        against(archive, operand, &format!("ceil({operand})"), each(f64::ceil));
        against(archive, operand, &format!("round({operand})"), each(f64::round));
        against(archive, operand, &format!("sqrt({operand})"), each(f64::sqrt));
        against(archive, operand, &format!("log({operand})"), each(f64::ln));
        against(archive, operand, &format!("pow({operand}, 2)"), each(|x| x.powf(2.0)));
        against(archive, operand, &format!("pow({operand}, -0.5)"), each(|x| x.powf(-0.5)));
        against(archive, operand, &format!("pow(1.5, {operand})"), each(|x| 1.5f64.powf(x)));
        let clamped = |x: f64| if x.is_nan() { x } else { x.clamp(-2.0, 30.5) };
        against(archive, operand, &format!("clamp({operand}, -2, 30.5)"), each(clamped));
    }
}

#[test]
fn types_are_wide_enough() {
    let fits = |call: &str, operand: &str, model: fn(f64) -> f64| {
        against("own-types", operand, call, each(model));
    };
    // A negative number meets an unsigned bound, and the other way round.
    fits("clamp(s.i.i32, 0, 10)", "s.i.i32", |x| x.clamp(0.0, 10.0));
    fits("clamp(s.i.u32, -5, 7)", "s.i.u32", |x| x.clamp(-5.0, 7.0));
    fits("clamp(s.i.u32, s.i.u32 * 0 - 5 / 1, 7)", "s.i.u32", |x| x.clamp(-5.0, 7.0));
    fits("floor(s.i.u64)", "s.i.u64", |x| x);
    fits("abs(s.i.i64)", "s.i.i64", |x| if x == i64::MIN as f64 { x } else { x.abs() });
}

fn statistic(function: impl Fn(&mut [f64]) -> f64) -> impl Fn(&[Values]) -> Values {
    move |samples| {
        let mut values: Vec<f64> = samples.last().expect("a sample").values().copied().collect();
        match values.len() {
            0 => Values::new(),
            _ => Values::from([(-1, function(&mut values))]),
        }
    }
}

/// A sum is there without instances too.
fn total_or_zero(function: impl Fn(&mut [f64]) -> f64) -> impl Fn(&[Values]) -> Values {
    move |samples| {
        let mut values: Vec<f64> = samples.last().expect("a sample").values().copied().collect();
        Values::from([(-1, function(&mut values))])
    }
}

fn quantile(q: f64, values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = q * (values.len() - 1) as f64;
    let (below, share) = (values[rank as usize], rank.fract());
    let above = values[(rank as usize + 1).min(values.len() - 1)];
    below + (above - below) * share
}

fn deviation(values: &mut [f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

#[test]
fn functions_over_instances() {
    for operand in ["dyn.i.u32", "rate(dyn.c.u64)", "dyn.i.i32 * 2 - dyn.i.u32"] {
        for q in [0.0, 0.25, 0.5, 0.9, 1.0] {
            let call = format!("quantile({q:?}, {operand})");
            against("own-dyn", operand, &call, statistic(|values| quantile(q, values)));
        }
        against("own-dyn", operand, &format!("stdev({operand})"), statistic(deviation));
        for (k, name) in [(1, "topk"), (2, "topk"), (100, "topk"), (2, "bottomk")] {
            let call = format!("{name}({k}, {operand})");
            let definitions = format!("t.operand = {operand}\nt.call = {call}\n");
            for backend in backends() {
                for sample in evaluate("own-dyn", &definitions, backend) {
                    let (all, found) = (&sample.metrics[0], &sample.metrics[1]);
                    assert!(found.iter().all(|(instance, x)| all.get(instance) == Some(x)));
                    // Which of equal values count depends on the order, so values are compared.
                    let mut expected: Vec<f64> = all.values().copied().collect();
                    expected.sort_by(f64::total_cmp);
                    if name == "topk" {
                        expected.reverse();
                    }
                    expected.truncate(k);
                    expected.sort_by(f64::total_cmp);
                    let mut found: Vec<f64> = found.values().copied().collect();
                    found.sort_by(f64::total_cmp);
                    assert_eq!(found, expected, "{call}");
                }
            }
        }
        let total = |values: &mut [f64]| values.iter().map(|value| value / 2.0).sum();
        against(
            "own-dyn",
            operand,
            &format!("scalar(topk(1, sum(({operand}) / 2)))"),
            total_or_zero(total),
        );
        let largest = |values: &mut [f64]| values.iter().copied().fold(f64::MIN, f64::max);
        against("own-dyn", operand, &format!("max(({operand}) / 2) * 2"), statistic(largest));
    }
}

/// The samples of each instance since it came, which are a second apart.
fn window(length: usize, function: impl Fn(&[f64]) -> f64) -> impl Fn(&[Values]) -> Values {
    move |samples| {
        let now = samples.last().expect("a sample");
        let past = |instance: &i32| -> Vec<f64> {
            let present = samples.iter().rev().map_while(|sample| sample.get(instance));
            let mut past: Vec<f64> = present.take(length).copied().collect();
            past.reverse();
            past
        };
        now.keys().map(|instance| (*instance, function(&past(instance)))).collect()
    }
}

#[test]
fn functions_over_time() {
    for operand in ["dyn.i.f64", "rate(dyn.c.u64)", "abs(dyn.i.i32)"] {
        let mean = |past: &[f64]| past.iter().sum::<f64>() / past.len() as f64;
        let call = format!("avg_over({operand}, \"1 hour\")");
        against("own-dyn", operand, &call, window(usize::MAX, mean));
        let greatest = |past: &[f64]| past.iter().copied().fold(f64::MIN, f64::max);
        let call = format!("max_over({operand}, \"1 hour\")");
        against("own-dyn", operand, &call, window(usize::MAX, greatest));
        let least = |past: &[f64]| past.iter().copied().fold(f64::MAX, f64::min);
        let call = format!("min_over({operand}, \"1 hour\")");
        against("own-dyn", operand, &call, window(usize::MAX, least));
        // Shorter than the time between two samples.
        let call = format!("avg_over({operand}, \"1 msec\")");
        against("own-dyn", operand, &call, window(1, |past| past[0]));
        let call = format!("ewma({operand}, \"1 usec\")");
        against("own-dyn", operand, &call, window(1, |past| past[0]));
    }
    // Records of own-types are one second apart.
    let decayed = |past: &[f64]| {
        past[1..].iter().fold(past[0], |average, value| average + (value - average) * 0.5)
    };
    let operand = "s.i.u32";
    against("own-types", operand, "ewma(s.i.u32, \"1 sec\")", window(usize::MAX, decayed));
    let mean = |past: &[f64]| past.iter().sum::<f64>() / past.len() as f64;
    against("own-types", operand, "avg_over(s.i.u32, \"2.5 sec\")", window(3, mean));
}

#[test]
fn texts_are_compared() {
    let definitions = "t.all = count(a.str)\n\
                       t.equal = a.str == a.str\n\
                       t.other = a.str != a.str\n\
                       t.any = matchvalue(/./, a.str)\n\
                       t.none = matchvalue(!/./, a.str)\n\
                       t.literal = s.strd == \"no such text\"\n\
                       t.not = \"no such text\" != s.strd\n\
                       t.single = a.str == s.strd\n\
                       t.half = (matchvalue(/^a/, a.str) || matchvalue(!/^a/, a.str)) * 2\n";
    for backend in backends() {
        for sample in evaluate("own-types", definitions, backend) {
            let [all, equal, other, any, none, literal, not, single, half] = &sample.metrics[..]
            else {
                panic!("nine metrics");
            };
            let ones = |values: &Values, wanted: f64| {
                assert!(values.values().all(|value| *value == wanted), "{values:?}");
            };
            assert_eq!(all[&-1] as usize, equal.len());
            ones(equal, 1.0);
            ones(other, 0.0);
            ones(any, 1.0);
            ones(none, 0.0);
            ones(literal, 0.0);
            ones(not, 1.0);
            ones(half, 2.0);
            assert!(single.values().all(|value| *value == 0.0 || *value == 1.0));
            assert_eq!(any.len(), none.len());
        }
    }
}

/// Over a real pmcd, by the command, with what its sample agent always says.
#[test]
fn values_of_a_live_pmcd() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let rows = [
        ("topk(2, sample.bin)", "value 800|value 900"),
        ("bottomk(1, sample.bin / 3)", "value 33.333333333333336"),
        ("quantile(0.25, sample.bin)", "value 300"),
        ("stdev(sample.bin)", "value 258.19888974716116"),
        ("max(sample.bin * 2) - 1e3", "value 800"),
        (
            "avg_over(sample.long.hundred, \"5 min\") + ewma(sample.long.ten, \"1 min\")",
            "value 110",
        ),
        ("clamp(sample.long.hundred, 0, 42)", "value 42"),
        (
            "pow(sample.long.ten, 3) + sqrt(sample.long.hundred) + abs(-sample.long.one)",
            "value 1011",
        ),
        ("sample.string.hullo == \"hullo world!\"", "value 1"),
        ("matchvalue(!/^hullo/, sample.string.hullo)", "value 0"),
        ("t.tenth + t.nested", "value 120"),
    ];
    let file = tempfile::NamedTempFile::new().expect("a file");
    let definitions = "t.nested = t.tenth * 1.1e1\nt.tenth = sample.long.hundred / 10\n";
    std::fs::write(file.path(), definitions).expect("a file");
    let command = std::process::Command::new(env!("CARGO_BIN_EXE_pmderive"))
        .env("PCP_DERIVED_CONFIG", "")
        .args(["eval", "--extensions", "-s", "2", "-t", "10msec", "-h"])
        .arg(format!("unix:{}", pmcd.socket.display()))
        .arg("-c")
        .arg(file.path())
        .args(rows.map(|(expression, _)| expression))
        .output()
        .expect("the command runs");
    let errors = String::from_utf8_lossy(&command.stderr);
    assert!(command.status.success(), "{errors}");
    let out = String::from_utf8(command.stdout).expect("text");
    for (expression, expected) in rows {
        let blocks: Vec<&str> =
            out.split("\n\n").filter(|block| block.starts_with(expression)).collect();
        assert_eq!(blocks.len(), 2, "{expression} in {out}");
        for block in blocks {
            let values: Vec<&str> =
                block.lines().filter_map(|line| Some(&line[line.find("value ")?..])).collect();
            let expected: Vec<&str> = expected.split('|').collect();
            assert_eq!(values, expected, "{expression}");
        }
    }
}
