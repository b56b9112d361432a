//! The schedule of a simulated fleet: events of its hosts with their times,
//! drawn from a seed, host by host, before anything runs.

use std::fmt;
use std::time::Duration;

use crate::fleet::Plan;
use crate::mix::mix;

/// The frequency of each kind of event. Numbers are means per host and hour,
/// and may be below one.
#[derive(Clone, Debug)]
pub struct Script {
    /// No event comes after this time.
    pub length: Duration,
    /// pmcd is killed and started again after a while, every other time as one
    /// of another class.
    pub kills: f64,
    /// Connections are refused for a while; existing ones continue.
    pub refusals: f64,
    /// pmcd is stopped for a while.
    pub stops: f64,
    /// The host is off the network for a while, and all its connections are
    /// reset afterwards.
    pub absences: f64,
    /// All connections are reset.
    pub resets: f64,
    /// The next reply to a fetch breaks off after some bytes.
    pub cuts: f64,
    /// The next reply to a fetch drips.
    pub drips: f64,
    /// The next reply to a fetch is late.
    pub delays: f64,
    /// The host changes its class, and sends notice.
    pub changes: f64,
    /// The host sends notice of changes that did not happen.
    pub notices: f64,
    /// The host's clock jumps.
    pub jumps: f64,
    /// For a while, the address of the host's name is unknown.
    pub oblivions: f64,
}

impl Script {
    /// A script without events.
    pub const fn calm(length: Duration) -> Script {
        Script {
            length,
            kills: 0.0,
            refusals: 0.0,
            stops: 0.0,
            absences: 0.0,
            resets: 0.0,
            cuts: 0.0,
            drips: 0.0,
            delays: 0.0,
            changes: 0.0,
            notices: 0.0,
            jumps: 0.0,
            oblivions: 0.0,
        }
    }

    /// Everything happens to each host once an hour in the mean.
    pub const fn rough(length: Duration) -> Script {
        Script {
            kills: 1.0,
            refusals: 1.0,
            stops: 1.0,
            absences: 1.0,
            resets: 1.0,
            cuts: 1.0,
            drips: 1.0,
            delays: 1.0,
            changes: 1.0,
            notices: 1.0,
            jumps: 1.0,
            oblivions: 1.0,
            ..Script::calm(length)
        }
    }

    fn rates(&self) -> [(f64, Kind); 12] {
        [
            (self.kills, Kind::Kill),
            (self.refusals, Kind::Refusal),
            (self.stops, Kind::Stop),
            (self.absences, Kind::Absence),
            (self.resets, Kind::Reset),
            (self.cuts, Kind::Cut),
            (self.drips, Kind::Drip),
            (self.delays, Kind::Delay),
            (self.changes, Kind::Change),
            (self.notices, Kind::Notice),
            (self.jumps, Kind::Jump),
            (self.oblivions, Kind::Oblivion),
        ]
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Kill,
    Refusal,
    Stop,
    Absence,
    Reset,
    Cut,
    Drip,
    Delay,
    Change,
    Notice,
    Jump,
    Oblivion,
}

/// Something that happens to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// pmcd is killed.
    Kill,
    /// It is started again, as one of a class.
    Start {
        /// The class.
        class: u32,
    },
    /// Connections are refused from now on.
    Refuse,
    /// Connections are accepted again.
    Accept,
    /// pmcd is stopped.
    Stop,
    /// It resumes.
    GoOn,
    /// The host is off the network.
    Leave,
    /// It is back, and its connections are lost.
    Return,
    /// All connections are reset.
    Reset,
    /// The next reply to a fetch breaks off.
    Cut {
        /// After this many bytes, or at its end.
        after: usize,
        /// By a reset; otherwise the stream ends.
        by_reset: bool,
    },
    /// The next reply to a fetch drips.
    Drip {
        /// The pause after each byte.
        every: Duration,
    },
    /// The next reply to a fetch is late.
    Delay {
        /// After this many bytes, or at its end.
        after: usize,
        /// The amount.
        by: Duration,
    },
    /// The host changes to a class, and sends notice.
    Change {
        /// The class.
        class: u32,
    },
    /// The host sends notice of changes that did not happen.
    Notice,
    /// The host's clock jumps.
    Jump {
        /// Nanoseconds by which the clock is then ahead of the real time;
        /// negative if behind.
        ahead: i64,
    },
    /// The address of the host's name becomes unknown.
    Forget,
    /// The address is known again.
    Remember,
}

impl fmt::Display for HostEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostEvent::Kill => f.write_str("is killed"),
            HostEvent::Start { class } => write!(f, "starts as one of class {class}"),
            HostEvent::Refuse => f.write_str("begins to refuse connections"),
            HostEvent::Accept => f.write_str("accepts connections again"),
            HostEvent::Stop => f.write_str("is stopped"),
            HostEvent::GoOn => f.write_str("goes on"),
            HostEvent::Leave => f.write_str("leaves the network"),
            HostEvent::Return => f.write_str("returns to the network"),
            HostEvent::Reset => f.write_str("resets its connections"),
            HostEvent::Cut { after, by_reset } => {
                let how = if *by_reset { "is reset" } else { "ends" };
                write!(f, "the next reply {how} after {after} bytes")
            }
            HostEvent::Drip { every } => write!(f, "the next reply drips, a byte in {every:?}"),
            HostEvent::Delay { after, by } => {
                write!(f, "the next reply pauses for {by:?} after {after} bytes")
            }
            HostEvent::Change { class } => write!(f, "becomes one of class {class}"),
            HostEvent::Notice => f.write_str("gives notice of nothing"),
            HostEvent::Forget => f.write_str("is not known by its name"),
            HostEvent::Remember => f.write_str("is known by its name again"),
            HostEvent::Jump { ahead } => write!(f, "the clock jumps to {ahead:+} ns"),
        }
    }
}

/// An event with its time and its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScheduledEvent {
    pub at: Duration,
    pub host: u32,
    pub what: HostEvent,
}

/// Numbers of one host's schedule, one after another.
struct Draws {
    of: u64,
    count: u64,
}

impl Draws {
    fn next(&mut self) -> u64 {
        self.count += 1;
        mix(&[self.of, self.count])
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// A number from 0 up to but not 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A time from some milliseconds to some minutes; each scale is equally
    /// likely.
    fn while_(&mut self) -> Duration {
        let most = [100, 3_000, 20_000, 200_000][self.below(4) as usize];
        Duration::from_millis(1 + self.below(most))
    }
}

/// All events, in order.
pub(super) fn schedule(seed: u64, plan: &Plan, script: &Script) -> Vec<ScheduledEvent> {
    let mut all = Vec::new();
    for host in 0..plan.hosts {
        for (rate, kind) in script.rates() {
            let mut draws = Draws { of: mix(&[seed, host.into(), kind as u64]), count: 0 };
            let mean = rate * script.length.as_secs_f64() / 3600.0;
            // Means are small numbers, and a count of zero is for all below it.
            let times = (mean + draws.share()) as u32;
            for _ in 0..times {
                let length = script.length.as_millis().try_into().unwrap_or(u64::MAX);
                let at = Duration::from_millis(draws.below(length));
                happen(plan, kind, at, host, &mut draws, &mut all);
            }
        }
    }
    // Events of the same time keep the order in which they were drawn.
    all.sort_by_key(|due: &ScheduledEvent| due.at);
    all
}

/// Adds the events of one occasion.
fn happen(
    plan: &Plan,
    kind: Kind,
    at: Duration,
    host: u32,
    draws: &mut Draws,
    all: &mut Vec<ScheduledEvent>,
) {
    let mut due = |at, what| all.push(ScheduledEvent { at, host, what });
    match kind {
        Kind::Kill => {
            due(at, HostEvent::Kill);
            let is_upgraded = draws.below(2) == 0;
            let class = if is_upgraded {
                draws.below(plan.classes.into())
            } else {
                plan.class(host).into()
            };
            due(at + draws.while_(), HostEvent::Start { class: class as u32 });
        }
        Kind::Refusal => {
            due(at, HostEvent::Refuse);
            due(at + draws.while_(), HostEvent::Accept);
        }
        Kind::Stop => {
            due(at, HostEvent::Stop);
            due(at + draws.while_(), HostEvent::GoOn);
        }
        Kind::Absence => {
            due(at, HostEvent::Leave);
            due(at + draws.while_(), HostEvent::Return);
        }
        Kind::Reset => due(at, HostEvent::Reset),
        Kind::Cut => {
            let by_reset = draws.below(2) == 0;
            due(at, HostEvent::Cut { after: draws.below(2_000) as usize, by_reset });
        }
        Kind::Drip => {
            let every = Duration::from_millis(1 + draws.below(1_000));
            due(at, HostEvent::Drip { every });
        }
        Kind::Delay => {
            let after = draws.below(2_000) as usize;
            due(at, HostEvent::Delay { after, by: draws.while_() });
        }
        Kind::Change => {
            let class = draws.below(plan.classes.into()) as u32;
            due(at, HostEvent::Change { class });
        }
        Kind::Notice => due(at, HostEvent::Notice),
        Kind::Oblivion => {
            due(at, HostEvent::Forget);
            due(at + draws.while_(), HostEvent::Remember);
        }
        Kind::Jump => {
            // A step from a nanosecond to some hours, equally often back and
            // forward.
            let size = (draws.next() >> (20 + draws.below(40))).cast_signed();
            let ahead = if draws.below(2) == 0 { size } else { -size };
            due(at, HostEvent::Jump { ahead });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_seed_gives_the_same_schedule_again_and_no_other_does() {
        let plan = Plan { hosts: 50, classes: 3, ..Plan::default() };
        let script = Script::rough(HOUR);
        assert_eq!(schedule(1, &plan, &script), schedule(1, &plan, &script));
        assert_ne!(schedule(1, &plan, &script), schedule(2, &plan, &script));
        assert_eq!(schedule(1, &plan, &Script::calm(HOUR)), []);
    }

    #[test]
    fn everything_happens_as_often_as_it_should() {
        let plan = Plan { hosts: 400, classes: 3, ..Plan::default() };
        let script = Script { kills: 0.25, jumps: 3.5, cuts: 0.0, ..Script::rough(2 * HOUR) };
        let all = schedule(1, &plan, &script);
        assert!(all.is_sorted_by_key(|due| due.at));
        let count = |is: fn(&HostEvent) -> bool| all.iter().filter(|due| is(&due.what)).count();
        assert!((150..250).contains(&count(|what| matches!(what, HostEvent::Kill))));
        assert_eq!(count(|what| matches!(what, HostEvent::Jump { .. })), 2_800);
        assert_eq!(count(|what| matches!(what, HostEvent::Cut { .. })), 0);
        for host in 0..400 {
            // Each period ends after its beginning.
            let mut stopped = 0;
            for due in all.iter().filter(|due| due.host == host) {
                match due.what {
                    HostEvent::Stop => stopped += 1,
                    HostEvent::GoOn => stopped -= 1,
                    _ => {}
                }
                assert!(stopped >= 0);
            }
            assert_eq!(stopped, 0);
        }
    }
}
