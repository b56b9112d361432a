//! The life of a host, slot after slot: it waits for its moment, does the slot, and writes down
//! the result. [`super`] does the work of a slot.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::failure::Failure;
use super::{Desk, Host, HostAnswer, Orders, Shared, Turn};
use crate::escape;
use crate::fleet::condition::{HostError, Latest, State};
use crate::fleet::frame::StaleReason;
use crate::fleet::numbers::Reason;
use crate::fleet::sinks::inlet::Message;
use crate::fleet::slot::{Due, Slot};
use crate::fleet::world::World;

/// Reason for which a host wakes.
enum Woken {
    /// A slot has been due for this long.
    Due(Slot, Duration),
    /// The slots from the first up to the second were over before they began.
    Over(Slot, Slot),
    /// There are new orders.
    Orders,
}

/// Runs a host for as long as it has orders.
pub async fn live<W: World>(desk: Rc<Desk>, shared: Rc<Shared>) {
    let Some(mut orders) = desk.orders.borrow().clone() else { return };
    let mut host = Host::<W>::new(&orders);
    let mut latest: Option<Slot> = None;
    // The host waits for this slot. Its moment may pass while thousands of hosts get new
    // orders.
    let mut awaited: Option<Slot> = None;
    loop {
        let due = Due::new(orders.group.interval, orders.target.hash);
        let turn = |slot| Turn { slot, orders: &orders, shared: &shared };
        match wake::<W>(due, latest, &mut awaited, &orders, &desk).await {
            Woken::Orders => {
                let new = desk.orders.borrow().clone();
                let now = W::now();
                let turn = turn(due.slot_of(now));
                let Some(new) = new else {
                    return host.end(StaleReason::TargetRemoved, now, turn);
                };
                let is_same = new.group.interval == orders.group.interval;
                (latest, awaited) = (latest.filter(|_| is_same), awaited.filter(|_| is_same));
                host.follow(&new, now, turn);
                orders = new;
            }
            Woken::Over(first, next) => {
                let first = latest.map_or(first, |latest| first.min(Slot(latest.0 + 1)));
                shared.numbers.missed_late.add(next.0.saturating_sub(first.0));
                host.miss(next, turn(first));
                latest = Some(Slot(next.0.saturating_sub(1)));
            }
            Woken::Due(slot, lateness) => {
                if let Some(latest) = latest {
                    host.miss(slot, turn(Slot(latest.0 + 1)));
                }
                latest = Some(slot);
                host.take(lateness, turn(slot)).await;
            }
        }
    }
}

/// Waits for the next slot, or for new orders.
async fn wake<W: World>(
    due: Due,
    latest: Option<Slot>,
    awaited: &mut Option<Slot>,
    orders: &Orders,
    desk: &Desk,
) -> Woken {
    loop {
        let now = W::now();
        let next = due.next(now);
        // No slot is done twice.
        let slot = latest.map_or(next, |latest| next.max(Slot(latest.0 + 1)));
        let slot = awaited.take().map_or(slot, |awaited| awaited.min(slot));
        *awaited = Some(slot);
        tokio::select! {
            // The order is fixed, so that a simulation repeats exactly.
            biased;
            () = desk.changed.notified() => return Woken::Orders,
            () = tokio::time::sleep(due.at(slot).since(now)) => {}
        }
        let now = W::now();
        let lateness = now.since(due.at(slot));
        if now >= due.at(slot) {
            *awaited = None;
            // A slot that begins after its deadline cannot be answered before it.
            return match lateness >= orders.group.deadline {
                true => Woken::Over(slot, due.next(now)),
                false => Woken::Due(slot, lateness),
            };
        }
        // The engine's clock goes slowly, as the machine's clock was set back.
    }
}

impl<W: World> Host<W> {
    /// Counts the slots from that of the turn up to `next` as missed. The series of the host
    /// end, as they have no values.
    fn miss(&mut self, next: Slot, turn: Turn<'_>) {
        let Turn { slot: first, orders, shared } = turn;
        let missed = next.0.saturating_sub(first.0);
        if missed == 0 {
            return;
        }
        shared.numbers.missed.add(missed);
        let now = W::now();
        orders.condition.update(|latest| {
            (latest.slot, latest.at, latest.series) = (Some(Slot(next.0 - 1)), now, 0);
            if !matches!(latest.state, State::Failing(_)) {
                latest.state = State::Missed;
            }
        });
        self.is_behind_gap = true;
        self.end(StaleReason::Missed, now, turn);
        // The fleet's thread has forgotten slots that are long over.
        for slot in (first.0..next.0).rev().take(16) {
            let message = Message::Missed(Arc::clone(&orders.target), Slot(slot));
            shared.outlets.borrow().tell(message);
        }
    }

    /// Does a slot before its deadline, and writes down the result.
    async fn take(&mut self, lateness: Duration, turn: Turn<'_>) {
        let Turn { slot, orders, shared } = turn;
        shared.numbers.started.add(1);
        shared.numbers.lateness.observe(lateness);
        let begun = W::now();
        let left = orders.group.deadline.saturating_sub(lateness);
        let outcome = self.slot_within(left, turn).await;
        let outcome = outcome.map_err(Failure::of_group);
        let now = W::now();
        // Users who see no series any more should see the reason.
        orders.condition.update(|latest| {
            tell(latest.state, &outcome, orders, shared);
            (latest.slot, latest.at) = (Some(slot), now);
            (latest.lateness, latest.took) = (lateness, now.since(begun));
            note(latest, &outcome);
        });
        match &outcome {
            Ok(_) => shared.numbers.answered.add(1),
            Err(failure) => {
                shared.numbers.failed(failure.reason);
                let message = Message::Failed(Arc::clone(&orders.target), slot);
                shared.outlets.borrow().tell(message);
                self.failed(failure, now, turn);
            }
        }
    }
}

/// Logs that a host fails, or answers again.
fn tell(before: State, outcome: &Result<HostAnswer, Failure>, orders: &Orders, shared: &Shared) {
    let host = &*orders.target.name;
    match (before, outcome) {
        (State::Failing(_), Ok(_)) => shared.tell(|| tracing::info!(host, "answers again")),
        (State::New | State::Up | State::Missed, Err(failure)) => {
            // The words may be those of a host, which could feign lines of the log.
            shared.tell(|| tracing::warn!(host, "{}", escape::line_of(&failure.words)));
        }
        (State::Failing(_), Err(_)) | (State::New | State::Up | State::Missed, Ok(_)) => {}
    }
}

fn note(latest: &mut Latest, outcome: &Result<HostAnswer, Failure>) {
    match outcome {
        Ok(answer) => {
            latest.state = State::Up;
            latest.skew = answer.skew;
            latest.kind = Some(answer.kind);
            latest.series = answer.series;
            latest.bytes = answer.bytes;
        }
        Err(Failure { reason, words }) => {
            latest.series = 0;
            // There was no attempt: the host stays as the latest attempt found it.
            if *reason != Reason::BackOff || !matches!(latest.state, State::Failing(_)) {
                latest.state = State::Failing(*reason);
                latest.error = Some(HostError { words: Arc::clone(words), at: latest.at });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Backend, Engine, Registry, Selection};
    use crate::fleet::condition::Condition;
    use crate::fleet::config::{Limits, USUAL};
    use crate::fleet::labels::Labels;
    use crate::fleet::plan::PlannedGroup;
    use crate::fleet::sinks::outlets::Outlets;
    use crate::fleet::sinks::samples;
    use crate::fleet::slot::Nanos;
    use crate::fleet::world::Machine;
    use crate::fleet::world::tests::FlawedMachine;

    #[test]
    fn slots_without_an_attempt_keep_the_reason_of_the_latest_one() {
        let mut latest = Latest::default();
        let mut fail = |at, reason, words: &str| {
            latest.at = Nanos(at);
            note(&mut latest, &Err(Failure { reason, words: words.into() }));
            let error = latest.error.clone().expect("one");
            (latest.state, error.words.to_string(), error.at.0)
        };
        let refused = (State::Failing(Reason::Refused), "no".to_owned(), 1);
        assert_eq!(fail(1, Reason::Refused, "no"), refused);
        assert_eq!(fail(2, Reason::BackOff, "no; in 5 seconds"), refused);
        let lost = (State::Failing(Reason::Lost), "gone".to_owned(), 3);
        assert_eq!(fail(3, Reason::Lost, "gone"), lost);
    }

    /// A host of a group, with the state that it shares with others.
    fn host_called(name: &str) -> (Orders, Shared) {
        let nothing = Selection::new(&Registry::new(USUAL), &[]);
        let group = Arc::new(PlannedGroup {
            name: "web".into(),
            interval: Duration::from_secs(1),
            deadline: Duration::from_millis(800),
            options: Arc::default(),
            certificates: Default::default(),
            defined: 0,
            texts: Arc::default(),
            selection: Arc::new(nothing),
            exports: Arc::default(),
            told: Default::default(),
        });
        let engine = Arc::new(Engine::new(USUAL, Backend::Interp));
        let shared = Shared::new(engine, Arc::default(), Limits::default(), Outlets::default());
        let target = samples::target(name, Labels::default());
        let condition = Arc::new(Condition::new(Arc::clone(&target)));
        (Orders { target, group, condition }, shared)
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_is_not_looked_up_in_time_is_told() {
        let (mut orders, shared) = host_called("nowhere:44321");
        let target = Arc::make_mut(&mut orders.target);
        target.spec = "nowhere".parse().expect("a specification");
        let mut host = Host::<FlawedMachine>::new(&orders);
        for slot in 1..=2 {
            let turn = Turn { slot: Slot(slot), orders: &orders, shared: &shared };
            host.take(Duration::ZERO, turn).await;
            let latest = orders.condition.latest();
            assert_eq!(latest.state, State::Failing(Reason::Connect));
            let error = latest.error.expect("one").words;
            assert!(
                error.contains("nowhere:44321: its name was not looked up within 0.8"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_host_cannot_feign_lines_of_the_log() {
        let (orders, shared) = host_called("web1:44321");
        let log = tempfile::NamedTempFile::new().expect("a file");
        let file = Arc::new(log.reopen().expect("a file"));
        let subscriber = tracing_subscriber::fmt().with_writer(file).with_ansi(false);
        tracing::subscriber::with_default(subscriber.without_time().finish(), || {
            let words = "no\r\n WARN web2 \u{202e}fails".into();
            let failure = Failure { reason: Reason::Refused, words };
            tell(State::Up, &Err(failure), &orders, &shared);
        });
        let told = std::fs::read_to_string(log.path()).expect("the log");
        let expected = "no\\x0d\\x0a WARN web2 \\u{202e}fails host=\"web1:44321\"\n";
        assert!(told.ends_with(expected) && told.lines().count() == 1, "{told}");
    }

    #[test]
    fn a_slot_that_is_missed_is_written_down() {
        let (orders, shared) = host_called("web1:44321");
        let mut host = Host::<Machine>::new(&orders);
        let failing = State::Failing(Reason::Lost);
        for (before, after) in
            [(State::New, State::Missed), (State::Up, State::Missed), (failing, failing)]
        {
            orders.condition.update(|latest| (latest.state, latest.series) = (before, 7));
            let turn = |slot| Turn { slot: Slot(slot), orders: &orders, shared: &shared };
            host.miss(Slot(5), turn(3));
            let Latest { state, slot, series, .. } = orders.condition.latest();
            assert_eq!((state, slot, series), (after, Some(Slot(4)), 0));
            // None was missed.
            host.miss(Slot(6), turn(6));
            assert_eq!(orders.condition.latest().slot, Some(Slot(4)));
        }
        assert_eq!(shared.numbers.missed.get(), 6);
    }
}
