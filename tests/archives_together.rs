//! Archives that are given together, whether they fit or not, beside the
//! installed tools: the names that there are, what is said of each, and the
//! mistake that is told. Lists of archives of PCP's test suite are in a table.

mod side_by_side;

use side_by_side::{SUITE, first_difference, ours, theirs, tools_are_installed};

/// What is asked of each list.
const QUESTIONS: &[(&str, &[&str])] =
    &[("pminfo", &["-dm"]), ("pminfo", &["-f"]), ("pmprobe", &["-v"]), ("pmval", &["-s1", "x"])];

/// Lists of archives, after what is notable about them. The suite's folders are
/// written `a` and `b`.
const LISTS: &[(&str, &str)] = &[
    ("new nodes are hidden, new names in nodes that are there are not", "a/dynmetric,a/gap"),
    ("the same, the other way round", "a/gap,a/dynmetric"),
    ("the order of names counts, not that of times", "a/mirage-3,a/mark_no_mark_3"),
    ("the order of names counts, not that of times", "a/mark_no_mark_3,a/mirage-3"),
    ("three, of which one is named twice", "a/ok-mv-interp,a/ok-mv-interp,a/section-d"),
    ("there are no such archives", "nosuch,nosuch"),
    ("what is missing is told in its place", "a/gap,nosuch,a/ok-foo"),
    ("a host that differs is told before what comes later", "a/gap,a/ok-foo,nosuch"),
    ("hosts differ", "a/ok-foo,a/mirage-3"),
    ("metrics differ, and times are the same", "a/section-a,a/interpmark"),
    ("units differ", "b/badmeta-2,b/badti-1"),
    ("units would differ", "b/badmeta-2,nosuch,a/ok-mv-foo"),
    ("times are the same", "a/ok-foo.0,a/ok-foo.meta"),
    ("the same twice", "a/ok-foo,a/ok-foo"),
    ("a bad label before hosts that differ", "b/babylon.pmview,a/multi-vm02"),
    ("a bad label of metadata before hosts that differ", "a/reduce-1,b/badlabel-1"),
    ("hosts that differ before a bad label", "a/gap,a/ok-foo,b/badlabel-1"),
    ("times are the same, and the end of one is damaged", "b/badlen-2,b/badlen-3"),
    ("nothing, and commas", "a/ok-foo,"),
];

#[test]
fn archives_fit_together_as_for_the_tools() {
    if !tools_are_installed() {
        return;
    }
    let mut differences = Vec::new();
    for (about, list) in LISTS {
        let members: Vec<String> = list
            .split(',')
            .map(|member| match member.split_once('/') {
                Some(("a", name)) => format!("{SUITE}/archives/{name}"),
                Some((_, name)) => format!("{SUITE}/badarchives/{name}"),
                None => member.to_owned(),
            })
            .collect();
        let list = members.join(",");
        for (tool, options) in QUESTIONS {
            let arguments = [&["-a", list.as_str()], *options].concat();
            let (theirs, ours) = (theirs(tool, &arguments), ours(tool, &arguments));
            if theirs != ours {
                let [out, err] = [(&ours.out, &theirs.out), (&ours.err, &theirs.err)]
                    .map(|(ours, theirs)| first_difference(ours, theirs));
                differences.push(format!("{about}: {tool} {arguments:?}\n{out}\n{err}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
