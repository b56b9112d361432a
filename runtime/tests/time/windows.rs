//! Windows of time from options.

use pmderive_runtime::model::Timestamp;
use pmderive_runtime::time::{TimeWindow, TimeZone, WindowSpec};

use crate::golden;
use crate::oracle::{ABSENT, answers};
use pmderive_testkit::choices::Choices;

/// Deliberate differences: the options, and why.
const DIFFERENCES: &[([Option<&str>; 4], &str)] =
    &[([None, None, Some("1h"), Some("10m")], "an end that is far away overflows in libpcp")];

/// The same for random windows: the reason if libpcp's answer is a known fault.
fn known_fault(question: &[String], libpcp: &[String], ours: &[String]) -> Option<&'static str> {
    let is_given = |index: usize| question[index] != ABSENT;
    let is_of_months = |text: &String| text.contains(" month") || text.contains(" year");
    if question[3] == "max" && is_given(6) && is_given(7) {
        // The nanoseconds until the end do not fit, and the origin is aligned down.
        return Some("an end that is far away overflows in libpcp");
    }
    if libpcp[0] == "0" && libpcp[4].is_empty() && ours[..4] == libpcp[..4] {
        return Some("libpcp forgets its warning when it reads a free date after it");
    }
    if ours[0] == "-1" && question[4..].iter().any(is_of_months) {
        return Some("a day that the month lacks is the year 1969 to libpcp");
    }
    None
}

/// `SEC.NNNNNNNNN`, or `max` for no end.
fn timestamp(text: &str) -> Option<Timestamp> {
    let (sec, nsec) = text.split_once('.')?;
    Some(Timestamp::new(sec.parse().unwrap(), nsec.parse().unwrap()))
}

fn shown(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "max".to_owned(), |time| time.to_string())
}

/// The library's answer, in the fields of the oracle.
fn ours(zone: &str, bounds: (&str, &str), options: [Option<&str>; 4]) -> Vec<String> {
    let [start, finish, align, origin] = options;
    let spec = WindowSpec { start, finish, align, origin, as_libpcp: true };
    let bounds = (timestamp(bounds.0).unwrap(), timestamp(bounds.1));
    match TimeWindow::parse(&spec, bounds, &TimeZone::parse(zone)) {
        Ok(window) => {
            let TimeWindow { start, end, origin, warning } = window;
            let mut fields = vec![u8::from(warning.is_none()).to_string()];
            fields.extend([Some(start), end, Some(origin)].map(shown));
            fields.extend(warning.map(|warning| format!("{warning}\n")));
            fields
        }
        Err(error) => vec!["-1".to_owned(), format!("{error}\n")],
    }
}

#[test]
fn windows_are_those_of_libpcp() {
    let data = golden("time_windows.json");
    let rows = data["tables"]["rows"]["rows"].as_array().unwrap();
    assert!(rows.len() > 490, "{}", rows.len());
    let mut differ = vec![false; DIFFERENCES.len()];
    for row in rows {
        let options = [0, 1, 2, 3].map(|index| row[index].as_str());
        let text = |index: usize| row[index].as_str().unwrap();
        let mut expected = vec![row[7].to_string()];
        expected.extend((8..12).filter_map(|index| row[index].as_str()).map(str::to_owned));
        let ours = ours(text(6), (text(4), text(5)), options);
        let is_it = |known: &[Option<&str>; 4]| *known == options && text(5) == "max";
        let known = DIFFERENCES.iter().position(|(known, _)| is_it(known));
        match known {
            Some(index) => {
                assert_ne!(ours, expected, "no longer a difference: {row}");
                differ[index] = true;
            }
            None => assert_eq!(ours, expected, "{row}"),
        }
    }
    assert!(differ.iter().all(|differs| *differs), "differences without a row: {differ:?}");
}

/// In libpcp they wrap around: midnight, a year of this century, a time long ago.
#[test]
fn numbers_too_large_for_a_date_are_refused() {
    let digits = format!("@2{}", "0".repeat(300));
    for text in [&*digits, "7 Aug 4294969294", "@9999999999999999999 weeks monday"] {
        let found = ours("UTC", ("1709115330.0", "max"), [Some(text), None, None, None]);
        assert_eq!(found[0], "-1", "{text}: {found:?}");
    }
}

/// A point in time, never one that depends on the clock.
fn specification(choices: &mut Choices) -> String {
    let number = |choices: &mut Choices| {
        choices.of(&[
            "0", "1", "2", "5", "10", "11", "12", "23", "24", "29", "30", "31", "59", "1.5", "90",
        ])
    };
    let month = ["Jan", "feb", "Mar", "DEC", "May", "July", "October", "Sept", "nov."];
    let weekday = ["Mon", "tue", "Sunday", "thurs", "Fri,"];
    let unit = ["s", "sec", "min", "m", "hour", "h", "days", "d", "ms", "msec", "usec", "week", ""];
    let free_unit =
        ["second", "min", "hours", "day", "weeks", "fortnight", "month", "years", "sec"];
    let clock =
        ["10:30", "00:00", "23:59:59", "12:30am", "1:15 pm", "10:30:45.5", ":30", "7", "12pm"];
    let year = ["2024", "2023", "2025", "1999", "24", "99", "1971"];
    let zone =
        ["", "", "", " UTC", " EST", " EDT", " cet", " Z", " T", " PST DST", " +0530", " -0330"];
    match choices.below(9) {
        0 | 1 => {
            let sign = choices.of(&["", "+", "-", "- ", " +", "-+", "--"]);
            let space = choices.of(&["", " "]);
            let mut text = format!("{sign}{}{space}{}", number(choices), choices.of(&unit));
            if choices.below(4) == 0 {
                text += &format!(" {}{}", number(choices), choices.of(&unit));
            }
            text
        }
        2 | 3 => {
            let mut text = "@".to_owned();
            let parts: [&[&str]; 5] =
                [&weekday, &month, &["1", "28", "29", "31", "0"], &clock, &year];
            for part in parts {
                if choices.below(2) == 0 {
                    text += choices.of(&[" ", ""]);
                    text += choices.of(part);
                }
            }
            text
        }
        4 | 5 => {
            let day = choices.of(&["1", "28", "29", "30", "31"]);
            let (month, year) = (choices.of(&month), choices.of(&year));
            let date = match choices.below(6) {
                0 => format!("{year}-0{}-{day}", 1 + choices.below(9)),
                1 => format!("{}/{day}/{year}", 1 + choices.below(13)),
                2 => format!("{day} {month} {year}"),
                3 => format!("{day}-{month}-{year}"),
                4 => format!("{month} {day}, {year}"),
                _ => format!("2024{:02}{day}", 1 + choices.below(12)),
            };
            let clock =
                choices.of(&["", " 10:30", " 23:59:59", " 1:15pm", " 1200", " 12 am", " 24:00"]);
            format!("{}{date}{clock}{}", choices.of(&["", "@", "@ "]), choices.of(&zone))
        }
        6 | 7 => {
            // Words with a blank before a unit are relative to start or end.
            let count = choices.of(&["1", "2", "last", "next", "third", "-1", "+3", "this", "3"]);
            let more = choices.of(&["", "", " ago", " 1 hour", " monday", " 10:30", " (or so)"]);
            format!("{}{count} {}{more}", choices.of(&["", "@"]), choices.of(&free_unit))
        }
        _ => choices
            .of(&[
                "foo",
                "5x hours",
                "@foo",
                "1:2:3:4 day",
                "last",
                "@10:30 foo",
                "/ day",
                "@@1 day ago",
            ])
            .to_owned(),
    }
}

/// True for texts whose meaning depends on today: free dates without a date of
/// their own, or with the date of today.
fn depends_on_the_clock(text: &str) -> bool {
    let lower = text.to_lowercase();
    let is_distance =
        [" second", " min", " hour", " day", " week", " fortnight", " month", " year", " sec"]
            .iter()
            .any(|word| lower.contains(word));
    let has_year =
        ["2024", "2023", "2025", "1999", "1971", "-99", "-24", "/99", "/24", " 99", " 24"]
            .iter()
            .any(|year| lower.contains(year));
    !is_distance && (!has_year || lower.trim_start().starts_with('-'))
}

#[test]
fn random_windows_are_those_of_libpcp() {
    let zones =
        ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Melbourne", "EST5EDT", "FOO+3:30"];
    let bounds = [
        ("1709115330.250000000", "1709283907.500000000"),
        ("1709115330.250000000", "max"),
        // Across the change of the clocks in the USA, and the end of a year.
        ("1709900000.000000001", "1710500000.999999999"),
        ("1703980000.500000000", "1704300000.000000000"),
    ];
    let mut choices = Choices(11);
    let mut questions = Vec::new();
    for _ in 0..5_000 {
        let (first, last) = bounds[choices.below(bounds.len())];
        let zone = choices.of(&zones);
        let mut question: Vec<String> = ["window", zone, first, last].map(str::to_owned).into();
        for option in 0..4 {
            // One of the options is always present, all of them seldom.
            let text = match (choices.below(3), option) {
                (0, 2) => choices.of(&["1h", "10m", "3.7s", "1day", "0", "x"]).to_owned(),
                (0, _) | (1, 0) => specification(&mut choices),
                _ => ABSENT.to_owned(),
            };
            question.push(text);
        }
        questions.push(question);
    }
    let Some(answers) = answers(&questions) else { return };
    let (mut compared, mut wrong) = (0, Vec::new());
    let mut faults = std::collections::BTreeSet::new();
    for (question, answer) in questions.iter().zip(answers) {
        let options =
            [4, 5, 6, 7].map(|index| Some(&*question[index]).filter(|text| *text != ABSENT));
        let fails = answer[0] == "-1";
        let unsure = |text: &&str| depends_on_the_clock(text);
        let uncertain = [options[0], options[1], options[3]].iter().flatten().any(unsure);
        let ours = ours(&question[1], (&question[2], &question[3]), options);
        // Failures do not depend on the clock, nor do the readings of libpcp's own forms.
        if uncertain && !fails && ours != answer {
            continue;
        }
        compared += 1;
        if ours == answer {
            continue;
        }
        if let Some(reason) = known_fault(question, &answer, &ours) {
            faults.insert(reason);
        } else {
            wrong.push(format!("{question:?}\n  libpcp {answer:?}\n  ours   {ours:?}"));
        }
    }
    assert!(compared > questions.len() / 2, "{compared}");
    assert!(
        wrong.is_empty(),
        "{} of {compared}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

/// libpcp does not carry a sum of nanoseconds that is exactly a second.
#[test]
fn sums_of_a_second() {
    let bounds = (Timestamp::new(1_700_000_000, 0), Some(Timestamp::new(1_700_000_009, 0)));
    let read = |origin, finish, as_libpcp| {
        let (start, align) = (Some("2.8"), None);
        let spec = WindowSpec { start, finish: Some(finish), align, origin, as_libpcp };
        let window = TimeWindow::parse(&spec, bounds, &TimeZone::utc()).expect("good times");
        [Some(window.origin), window.end].map(shown)
    };
    for (origin, finish, exact, to_libpcp) in [
        (None, "+0.2", ["2.800000000", "3.000000000"], ["2.800000000", "2.1000000000"]),
        (Some("0.2"), "1.4", ["3.000000000", "4.200000000"], ["2.1000000000", "4.200000000"]),
        (None, "-5", ["2.800000000", "4.000000000"], ["2.800000000", "4.000000000"]),
        (Some("+0"), "+1", ["2.800000000", "3.800000000"], ["2.800000000", "3.800000000"]),
    ] {
        assert_eq!(read(origin, finish, false), exact.map(|time| format!("170000000{time}")));
        assert_eq!(read(origin, finish, true), to_libpcp.map(|time| format!("170000000{time}")));
    }
}

/// Unless libpcp's reading is asked for, a time is the one that was written.
#[test]
fn times_are_those_that_were_written() {
    let zone = TimeZone::parse("AEST-10AEDT-11,M10.1.0,M4.1.0/3");
    let bounds = (Timestamp::new(1_455_072_000, 0), Some(Timestamp::new(1_455_200_000, 0)));
    let start = |text| {
        let spec = WindowSpec { start: Some(text), ..WindowSpec::default() };
        let read = |spec| TimeWindow::parse(&spec, bounds, &zone).ok().map(|window| window.start);
        [read(spec), read(WindowSpec { as_libpcp: true, ..spec })]
            .map(|time| time.map_or_else(|| "refused".to_owned(), |time| time.to_string()))
    };
    for (text, time, to_libpcp) in [
        ("@14:39:14.883562", "1455075554.883562000", "1455075554.883561999"),
        ("@14:39:59.9999999999", "1455075599.999999999", "1455075599.999999999"),
        ("2016-02-10T03:39:14.883562000Z", "1455075554.883562000", "refused"),
        ("2016-02-10T14:39:14.883562000+11:00", "1455075554.883562000", "refused"),
        ("@2016-02-10T03:39:14Z", "1455075554.000000000", "refused"),
        ("2016-02-10 14:39:14.5", "1455075554.500000000", "refused"),
        // libpcp takes the T for a zone.
        ("2016-02-10T14:39:14", "1455075554.000000000", "1455089954.000000000"),
        ("2016-02-10 14:39:14", "1455075554.000000000", "1455075554.000000000"),
        ("2016-02-11", "1455109200.000000000", "1455109200.000000000"),
        ("2016-02-30T14:39:14", "refused", "refused"),
    ] {
        assert_eq!(start(text), [time, to_libpcp], "{text}");
    }
}
