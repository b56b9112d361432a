//! `pmderive info` and `pmderive probe` print what pminfo and pmprobe print:
//! of every metric of a pmcd, and of archives.

use std::path::Path;

use pmderive_testkit::real_pmcd;

use crate::reasons;
use crate::side_by_side;
use real_pmcd::RealPmcd;
use side_by_side::{
    HELP_OF_EVENTS, INFO_OPTIONS, SUITE, archives_of_suite, by_metric, first_difference,
    is_disturbed, ours, pmderive, size, theirs, tools_are_installed, without_help_of_events,
};

/// Metrics or nodes whose lines may differ, and why.
const METRICS: &[(&str, &str)] = &[
    (HELP_OF_EVENTS[0], "its help text is of our own words"),
    (HELP_OF_EVENTS[1], "its help text is of our own words"),
    ("sample.percontext", "it counts the messages of the client itself"),
    ("sampledso.percontext", "it counts the messages of the client itself"),
];

/// Options for all metrics of a pmcd. Between them they print everything.
const LIVE: &[(&str, &str)] = &[
    ("pminfo", ""),
    ("pminfo", "-dfmtT"),
    ("pminfo", "-IMlsx"),
    ("pminfo", "-FMt"),
    ("pmprobe", ""),
    ("pmprobe", "-v"),
    ("pmprobe", "-iI"),
    ("pmprobe", "-fI"),
    ("pmprobe", "-F"),
];

/// Most runs until a metric stood still long enough to be compared.
const ATTEMPTS: usize = 5;

#[test]
fn every_metric_of_a_pmcd_is_printed_as_pcp_does() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let host = format!("127.0.0.1:{}", pmcd.port);
    let listed = theirs("pminfo", &["-h", &host]).out;
    let names: Vec<&str> = listed.lines().collect();
    assert!(names.len() > 2000, "{}", names.len());
    for (tool, options) in LIVE {
        let mut arguments = vec!["-h", &host];
        arguments.extend(Some(*options).filter(|options| !options.is_empty()));
        let (mut stable, mut moving) = (0, 0);
        let mut open: Vec<usize> = (0..names.len()).collect();
        // What PCP's tool printed last of each metric, and whether it was ever something else.
        let mut last: Vec<Option<String>> = vec![None; names.len()];
        let mut has_moved: Vec<bool> = names.iter().map(|name| is_disturbed(name)).collect();
        let mut differences = Vec::new();
        for _ in 0..ATTEMPTS {
            let before = theirs(tool, &arguments);
            let mine = ours(tool, &arguments);
            let after = theirs(tool, &arguments);
            assert_eq!((mine.status, &*mine.err), (before.status, ""), "{tool} {options}");
            let [before, mine, after] =
                [&before, &mine, &after].map(|printed| by_metric(&printed.out, &names));
            differences.clear();
            open.retain(|at| {
                let (theirs, ours) = (before[*at], mine[*at]);
                let is_allowed = METRICS.iter().any(|(node, _)| names[*at].starts_with(node));
                let before_that = last[*at].replace(after[*at].to_owned());
                has_moved[*at] |= theirs != after[*at];
                has_moved[*at] |= before_that.is_some_and(|before_that| before_that != theirs);
                if theirs == ours || is_allowed {
                    stable += 1;
                    false
                } else if has_moved[*at] && metadata(tool, theirs) == metadata(tool, ours) {
                    moving += 1;
                    false
                } else {
                    differences.push(format!(
                        "{}:\n{}",
                        names[*at],
                        first_difference(ours, theirs)
                    ));
                    true
                }
            });
            if open.is_empty() {
                break;
            }
        }
        println!("{tool} {options}: {stable} metrics equal, {moving} more but for their values");
        let shown = differences.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
        assert!(open.is_empty(), "{tool} {options}: {} differ\n{shown}", open.len());
        assert!(stable > names.len() / 2, "{tool} {options}: {stable} of {}", names.len());
    }
}

/// What a tool prints of a metric before its values and instances.
fn metadata<'t>(tool: &str, text: &'t str) -> Vec<&'t str> {
    if tool == "pmprobe" {
        return text.split(' ').take(1).collect();
    }
    let moving = ["    inst [", "    value ", "pmNameIndom", "No value(s)", "Error: "];
    text.lines().take_while(|line| !moving.iter().any(|start| line.starts_with(start))).collect()
}

/// Compares an archive, and says what differs.
fn compared(archive: &Path) -> Vec<String> {
    let path = archive.to_str().expect("UTF-8");
    let mut differences = Vec::new();
    for (tool, options) in INFO_OPTIONS {
        let mut arguments: Vec<&str> = options.split(' ').collect();
        arguments.extend(["-a", path]);
        let (theirs, ours) = (theirs(tool, &arguments), ours(tool, &arguments));
        if theirs.status != ours.status {
            let statuses = format!("{:?}, but {:?}", ours.status, theirs.status);
            differences.push(format!("{tool} {options} -a {path}: {statuses} {}", ours.err));
            continue;
        }
        let [ours, theirs] = [ours, theirs].map(|printed| match *tool {
            "pminfo" => without_help_of_events(&printed),
            _ => printed.out,
        });
        if theirs != ours {
            let first = first_difference(&ours, &theirs);
            differences.push(format!("{tool} {options} -a {path}:\n{first}"));
        }
    }
    differences
}

fn is_allowed(archive: &Path) -> bool {
    let name = archive.strip_prefix(SUITE).unwrap_or(archive);
    reasons::of(&name.to_string_lossy()).is_some()
}

#[test]
fn labels_of_archives_are_printed_as_by_pmdumplog() {
    if !tools_are_installed() {
        return;
    }
    let mut archives = archives_of_suite();
    // pmdumplog takes one archive only.
    archives
        .retain(|archive| size(archive) < 1_000_000 && !archive.is_dir() && !is_allowed(archive));
    let mut equal = 0;
    for archive in archives.iter().step_by(3) {
        let path = archive.to_str().expect("UTF-8");
        let (theirs, ours) = (theirs("pmdumplog", &["-L", path]), pmderive(&["archive", path]));
        // The files follow.
        let label = ours.out.split("File ").next().unwrap_or_default();
        if theirs.status == Some(0) && theirs.err.is_empty() {
            assert_eq!(label, theirs.out, "{path}: {}", ours.err);
            equal += 1;
        }
    }
    assert!(archives.is_empty() || equal > 50, "{equal}");
}

#[test]
fn archives_are_printed_as_pcp_does() {
    if !tools_are_installed() {
        return;
    }
    let mut archives = archives_of_suite();
    archives.retain(|archive| size(archive) < 1_000_000 && !is_allowed(archive));
    // Every third of them is enough for everyday use.
    let chosen: Vec<_> = archives.iter().step_by(3).take(50).collect();
    assert!(archives.is_empty() || chosen.len() == 50, "{}", chosen.len());
    let differences: Vec<String> = chosen.iter().flat_map(|archive| compared(archive)).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Labels come into force while nodes are printed one after the other.
#[test]
fn a_source_keeps_the_labels_that_it_has_first() {
    if !tools_are_installed() {
        return;
    }
    let mmv = &["pmcd.pmlogger.host", "mmv.qa.verbose", "pmcd.pmlogger.port"];
    let marks = &["pmcd.pmlogger", "simple.time.sys", "hinv.node.online"];
    for (options, archive, nodes) in
        [("-fs", "mmv.help", mmv), ("-fl", "mmv.help", mmv), ("-l", "mark_no_mark_1", marks)]
    {
        let archive = format!("{SUITE}/archives/{archive}");
        let arguments = [&[options, "-a", &archive], &nodes[..]].concat();
        assert_eq!(ours("pminfo", &arguments), theirs("pminfo", &arguments), "{arguments:?}");
    }
}

/// Several archives as one, and arguments of pmval for them.
const SEVERAL: &[(&str, &[&str])] = &[
    ("multi", &["-t", "37sec", "kernel.all.load"]),
    ("multi", &["-z", "-t", "20sec", "kernel.all.cpu.user"]),
    ("multi-xz", &["-r", "-t", "20sec", "pmcd.pmlogger.port"]),
    ("multi/20150508.11.57,multi/20150508.11.44", &["-t", "50sec", "kernel.all.load"]),
    ("section-d,section-a", &["-t", "9sec", "mem.util.kernelStack"]),
    ("mark_no_mark_0,mark_no_mark_1,mark_no_mark_2", &["-t", "1sec", "simple.numfetch"]),
    ("diff2,diff1", &["-t", "1sec", "sample.bin"]),
    ("ok-foo,ok-foo,", &["-t", "1sec", "sample.colour"]),
    ("arch_a,arch_b", &["-r", "-s", "4", "irix.kernel.all.cpu.idle"]),
    // Refused.
    ("ok-foo,gap", &["sample.seconds"]),
    ("ok-foo,nosuch", &["sample.seconds"]),
    ("ok-foo.0,ok-foo.meta", &["sample.seconds"]),
    ("section-a,section-b", &["sample.seconds"]),
    ("ok-foo*", &["sample.seconds"]),
];

#[test]
fn several_archives_are_printed_as_pcp_does() {
    let archives = Path::new(side_by_side::SUITE).join("archives");
    if !tools_are_installed() || !archives.is_dir() {
        return;
    }
    let mut differences = Vec::new();
    for (list, arguments) in SEVERAL {
        // A pattern is expanded here, so that it has to match nothing.
        let list = list.replace('*', "-nothing*");
        let paths: Vec<String> = list
            .split(',')
            .map(|name| match name {
                "" => String::new(),
                _ => archives.join(name).display().to_string(),
            })
            .collect();
        let joined = paths.join(",");
        let one = vec!["-a", joined.as_str()];
        let mut each: Vec<&str> = Vec::new();
        for path in paths.iter().filter(|path| !path.is_empty()) {
            each.extend(["-a", path]);
        }
        let runs: [(&str, &[&str]); 3] =
            [("pminfo", &["-dfm"]), ("pmprobe", &["-v"]), ("pmval", arguments)];
        for (tool, options) in runs {
            for given in [&one, &each] {
                let all = [given.as_slice(), options].concat();
                let (theirs, ours) = (theirs(tool, &all), ours(tool, &all));
                let first = |printed: &side_by_side::Printed| {
                    let line = printed.err.lines().next().unwrap_or_default();
                    line.split_once(": ").map_or("", |(_, said)| said).to_owned()
                };
                let same = (ours.status, &ours.out) == (theirs.status, &theirs.out);
                if !same || theirs.status != Some(0) && first(&ours) != first(&theirs) {
                    let difference = first_difference(&ours.out, &theirs.out);
                    differences.push(format!(
                        "{tool} {all:?}: {:?} {}\n{:?} {}\n{difference}",
                        ours.status, ours.err, theirs.status, theirs.err
                    ));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Semantics that mean nothing stay what they are.
#[test]
fn a_derived_metric_that_is_not_supported() {
    let archive = Path::new(side_by_side::SUITE).join("archives/all-irix-6.5.25");
    if !tools_are_installed() || !archive.with_extension("25.meta").is_file() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let definitions = folder.path().join("derived.conf");
    std::fs::write(&definitions, "x.same = vnodes.vnodes\n").expect("a file");
    let [archive, definitions] = [&archive, &definitions].map(|path| path.to_str().expect("UTF-8"));
    let arguments = ["-c", definitions, "-a", archive, "-df", "x.same", "vnodes.vnodes"];
    let (theirs, ours) = (theirs("pminfo", &arguments), ours("pminfo", &arguments));
    assert_eq!((ours.status, &ours.out), (theirs.status, &theirs.out), "{}", ours.err);
    assert_eq!(ours.out.matches("Semantics: ??? (0)").count(), 2, "{}", ours.out);
}

/// The descriptor decides what 8 bytes are, whatever the block says that they are.
#[test]
fn a_derived_metric_of_blocks_that_say_another_type() {
    if !tools_are_installed() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives/own-fleet");
    for end in ["meta", "index"] {
        let to = at(&format!("mixed.{end}"));
        std::fs::copy(own.with_extension(end), to).expect("a part of the archive");
    }
    let mut volume = std::fs::read(own.with_extension("0")).expect("a volume");
    // Blocks of 12 bytes: from U64, which their descriptors have, to I64.
    let mut found = 0;
    for start in 0..volume.len() - 4 {
        if volume[start..start + 4] == [3, 0, 0, 12] {
            volume[start] = 2;
            found += 1;
        }
    }
    assert!(found > 1000, "{found} blocks");
    std::fs::write(at("mixed.0"), volume).expect("a volume");
    let definitions = "q.same = disk.dev.total\nq.twice = mem.util.free * 2\n";
    std::fs::write(at("q.conf"), definitions).expect("a file");
    let (archive, config) = (at("mixed"), at("q.conf"));
    let texts = (archive.to_str().expect("UTF-8"), config.to_str().expect("UTF-8"));
    let variables = [("PCP_DERIVED_CONFIG", texts.1)];
    let arguments = ["-f", "-a", texts.0, "q.same", "q.twice"];
    let expected = side_by_side::theirs_with(&variables, "pminfo", &arguments);
    assert!(expected.out.contains("value "), "{expected:?}");
    assert_eq!(side_by_side::ours_with(&variables, "pminfo", &arguments), expected);
}
