//! What the listener shows of the fleet.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use super::{Reload, Shared, own, tell_refused};
use crate::fleet::condition::{Condition, State};
use crate::fleet::sinks::http::{Answer, Pages};
use crate::fleet::sinks::text::Writer;
use crate::report::json::write_string;

/// Kinds that are told of at most.
const MOST_KINDS: usize = 1000;

impl Pages for Shared {
    fn write_own(&self, writer: &mut Writer<'_>) {
        if let Some(in_force) = &self.lock().in_force {
            own::write(self, in_force, writer);
        }
    }

    fn write_target(&self, target: &str, writer: &mut Writer<'_>) {
        let condition = self.lock().in_force.as_ref().and_then(|all| all.condition(target));
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
            Reload::Done { hosts } => Answer::text(200, format!("{hosts} hosts\n")),
            Reload::Refused(report) => {
                tell_refused(&report);
                Answer::text(422, report)
            }
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
            let groups = in_force.config().groups.iter().map(|group| group.name.clone());
            (in_force.conditions(), groups.collect::<Vec<Box<str>>>(), in_force.engine().kinds())
        };
        let mut out = String::from("{\"targets\":[");
        for (at, condition) in conditions.iter().enumerate() {
            out.push_str(if at == 0 { "\n" } else { ",\n" });
            write_target(&mut out, condition, &groups);
        }
        out.push_str("\n],\"kinds\":[");
        // Those with most hosts come first.
        for (at, kind) in kinds.iter().take(MOST_KINDS).enumerate() {
            out.push_str(if at == 0 { "\n" } else { ",\n" });
            let _ = write!(out, "{{\"kind\":{}", kind.number);
            if let Some(differs) = &kind.differs {
                out.push_str(",\"differs\":");
                write_string(&mut out, &differs.words);
                if let Some((metric, split)) = &differs.first {
                    out.push_str(",\"metric\":");
                    write_string(&mut out, metric);
                    let _ = write!(out, ",\"by\":\"{}\"", split.word());
                }
            }
            out.push('}');
        }
        out.push_str("\n]}\n");
        out
    }
}

fn write_target(out: &mut String, condition: &Condition, groups: &[Box<str>]) {
    let (target, latest) = (condition.target(), condition.latest());
    out.push_str("{\"target\":");
    write_string(out, &target.name);
    out.push_str(",\"group\":");
    write_string(out, groups.get(target.group).map_or("", |name| name));
    out.push_str(",\"labels\":{");
    for (at, (name, value)) in target.labels.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { "," });
        write_string(out, name);
        out.push(':');
        write_string(out, value);
    }
    let state = match latest.state {
        State::New => "new",
        State::Up => "up",
        State::Failing(reason) => reason.word(),
    };
    let _ = write!(out, "}},\"state\":\"{state}\",\"series\":{}", latest.series);
    if let Some(slot) = latest.slot {
        let (at, lateness, took) = (latest.at, latest.lateness, latest.took);
        let _ = write!(
            out,
            ",\"slot\":{},\"at\":{:.3},\"late\":{:.6},\"took\":{:.6},\"skew\":{:.6}",
            slot.0,
            at.0 as f64 / 1e9,
            lateness.as_secs_f64(),
            took.as_secs_f64(),
            latest.skew,
        );
    }
    if let Some(kind) = latest.kind {
        let _ = write!(out, ",\"kind\":{kind}");
    }
    if let Some(error) = &latest.error {
        out.push_str(",\"error\":");
        write_string(out, error);
    }
    out.push('}');
}
