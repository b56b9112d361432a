//! Puts values into the form that an archive must have.
//!
//! Agents and old archives deliver values that tools tolerate: instances
//! without a name, several values of a metric with a single value, numbers in
//! an encoding of another type. Readers of an archive could not use them, and
//! they must not affect other values.

use pmderive_runtime::model::{InstanceDomain, PmStatus, RawValue, ValueType};
use pmderive_runtime::result::{InstanceValue, MetricValues};
use rustc_hash::FxHashSet;

use super::selection::Metric;

/// Corrects the values of a metric. `domain` has its instances, as they are in
/// the archive. Returns an instance that was left out because it has no name.
/// None is left out where `may_lack_names`.
pub fn tidy(
    metric: &Metric,
    domain: Option<&InstanceDomain>,
    may_lack_names: bool,
    set: &mut MetricValues,
) -> Option<i32> {
    let Ok(values) = &mut set.outcome else { return None };
    let value_type = metric.desc.value_type;
    let mut nameless = None;
    if metric.desc.indom.is_none() {
        values.truncate(1);
        values.iter_mut().for_each(|value| value.instance = -1);
    } else if !are_named(domain, values) {
        let mut seen = FxHashSet::default();
        values.retain(|value| {
            let has_name = domain.is_some_and(|domain| domain.name(value.instance).is_some());
            let is_kept = has_name || may_lack_names;
            if !is_kept {
                nameless = Some(value.instance);
            }
            // The first of two values of one instance counts.
            is_kept && seen.insert(value.instance)
        });
    }
    let encoded = values.iter_mut().try_for_each(|value| encode(&mut value.value, value_type));
    if let Err(status) = encoded {
        set.outcome = Err(status);
    }
    nameless
}

/// True if every instance has a name and the instances ascend, so that none
/// occurs twice.
fn are_named(domain: Option<&InstanceDomain>, values: &[InstanceValue]) -> bool {
    let is_named =
        |value: &InstanceValue| domain.is_some_and(|domain| domain.name(value.instance).is_some());
    values.is_sorted_by(|one, next| one.instance < next.instance) && values.iter().all(is_named)
}

/// Gives a value the encoding of its type. Nearly all values have it already.
fn encode(value: &mut RawValue, value_type: ValueType) -> Result<(), PmStatus> {
    let is_of_type = match (&*value, value_type) {
        (RawValue::InPlace(_), ValueType::I32 | ValueType::U32) => true,
        (RawValue::Block { .. }, ValueType::Event | ValueType::HighResEvent) => {
            return value.events().map(drop);
        }
        (RawValue::Block { code, .. }, ValueType::String) => *code == 6,
        (RawValue::Block { code, .. }, ValueType::Aggregate | ValueType::AggregateStatic) => {
            matches!(code, 7 | 8)
        }
        (RawValue::Block { code, bytes }, ValueType::F32) => *code == 4 && bytes.len() == 4,
        (RawValue::Block { code, bytes }, ValueType::I64 | ValueType::U64 | ValueType::F64) => {
            i32::from(*code) == value_type.code() && bytes.len() == 8
        }
        _ => false,
    };
    if !is_of_type {
        *value = RawValue::encode(&value.decode(value_type)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmderive_runtime::model::{InDom, MetricDesc, Pmid, Semantics, Units};

    /// Values by instance or a status, and an instance without a name.
    type Tidied = (Result<Vec<(i32, RawValue)>, PmStatus>, Option<i32>);

    fn tidied(value_type: ValueType, names: Option<&[i32]>, values: &[(i32, RawValue)]) -> Tidied {
        let desc = MetricDesc {
            pmid: Pmid::new(1, 2, 3),
            value_type,
            indom: names.map(|_| InDom::new(1, 1)),
            semantics: Semantics::Instant,
            units: Units::default(),
        };
        let metric = Metric { name: "a".into(), desc, recorded: desc, operands: None };
        let name = |id: &i32| (*id, format!("i{id}").into());
        let domain = names.map(|ids| InstanceDomain::new(ids.iter().map(name).collect()));
        let value = |(instance, value): &(i32, RawValue)| InstanceValue {
            instance: *instance,
            value: value.clone(),
        };
        let outcome = Ok(values.iter().map(value).collect());
        let mut set = MetricValues { pmid: desc.pmid, outcome };
        let nameless = tidy(&metric, domain.as_ref(), false, &mut set);
        let pair = |value: InstanceValue| (value.instance, value.value);
        (set.outcome.map(|values| values.into_iter().map(pair).collect()), nameless)
    }

    #[test]
    fn what_no_reader_understands_is_left_out() {
        let word = RawValue::InPlace;
        let block = |code, bytes: &[u8]| RawValue::Block { code, bytes: bytes.into() };
        let number = block(3, &7u64.to_be_bytes());
        let cases = [
            // In order.
            (ValueType::U32, None, vec![(-1, word(5))], Ok(vec![(-1, word(5))]), None),
            // As in old archives: another instance, and a block without its
            // type.
            (
                ValueType::U64,
                None,
                vec![(0, block(0, &7u64.to_be_bytes())), (1, number.clone())],
                Ok(vec![(-1, number)]),
                None,
            ),
            (
                ValueType::I32,
                Some(&[1, 2][..]),
                vec![(2, word(2)), (3, word(3)), (1, word(1)), (2, word(4))],
                Ok(vec![(2, word(2)), (1, word(1))]),
                Some(3),
            ),
            (ValueType::U64, None, vec![(-1, word(5))], Err(PmStatus::CONV), None),
            (ValueType::U64, None, vec![(-1, block(3, b"1234"))], Err(PmStatus::CONV), None),
        ];
        for (value_type, names, values, expected, nameless) in cases {
            let found = tidied(value_type, names, &values);
            assert_eq!(found, (expected, nameless), "{value_type} {values:?}");
        }
    }
}
