//! The pages of the listener about the fleet.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::atomic::Ordering;

use super::{Shared, own_metrics};
use crate::engine::Kind;
use crate::fleet::condition::{Condition, State};
use crate::fleet::sinks::http::{Answer, Pages};
use crate::fleet::sinks::text::Writer;
use crate::fleet::slot::Nanos;
use crate::fleet::world::{Machine, World as _};
use crate::syntax::counted;
use crate::text::json::{Object, write_object};

/// Kinds on a page, at most.
const MOST_KINDS: usize = 1000;

impl Pages for Shared {
    fn write_own(&self, writer: &mut Writer<'_>) {
        self.read_plan(|active| own_metrics::write(self, active, writer));
    }

    fn write_target(&self, target: &str, writer: &mut Writer<'_>) {
        let condition = self.read_plan(|all| all.hosts.condition(target));
        if let Some(condition) = condition {
            own_metrics::write_target(&condition, writer);
        }
    }

    fn without_values(&self, target: &str) -> Result<(), Cow<'static, str>> {
        let condition = self.read_plan(|all| all.hosts.condition(target));
        Err(match condition.map(|condition| condition.latest().state) {
            None => "no target is called that; `/-/targets` shows all of them".into(),
            Some(State::New) => {
                let due = self.read_plan(|all| all.hosts.due_in(target, Machine::now()));
                let seconds = due.unwrap_or_default().as_secs() + 1;
                format!(
                    "its first slot has not come to an end, or none has since it got other labels; \
                     the next one begins within {seconds} s"
                )
                .into()
            }
            Some(State::Failing(_) | State::Missed) => return Ok(()),
            Some(State::Up) => "it answers, but has no metric for that sink, or its frame has no \
                                room (`buffer` of the sink)"
                .into(),
        })
    }

    fn trouble(&self) -> Option<String> {
        let is_refused = self.is_refused.load(Ordering::Relaxed);
        is_refused.then(|| "the files that were read last were refused; see the log".to_owned())
    }

    fn page(&self, path: &str, accept: &str) -> Option<Answer> {
        if path != "/-/targets" {
            return None;
        }
        if accept.contains("text/html") {
            let page = include_str!("targets.html");
            return Some(Answer::of(200, "text/html; charset=utf-8", page));
        }
        Some(Answer::of(200, "application/json", self.targets()))
    }

    fn reload(&self) -> Answer {
        match Shared::reload(self) {
            Ok(read) => Answer::text(200, format!("{}\n", counted(read.hosts, "host"))),
            Err(report) => Answer::text(422, report),
        }
    }
}

impl Shared {
    /// All hosts with their conditions, and the differences between their kinds, as JSON.
    fn targets(&self) -> String {
        let (conditions, groups, kinds) = self.read_plan(|active| {
            let groups = active.config.groups.iter().map(|group| group.name.clone());
            let conditions = active.hosts.conditions();
            let kinds = own_metrics::kinds_of(active, &conditions);
            (conditions, groups.collect::<Vec<Box<str>>>(), kinds)
        });
        let mut out = String::from("{\"targets\":[");
        for (at, condition) in conditions.iter().enumerate() {
            out.push_str(if at == 0 { "\n" } else { ",\n" });
            write_object(&mut out, |object| add_target(object, condition, &groups));
        }
        out.push_str("\n],\"kinds\":[");
        // Kinds with most hosts come first.
        for (at, kind) in kinds.iter().take(MOST_KINDS).enumerate() {
            out.push_str(if at == 0 { "\n" } else { ",\n" });
            write_object(&mut out, |object| add_kind(object, kind));
        }
        out.push_str("\n]}\n");
        out
    }
}

fn add_kind(object: &mut Object<'_>, kind: &Kind) {
    object.value("kind", kind.number);
    let Some(differs) = &kind.differs else { return };
    object.text("differs", &differs.words);
    if let Some((metric, split)) = &differs.first {
        object.text("metric", metric);
        object.text("by", split.word());
    }
}

fn add_target(object: &mut Object<'_>, condition: &Condition, groups: &[Box<str>]) {
    let (target, latest) = (condition.target(), condition.latest());
    object.text("target", &target.name);
    object.text("group", groups.get(target.group.index()).map_or("", |name| name));
    object.object("labels", |labels| {
        target.labels.iter().for_each(|(name, value)| labels.text(name, value));
    });
    object.text("state", latest.state.word());
    object.value("series", latest.series);
    if let Some(slot) = latest.slot {
        object.value("slot", slot.0);
        object.value("at", seconds(latest.at));
        for (name, time) in [("late", latest.lateness), ("took", latest.took)] {
            object.value(name, format_args!("{:.6}", time.as_secs_f64()));
        }
    }
    if let Some(kind) = latest.kind {
        object.value("skew", format_args!("{:.6}", latest.skew));
        object.value("kind", kind);
    }
    match (&latest.error, latest.state) {
        (Some(error), State::Failing(_)) => object.text("error", &error.words),
        (Some(error), State::New | State::Up | State::Missed) => {
            object.text("last_error", &error.words);
            object.value("last_error_at", seconds(error.at));
        }
        (None, _) => {}
    }
}

/// A time in seconds, to the millisecond.
fn seconds(time: Nanos) -> impl Display {
    format!("{:.3}", time.0 as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::condition::HostError;
    use crate::fleet::labels::Labels;
    use crate::fleet::numbers::Reason;
    use crate::fleet::sinks::samples;

    #[test]
    fn errors_that_are_over_are_called_so() {
        let shown = |state| {
            let condition = Condition::new(samples::target("web1:44321", Labels::default()));
            condition.update(|latest| {
                latest.state = state;
                let (words, at) = ("no answer".into(), Nanos(1_500_000_000));
                latest.error = Some(HostError { words, at });
            });
            let mut out = String::new();
            write_object(&mut out, |object| add_target(object, &condition, &[]));
            out
        };
        let failing = shown(State::Failing(Reason::Timeout));
        assert!(failing.contains(r#""error":"no answer""#), "{failing}");
        assert!(!failing.contains("last_error"), "{failing}");
        let up = shown(State::Up);
        assert!(up.contains(r#""last_error":"no answer","last_error_at":1.500"#), "{up}");
        assert!(!up.contains(r#""error""#), "{up}");
    }
}
