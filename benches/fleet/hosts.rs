//! The fake pmcds of a fleet. They are a process of their own, so that the
//! figures leave out their cost: the same executable, started with [`SERVE`] as
//! its first argument. One listener serves all hosts. Lines on standard input
//! are commands, and the process answers each with a line.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use pmderive_runtime::context::HostSpec;
use pmderive_runtime::model::StateChange;
use pmderive_testkit::fake_pmcd::{Clock, FakeHost, FakePmcd, World};

use super::definitions::{domain, world};
use super::plan::{Plan, address, host_at};

/// First argument of the process of the hosts.
pub const SERVE: &str = "serve-hosts";

/// The instance that comes and goes.
const PASSING: i32 = 1_000;

/// An event of all hosts at once.
#[derive(Clone, Copy, Debug)]
pub enum FleetEvent {
    /// An instance joins the first domain.
    Join,
    /// It leaves again.
    Leave,
    /// pmcd reports changed names, although none has changed.
    Notice,
    /// All connections are reset.
    Cut,
}

impl FleetEvent {
    const ALL: [(&str, FleetEvent); 4] = [
        ("join", FleetEvent::Join),
        ("leave", FleetEvent::Leave),
        ("notice", FleetEvent::Notice),
        ("cut", FleetEvent::Cut),
    ];

    fn befall(self, host: &FakeHost) {
        match self {
            FleetEvent::Join => {
                host.change(|world| world.add_instance(domain(0), PASSING, "passing"));
            }
            FleetEvent::Leave => host.change(|world| world.remove_instance(domain(0), PASSING)),
            FleetEvent::Notice => host.notify(StateChange(16)),
            FleetEvent::Cut => host.drop_connections(),
        }
    }
}

/// Runs the hosts until standard input ends.
pub fn serve(plan: Plan) -> io::Result<()> {
    // Hosts of a class have one world, as long as nothing happens to them.
    let mut worlds: Vec<Option<Arc<World>>> = vec![None; plan.classes as usize];
    let hosts: Vec<Arc<FakeHost>> = (0..plan.hosts)
        .map(|number| {
            let shared = &mut worlds[plan.class(number) as usize];
            let world = match (plan.is_drawn, shared) {
                (false, Some(world)) => Arc::clone(world),
                (false, none) => Arc::clone(none.insert(Arc::new(world(plan, number)))),
                (true, _) => Arc::new(world(plan, number)),
            };
            let host = FakeHost::new(world).named(format!("host{number}"));
            Arc::new(host.seeded(u64::from(number)).with_clock(Clock::default()))
        })
        .collect();
    let pmcd = FakePmcd::try_start(FakeHost::new(World::new()))?;
    let of_address = {
        let hosts = hosts.clone();
        move |address| hosts.get(host_at(address)? as usize).cloned()
    };
    println!("{}", pmcd.listen_for_many(0, of_address)?);
    for line in io::stdin().lines() {
        let line = line?;
        let known = FleetEvent::ALL.iter().find(|(word, _)| *word == line);
        let Some((_, happening)) = known else { return Err(io::Error::other(line)) };
        hosts.iter().for_each(|host| happening.befall(host));
        println!("done");
    }
    Ok(())
}

/// The process of the hosts, which ends with this.
#[derive(Debug)]
pub struct Hosts {
    process: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    port: u16,
}

impl Hosts {
    /// Starts the hosts of a plan.
    pub fn start(plan: Plan) -> io::Result<Hosts> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(SERVE)
            .args(plan.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = process.stdin.take();
        let answers = process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut hosts = Hosts { process, orders, answers: BufReader::new(answers), port: 0 };
        hosts.port = hosts.answer()?.parse().map_err(io::Error::other)?;
        Ok(hosts)
    }

    fn answer(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// The address of a host.
    pub fn spec(&self, host: u32) -> HostSpec {
        let spec = format!("pcp://{}:{}", address(host), self.port);
        spec.parse().expect("an address with its port is a specification")
    }

    /// Causes an event of all hosts, and waits for its end.
    pub fn befall(&mut self, happening: FleetEvent) -> io::Result<()> {
        let word = FleetEvent::ALL.iter().find(|(_, one)| *one as u8 == happening as u8);
        let orders = self.orders.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(orders, "{}", word.map_or("", |(word, _)| word))?;
        match self.answer()?.as_str() {
            "done" => Ok(()),
            other => Err(io::Error::other(format!("the hosts said: {other}"))),
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        drop(self.orders.take());
        drop(self.process.wait());
    }
}
