//! A fingerprint: the answers that similar sources have in common, without each
//! source's own identifiers. Definitions mean the same in sources with equal
//! fingerprints.
//!
//! Numbers replace the identifiers of metrics and instance domains, in the
//! order of first appearance. Identifiers that the definitions contain come
//! first. [`Identities`] keeps the identifiers of one source for these numbers.

use std::hash::{Hash, Hasher};

use pmderive_runtime::model::{InDom, MetricDesc, PmStatus, Pmid};
use rustc_hash::{FxHashMap, FxHasher};

use super::questions::NameAnswer;
use crate::bind::equivalent_domains::EquivalentDomains;

/// Answers that are the same for all sources of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// The answers in the order of the questions, each with its number of
    /// repetitions in a row. Repetitions are common: usually the source knows
    /// none of the definitions' own names. Metrics and domains are numbers.
    found: Box<[(NameAnswer, u32)]>,
    /// Pairs of domains, by number, that operators treat as the same.
    equivalent: Box<[(u32, u32)]>,
}

/// The metrics and domains of one source for the numbers of a [`Fingerprint`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identities {
    pmids: Box<[Pmid]>,
    domains: Box<[InDom]>,
}

/// Identifiers in the definitions, which are the same for every source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Literals {
    /// Identifiers of derived metrics that definitions can mention.
    pub pmids: Vec<Pmid>,
    /// Domains in `indom=`.
    pub domains: Vec<InDom>,
}

impl Fingerprint {
    /// The fingerprint of a source's answers, and the source's own identifiers
    /// in them. `equivalent` is `None` if operators have no equivalent domains.
    pub fn new(
        found: &[NameAnswer],
        literals: &Literals,
        equivalent: Option<&EquivalentDomains>,
    ) -> (Fingerprint, Identities) {
        let mut pmids = Numbers::new(&literals.pmids);
        let mut domains = Numbers::new(&literals.domains);
        let found = found.iter().map(|found| match found {
            NameAnswer::Metric(desc) => {
                let pmid = Pmid(pmids.of(desc.pmid));
                let indom = desc.indom.map(|indom| InDom(domains.of(indom)));
                NameAnswer::Metric(MetricDesc { pmid, indom, ..*desc })
            }
            other => *other,
        });
        let mut runs: Vec<(NameAnswer, u32)> = Vec::new();
        for found in found {
            match runs.last_mut() {
                Some((last, count)) if *last == found => *count += 1,
                _ => runs.push((found, 1)),
            }
        }
        let identities = Identities { pmids: pmids.list.into(), domains: domains.list.into() };
        let equivalent = equivalent.map(|known| known.pairs(&identities.domains));
        let equivalent = equivalent.unwrap_or_default().into();
        (Fingerprint { found: runs.into(), equivalent }, identities)
    }

    /// The answers, in the order of the questions. Identifiers are numbers.
    pub fn found(&self) -> impl Iterator<Item = &NameAnswer> + Clone {
        self.found.iter().flat_map(|(found, count)| std::iter::repeat_n(found, *count as usize))
    }

    /// A hash; equal fingerprints have the same.
    pub fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        for (found, count) in &self.found {
            count.hash(&mut hasher);
            let (kind, PmStatus(status)) = match found {
                NameAnswer::Metric(desc) => {
                    let MetricDesc { pmid, value_type, indom, semantics, units } = desc;
                    (pmid, value_type, indom, semantics, units).hash(&mut hasher);
                    continue;
                }
                NameAnswer::Unknown(status) => (0u8, *status),
                NameAnswer::NoDescriptor(status) => (1, *status),
            };
            (kind, status).hash(&mut hasher);
        }
        self.equivalent.hash(&mut hasher);
        hasher.finish()
    }
}

impl Identities {
    /// A hash; equal identities have the same.
    pub fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (&self.pmids, &self.domains).hash(&mut hasher);
        hasher.finish()
    }

    /// The translation from the identifiers of this source to those of another
    /// with the same fingerprint. Identifiers without a number stay.
    pub fn translation(&self, other: &Identities) -> Translation {
        Translation {
            pmids: self.pmids.iter().copied().zip(other.pmids.iter().copied()).collect(),
            domains: self.domains.iter().copied().zip(other.domains.iter().copied()).collect(),
        }
    }
}

/// Identifiers of one source, looked up by those of another.
pub(crate) struct Translation {
    pmids: FxHashMap<Pmid, Pmid>,
    domains: FxHashMap<InDom, InDom>,
}

impl Translation {
    pub fn domain(&self, indom: InDom) -> InDom {
        self.domains.get(&indom).copied().unwrap_or(indom)
    }

    pub fn desc(&self, desc: MetricDesc) -> MetricDesc {
        let pmid = self.pmids.get(&desc.pmid).copied().unwrap_or(desc.pmid);
        MetricDesc { pmid, indom: desc.indom.map(|indom| self.domain(indom)), ..desc }
    }
}

/// Numbers identifiers in the order of first appearance.
struct Numbers<I> {
    list: Vec<I>,
    numbers: FxHashMap<I, u32>,
}

impl<I: Copy + Eq + Hash> Numbers<I> {
    fn new(first: &[I]) -> Numbers<I> {
        let mut numbers = Numbers { list: Vec::new(), numbers: FxHashMap::default() };
        for one in first {
            numbers.of(*one);
        }
        numbers
    }

    fn of(&mut self, one: I) -> u32 {
        *self.numbers.entry(one).or_insert_with(|| {
            self.list.push(one);
            self.list.len() as u32 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmderive_runtime::model::{Semantics, Units, ValueType};

    fn metric(pmid: u32, indom: Option<u32>) -> NameAnswer {
        NameAnswer::Metric(MetricDesc {
            pmid: Pmid(pmid),
            value_type: ValueType::U64,
            indom: indom.map(InDom),
            semantics: Semantics::Counter,
            units: Units::NONE,
        })
    }

    fn of(found: &[NameAnswer]) -> (Fingerprint, Identities) {
        Fingerprint::new(found, &Literals::default(), None)
    }

    #[test]
    fn identifiers_take_no_part_but_what_shares_them_does() {
        let (one, ids) = of(&[metric(7, Some(3)), metric(9, Some(4)), metric(8, Some(3))]);
        let (other, others) = of(&[metric(20, Some(6)), metric(21, Some(1)), metric(22, Some(6))]);
        assert_eq!(one, other);
        assert_eq!(one.hash(), other.hash());
        let NameAnswer::Metric(desc) = metric(8, Some(3)) else { unreachable!("made as a metric") };
        let translated = NameAnswer::Metric(ids.translation(&others).desc(desc));
        assert_eq!(translated, metric(22, Some(6)));
        for different in [
            [metric(7, Some(3)), metric(9, Some(4)), metric(8, Some(4))],
            [metric(7, Some(3)), metric(9, Some(3)), metric(8, Some(3))],
            [metric(7, Some(3)), metric(9, Some(4)), metric(7, Some(3))],
            [metric(7, Some(3)), metric(9, None), metric(8, Some(3))],
            [metric(7, Some(3)), metric(9, Some(4)), NameAnswer::Unknown(PmStatus::NAME)],
            [metric(7, Some(3)), metric(9, Some(4)), NameAnswer::NoDescriptor(PmStatus::NAME)],
        ] {
            assert_ne!(of(&different).0, one, "{different:?}");
        }
    }

    #[test]
    fn a_literal_domain_is_the_same_in_every_source() {
        let literals = Literals { domains: vec![InDom(3)], pmids: Vec::new() };
        let of = |indom| {
            let found = [metric(1, Some(indom))];
            Fingerprint::new(&found, &literals, None).0
        };
        assert_eq!(of(4), of(5));
        assert_ne!(of(3), of(4));
    }
}
