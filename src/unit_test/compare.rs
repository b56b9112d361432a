//! Compares what is expected of a metric at a step with what it has.

use pmderive_runtime::eval::{Value, Values};
use pmderive_runtime::model::PmStatus;
use pmderive_runtime::program::Reason;

use crate::report::plain::{text, write_value};

use super::file::Expected;
use super::timeline::{Item, Number, Tolerance};

/// What a metric has at a step.
#[derive(Clone, Copy, Debug)]
pub enum Got<'g> {
    /// Values, and the names of the instances by identifier.
    Values(Values<'g>, &'g [Box<str>]),
    /// None, for a reason.
    Empty(Reason),
    /// A status instead; for a definition that cannot be used, what is wrong.
    Failed(PmStatus, Option<&'g str>),
}

/// A difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// The instance; of the metric as a whole without one.
    pub instance: Option<Box<str>>,
    /// What was expected.
    pub expected: String,
    /// What there is.
    pub got: String,
    /// Why there is no value.
    pub why: Option<Why>,
}

/// Why there is no value: a word that does not change, and a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The word.
    pub reason: &'static str,
    /// The text.
    pub text: String,
}

/// All differences at a step.
pub fn compare(expected: &Expected, step: usize, got: Got<'_>) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    // Instances that something is said of.
    let mut named: Vec<&str> = Vec::new();
    let mut anything = false;
    for (instance, timeline) in &expected.timelines {
        named.extend(instance.as_deref());
        let item = timeline.at(step);
        let item = match item {
            Item::Number { start, step, tolerance } => {
                Item::Number { start, step, tolerance: tolerance.or(expected.tolerance) }
            }
            item => item,
        };
        anything |= item == Item::Any && instance.is_none();
        if !is_met(&item, instance.as_deref(), got) {
            mismatches.push(Mismatch {
                instance: instance.clone(),
                expected: item.to_string(),
                got: got.describe(instance.as_deref()),
                why: got.why(),
            });
        }
    }
    if let Got::Values(values, names) = got
        && !anything
    {
        for (id, value) in values.iter() {
            let Some(name) = name(names, id) else { continue };
            if !named.contains(&&*name) {
                mismatches.push(Mismatch {
                    instance: Some(name),
                    expected: Item::Absent.to_string(),
                    got: show(value),
                    why: None,
                });
            }
        }
    }
    // A failure is of the metric as a whole: where it is expected of one
    // instance, or missed for one, others without a value add nothing.
    if let Got::Failed(status, _) = got {
        let is_expected =
            expected.timelines.iter().any(|(_, line)| line.at(step) == Item::Failed(status));
        let says_nothing = |one: &Mismatch| one.expected == Item::Absent.to_string();
        if is_expected || !mismatches.iter().all(says_nothing) {
            mismatches.retain(|one| !says_nothing(one));
        }
    }
    // Whatever else is said of a metric as a whole, its instances need not be listed.
    let is_whole = expected.timelines.iter().any(|(instance, _)| instance.is_none());
    if is_whole && mismatches.iter().any(|mismatch| mismatch.instance.is_none()) {
        mismatches.retain(|mismatch| mismatch.instance.is_none());
    }
    mismatches
}

fn is_met(item: &Item, instance: Option<&str>, got: Got<'_>) -> bool {
    match (item, got) {
        (Item::Any, _) => true,
        (Item::Failed(expected), Got::Failed(status, _)) => *expected == status,
        (Item::Failed(_), _) | (_, Got::Failed(..)) => false,
        (Item::NoValues(Some(word)), Got::Empty(reason)) => *word == reason.word(),
        (Item::NoValues(None) | Item::Absent, Got::Empty(_)) => true,
        (Item::NoValues(_), Got::Values(values, _)) => values.is_empty(),
        (Item::Absent, Got::Values(values, names)) => match instance {
            Some(_) => value_of(values, names, instance).is_none(),
            None => values.is_empty(),
        },
        (Item::Number { start, tolerance, .. }, Got::Values(values, names)) => {
            value_of(values, names, instance)
                .is_some_and(|value| is_near(value, *start, *tolerance))
        }
        (Item::Text(text), Got::Values(values, names)) => {
            value_of(values, names, instance) == Some(Value::Text(text.as_bytes()))
        }
        (Item::Number { .. } | Item::Text(_), Got::Empty(_)) => false,
    }
}

/// Name of an instance; none of a metric with a single value.
fn name(names: &[Box<str>], id: i32) -> Option<Box<str>> {
    if id == -1 {
        return None;
    }
    let known = usize::try_from(id).ok().and_then(|id| names.get(id)).cloned();
    Some(known.unwrap_or_else(|| id.to_string().into()))
}

/// The value of an instance, or the single value of a metric without instances.
fn value_of<'v>(values: Values<'v>, names: &[Box<str>], wanted: Option<&str>) -> Option<Value<'v>> {
    let lane = (0..values.len()).find(|lane| {
        let name = name(names, values.instances[*lane]);
        name.as_deref() == wanted
    })?;
    Some(values.get(lane))
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
        // Infinities are near themselves only, as any number is.
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

/// A value as a timeline has it.
fn show(value: Value<'_>) -> String {
    match value {
        Value::Text(bytes) => return format!("'{}'", text(bytes)),
        Value::Bytes(bytes) => return format!("{} opaque bytes", bytes.len()),
        _ => {}
    }
    let mut out = String::new();
    write_value(&mut out, value);
    // Whole numbers are written as whole numbers.
    match out.strip_suffix(".0") {
        Some(whole) if matches!(value, Value::F32(_) | Value::F64(_)) => whole.to_owned(),
        _ => out,
    }
}

impl Got<'_> {
    /// What there is of an instance, or of the metric as a whole.
    fn describe(self, instance: Option<&str>) -> String {
        match self {
            Got::Failed(status, _) => Item::Failed(status).to_string(),
            Got::Empty(reason) => Item::NoValues(Some(reason.word())).to_string(),
            Got::Values(values, names) => match value_of(values, names, instance) {
                Some(value) => show(value),
                None if instance.is_some() => Item::Absent.to_string(),
                None => {
                    let shown: Vec<String> = values
                        .iter()
                        .take(3)
                        .map(|(id, value)| {
                            let name = name(names, id).unwrap_or_default();
                            format!("{name} = {}", show(value))
                        })
                        .collect();
                    let more = if values.len() > shown.len() { ", ..." } else { "" };
                    format!("{}{more}", shown.join(", "))
                }
            },
        }
    }

    /// Why there is no value.
    fn why(self) -> Option<Why> {
        match self {
            Got::Values(..) => None,
            Got::Empty(reason) => Some(Why { reason: reason.word(), text: reason.to_string() }),
            Got::Failed(_, Some(mistake)) => {
                Some(Why { reason: "definition", text: mistake.to_owned() })
            }
            Got::Failed(status, None) => Some(Why { reason: "failed", text: status.to_string() }),
        }
    }

    /// Everything about it, so that two can be compared.
    pub fn digest(self) -> String {
        match self {
            Got::Values(values, _) => {
                let values: Vec<String> =
                    values.iter().map(|(id, value)| format!("[{id}] {}", show(value))).collect();
                values.join(", ")
            }
            _ => self.describe(None),
        }
    }
}
