//! Asks a host for the names and labels of instances that the frame before lacks.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use pmderive_runtime::context::AsyncHostContext;
use pmderive_runtime::model::{InDom, InstId, InstanceDomain, LabelLevel, LabelSet};
use pmderive_runtime::position::Per;
use pmderive_runtime::program::Status;
use pmderive_runtime::source::{Freshness, Question, SourceError};
use pmderive_runtime::transport::Transport;
use pmderive_runtime::weak_table::Interner;

use super::columns::UnnamedMetric;
use crate::fleet::frame::{ExportedId, Instances};
use crate::fleet::labels::Labels;

/// Instances in use, for sharing: similar hosts have instances with the same names.
static IN_USE: LazyLock<Interner<Instances>> = LazyLock::new(Interner::default);

/// Names and labels of a domain on a host.
struct DomainNames {
    domain: Arc<InstanceDomain>,
    labels: Labels,
    of_instances: HashMap<InstId, Labels>,
}

/// Sets the instances of metrics. An instance without a name on the host is named by its
/// number. `domains` are those of the metrics.
pub async fn name<T: Transport>(
    heads: &mut Per<ExportedId, (Status, Arc<Instances>)>,
    unnamed: Vec<UnnamedMetric>,
    domains: &BTreeMap<InDom, Freshness>,
    host: &mut AsyncHostContext<T>,
) -> Result<(), SourceError> {
    let known = ask(domains, host).await?;
    let mut made: Vec<(InDom, Arc<Instances>)> = Vec::new();
    for one in unnamed {
        let same = made
            .iter()
            .find(|(indom, instances)| *indom == one.indom && *instances.ids == *one.ids);
        let instances = match same {
            Some((_, instances)) => Arc::clone(instances),
            None => {
                let instances = IN_USE.intern(instances(one.ids, known.get(&one.indom)));
                made.push((one.indom, Arc::clone(&instances)));
                instances
            }
        };
        heads[one.metric].1 = instances;
    }
    Ok(())
}

async fn ask<T: Transport>(
    domains: &BTreeMap<InDom, Freshness>,
    host: &mut AsyncHostContext<T>,
) -> Result<HashMap<InDom, DomainNames>, SourceError> {
    let indoms = domains.keys();
    let questions = domains.iter().map(|(indom, fresh)| Question::Domain(*indom, *fresh));
    let domains = host.each::<Arc<InstanceDomain>>(questions).await?;
    let of_domains = indoms.clone().map(|indom| LabelLevel::InDom(*indom));
    let of_instances = indoms.clone().map(|indom| LabelLevel::Instances(*indom));
    let levels = of_domains.chain(of_instances);
    let labels = host.each::<Vec<LabelSet>>(levels.map(Question::Labels)).await?;
    let (of_domains, of_instances) = labels.split_at(indoms.len());
    let mut known = HashMap::new();
    for (((indom, domain), labels), each) in indoms.zip(domains).zip(of_domains).zip(of_instances) {
        let Ok(domain) = domain else { continue };
        let labels = labels_of(labels.as_deref().unwrap_or_default().first());
        let each = each.as_deref().unwrap_or_default().iter();
        let of_instances = each.map(|set| (set.instance(), labels_of(Some(set))));
        let of_instances = of_instances.filter(|(_, labels)| !labels.is_empty()).collect();
        known.insert(*indom, DomainNames { domain, labels, of_instances });
    }
    Ok(known)
}

fn instances(ids: Box<[InstId]>, known: Option<&DomainNames>) -> Instances {
    let name = |id: &InstId| match known.and_then(|known| known.domain.name_as_text(*id)) {
        Some(name) => Arc::from(name),
        None => Arc::from(id.to_string()),
    };
    let names = ids.iter().map(name).collect();
    let labels = match known.filter(|known| !known.of_instances.is_empty()) {
        Some(known) => {
            ids.iter().map(|id| known.of_instances.get(id).cloned().unwrap_or_default()).collect()
        }
        None => Box::default(),
    };
    let domain_labels = known.map(|known| known.labels.clone()).unwrap_or_default();
    Instances { ids, names, domain_labels, labels }
}

/// The labels of a set: texts without their quotes, other values as in JSON.
pub fn labels_of(set: Option<&LabelSet>) -> Labels {
    let labels = set.into_iter().flat_map(LabelSet::labels);
    labels.map(|label| (label.name.to_owned(), label.text().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(names: [&str; 2], domain: &str) -> DomainNames {
        let instance = |(id, name): (InstId, &str)| (id, name.into());
        let label = |value: &str| ("kind".to_owned(), value.to_owned());
        DomainNames {
            domain: Arc::new(InstanceDomain::new((0..).zip(names).map(instance).collect())),
            labels: [label(domain)].into_iter().collect(),
            of_instances: HashMap::new(),
        }
    }

    #[test]
    fn hosts_share_instances_that_are_called_alike() {
        let of =
            |names, domain| IN_USE.intern(instances([0, 1].into(), Some(&known(names, domain))));
        let one = of(["sda", "sdb"], "disk");
        assert!(Arc::ptr_eq(&one, &of(["sda", "sdb"], "disk")));
        assert_eq!(*one.names, ["sda".into(), "sdb".into()]);
        for other in [of(["sda", "sdc"], "disk"), of(["sda", "sdb"], "part")] {
            assert!(!Arc::ptr_eq(&one, &other));
        }
    }
}
