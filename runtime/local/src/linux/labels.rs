//! Labels and help of instance domains, and labels of metrics, as pmdalinux(1)
//! gives them.
//!
//! One table describes the domains and the labels of their instances. The other lists the
//! metrics about all processors together.

use std::borrow::Cow;

use pmderive_core::model::{
    InDom, InstanceDomain, LabelFlags, LabelLevel, LabelMap, LabelSet, Pmid, json_string,
};

use super::table::{DOMAIN, indom};

/// The help and labels of an instance domain.
struct Domain {
    serial: u32,
    help: &'static str,
    /// JSON of the domain's labels; empty if it has none.
    labels: &'static str,
    /// Name of the label that each instance has, and the source of its value.
    instance: Option<(&'static str, InstanceValue)>,
}

/// The value of an instance's label.
#[derive(Clone, Copy)]
enum InstanceValue {
    /// The name of the instance.
    Name,
    /// The number that follows this prefix in the name.
    NumberAfter(&'static str),
}

use InstanceValue::{Name, NumberAfter};

#[rustfmt::skip]
static DOMAINS: &[Domain] = &[
    Domain { serial: indom::CPU, help: "The processors.", labels: r#"{"device_type":"cpu","indom_name":"per cpu"}"#, instance: Some(("cpu", NumberAfter("cpu"))) },
    Domain { serial: indom::DISK, help: "The whole disks.", labels: r#"{"device_type":"block","indom_name":"per disk"}"#, instance: Some(("device_name", Name)) },
    Domain { serial: indom::LOAD, help: "Load averages over 1, 5 and 15 minutes.", labels: "", instance: None },
    Domain { serial: indom::INTERFACE, help: "The network interfaces.", labels: r#"{"device_type":"interface","indom_name":"per interface"}"#, instance: Some(("interface", Name)) },
    Domain { serial: indom::FILESYS, help: "The mounted file systems on block devices.", labels: "", instance: None },
    Domain { serial: indom::SWAP, help: "The swap areas.", labels: r#"{"device_type":["block","memory"],"indom_name":"per swap device"}"#, instance: None },
    Domain { serial: indom::PARTITION, help: "The partitions of disks.", labels: r#"{"device_type":"block","indom_name":"per partition"}"#, instance: Some(("device_name", Name)) },
    Domain { serial: indom::PRESSURE, help: "Averages of stalls over 10 seconds, 1 minute and 5 minutes.", labels: "", instance: None },
];

/// Items of cluster 0 that are about all processors together.
const OF_ALL_PROCESSORS: &[u32] = &[20, 21, 22, 23, 34, 35, 53, 54, 55, 60, 78, 81, 82];

fn domain(indom: InDom) -> Option<&'static Domain> {
    let ours = DOMAINS.iter().find(|domain| domain.serial == indom.serial());
    ours.filter(|_| indom.domain() == DOMAIN)
}

/// One line about an instance domain.
pub(super) fn domain_help(indom: InDom) -> Option<Cow<'static, str>> {
    domain(indom).map(|domain| domain.help.into())
}

/// The label set of an instance domain or of a metric, if it has labels.
pub(super) fn set_of(level: LabelLevel) -> Option<LabelSet> {
    let json = match level {
        LabelLevel::InDom(indom) => domain(indom)?.labels,
        LabelLevel::Item(pmid) if is_of_all_processors(pmid) => r#"{"device_type":"cpu"}"#,
        _ => return None,
    };
    let set = LabelSet::parse(json, LabelFlags(level.bit()));
    set.ok().filter(|set| !set.json().is_empty())
}

fn is_of_all_processors(pmid: Pmid) -> bool {
    (pmid.domain(), pmid.cluster()) == (DOMAIN, 0) && OF_ALL_PROCESSORS.contains(&pmid.item())
}

/// The label set of each instance of a domain. Empty if its instances have no
/// labels.
pub(super) fn sets_of_instances(indom: InDom, instances: &InstanceDomain) -> Vec<LabelSet> {
    let flags = LabelFlags(LabelLevel::Instances(indom).bit());
    let Some((label, value)) = domain(indom).and_then(|domain| domain.instance) else {
        return Vec::new();
    };
    let set = |(id, name): (i32, &str)| {
        let value = match value {
            Name => json_string(name),
            NumberAfter(prefix) => name.strip_prefix(prefix)?.parse::<u32>().ok()?.to_string(),
        };
        let labels = LabelMap::from([(label.into(), (value.into(), flags))]);
        Some(LabelSet::from_map(id, &labels))
    };
    instances.instances().filter_map(set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_hold_labels() {
        for domain in DOMAINS {
            let indom = InDom::new(DOMAIN, domain.serial);
            assert_eq!(set_of(LabelLevel::InDom(indom)).is_some(), !domain.labels.is_empty());
            let instances = InstanceDomain::new(vec![(4, "cpu3".into()), (5, "a\"b".into())]);
            let sets = sets_of_instances(indom, &instances);
            let expected = match domain.instance {
                None => vec![],
                Some((label, Name)) => {
                    vec![format!("{{\"{label}\":\"cpu3\"}}"), format!("{{\"{label}\":\"a\\\"b\"}}")]
                }
                Some((label, NumberAfter(_))) => vec![format!("{{\"{label}\":3}}")],
            };
            assert_eq!(sets.iter().map(LabelSet::json).collect::<Vec<_>>(), expected);
        }
        assert!(set_of(LabelLevel::Item(Pmid::new(DOMAIN, 0, 20))).is_some());
        assert!(set_of(LabelLevel::Item(Pmid::new(DOMAIN, 1, 20))).is_none());
        assert!(set_of(LabelLevel::InDom(InDom::new(61, 0))).is_none());
    }
}
