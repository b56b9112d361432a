//! With `--compat 6.0`, `info`, `val` and `probe` refuse what PCP's tools refuse, in the same
//! words. Standard output, standard error and exit status are compared, for command lines in a
//! table and for others made from a seed. No pmcd is needed.

use std::path::Path;

use crate::side_by_side;
use side_by_side::{SUITE, first_difference, ours_with, theirs_with, tools_are_installed};

/// Command lines with a blank between arguments, and variables in front of them;
/// `@` is an archive, `$` another one of another host, and `''` is nothing.
const LINES: &str = include_str!("../pcp_usage/lines.txt");

/// Command lines about other archives of PCP's test suite, `@NAME`, and files beside
/// the table, `~NAME`.
const ARCHIVES: &str = include_str!("../pcp_usage/archives.txt");

/// Options with arguments, and some of these that make sense and others that do not.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("-a", &["@", "@", "nosuch", "$", "''"]),
    ("--archive", &["@", "nosuch"]),
    ("-h", &["a:b", "''"]),
    ("-O", &["+1sec", "-0", "foo", "@foo", "''"]),
    ("-S", &["+1sec", "1min", "foo", "-1x"]),
    ("-T", &["+3sec", "5", "bar", "-"]),
    ("-A", &["1sec", "0", "x", "-1", "1hour"]),
    ("-s", &["1", "2", "0", "-1", "3x", "''", "0x2", "99999999999"]),
    ("-t", &["1", "500msec", "2sec", "0", "-3", "1foo", "''"]),
    ("-f", &["2", "0", "-1", "x", "30"]),
    ("-w", &["12", "0", "-1", "3x", "1"]),
    ("-b", &["4", "x", "1x"]),
    ("-i", &["bin-100", "nosuch", "''", "bin-100,bin-300"]),
    ("-Z", &["UTC", "EST5EDT", "''"]),
    ("-n", &["nosuch"]),
    ("-K", &["x", ""]),
    ("-x", &["1", "foo"]),
    ("--container", &["x"]),
    ("--origin", &["+1sec", "x"]),
];

/// Options without.
const FLAGS: &[&str] = &[
    "-z",
    "-z",
    "-L",
    "-d",
    "-f",
    "-F",
    "-I",
    "-i",
    "-l",
    "-m",
    "-M",
    "-t",
    "-T",
    "-v",
    "-x",
    "-r",
    "-X",
    "-y",
    "-?",
    "-V",
    "-e",
    "-1",
    "-W",
    "--",
    "-",
    "--hostzone",
    "--h",
    "--help",
    "--fetch",
    "--version",
    "--internal",
    "--ex",
    "--raw",
    "--nosuch",
    "--nosuch=x",
    "--d",
    "--values=1",
    "-s",
    "-b",
    "-a",
    "--archive",
    "-dfm",
    "-vi",
    "-zL",
];

/// Variables in place of options, and some values of theirs. Those of the time
/// control and of this machine's own metrics cannot be compared.
const VARIABLES: &[(&str, &[&str])] = &[
    ("PCP_ALIGN_TIME", &["1sec", "3sec", "0", "x", "''"]),
    ("PCP_ARCHIVE", &["@", "$", "nosuch"]),
    ("PCP_ARCHIVE_LIST", &["@", "nosuch,nosuch"]),
    ("PCP_DEBUG", &["foo", "''", "fetch,,pdu"]),
    ("PCP_FINISH_TIME", &["+3sec", "-1sec", "foo", "''"]),
    ("PCP_FOLIO", &["nosuch", "''"]),
    ("PCP_HOST", &["a:b", "''"]),
    ("PCP_HOSTZONE", &["1", "''"]),
    ("PCP_HOST_LIST", &["a,b", ",", "''"]),
    ("PCP_INTERVAL", &["2", "500msec", "2foo", "''"]),
    ("PCP_NAMESPACE", &["nosuch", "''"]),
    ("PCP_ORIGIN", &["+2sec", "-1sec", "foo"]),
    ("PCP_ORIGIN_TIME", &["+2sec", "''"]),
    ("PCP_SAMPLES", &["2", "0", "-1", "x", "''"]),
    ("PCP_SPECLOCAL", &["x", "''"]),
    ("PCP_START_TIME", &["+2sec", "@18:34:35", "foo", "''"]),
    ("PCP_TIMEZONE", &["EST5", "UTC", "''"]),
    ("PCP_UNIQNAMES", &["nosuch"]),
];

const OPERANDS: &[&str] =
    &["sample.bin", "sample.colour", "sample.seconds", "nosuch", "sample", "29.0.5", "sample.bin["];

/// Numbers that look drawn by lot (splitmix64).
struct Lots(u64);

impl Lots {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A command line: an archive most of the time, so that it comes to an end.
fn line(lots: &mut Lots, variables: usize) -> String {
    let mut words = Vec::new();
    for _ in 0..variables {
        let (variable, values) = lots.one(VARIABLES);
        words.push(format!("{variable}={}", lots.one(values)));
    }
    words.push(lots.one(&["pminfo", "pmval", "pmprobe"]).to_owned());
    if lots.below(4) > 0 {
        words.push("-a @".to_owned());
    }
    for _ in 0..lots.below(4) {
        words.push(match lots.below(2) {
            0 => lots.one(FLAGS).to_owned(),
            _ => {
                let (option, arguments) = lots.one(ARGUMENTS);
                format!("{option} {}", lots.one(arguments))
            }
        });
    }
    for _ in 0..[0, 1, 1, 1, 1, 2][lots.below(6)] {
        words.push(lots.one(OPERANDS).to_owned());
    }
    words.join(" ")
}

/// How a command line differs, if it does.
fn difference(line: &str) -> Option<String> {
    let archives = Path::new(SUITE).join("archives");
    let [known, other] = ["ok-foo", "gap"].map(|name| archives.join(name).display().to_string());
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pcp_usage");
    let in_folder = |folder: &Path, name: &str| folder.join(name).display().to_string();
    let meaning = |word: &str| match word.split_at_checked(1) {
        _ if word == "''" => String::new(),
        Some(("@", "")) => known.clone(),
        Some(("$", "")) => other.clone(),
        Some(("@", name)) if archives.join(format!("{name}.meta")).is_file() => {
            in_folder(&archives, name)
        }
        Some(("~", name)) => in_folder(&beside, name),
        _ => word.to_owned(),
    };
    let (variables, line_of_tool) = line.split_at(line.find("pm").expect("a tool"));
    let variables = variables.split_whitespace().filter_map(|one| one.split_once('='));
    let variables: Vec<_> = variables.map(|(name, value)| (name, meaning(value))).collect();
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut words = line_of_tool.split_whitespace();
    let tool = words.next().expect("a tool");
    let arguments: Vec<String> = words.map(meaning).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let theirs = theirs_with(&variables, tool, &arguments);
    let ours = ours_with(&variables, tool, &arguments);
    if theirs == ours {
        return None;
    }
    let [out, err] = [(&ours.out, &theirs.out), (&ours.err, &theirs.err)]
        .map(|(ours, theirs)| first_difference(ours, theirs));
    Some(format!("{line}\nstatus {:?}, theirs {:?}\n{out}\n{err}", ours.status, theirs.status))
}

fn check<L: AsRef<str>>(lines: &[L]) {
    let differences: Vec<String> =
        lines.iter().filter_map(|line| difference(line.as_ref())).collect();
    println!("{} of {} differ", differences.len(), lines.len());
    let shown: Vec<_> = differences.iter().take(40).map(String::as_str).collect();
    assert!(differences.is_empty(), "{}", shown.join("\n\n"));
}

fn archives_are_there() -> bool {
    tools_are_installed() && Path::new(SUITE).join("archives").is_dir()
}

#[test]
fn what_is_refused_is_refused_in_the_words_of_the_tools() {
    if !archives_are_there() {
        return;
    }
    let lines: Vec<&str> = LINES.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() > 60, "{}", lines.len());
    check(&lines);
}

#[test]
fn archives_are_reported_on_as_by_the_tools() {
    if !archives_are_there() {
        return;
    }
    let lines = ARCHIVES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    check(&lines.collect::<Vec<_>>());
}

/// Each of the variables, with each of its values, beside each of the tools.
#[test]
fn variables_are_taken_for_options_as_by_the_tools() {
    if !archives_are_there() {
        return;
    }
    let tools = [
        "pminfo -f -a @ sample.seconds",
        "pmprobe -v -a @ sample.seconds",
        "pmval -a @ sample.seconds",
        "pmval -s 2 -a @ sample.bin",
        "pminfo -d -Y",
        "pmprobe -z x",
    ];
    let mut lines = Vec::new();
    for (variable, values) in VARIABLES {
        for value in *values {
            lines.extend(tools.iter().map(|line| format!("{variable}={value} {line}")));
        }
    }
    check(&lines);
}

/// `PCP_USAGE_LINES` is how many, `PCP_USAGE_SEED` what they are made from.
#[test]
fn random_command_lines_are_answered_as_by_the_tools() {
    if !archives_are_there() {
        return;
    }
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let mut lots = Lots(setting("PCP_USAGE_SEED").unwrap_or(12));
    let count = setting("PCP_USAGE_LINES").unwrap_or(300);
    let mut lines = Vec::new();
    while lines.len() < count as usize {
        // Every third line has variables, one or two.
        let variables = [0, 0, 0, 0, 1, 2][lots.below(6)];
        let line = line(&mut lots, variables);
        let is_allowed =
            |(tool, part, _): &(&str, &str, &str)| line.contains(tool) && line.contains(part);
        if !NOT_COMPARED.iter().any(is_allowed) {
            lines.push(line);
        }
    }
    check(&lines);
}

/// Tools with parts of command lines that cannot be compared, and why.
const NOT_COMPARED: &[(&str, &str, &str)] = &[
    ("", " -L", "metrics of this machine are our own, not those of PCP's agents"),
    ("", "-zL", "the same"),
    ("pmprobe", " -V", "it counts messages of libpcp"),
    ("pminfo", " -T", "the help texts of event.flags and event.missed are our own"),
    ("pminfo", " -t", "the same"),
];
