//! The worlds of a fleet's fake pmcds: a [`World`] for each class, whose
//! scripts are the law of the plan. Hosts of a class share it. A host's number
//! is its seed.

use std::sync::Arc;
use std::time::Duration;

use pmderive_client::pdu::PduType;
use pmderive_core::model::InstanceDomain;

use super::law::lasting;
use super::plan::{Fate, Plan};
use crate::fake_pmcd::{Clock, FakeHost, Fault, Metric, Rule, Script, World};

/// Time per byte of a dripping host.
const DRIP: Duration = Duration::from_secs(1);

/// The world of each class of hosts.
pub(crate) fn worlds(plan: &Arc<Plan>) -> Vec<Arc<World>> {
    (0..plan.classes.max(1)).map(|class| Arc::new(world(plan, class))).collect()
}

/// The hosts of a plan, with a clock each.
pub(crate) fn hosts(
    plan: &Plan,
    worlds: &[Arc<World>],
    clock: impl Fn(u32) -> Clock,
) -> Vec<Arc<FakeHost>> {
    let host = |number: u32| {
        let world = Arc::clone(&worlds[plan.class(number) as usize]);
        let host = FakeHost::new(world).named(plan.name(number)).seeded(number.into());
        let host = host.with_clock(clock(number));
        match plan.fate(number) {
            Fate::IsSilent => {
                host.inject(Rule::new(Fault::Stall { after: 0 }).on_greeting().always())
            }
            Fate::Drips => {
                let drip = Rule::new(Fault::Drip { every: DRIP }).always();
                host.inject(drip.clone().on(PduType::HighresFetch));
                host.inject(drip.on(PduType::Fetch));
            }
            Fate::IsWell | Fate::Churns | Fate::Refuses | Fate::HasVanished => {}
        }
        Arc::new(host)
    };
    (0..plan.hosts).map(host).collect()
}

/// The world of a class, with every pmcd's own metrics.
fn world(plan: &Arc<Plan>, class: u32) -> World {
    let mut world = World::new();
    for metric in plan.metrics(class) {
        let (number, desc) = (metric.number, metric.desc);
        let form = plan.form(class, number);
        let law = Arc::clone(plan);
        let script = Script::function(move |moment| {
            Some(form.value(&law, host_of(moment.seed), number, moment.instance, moment.time))
        });
        let mut metric = Metric::new(metric.name, script);
        if let Some(indom) = desc.indom {
            metric = metric.per(indom);
        }
        let metric = metric.numbered(desc.pmid).of_type(desc.value_type);
        world.add(metric.meaning(desc.semantics).in_units(desc.units));
    }
    let counts = 0..=*plan.instances.end();
    let shared: Arc<[Arc<InstanceDomain>]> =
        counts.map(|count| Arc::new(InstanceDomain::new(lasting(count)))).collect();
    for domain in 0..plan.domains {
        let (law, shared) = (Arc::clone(plan), Arc::clone(&shared));
        world.populate(plan.indom(domain), move |seed, time| {
            let host = host_of(seed);
            if domain == 0 && law.fate(host) == Fate::Churns {
                return Arc::new(InstanceDomain::new(law.instances(host, domain, time)));
            }
            Arc::clone(&shared[law.instance_count(host, domain) as usize])
        });
    }
    world
}

/// Seeds are numbers of hosts.
fn host_of(seed: u64) -> u32 {
    u32::try_from(seed).unwrap_or(u32::MAX)
}
