//! Tests of the settings that arguments give, without a source.

use super::option_rules::c_int;
use super::*;

fn own() -> Vec<OwnOption> {
    let option = |form: &str, takes_argument| OwnOption { form: form.to_owned(), takes_argument };
    vec![option("--compat", true), option("-c", true), option("--follow", false)]
}

/// The arguments for clap, or the text of the early end and whether it was asked for.
fn read(line: &str) -> Result<String, (String, bool)> {
    let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let tool = Impersonated::by(&arguments).expect("a tool of PCP");
    match tool.translate(&arguments, &own(), &[]) {
        Ok(translated) => {
            let words: Vec<_> =
                translated.iter().skip(2).map(|word| word.to_string_lossy()).collect();
            Ok(words.join(" "))
        }
        Err(ending) => {
            let text = ending.text.to_string();
            let (first, _) = text.split_once('\n').expect("lines");
            Err((first.to_owned(), ending.is_good))
        }
    }
}

#[test]
fn options_become_words() {
    for (line, expected) in [
        ("p info --compat 6.0 x -df", "--compat 6.0 --desc --fetch -- x"),
        ("p info --compat=7.2 -1e", "--compat=7.2 --desc-oneline --metadata-errors --"),
        (
            "p val --compat 6.0 -c F m -s7 --inter 2",
            "--compat 6.0 -c F --samples=7 --interval=2 -- m",
        ),
        (
            "p val --compat 6.0 -U A -a B m",
            "--compat 6.0 --archive=A --nointerp=A --archive=B -- m",
        ),
        ("p probe --compat 6.0 -L -h b -a c", ""),
        ("p probe --compat 6.0 -L -a c -v", "--compat 6.0 --local-PMDA --values --"),
        ("p probe --compat 6.0 -- -v -x", "--compat 6.0 -- -v -x"),
    ] {
        let read = read(line);
        match expected {
            "" => assert!(read.is_err(), "{line}: {read:?}"),
            _ => assert_eq!(read.as_deref(), Ok(expected), "{line}"),
        }
    }
}

/// A batch of zero fetches nothing. Archives have no batches: their metrics are fetched one by
/// one.
#[test]
fn of_batches_the_last_number_counts() {
    for (line, expected) in [
        ("p info --compat 6.0 -h h -b 0 -b 5", Ok("--host=h --batch=0 --batch=5 --")),
        ("p info --compat 6.0 -h h -b 5 -b 0", Err("pminfo: -b requires numeric argument")),
        ("p probe --compat 6.0 -b -1", Err("pmprobe: -b requires numeric argument")),
        ("p info --compat 6.0 -a x -b 0", Ok("--archive=x --batch=0 --")),
    ] {
        let expected = expected.map(|words| format!("--compat 6.0 {words}"));
        assert_eq!(
            read(line).map_err(|(first, _)| first),
            expected.map_err(str::to_owned),
            "{line}"
        );
    }
}

#[test]
fn other_arguments_are_left_alone() {
    for line in [
        "p info -a x",
        "p eval --compat 6.0 x",
        "p val --compat off x",
        "p probe -- --compat 6.0",
        "p",
    ] {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert!(Impersonated::by(&arguments).is_none(), "{line}");
    }
}

#[test]
fn numbers_are_those_of_c() {
    for (text, expected) in [
        ("", Some(0)),
        (" \t7", Some(7)),
        ("+7", Some(7)),
        ("-7", Some(-7)),
        ("7 ", None),
        ("0x7", None),
        ("-", None),
        (" ", None),
        ("4294967300", Some(4)),
        ("99999999999999999999", Some(-1)),
    ] {
        assert_eq!(c_int(text), expected, "{text:?}");
    }
}

#[test]
fn version_7_has_more_options() {
    let said = read("p info --compat 6.0 -1").expect_err("refused");
    assert_eq!(said, ("pminfo: invalid option -- '1'".to_owned(), false));
    let said = read("p info --compat 6.0 --register=a=b").expect_err("refused");
    assert_eq!(said.0, "pminfo: unrecognized option '--register=a=b'");
    assert_eq!(read("p info --compat 7.2 -r a=b"), Ok("--compat 7.2 --register=a=b --".to_owned()));
    let version = read("p val --compat 7.2 -V -y").expect_err("said");
    assert_eq!(version, ("pmval version 7.2.1".to_owned(), true));
}
