//! Metrics of a source as `pminfo -dmf` prints them, to compare the two.

use pmderive_runtime::model::{InDom, MetricDesc, RawValueRef, ValueType, write_unknown_block};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, Freshness, SourceError};

/// One metric of a fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    pub name: String,
    /// The lines that describe the metric.
    pub description: String,
    /// The lines of its values: one for each instance, or the reason why there
    /// is none.
    pub values: Vec<String>,
}

/// Fetches metrics by name, all in one fetch.
pub fn render(
    source: &mut dyn FetchSource,
    names: &[String],
) -> Result<Vec<Rendered>, SourceError> {
    let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids: Vec<_> =
        source.lookup_names(&borrowed)?.into_iter().map(|pmid| pmid.expect("known")).collect();
    let descs: Vec<_> =
        source.lookup_descs(&pmids)?.into_iter().map(|desc| desc.expect("known")).collect();
    let mut domains: Vec<InDom> = descs.iter().filter_map(|desc| desc.indom).collect();
    domains.sort();
    domains.dedup();
    let mut batch = ResultBatch::default();
    source.fetch(&FetchList::new(pmids, domains.clone()), &mut batch)?;
    let mut sets = batch.sets();
    let mut rendered = Vec::new();
    for (name, desc) in names.iter().zip(&descs) {
        let set = sets.next().expect("a value set for each metric");
        assert_eq!(set.pmid, desc.pmid, "{name}");
        let domain = match desc.indom {
            Some(indom) => {
                let at = domains.binary_search(&indom).expect("asked for");
                let domain = batch.domains[at].clone().expect("known");
                let again = source.instance_domain(indom, Freshness::Cached)?.expect("known");
                assert_eq!(domain, again);
                Some(domain)
            }
            None => None,
        };
        let values = match set.count {
            Err(status) => vec![format!("Error: {status}")],
            Ok(0) => vec!["No value(s) available!".to_owned()],
            Ok(_) => set
                .values()
                .map(|(number, raw)| {
                    let value = value(desc, raw);
                    match &domain {
                        None => format!("    value {value}"),
                        Some(domain) => {
                            let instance = domain.name(number).expect("in its domain");
                            format!("    inst [{number} or \"{instance}\"] value {value}")
                        }
                    }
                })
                .collect(),
        };
        rendered.push(Rendered { name: name.clone(), description: description(desc), values });
    }
    assert!(sets.next().is_none());
    Ok(rendered)
}

fn value(desc: &MetricDesc, value: Option<RawValueRef<'_>>) -> String {
    let mut room = [0; 8];
    let (code, data) = match value.expect("within the part").encoded(&mut room) {
        Ok(block) => block,
        Err(word) => {
            return match desc.value_type {
                ValueType::U32 => word.to_string(),
                ValueType::I32 => word.cast_signed().to_string(),
                other => panic!("{other} in place"),
            };
        }
    };
    if desc.value_type == ValueType::Aggregate {
        let mut text = String::new();
        write_unknown_block(&mut text, data);
        return text;
    }
    assert_eq!(i32::from(code), desc.value_type.code());
    let eight = || data.try_into().expect("eight bytes");
    match desc.value_type {
        ValueType::I64 => i64::from_be_bytes(eight()).to_string(),
        ValueType::U64 => u64::from_be_bytes(eight()).to_string(),
        ValueType::F32 => {
            let value = f32::from_be_bytes(data.try_into().expect("four bytes"));
            significant(f64::from(value), 8)
        }
        ValueType::F64 => significant(f64::from_be_bytes(eight()), 16),
        ValueType::String => {
            let text = data.strip_suffix(b"\0").expect("terminated");
            format!("\"{}\"", std::str::from_utf8(text).expect("UTF-8"))
        }
        other => panic!("{other} in a block"),
    }
}

/// A number as C's `%.{digits}g` writes it.
fn significant(value: f64, digits: usize) -> String {
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let fixed = exponent >= -4 && exponent < digits as i32;
    if !fixed {
        return format!("{}e{}{:02}", trim(mantissa), sign(exponent), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{value:.decimals$}"))
}

fn sign(exponent: i32) -> char {
    if exponent < 0 { '-' } else { '+' }
}

fn description(desc: &MetricDesc) -> String {
    format!("PMID: {}\n{desc}", desc.pmid)
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn significant_digits_as_in_c() {
        for (value, digits, text) in [
            (0.0, 8, "0"),
            (0.059999998658895, 8, "0.059999999"),
            (5.12e8, 8, "5.12e+08"),
            (12345678.0, 8, "12345678"),
            (930.23, 16, "930.23"),
            (1e-5, 16, "1e-05"),
            (-2.5, 8, "-2.5"),
        ] {
            assert_eq!(significant(value, digits), text);
        }
    }
}
