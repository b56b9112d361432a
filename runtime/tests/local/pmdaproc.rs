//! The agent for processes next to PCP's own: descriptors of all metrics, and
//! the values of an idle process.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use pmderive_runtime::local::{LocalContext, ProcessAgent};
use pmderive_runtime::model::{InDom, InstanceProfile};
use pmderive_runtime::source::{FetchSource, MetadataSource};

use crate::pcp::Pcp;
use crate::render::render;

/// Intended differences by name, with the right answer.
const MEANT: &[(&str, &str)] = &[
    ("proc.psinfo.priority", "pmdaproc delivers the real-time priority instead"),
    ("proc.memory.maps", "several lines, which this test does not take apart"),
    ("proc.smaps.pss", "pminfo itself shares pages with the process"),
    ("proc.smaps.pss_file", "pminfo itself shares pages with the process"),
    ("proc.psinfo.ngid", "pmdaproc delivers another number of the file"),
    ("proc.psinfo.cguest_time", "pmdaproc delivers an address instead"),
    ("proc.psinfo.start_code", "an address beyond 32 bits would be a wrong number"),
    ("proc.psinfo.end_code", "an address beyond 32 bits would be a wrong number"),
    ("proc.psinfo.start_stack", "an address beyond 32 bits would be a wrong number"),
];

/// A process that does nothing until it is dropped.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_has_the_values_that_pmdaproc_gives_it() {
    let Some(pcp) = Pcp::with_agent(3, "proc") else { return };
    let sleeper = Command::new("sleep").arg("1000").spawn().expect("sleep runs");
    let sleeper = Sleeper(sleeper);
    // Other processes, with empty lines in their arguments: some of them come
    // before the sleeper in pmdaproc's order.
    let _beside: Vec<Sleeper> = (0..16)
        .map(|_| {
            let other = Command::new("cat").args(["-", "\n\n"]).stdin(Stdio::piped()).spawn();
            Sleeper(other.expect("cat runs"))
        })
        .collect();
    let pid = sleeper.0.id();
    let mut context =
        LocalContext::with_agents(vec![Box::new(ProcessAgent::new())]).expect("one agent");
    let mut profile = InstanceProfile::default();
    profile.include(InDom::new(3, 9), &[pid.cast_signed()]);
    context.set_profile(&profile).expect("in this process");
    let names = context.traverse("").expect("in this process");
    assert!(names.len() > 140, "{}", names.len());

    // Shared values depend on other processes: each must equal the one before
    // or after it once. pmdaproc gives some of them only together with others.
    let mut left = names.clone();
    let mut last = Vec::new();
    for _ in 0..20 {
        let before = pcp.pminfo(Path::new(""), &names);
        let ours = render(&mut context, &names).expect("in this process");
        let after = pcp.pminfo(Path::new(""), &names);
        last.clear();
        let of_sleeper = |values: &[String]| -> Vec<String> {
            let start = format!("    inst [{pid} or");
            values.iter().filter(|value| value.starts_with(&start)).cloned().collect()
        };
        for metric in ours {
            let (before, after) = (&before[&metric.name], &after[&metric.name]);
            assert_eq!(metric.description, before.description, "{}", metric.name);
            let [before, values, after] =
                [&before.values, &metric.values, &after.values].map(|values| of_sleeper(values));
            let is_meant = MEANT.iter().any(|(name, _)| *name == metric.name);
            if values == before || values == after || is_meant {
                left.retain(|name| *name != metric.name);
            } else {
                last.push(format!("{}: {values:?} {after:?}", metric.name));
            }
        }
        if left.is_empty() {
            return;
        }
    }
    panic!("{}", last.join("\n"));
}
