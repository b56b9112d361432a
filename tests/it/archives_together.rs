//! Several archives in one list, fitting or not, beside the installed tools. The names, the
//! words about each, and the reported mistake are compared. One table has lists of archives of
//! PCP's test suite; another has the intended differences.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::side_by_side;
use side_by_side::{SUITE, first_difference, ours, pmderive, theirs, tools_are_installed};

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

/// Fails unless something differs from libpcp. It is given an empty folder.
type Differs = fn(&Path);

/// What differs from libpcp on purpose, and a test that it still does.
const DIFFERENCES: &[(&str, Differs)] = &[
    (
        "A folder stands for its archives in order of their names, of which the first counts for \
         names and hosts. To libpcp the first is the one whose metadata readdir(3) gives first, so \
         that copies of a folder may have other metrics. In every dialect.",
        folders_are_sorted,
    ),
    (
        "All metrics of later archives have names. libpcp drops those below nodes that the first \
         one does not have, and so does --compat.",
        later_names_are_kept,
    ),
    (
        "Behind one to three bytes at the end of an archive the next one is read, also where no \
         index says where the end is. libpcp ends there with \"Corrupted record\". In every \
         dialect; what is told of such bytes, and the exit status, are as for one archive.",
        bytes_at_the_end_of_one_hide_no_other,
    ),
];

#[test]
fn differences_on_purpose() {
    if !tools_are_installed() {
        return;
    }
    for (about, differs) in DIFFERENCES {
        println!("{about}");
        differs(tempfile::tempdir().expect("a folder").path());
    }
}

/// Copies an archive of the suite, and gives the base name of the copy.
fn copy(archive: &str, folder: &Path, name: &str) -> String {
    for suffix in ["0", "index", "meta"] {
        let original = format!("{SUITE}/archives/{archive}.{suffix}");
        fs::copy(original, folder.join(format!("{name}.{suffix}"))).expect("a copy");
    }
    folder.join(name).display().to_string()
}

fn folders_are_sorted(folder: &Path) {
    // Whichever way the file system sorts them, it is not that of one of the two.
    for (number, (first, second)) in [("a", "b"), ("b", "a")].into_iter().enumerate() {
        let folder = folder.join(number.to_string());
        fs::create_dir(&folder).expect("a folder");
        copy("dynmetric", &folder, first);
        copy("gap", &folder, second);
        let entries = fs::read_dir(&folder).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let metadata = paths.filter(|path| path.extension().is_some_and(|end| end == "meta"));
        let bases = metadata.map(|path| path.with_extension("").display().to_string());
        let mut bases: Vec<String> = bases.collect();
        let (list, folder) = (bases.join(","), folder.display().to_string());
        let as_listed = theirs("pminfo", &["-dm", "-a", &list]);
        assert_eq!(theirs("pminfo", &["-dm", "-a", &folder]), as_listed, "{list}");
        bases.sort_unstable();
        let list = bases.join(",");
        for dialect in ["6.0", "7.2", "off"] {
            let run = |archives| pmderive(&["info", "--compat", dialect, "-dm", "-a", archives]);
            assert_eq!(run(&folder), run(&list), "{dialect} {list}");
        }
    }
}

fn later_names_are_kept(folder: &Path) {
    let (first, second) = (copy("dynmetric", folder, "a"), copy("gap", folder, "b"));
    let names = |archives: &str| theirs("pminfo", &["-a", archives]).out;
    let both = format!("{first},{second}");
    let ours = pmderive(&["info", "-a", &both]).out;
    let of_each = [names(&first), names(&second)].concat();
    let all: BTreeSet<&str> = of_each.lines().collect();
    assert_eq!(ours.lines().collect::<BTreeSet<&str>>(), all);
    assert!(names(&both).lines().count() < all.len());
}

fn bytes_at_the_end_of_one_hide_no_other(folder: &Path) {
    let member = |part: &str| copy(&format!("multi/20150508.11.{part}"), folder, part);
    let (first, second) = (member("44"), member("46"));
    let volume = format!("{first}.0");
    let mut bytes = fs::read(&volume).expect("a volume");
    bytes.extend([0; 2]);
    fs::write(&volume, bytes).expect("room");
    let both = format!("{first},{second}");
    let arguments = ["-t", "10sec", "-a", &both, "kernel.all.load"];
    assert_eq!(theirs("pmval", &arguments), ours("pmval", &arguments));
    fs::remove_file(format!("{first}.index")).expect("an index");
    let (theirs, ours) = (theirs("pmval", &arguments), ours("pmval", &arguments));
    assert_eq!(theirs.status, Some(1), "{}", theirs.out);
    assert!(theirs.err.contains("Corrupted record"), "{}", theirs.err);
    assert_eq!(ours.status, Some(0), "{}", ours.err);
    assert!(ours.out.starts_with(&theirs.out) && ours.out.len() > theirs.out.len(), "{}", ours.out);
    let told = pmderive(&[&["val"], &arguments[..]].concat());
    assert_eq!(told.status, Some(1), "{}", told.err);
    assert!(told.err.contains("but the file ends after 2 of them"), "{}", told.err);
}
