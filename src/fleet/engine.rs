//! Carries out a plan with threads of hosts, and changes from one plan to the next.
//!
//! ```text
//!             ┌─► thread ─► hosts of its virtual shards, a task each
//! plan ── Fleet             │
//!             └─► thread ─► ...
//! ```
//!
//! A host lives in the thread of its virtual shard. The next plan reaches only the hosts that
//! it changes. Each host changes to it at its own moment, so binding is spread over an
//! interval.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use super::condition::Condition;
use super::config::Limits;
use super::host::{Desk, Orders, Shared, live};
use super::numbers::HostNumbers;
use super::plan::{Plan, PlannedGroup};
use super::sinks::outlets::Outlets;
use super::slot::{Due, Nanos};
use super::targets::target::{SHARDS, Target};
use super::world::{Job, World};
use crate::engine::Engine;

/// A fleet being watched.
#[derive(Debug)]
pub struct Fleet {
    threads: Vec<Thread>,
    /// The orders of all watched hosts, by name.
    watched: BTreeMap<Box<str>, Orders>,
    numbers: Arc<HostNumbers>,
}

#[derive(Debug)]
struct Thread {
    orders: UnboundedSender<Order>,
    job: Job,
}

/// An order to a thread.
#[derive(Debug)]
enum Order {
    /// Watch a host, or change how.
    Watch(Orders),
    /// Stop watching this host.
    Leave(Box<str>),
    /// Use other sinks and limits.
    Sinks(Outlets, Limits),
}

impl Fleet {
    /// Starts threads without hosts.
    ///
    /// # Errors
    /// The system has no more threads or descriptors.
    pub fn start<W: World>(
        engine: &Arc<Engine>,
        threads: usize,
        limits: Limits,
        outlets: &Outlets,
    ) -> io::Result<Fleet> {
        let numbers = Arc::new(HostNumbers::default());
        let start = |at: usize| {
            let (sender, receiver) = unbounded_channel();
            let (engine, numbers) = (Arc::clone(engine), Arc::clone(&numbers));
            let outlets = outlets.clone();
            let work = move || {
                let shared = Rc::new(Shared::new(engine, numbers, limits, outlets));
                obey::<W>(receiver, shared)
            };
            let job = W::spawn(&format!("fleet-{at}"), work)?;
            Ok(Thread { orders: sender, job })
        };
        let threads = (0..threads.clamp(1, SHARDS)).map(start).collect::<io::Result<_>>()?;
        Ok(Fleet { threads, watched: BTreeMap::new(), numbers })
    }

    /// The counts of all hosts.
    pub fn numbers(&self) -> &Arc<HostNumbers> {
        &self.numbers
    }

    /// A number for each thread; it grows every second unless the thread is stuck.
    pub fn beats(&self) -> Vec<u64> {
        self.threads.iter().map(|thread| thread.job.beat()).collect()
    }

    /// The conditions of all hosts, by name.
    pub fn conditions(&self) -> Vec<Arc<Condition>> {
        self.watched.values().map(|one| Arc::clone(&one.condition)).collect()
    }

    /// The condition of a host.
    pub fn condition(&self, name: &str) -> Option<Arc<Condition>> {
        self.watched.get(name).map(|one| Arc::clone(&one.condition))
    }

    /// How long it is until a host is due, by its name.
    pub fn due_in(&self, name: &str, now: Nanos) -> Option<Duration> {
        let Orders { target, group, .. } = self.watched.get(name)?;
        let due = Due::new(group.interval, target.hash);
        Some(due.at(due.next(now)).since(now))
    }

    /// Changes to a plan, with new or kept sinks.
    pub fn follow(&mut self, plan: &Plan, outlets: &Outlets) {
        for thread in &self.threads {
            thread.tell(Order::Sinks(outlets.clone(), plan.config.limits));
        }
        let mut gone: Vec<Box<str>> = self.watched.keys().cloned().collect();
        let listed: HashMap<&str, &Arc<Target>> =
            plan.targets.iter().map(|target| (&*target.name, target)).collect();
        gone.retain(|name| !listed.contains_key(&**name));
        for name in gone {
            if let Some(left) = self.watched.remove(&name) {
                self.thread_of(&left.target).tell(Order::Leave(name));
            }
        }
        let mut goes_on = GoesOn::default();
        for target in &plan.targets {
            let mut target = Arc::clone(target);
            let mut group = Arc::clone(plan.group_of(&target));
            let mut condition = None;
            if let Some(known) = self.watched.get(&target.name) {
                group = goes_on.group(&known.group, group);
                if *known.target == *target {
                    if Arc::ptr_eq(&known.group, &group) {
                        continue;
                    }
                    target = Arc::clone(&known.target);
                    condition = Some(Arc::clone(&known.condition));
                } else if *known.target
                    == (Target { group: known.target.group, ..(*target).clone() })
                {
                    condition = Some(Arc::new(known.condition.moved(Arc::clone(&target))));
                }
            }
            let condition =
                condition.unwrap_or_else(|| Arc::new(Condition::new(Arc::clone(&target))));
            let orders = Orders { target, group, condition };
            self.thread_of(&orders.target).tell(Order::Watch(orders.clone()));
            self.watched.insert(orders.target.name.clone(), orders);
        }
    }

    /// Ends all threads, and waits for them until the deadline. No series is marked stale.
    pub fn stop(self, deadline: Instant) {
        let end = |thread: Thread| {
            drop(thread.orders);
            thread.job
        };
        let jobs: Vec<Job> = self.threads.into_iter().map(end).collect();
        for job in jobs {
            job.join(deadline);
        }
    }

    fn thread_of(&self, target: &Target) -> &Thread {
        &self.threads[usize::from(target.shard()) % self.threads.len()]
    }
}

/// Groups of a new plan. If a group is unchanged, its old value is used again, so that
/// thousands of hosts need not compare thousands of definitions.
#[derive(Default)]
struct GoesOn(Vec<(Arc<PlannedGroup>, Arc<PlannedGroup>, Arc<PlannedGroup>)>);

impl GoesOn {
    /// The group in the plan `new` of a host that had the group `known`.
    fn group(&mut self, known: &Arc<PlannedGroup>, new: Arc<PlannedGroup>) -> Arc<PlannedGroup> {
        let mut seen = self.0.iter();
        let is_it =
            |(a, b, _): &&(Arc<PlannedGroup>, _, _)| Arc::ptr_eq(a, known) && Arc::ptr_eq(b, &new);
        if let Some((_, _, group)) = seen.find(is_it) {
            return Arc::clone(group);
        }
        let group = match known.is_same(&new) {
            true => Arc::clone(known),
            false => Arc::new(PlannedGroup {
                selection: same(&known.selection, &new.selection),
                exports: same(&known.exports, &new.exports),
                ..(*new).clone()
            }),
        };
        self.0.push((Arc::clone(known), new, Arc::clone(&group)));
        group
    }
}

/// The old value if both are equal, so that hosts keep what they are bound to.
fn same<T: PartialEq + ?Sized>(known: &Arc<T>, new: &Arc<T>) -> Arc<T> {
    Arc::clone(if known == new { known } else { new })
}

impl Thread {
    fn tell(&self, order: Order) {
        // A thread that is gone needs no orders.
        let _ = self.orders.send(order);
    }
}

/// Runs hosts by orders until the sender of orders is gone. Then all hosts end.
async fn obey<W: World>(mut orders: UnboundedReceiver<Order>, shared: Rc<Shared>) {
    let mut desks: HashMap<Box<str>, Rc<Desk>> = HashMap::new();
    let mut tasks = JoinSet::new();
    // The desk of each task.
    let mut working: HashMap<Id, Rc<Desk>> = HashMap::new();
    loop {
        let order = tokio::select! {
            // The order is fixed, so that a simulation repeats exactly.
            biased;
            order = orders.recv() => order,
            Some(ended) = tasks.join_next_with_id() => {
                let (id, is_broken) = match ended {
                    Ok((id, ())) => (id, false),
                    Err(error) => (error.id(), error.is_panic()),
                };
                let desk = working.remove(&id);
                // A task that panicked has printed its message. Its host starts again, unless
                // it leaves.
                if let Some(desk) = desk.filter(|desk| is_broken && desk.target().is_some()) {
                    let task = tasks.spawn_local(live::<W>(Rc::clone(&desk), Rc::clone(&shared)));
                    working.insert(task.id(), desk);
                }
                continue;
            }
        };
        let Some(order) = order else { return };
        match order {
            Order::Watch(orders) => match desks.get(&orders.target.name) {
                Some(desk) => desk.change(Some(orders)),
                None => {
                    let name = orders.target.name.clone();
                    let desk = Rc::new(Desk::new(orders));
                    desks.insert(name, Rc::clone(&desk));
                    let task = tasks.spawn_local(live::<W>(Rc::clone(&desk), Rc::clone(&shared)));
                    working.insert(task.id(), desk);
                }
            },
            Order::Leave(name) => {
                if let Some(desk) = desks.remove(&name) {
                    desk.change(None);
                }
            }
            Order::Sinks(outlets, limits) => {
                *shared.outlets.borrow_mut() = outlets;
                shared.set_limits(limits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::plan::{Origin, load};
    use crate::fleet::targets::target::GroupId;

    /// Hosts compare addresses in each slot, and bind again where these differ.
    #[test]
    fn a_group_keeps_the_lists_that_a_new_plan_does_not_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("a file");
        };
        write("hosts.json", "[{\"targets\": [\"web1\"]}]");
        let planned = |definition: &str, interval: &str, export: &str| {
            write("a.conf", definition);
            write(
                "serve.toml",
                &format!(
                    "listen = '127.0.0.1:0'\ninterval = '{interval}'\n[[group]]\nname = 'g'\n\
                     targets = ['hosts.json']\ndefinitions = ['a.conf']\nexport = ['a.*']\n\
                     [[sink]]\nkind = 'prometheus'\nexport = ['{export}']\n"
                ),
            );
            let mut loaded = load(&Origin::File(folder.path().join("serve.toml")));
            let report = loaded.report();
            Arc::clone(&loaded.plan.expect(&report).groups[GroupId(0)])
        };
        let texts = ["a.b = hinv.ncpu\na.c = 1\n", "a.b = hinv.ndisk\na.c = 1\n"];
        let known = planned(texts[0], "10 sec", "*");
        for (text, interval, export, are_kept) in [
            (texts[0], "10 sec", "*", (true, true)),
            (texts[0], "20 sec", "*", (true, true)),
            (texts[1], "10 sec", "*", (false, true)),
            (texts[0], "10 sec", "a.b", (true, false)),
        ] {
            let group = GoesOn::default().group(&known, planned(text, interval, export));
            let selection = Arc::ptr_eq(&group.selection, &known.selection);
            let exports = Arc::ptr_eq(&group.exports, &known.exports);
            assert_eq!((selection, exports), are_kept, "{text}{interval} {export}");
        }
    }
}
