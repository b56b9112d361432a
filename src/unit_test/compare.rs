//! Compares the expected values of a metric at a step with the actual ones.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use pmderive_runtime::eval::Value;
use pmderive_runtime::model::PmStatus;
use pmderive_runtime::program::Reason;

use crate::report::plain::{text, write_value};

use super::file::ExpectedTimelines;
use super::report::Failure;
use super::timeline::{Item, Number, Tolerance};

/// The actual result of a metric at a step.
#[derive(Clone, Debug)]
pub enum Got<'g> {
    /// Values, with the names of the instances. A single value has no name.
    Values(Vec<(Option<Cow<'g, str>>, Value<'g>)>),
    /// No values, for a reason.
    Empty(Reason),
    /// A status. For a definition that cannot be used, also the mistake.
    Failed(PmStatus, Option<&'g str>),
}

/// The reason why there is no value: a word that does not change, and a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The word.
    pub reason: &'static str,
    /// The text.
    pub text: String,
}

/// All differences at a step, with its time.
pub fn compare(expected: &ExpectedTimelines, at: (usize, Duration), got: &Got<'_>) -> Vec<Failure> {
    let (step, _) = at;
    let mut failures = Vec::new();
    let failure = |instance: Option<&str>, wanted: &Item, got: String, why: Option<Why>| Failure {
        metric: expected.subject.text.clone(),
        step: Some(at),
        instance: instance.map(Box::from),
        expected: wanted.to_string(),
        got,
        why,
    };
    let by_name = got.by_name();
    // Instances with an expectation.
    let mut named: HashSet<&str> = HashSet::new();
    let mut anything = false;
    for (instance, timeline) in &expected.timelines {
        let instance = instance.as_ref().map(|instance| &*instance.text);
        named.extend(instance);
        let item = timeline.at(step);
        let item = match item {
            Item::Number { start, step, tolerance } => {
                Item::Number { start, step, tolerance: tolerance.or(expected.tolerance) }
            }
            item => item,
        };
        anything |= item == Item::Any && instance.is_none();
        let actual = by_name.get(&instance).copied();
        if !is_met(&item, instance, got, actual) {
            failures.push(failure(instance, &item, got.describe(instance, actual), got.why()));
        }
    }
    if let Got::Values(values) = got
        && !anything
    {
        for (name, value) in values {
            let Some(name) = name else { continue };
            if !named.contains(&**name) {
                failures.push(failure(Some(&**name), &Item::Absent, show(*value), None));
            }
        }
    }
    // A failure concerns the metric as a whole. If it is expected of one
    // instance, or reported for one, instances that should be absent add
    // nothing.
    if let Got::Failed(status, _) = got {
        let is_expected =
            expected.timelines.iter().any(|(_, line)| line.at(step) == Item::Failed(*status));
        let says_nothing = |one: &Failure| one.expected == Item::Absent.to_string();
        if is_expected || !failures.iter().all(says_nothing) {
            failures.retain(|one| !says_nothing(one));
        }
    }
    // If a difference concerns the metric as a whole, its instances are not
    // listed.
    let is_whole = expected.timelines.iter().any(|(instance, _)| instance.is_none());
    if is_whole && failures.iter().any(|failure| failure.instance.is_none()) {
        failures.retain(|failure| failure.instance.is_none());
    }
    failures
}

/// True if an item agrees with an instance whose actual value is `actual`.
fn is_met(item: &Item, instance: Option<&str>, got: &Got<'_>, actual: Option<Value<'_>>) -> bool {
    match (item, got) {
        (Item::Any, _) => true,
        (Item::Failed(expected), Got::Failed(status, _)) => expected == status,
        (Item::Failed(_), _) | (_, Got::Failed(..)) => false,
        (Item::NoValues(Some(word)), Got::Empty(reason)) => *word == reason.word(),
        (Item::NoValues(None) | Item::Absent, Got::Empty(_)) => true,
        (Item::NoValues(_), Got::Values(values)) => values.is_empty(),
        (Item::Absent, Got::Values(values)) => match instance {
            Some(_) => actual.is_none(),
            None => values.is_empty(),
        },
        (Item::Number { start, tolerance, .. }, Got::Values(_)) => {
            actual.is_some_and(|value| is_near(value, *start, *tolerance))
        }
        (Item::Text(text), Got::Values(_)) => actual == Some(Value::Text(text.as_bytes())),
        (Item::Number { .. } | Item::Text(_), Got::Empty(_)) => false,
    }
}

fn is_near(value: Value<'_>, expected: Number, tolerance: Option<Tolerance>) -> bool {
    let (integer, real) = match value {
        Value::I32(value) => (Some(i128::from(value)), f64::from(value)),
        Value::U32(value) => (Some(i128::from(value)), f64::from(value)),
        Value::I64(value) => (Some(i128::from(value)), value as f64),
        Value::U64(value) => (Some(i128::from(value)), value as f64),
        Value::F32(value) => (None, f64::from(value)),
        Value::F64(value) => (None, value),
        Value::Text(_) | Value::Bytes(_) => return false,
    };
    let wanted = expected.as_f64();
    if let Some(tolerance) = tolerance {
        let distance = match tolerance {
            Tolerance::Absolute(distance) => distance,
            Tolerance::Relative(part) => (wanted * part).abs(),
        };
        // An infinity is near only itself; the comparison with `wanted` covers
        // it.
        return (real - wanted).abs() <= distance
            || real == wanted
            || real.is_nan() && wanted.is_nan();
    }
    match (integer, expected, value) {
        (Some(integer), Number::Integer(expected), _) => integer == expected,
        (_, _, Value::F32(value)) => value == wanted as f32 || value.is_nan() && wanted.is_nan(),
        _ => real == wanted || real.is_nan() && wanted.is_nan(),
    }
}

/// A value in the form of a timeline.
fn show(value: Value<'_>) -> String {
    match value {
        Value::Text(bytes) => return format!("'{}'", text(bytes)),
        Value::Bytes(bytes) => return format!("{} opaque bytes", bytes.len()),
        _ => {}
    }
    let mut out = String::new();
    write_value(&mut out, value);
    // A whole number is written without a fraction.
    match out.strip_suffix(".0") {
        Some(whole) if matches!(value, Value::F32(_) | Value::F64(_)) => whole.to_owned(),
        _ => out,
    }
}

impl Got<'_> {
    /// Values by the names of their instances; a single value by none.
    fn by_name(&self) -> HashMap<Option<&str>, Value<'_>> {
        match self {
            Got::Values(values) => {
                values.iter().map(|(name, value)| (name.as_deref(), *value)).collect()
            }
            Got::Empty(_) | Got::Failed(..) => HashMap::new(),
        }
    }

    /// Describes the actual result of an instance, whose value is `actual`, or of the metric
    /// as a whole.
    fn describe(&self, instance: Option<&str>, actual: Option<Value<'_>>) -> String {
        match self {
            Got::Failed(status, _) => Item::Failed(*status).to_string(),
            Got::Empty(reason) => Item::NoValues(Some(reason.word())).to_string(),
            Got::Values(values) => match actual {
                Some(value) => show(value),
                None if instance.is_some() => Item::Absent.to_string(),
                None => {
                    let shown: Vec<String> = values
                        .iter()
                        .take(3)
                        .map(|(name, value)| {
                            format!("{} = {}", name.as_deref().unwrap_or_default(), show(*value))
                        })
                        .collect();
                    let more = if values.len() > shown.len() { ", ..." } else { "" };
                    format!("{}{more}", shown.join(", "))
                }
            },
        }
    }

    /// The reason why there is no value.
    fn why(&self) -> Option<Why> {
        match self {
            Got::Values(..) => None,
            Got::Empty(reason) => Some(Why { reason: reason.word(), text: reason.to_string() }),
            Got::Failed(_, Some(mistake)) => {
                Some(Why { reason: "definition", text: (*mistake).to_owned() })
            }
            Got::Failed(status, None) => Some(Why { reason: "failed", text: status.to_string() }),
        }
    }

    /// A text with the whole result, so that two results can be compared.
    pub fn digest(&self) -> String {
        match self {
            Got::Values(values) => {
                let shown = |(name, value): &(Option<Cow<'_, str>>, Value<'_>)| {
                    format!("[{}] {}", name.as_deref().unwrap_or_default(), show(*value))
                };
                let values: Vec<String> = values.iter().map(shown).collect();
                values.join(", ")
            }
            _ => self.describe(None, None),
        }
    }
}
