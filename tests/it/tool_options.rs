//! Options of `info`, `val` and `probe` that the installed tools lack, and the better answers
//! of these commands where version 6 of PCP is wrong.

use std::path::Path;

use pmderive_runtime::archive_writer::ArchiveWriter;
use pmderive_runtime::model::{
    InDom, InstanceDomain, LabelFlags, LabelLevel, LabelMap, LabelSet, MetricDesc, PmStatus, Pmid,
    RawValue, Semantics, Timestamp, Units, ValueType,
};
use pmderive_runtime::pdu::PduType;
use pmderive_runtime::result::{FetchResult, InstanceValue, MetricValues};
use pmderive_testkit::archives;
use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Fault, Metric, Rule, Script, World};

use crate::side_by_side;
use side_by_side::{Printed, Variables, pmderive, pmderive_with};

const FLEET: &str = "tests/archives/own-fleet";

/// Runs a command on the archive of a fleet; status, standard output, first line
/// of standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let all = [&arguments[..1], &["-a", FLEET], &arguments[1..]].concat();
    let Printed { status, out, err } = pmderive(&all);
    (status, out, err.lines().next().unwrap_or_default().to_owned())
}

fn good(out: &str) -> (Option<i32>, String, String) {
    (Some(0), out.to_owned(), String::new())
}

#[test]
fn descriptors_are_printed_in_one_line() {
    let line = "hinv.ncpu\t32-bit unsigned int\tPM_INDOM_NULL 0xffffffff\tdiscrete\tnone\n";
    assert_eq!(run(&["info", "-1", "hinv.ncpu"]), good(line));
    assert_eq!(run(&["info", "--compat", "7.2", "--desc-oneline", "hinv.ncpu"]), good(line));
    let (status, out, err) = run(&["info", "--compat", "6.0", "-1", "hinv.ncpu"]);
    assert_eq!((status, &*out, &*err), (Some(1), "", "pminfo: invalid option -- '1'"));
}

#[test]
fn derived_metrics_are_given_as_arguments() {
    let two = ["-r", "my.a=hinv.ncpu + 1", "--register", " my.b  =  hinv.ncpu * 2 "];
    let out = "\nmy.a\n    value 3\n\nmy.b\n    value 4\n";
    assert_eq!(run(&[&["info", "-f"], &two[..], &["my"]].concat()), good(out));
    let (status, _, err) = run(&["info", "-r", "my.a hinv.ncpu", "hinv.ncpu"]);
    assert_eq!(status, Some(1));
    assert!(err.starts_with("pmderive: -r wants a name and an expression"), "{err}");
}

/// Derived metrics that read only others. Version 6 finds nothing in them, at the first record.
#[test]
fn derived_metrics_of_others_in_version_6() {
    let two = ["-c", "tests/cli/of_others.conf", "of.same", "kernel.all.load", "of.count"];
    let load = "kernel.all.load\n    inst [5 or \"5 minute\"] value 2439\n    \
                inst [15 or \"15 minute\"] value 2150\n";
    let out = format!("\nof.same\nNo value(s) available!\n\n{load}\nof.count\n    value 0\n");
    assert_eq!(run(&[&["info", "--compat", "6.0", "-f"], &two[..]].concat()), good(&out));
    let out = "of.same 0\nkernel.all.load 2 2439 2150\nof.count 1 0\n";
    assert_eq!(run(&[&["probe", "--compat", "6.0", "-v"], &two[..]].concat()), good(out));
}

/// libpcp does not carry sums of exactly a second; by default there are no such times.
#[test]
fn times_of_a_full_second() {
    let window = ["-S", "3.8", "-O", "+0.2", "-T", "+1.2", "-Z", "UTC", "kernel.all.nprocs"];
    let of_version_6 =
        ["start:     Wed Nov 15 20:26:43 2023", "end:       Wed Nov 15 20:26:44 2023"];
    let exact = ["start:     Wed Nov 15 20:26:44 2023", "end:       Wed Nov 15 20:26:45 2023"];
    for (compat, bounds, times) in [
        (&["--compat", "6.0"][..], of_version_6, ["20:26:43.1000", "20:26:44.1000"]),
        (&[], exact, ["20:26:44.000", "20:26:45.000"]),
    ] {
        let (status, out, err) = run(&[&["val"], compat, &window].concat());
        assert_eq!((status, &*err), (Some(0), ""));
        let lines = |start: &str| out.lines().filter(|line| line.starts_with(start)).count();
        assert!(bounds.iter().all(|bound| lines(bound) == 1), "{out}");
        assert!(times.iter().all(|time| lines(&format!("{time} ")) == 1), "{out}");
    }
}

#[test]
fn what_has_no_values_yet_is_no_error_of_metadata() {
    let rate = ["-r", "my.rate=rate(kernel.all.pswitch)"];
    let (_, out, _) = run(&[&["info", "-v"], &rate[..], &["my"]].concat());
    assert_eq!(out, "my.rate: No value(s) available\n");
    assert_eq!(run(&[&["info", "-e"], &rate[..], &["my"]].concat()), good(""));
}

#[test]
fn instances_are_known_before_the_values() {
    let shop = ["-c", "tests/cli/shop.conf", "shop.size"];
    let probe = |options: &[&str]| run(&[&["probe"], options, &shop].concat());
    assert_eq!(probe(&["-i"]), good("shop.size 3 ?1 ?2 ?7\n"));
    assert_eq!(probe(&["-iI"]), good("shop.size 3 ?1 \"vdb\" ?2 \"nvme0n1\" ?7 \"sdc\"\n"));
    assert_eq!(probe(&["-v"]), good("shop.size 0\n"));
    assert_eq!(probe(&[]), good("shop.size 0\n"));
    assert_eq!(probe(&["--compat", "6.0", "-i"]), good("shop.size 0\n"));
}

#[test]
fn names_that_are_none_are_told_by_probe() {
    let unknown = "-12357 Unknown metric name";
    assert_eq!(run(&["probe", "no.such"]), good(&format!("no.such {unknown}\n")));
    let both = format!("no.such {unknown}\nnor.this {unknown}\n");
    assert_eq!(run(&["probe", "no.such", "nor.this"]), good(&both));
}

#[test]
fn texts_are_those_of_the_version() {
    for (version, text) in [("6.0", "archive log file"), ("7.2", "archive file")] {
        let printed = pmderive(&["probe", "--compat", version, "-a", "", "x"]);
        let expected = format!("pmprobe: Cannot open archive \"\": Missing PCP {text}\n");
        assert_eq!((printed.status, &*printed.err), (Some(1), &*expected));
    }
    let unknown = ["info", "-f", "--register=my.a=1 + kernel.all.nosuch", "my.a"];
    let (_, out, _) = run(&unknown);
    assert!(!out.contains("panicked"), "{out}");
}

/// Where libpcp would have gone on, its texts cannot say what to do.
#[test]
fn what_only_we_refuse_is_explained_with_compat_too() {
    let printed = pmderive(&["info", "--compat", "6.0", "--container", "a b", "hinv.ncpu"]);
    let lines: Vec<&str> = printed.err.lines().collect();
    assert_eq!((printed.status, lines.len()), (Some(1), 2), "{lines:?}");
    assert!(lines[0].starts_with("pminfo: Cannot connect to PMCD on host "), "{lines:?}");
    assert!(lines[1].contains("`a b` is not the name of a container: letters"), "{lines:?}");
}

#[test]
fn debugging_and_versions_are_taken() {
    assert_eq!(run(&["info", "-D", "pmapi", "hinv.ncpu"]), good("hinv.ncpu\n"));
    assert_eq!(run(&["probe", "--debug=all", "-v", "hinv.ncpu"]), good("hinv.ncpu 1 2\n"));
    let printed = pmderive(&["val", "--compat", "6.0", "--version"]);
    assert_eq!((printed.status, &*printed.err), (Some(0), "pmval version 6.0.3\n"));
    for command in ["info", "val", "probe"] {
        let printed = pmderive(&[command, "--version"]);
        let version = format!("pmderive-{command} {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!((printed.status, printed.out), (Some(0), version));
    }
}

#[test]
fn of_an_option_given_twice_the_last_one_counts() {
    let twice = run(&["info", "-d", "-d", "-O", "+1sec", "-O", "+2sec", "hinv.ncpu"]);
    assert_eq!(twice, run(&["info", "-d", "-O", "+2sec", "hinv.ncpu"]));
    let hosts = pmderive(&["info", "-h", "a", "-h", "b", "hinv.ncpu"]);
    assert_eq!(hosts.status, Some(1));
}

#[test]
fn batches_of_nothing_are_for_archives_alone() {
    assert_eq!(run(&["info", "-f", "-b", "-3", "hinv.ncpu"]), run(&["info", "-f", "hinv.ncpu"]));
    for command in ["info", "probe"] {
        let refused = pmderive(&[command, "-L", "-b", "5", "-b", "0", "mem.physmem"]);
        assert_eq!(refused.status, Some(1), "{refused:?}");
        assert!(refused.err.contains("-b requires numeric argument"), "{refused:?}");
        let taken = pmderive(&[command, "-L", "-b", "0", "-b", "5", "mem.physmem"]);
        assert_eq!((taken.status, &*taken.err), (Some(0), ""), "{taken:?}");
    }
}

/// A name space from a file: blanks around colons, subtrees that no agent fills,
/// and in front of an archive only what that has.
#[test]
fn name_spaces_of_files_are_read_as_by_libpcp() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("names");
    let file = file.to_str().expect("UTF-8");
    let load = |text: &str, archive: &str| {
        std::fs::write(file, text).expect("a file");
        pmderive(&["info", "--compat", "6.0", "-m", "-n", file, "-a", archive, "mine"])
    };
    let pmid = pmderive(&["info", "-m", "-a", FLEET, "hinv.ncpu"]).out;
    let pmid = pmid.trim().rsplit(' ').next().expect("an identifier").to_owned();
    let spaced = pmid.replace('.', " : ");
    let text = format!("root {{ mine }}\nmine {{ ncpu {spaced}\n none 1: 2 :3 dyn 13:*:* }}\n");
    let printed = load(&text, FLEET);
    let expected = format!("mine.ncpu PMID: {pmid}\n");
    assert_eq!((printed.status, &*printed.out, &*printed.err), (Some(0), &*expected, ""));
    let printed = load("root {\n mine 1:2:1024\n}\n", FLEET);
    let expected = format!(
        "[{file}:2] Error Parsing ASCII PMNS: Illegal item field in PMID\n    mine 1:2:1024\n         \
         ^\n[{file}:2] Error Parsing ASCII PMNS: Expected NAME, PMID or }}\n         ^\n         ^\n\
         pminfo: Cannot load namespace from \"{file}\": Problems parsing PMNS definitions\n"
    );
    assert_eq!((printed.status, printed.err), (Some(1), expected));
}

/// Variables are options of the commands called after PCP's tools, and what they
/// say wrong is told with their names.
#[test]
fn variables_stand_for_options() {
    let with = |variables: &Variables<'_>, line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        let Printed { status, out, err } = pmderive_with(variables, &arguments);
        let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
        (status, last(&out), last(&err))
    };
    let fleet = ("PCP_ARCHIVE", FLEET);
    let no = String::new;
    let value = |text: &str| (Some(0), format!("    value {text}"), no());
    assert_eq!(with(&[fleet], "info -f hinv.ncpu"), value("2"));
    assert_eq!(with(&[fleet, ("PCP_ORIGIN", "+5")], "info -f mem.util.free"), value("19818203"));
    assert_eq!(
        with(&[fleet, ("PCP_START_TIME", "+9")], "info -f mem.util.free"),
        value("19818206")
    );
    // An option prevails, and an empty variable is none.
    let later = [fleet, ("PCP_ORIGIN", "+5"), ("PCP_HOST", "")];
    assert_eq!(with(&later, "info -f -O +9 mem.util.free"), value("19818206"));
    // Of this machine nothing can be chosen, and other commands read no variables.
    assert_eq!(with(&[("PCP_ARCHIVE", "nosuch")], "info -L pmcd.none").0, Some(1));
    assert_eq!(with(&[("PCP_SAMPLES", "x")], "archive tests/archives/own-fleet").0, Some(0));
    let (status, out, note) = with(&[fleet, ("PCP_SAMPLES", "x")], "val hinv.ncpu");
    let expected =
        "pmderive: options were also taken from the environment: PCP_ARCHIVE, PCP_SAMPLES";
    assert_eq!((status, &*out, &*note), (Some(1), "", expected));
    let of_origin = expected.replace("SAMPLES", "ORIGIN");
    for command in ["val", "info -f"] {
        let line = format!("{command} hinv.ncpu");
        let told = with(&[fleet, ("PCP_ORIGIN", "xyzzy")], &line);
        assert_eq!(told, (Some(1), String::new(), of_origin.clone()), "{line}");
    }
    let (status, out, err) = with(&[("PCP_FOLIO", "nosuch")], "probe hinv.ncpu");
    let expected = "pmderive: cannot open archive folio nosuch: No such file or directory";
    assert_eq!((status, &*out, &*err), (Some(1), "", expected));
}

/// Each metric of an archive has the labels, and the names of instances, of the time of
/// its own first values, whatever else is asked for. To pminfo the first ones found hold.
#[test]
fn what_is_printed_of_a_metric_does_not_depend_on_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("a");
    let start = Timestamp::new(1_700_000_000, 0);
    let mut writer = ArchiveWriter::create(&base, archives::options("web1", start)).expect("new");
    let indom = InDom::new(60, 1);
    for (item, name, id) in [(1, "my.early", 3), (2, "my.late", 7)] {
        let desc = MetricDesc {
            pmid: Pmid::new(60, 0, item),
            value_type: ValueType::U32,
            indom: Some(indom),
            semantics: Semantics::Instant,
            units: Units::NONE,
        };
        let timestamp = Timestamp::new(start.sec + i64::from(item), 0);
        writer.describe(&desc, &[name]).expect("it is new");
        let named = InstanceDomain::new(vec![(id, format!("only {name}").into())]);
        writer.instances(timestamp, indom, &named).expect("good names");
        let flags = LabelFlags(LabelLevel::Context.bit());
        let label = ("rack".into(), (format!("\"{name}\"").into(), flags));
        let labels = LabelSet::from_map(-1, &LabelMap::from([label]));
        writer.labels(timestamp, LabelLevel::Context, &[labels]).expect("good labels");
        let value = InstanceValue { instance: id, value: RawValue::InPlace(item) };
        let sets = vec![MetricValues { pmid: desc.pmid, outcome: Ok(vec![value]) }];
        let record = FetchResult { timestamp, sets, ..FetchResult::default() };
        writer.record(&record).expect("it is good");
    }
    writer.finish().expect("there is room");
    let archive = base.to_str().expect("a plain path");
    let print = |options: &str, names: &[&str]| {
        let printed = pmderive(&[&["info", options, "-a", archive], names].concat());
        assert_eq!((printed.status, &*printed.err), (Some(0), ""));
        printed.out
    };
    for options in ["-f", "-fl", "-l", "-s"] {
        let each: Vec<String> =
            ["my.early", "my.late"].iter().map(|name| print(options, &[name])).collect();
        assert_eq!(print(options, &["my"]), each.concat(), "{options}");
    }
    let late = print("-fl", &["my.late"]);
    assert!(late.contains("[7 or \"only my.late\"] value 2"), "{late}");
    assert!(late.contains("{\"rack\":\"my.late\"}"), "{late}");
}

/// Version 6 takes the bytes of extra units for padding.
#[test]
fn version_6_knows_no_extra_units() {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("warm");
    let archive = archive.to_str().expect("UTF-8");
    let warm = "warm=mkconst(20, type=double, units=\"sec / temperature (C)\")";
    let recorded = pmderive(&["record", "-a", FLEET, "-s", "2", "-o", archive, "hinv.ncpu", warm]);
    assert_eq!(recorded.status, Some(0), "{}", recorded.err);
    for (version, units) in [("6.0", "sec"), ("7.2", "sec / temperature (C)")] {
        let printed = pmderive(&["info", "--compat", version, "-a", archive, "-d", "warm"]);
        assert!(printed.out.ends_with(&format!("Units: {units}\n")), "{}", printed.out);
    }
    let mixed = "warm + mkconst(1, units=sec)";
    for (version, status) in [("6.0", 0), ("7.2", 1)] {
        let printed = pmderive(&["eval", "--compat", version, "-a", archive, "-s", "1", mixed]);
        assert_eq!(printed.status, Some(status), "{version}: {}{}", printed.out, printed.err);
    }
}

/// As pmprobe prints it, without a blank behind the number of values.
#[test]
fn instances_of_a_domain_that_fails() {
    let mut world = World::new();
    let indom = world.add_domain(&["a", "b"]);
    world.add(Metric::new("n.each", Script::constant(1u32)).per(indom));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let fails = Fault::Status(PmStatus::INDOM);
    pmcd.host().inject(Rule::new(fails).on(PduType::InstanceRequest).always());
    let (host, dead) = (pmcd.spec().to_string(), "-12359 Unknown or illegal instance domain");
    let probe = |version, options| {
        pmderive(&["probe", "--compat", version, "-h", &host, options, "n.each"]).out
    };
    for options in ["-i", "-I", "-iI"] {
        let expected = format!("n.each 2{dead} identifier (pmGetInDom)\n");
        assert_eq!(probe("6.0", options), expected);
    }
    assert_eq!(probe("off", "-i"), "n.each 2 ?0 ?1\n");
}

/// The call of libpcp that failed is named.
#[test]
fn names_that_cannot_be_looked_up() {
    let mut world = World::new();
    world.add(Metric::new("n.size", Script::constant(1u32)));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let fails = Fault::Status(PmStatus::TIMEOUT);
    pmcd.host().inject(Rule::new(fails).on(PduType::PmnsNames).always());
    let host = pmcd.spec().to_string();
    for (command, option, expected) in [
        ("info", "-d", "n.size: pmLookupName: Timeout waiting for a response from PMCD\n"),
        ("probe", "-v", "n.size -12353 Timeout waiting for a response from PMCD\n"),
    ] {
        let printed = pmderive(&[command, "--compat", "6.0", "-h", &host, option, "n.size"]);
        assert_eq!(printed.out, expected, "{}", printed.err);
    }
}

/// As pmAddDerivedMetric(3) says it.
#[test]
fn registered_metrics_are_refused_in_libpcps_words() {
    for (definition, expected) in [
        (
            "x.a=2",
            "Error: pmAddDerivedMetric(\"x.a\", ...): returns -12409\n\
                   Duplicate per-context derived metric name\n",
        ),
        (
            "x.b=1 +",
            "Syntax Error: pmAddDerivedMetric(\"x.b\", ...)\n1 +\n  ^\n\
                     Arithmetic expression expected to follow PLUS\n",
        ),
        (
            "x.c=mem.physmem+1",
            "Semantic Error: pmAddDerivedMetric(\"x.c\", ...)\n\
                               mem.physmem+1\n^\nDimensions are not the same\n",
        ),
    ] {
        let definitions = ["-r", "x.a=1", "-r", definition, "hinv.ncpu"];
        let printed =
            pmderive(&[&["info", "--compat", "7.2", "-a", FLEET], &definitions[..]].concat());
        assert_eq!((printed.status, &*printed.err), (Some(1), expected));
    }
}

/// Writes an archive with seven missed event records before two others, and with a metric that
/// failed.
fn write_events(base: &Path) {
    let time = Timestamp::new(1_700_000_000, 0);
    let mut writer = ArchiveWriter::create(base, archives::options("web1", time)).expect("new");
    let mut events: Vec<u8> = 3u32.to_be_bytes().into();
    for (second, flags, parameters) in [(5u32, 1 << 31, 7u32), (6, 1, 0), (7, 1, 0)] {
        for word in [second, 250_000, flags, parameters] {
            events.extend(word.to_be_bytes());
        }
    }
    let value = RawValue::Block { code: 9, bytes: events.into() };
    let events = Ok(vec![InstanceValue { instance: -1, value }]);
    let mut sets = Vec::new();
    for (item, name, value_type, outcome) in [
        (1, "log.events", ValueType::Event, events),
        (2, "log.failed", ValueType::U32, Err(PmStatus::PMID_LOG)),
    ] {
        let desc = MetricDesc {
            pmid: Pmid::new(60, 0, item),
            value_type,
            indom: None,
            semantics: Semantics::Instant,
            units: Units::NONE,
        };
        writer.describe(&desc, &[name]).expect("it is new");
        sets.push(MetricValues { pmid: desc.pmid, outcome });
    }
    let record = FetchResult { timestamp: time, sets, ..FetchResult::default() };
    writer.record(&record).expect("it is good");
    writer.finish().expect("there is room");
}

/// The text form has the line that `info -f` has, and JSON has the words of the version.
#[test]
fn failures_and_events_of_eval() {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("events");
    write_events(&archive);
    let archive = archive.to_str().expect("UTF-8");
    let eval = |version, form| {
        let options = ["eval", "--compat", version, "--format", form, "-Z", "UTC"];
        pmderive(&[&options[..], &["-a", archive, "log.events", "log.failed"]].concat()).out
    };
    let line = |missed, last| {
        format!("value [3 event records ({missed} missed) timestamps 00:00:05.250...{last}]\n")
    };
    let text = eval("off", "text");
    assert!(text.contains(&line(7, "00:00:07.250")), "{text}");
    // Version 6 counts the second record once more in place of the last but one.
    let text = eval("6.0", "text");
    assert!(text.contains(&line(14, "00:00:05.250")), "{text}");
    for (version, words) in [("6.0", "archive log"), ("7.2", "archive")] {
        let json = eval(version, "json");
        assert!(json.contains(&format!("Metric not defined in the PCP {words}\"")), "{json}");
    }
}
