//! Identical fake pmcds, and the events of all of them.

use pmderive_runtime::context::HostSpec;
use pmderive_runtime::model::{InDom, InstId, PmStatus, Units, ValueType};
use pmderive_runtime::pdu::PduType;
use pmderive_testkit::choices::Choices;
use pmderive_testkit::fake_pmcd::{
    DEFAULT_AGENT, FakeHost, FakePmcd, Fault, Metric, Rule, Script, World,
};

/// Disks and network interfaces.
pub const DISKS: InDom = InDom::new(DEFAULT_AGENT, 1);
pub const LINKS: InDom = InDom::new(DEFAULT_AGENT, 2);

/// As many as there are ways to fetch from them.
pub struct Servers {
    pub pmcds: Vec<FakePmcd>,
    pub specs: Vec<HostSpec>,
}

impl Servers {
    pub fn start(seed: u64) -> Servers {
        let start = |_| FakePmcd::start(FakeHost::new(world()).seeded(seed));
        let pmcds: Vec<FakePmcd> = (0..3).map(start).collect();
        let specs = pmcds.iter().map(FakePmcd::spec).collect();
        Servers { pmcds, specs }
    }

    fn each(&self, change: impl Fn(&FakeHost)) {
        self.pmcds.iter().for_each(|pmcd| change(pmcd.host()));
    }
}

pub fn world() -> World {
    let mut world = World::new();
    world.set_instances(DISKS, &[(0, "sda"), (1, "sdb"), (2, "nvme0 first")]);
    world.set_instances(LINKS, &[(7, "eth0"), (8, "lo")]);
    world.add(Metric::new("n.reads", Script::counter(100.0).varied(0.5)).per(DISKS));
    let size = Script::Random { low: 0.0, high: 100.0 };
    world.add(Metric::new("n.size", size.clone()).per(DISKS));
    world.add(Metric::new("n.bytes", Script::counter(1e6).varied(0.9)).per(LINKS));
    world.add(Metric::new("n.load", size.clone()).per(LINKS));
    world.add(Metric::new("n.level", size));
    world.add(Metric::new("n.mode", Script::cycle(["idle", "busy", "busy"])));
    world
}

/// Lets something happen to all of them, and says what.
pub fn happen(servers: &Servers, is_faulty: bool, choices: &mut Choices) -> &'static str {
    let on = |kind, fault: &Fault| {
        servers.each(|host| host.inject(Rule::new(fault.clone()).on(kind)));
    };
    match choices.below(if is_faulty { 18 } else { 15 }) {
        0..3 => {
            set_instances(servers, DISKS, &["sda", "sdb", "sdb c", "nvme0", "nvme1", "x"], choices);
            "other disks"
        }
        3 => {
            set_instances(servers, LINKS, &["eth0", "eth1", "lo"], choices);
            "other links"
        }
        4 => {
            servers.each(FakeHost::drop_connections);
            "connections lost"
        }
        5 => {
            servers.each(|host| host.restart_agent(DEFAULT_AGENT, |_| {}));
            "the agent started again"
        }
        6 => {
            servers.each(|host| host.drop_agent(DEFAULT_AGENT));
            "no agent"
        }
        7 => {
            servers.each(|host| host.restart(|_| {}));
            "pmcd started again"
        }
        8 => {
            let value_type = [ValueType::F64, ValueType::U32, ValueType::F32][choices.below(3)];
            let script = Script::Random { low: 0.0, high: 50.0 };
            let metric = Metric::new("n.level", script).of_type(value_type).in_units(Units::NONE);
            let change = |world: &mut World| _ = world.add(metric.clone());
            servers.each(|host| host.change_names(change));
            "another type"
        }
        9 => {
            on(PduType::HighresFetch, &Fault::Close { after: 30 });
            "a reply that breaks off"
        }
        15 => {
            on(PduType::InstanceRequest, &Fault::Close { after: 0 });
            "a question that ends the connection"
        }
        16 => {
            on(PduType::InstanceRequest, &Fault::Status(PmStatus::AGAIN));
            "a question that fails"
        }
        17 => {
            on(PduType::InstanceRequest, &Fault::Replace(vec![0; 12]));
            "an answer that is none"
        }
        _ => "nothing",
    }
}

/// Some of the names, with any numbers.
fn set_instances(servers: &Servers, indom: InDom, names: &[&str], choices: &mut Choices) {
    let mut list: Vec<(InstId, &str)> = Vec::new();
    for name in names {
        let id = choices.below(10) as InstId;
        if choices.below(3) > 0 && list.iter().all(|(other, _)| *other != id) {
            list.push((id, name));
        }
    }
    servers.each(|host| host.change(|world| world.set_instances(indom, &list)));
}
