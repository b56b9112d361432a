//! Zones, and times shown in them.

use std::path::Path;

use pmderive_runtime::model::Timestamp;
use pmderive_runtime::time::{TimeZone, TimeZoneProblem};

use crate::golden;
use crate::oracle::answers;
use pmderive_testkit::choices::Choices;

fn at(sec: i64) -> Timestamp {
    Timestamp { sec, nsec: 0 }
}

/// Deliberate differences: zone, second, and libpcp's output.
const DIFFERENCES: &[(&str, i64, &str, &str)] = &[
    // glibc reads the changes of this zone from the file of New York. From 2038
    // on it also uses the offset of New York.
    ("CET-1CEST", 2_147_483_647, "Tue Jan 19 04:14:07 2038\n", "Mon Jan 18 22:14:07 2038\n"),
    ("CET-1CEST", 2_147_483_648, "Tue Jan 19 04:14:08 2038\n", "Mon Jan 18 22:14:08 2038\n"),
    ("CET-1CEST", 4_102_444_800, "Fri Jan  1 01:00:00 2100\n", "Thu Dec 31 19:00:00 2099\n"),
];

#[test]
fn times_are_shown_as_by_libpcp() {
    let data = golden("strings.json");
    let rows = data["tables"]["ctime"]["rows"].as_array().unwrap();
    assert!(rows.len() > 80, "{}", rows.len());
    for row in rows {
        let (sec, text) = (row[0].as_i64().unwrap(), row[1].as_str().unwrap());
        let zone = TimeZone::parse(text);
        let (ours, theirs) = (format!("{}\n", zone.ctime(at(sec))), row[2].as_str().unwrap());
        let differs = DIFFERENCES.iter().find(|row| (row.0, row.1) == (text, sec));
        match differs {
            Some((.., expected, recorded)) => {
                assert_eq!((&*ours, theirs), (*expected, *recorded), "{row}");
            }
            None => assert_eq!(ours, theirs, "{row}"),
        }
        assert_eq!(i64::from(zone.local(at(sec)).is_dst), row[3].as_i64().unwrap(), "{row}");
    }
}

/// Names of all zones of this machine, but those with leap seconds.
fn zone_names(folder: &Path, prefix: &str, names: &mut Vec<String>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().into_string().unwrap();
        let path = entry.path();
        if path.is_dir() && name != "right" && name != "posix" {
            zone_names(&path, &format!("{prefix}{name}/"), names);
        } else if std::fs::read(&path).is_ok_and(|bytes| bytes.starts_with(b"TZif")) {
            names.push(format!("{prefix}{name}"));
        }
    }
}

/// Rules as text, valid ones and others, but none that ends within a rule: the
/// C library keeps pieces of those.
fn rules(choices: &mut Choices) -> String {
    let offsets = ["5", "-1", "+3:30", "-10:30:15", "0", "24", "25", "-00:00:59", "", "x", " 4"];
    let days = ["M3.2.0", "M10.5.6", "M1.1.3", "J1", "J60", "J365", "0", "59", "364", "M4.5.2"];
    let clocks = ["", "", "/2", "/0", "/3:30", "/-1", "/26", "/1:2:3"];
    let mut text = choices.of(&["EST", "<+03>", "CET", "ABCDE", "Ab", "<-3x>"]).to_string();
    text.push_str(choices.of(&offsets));
    if choices.below(4) > 0 {
        text.push_str(choices.of(&["EDT", "CEST", "<+04>", "D"]));
        if choices.below(3) == 0 {
            text.push_str(choices.of(&offsets));
        }
        for _ in 0..2 {
            text.push(',');
            text.push_str(choices.of(&days));
            text.push_str(choices.of(&clocks));
        }
    }
    text
}

#[test]
fn every_zone_is_the_c_librarys() {
    let mut names = Vec::new();
    zone_names(Path::new("/usr/share/zoneinfo"), "", &mut names);
    let mut choices = Choices(7);
    let files = names.len();
    names.extend((0..600).map(|_| rules(&mut choices)));
    let mut questions = Vec::new();
    for (index, name) in names.iter().enumerate() {
        for _ in 0..6 {
            // From 1900 to 2070; for rules from 2008 to 2037. For rules without
            // changes, the C library uses those of the USA from a file. Before 1970
            // it moves the changes of all rules to 1970.
            let (from, to) = if index < files {
                (-2_208_988_800, 3_155_760_000)
            } else {
                (1_200_000_000, 2_140_000_000)
            };
            let sec = from + choices.below((to - from) as usize) as i64;
            questions.push(vec!["ctime".into(), name.clone(), sec.to_string()]);
        }
    }
    let Some(answers) = answers(&questions) else { return };
    for (question, answer) in questions.iter().zip(&answers) {
        let zone = TimeZone::parse(&question[1]);
        let time = at(question[2].parse().unwrap());
        let ours =
            vec![format!("{}\n", zone.ctime(time)), u8::from(zone.local(time).is_dst).to_string()];
        assert_eq!(ours, *answer, "{question:?}");
    }
}

#[test]
fn strict_zones_are_those_of_pcp_7() {
    let problem = |text: &str| TimeZone::parse_strict(text).err().map(|error| error.problem);
    for text in ["UTC", ":Etc/UTC", "EST-11EST-10,87/2:00,297/2:00", "AEDT-11", "nosuch/zone"] {
        assert_eq!(problem(text), None, "{text}");
    }
    assert_eq!(problem(""), Some(TimeZoneProblem::Empty));
    assert_eq!(problem("/etc/localtime"), Some(TimeZoneProblem::Path));
    assert_eq!(problem("../../etc/passwd"), Some(TimeZoneProblem::Path));
    assert_eq!(problem("<+03>-3"), Some(TimeZoneProblem::Character('<')));
    assert_eq!(problem(&"x".repeat(5000)), Some(TimeZoneProblem::TooLong));
    assert!(!TimeZone::parse("nosuch/zone").is_known() && TimeZone::parse("Etc/UTC").is_known());
}

#[test]
fn no_zone_leads_out_of_the_zone_folder() {
    for text in ["../../../etc/localtime", "/etc/passwd", "/dev/zero", ":/proc/self/mem", "a\0b"] {
        let zone = TimeZone::parse(text);
        assert!(!zone.is_known(), "{text}");
        assert_eq!(zone.ctime(at(0)), "Thu Jan  1 00:00:00 1970");
    }
}

#[test]
fn clocks_show_fractions() {
    let (zone, time) = (TimeZone::parse("FOO+3:30"), Timestamp::new(1_709_115_330, 250_999_999));
    assert_eq!(zone.clock_millis(time), "06:45:30.250");
    assert_eq!(zone.clock_nanos(time), "06:45:30.250999999");
    assert_eq!(zone.as_str(), "FOO+3:30");
    assert_eq!(TimeZone::parse("EST").as_str(), "EST+0");
}

#[test]
fn dates_are_found_again() {
    let second = |zone: &str, clock: &str, is_dst| {
        let zone = TimeZone::parse(zone);
        let mut local = zone.local(at(1_700_000_000));
        let mut fields = clock.split(['-', ' ', ':']).map(|field| field.parse::<i64>().unwrap());
        let mut next = || fields.next().unwrap();
        (local.year, local.month, local.day) = (next(), next(), next());
        (local.hour, local.minute, local.second) = (next(), next(), 0);
        local.second_in(&zone, is_dst).unwrap()
    };
    let new_york = "America/New_York";
    assert_eq!(second(new_york, "2024-02-28 05:15", None), 1_709_115_300);
    // Skipped in spring: read by the clocks before.
    assert_eq!(second(new_york, "2024-03-10 02:30", None), 1_710_055_800);
    // Twice in autumn.
    assert_eq!(second(new_york, "2024-11-03 01:30", None), 1_730_611_800);
    assert_eq!(second(new_york, "2024-11-03 01:30", Some(false)), 1_730_615_400);
    assert_eq!(second("Europe/Berlin", "2024-10-27 02:30", None), 1_729_992_600);
    // Winter time in summer.
    assert_eq!(second(new_york, "2024-07-03 05:00", Some(false)), 1_720_000_800);
    assert_eq!(second("UTC", "2024-02-30 24:60", None), second("UTC", "2024-03-02 01:00", None));
}
