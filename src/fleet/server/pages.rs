//! What the listener shows of the fleet.

use std::sync::atomic::Ordering;

use super::{Shared, own};
use crate::engine::Kind;
use crate::fleet::condition::{Condition, State};
use crate::fleet::sinks::http::{Answer, Pages};
use crate::fleet::sinks::text::Writer;
use crate::report::json::{Object, write_object};
use crate::syntax::counted;

/// Kinds that are told of at most.
const MOST_KINDS: usize = 1000;

impl Pages for Shared {
    fn write_own(&self, writer: &mut Writer<'_>) {
        if let Some(in_force) = &self.lock().in_force {
            own::write(self, in_force, writer);
        }
    }

    fn write_target(&self, target: &str, writer: &mut Writer<'_>) {
        let condition = self.lock().in_force.as_ref().and_then(|all| all.fleet.condition(target));
        if let Some(condition) = condition {
            own::write_target(&condition, writer);
        }
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
            Ok(hosts) => Answer::text(200, format!("{}\n", counted(hosts, "host"))),
            Err(report) => Answer::text(422, report),
        }
    }
}

impl Shared {
    /// All hosts and how they are, and how their kinds differ, as JSON.
    fn targets(&self) -> String {
        let (conditions, groups, kinds) = {
            let state = self.lock();
            let Some(in_force) = &state.in_force else {
                return "{\"targets\":[],\"kinds\":[]}\n".into();
            };
            let groups = in_force.config.groups.iter().map(|group| group.name.clone());
            (
                in_force.fleet.conditions(),
                groups.collect::<Vec<Box<str>>>(),
                in_force.engine.kinds(),
            )
        };
        let mut out = String::from("{\"targets\":[");
        for (at, condition) in conditions.iter().enumerate() {
            out.push_str(if at == 0 { "\n" } else { ",\n" });
            write_object(&mut out, |object| add_target(object, condition, &groups));
        }
        out.push_str("\n],\"kinds\":[");
        // Those with most hosts come first.
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
    let state = match latest.state {
        State::New => "new",
        State::Up => "up",
        State::Failing(reason) => reason.word(),
    };
    object.text("state", state);
    object.value("series", latest.series);
    if let Some(slot) = latest.slot {
        object.value("slot", slot.0);
        object.value("at", format_args!("{:.3}", latest.at.0 as f64 / 1e9));
        for (name, time) in [("late", latest.lateness), ("took", latest.took)] {
            object.value(name, format_args!("{:.6}", time.as_secs_f64()));
        }
        object.value("skew", format_args!("{:.6}", latest.skew));
    }
    if let Some(kind) = latest.kind {
        object.value("kind", kind);
    }
    if let Some(error) = &latest.error {
        object.text("error", error);
    }
}
