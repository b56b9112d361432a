//! Constants have values at a time, too: that of the pmcd that is asked.

use std::fs;

use super::command::run;
use super::pmcd;

#[test]
fn samples_of_constants_have_the_time_of_pmcd() {
    let pmcd = pmcd();
    let host = pmcd.spec().to_string();
    let found =
        run(&["eval", "-h", &host, "-s", "2", "-t", "1msec", "--format", "csv", "rate(13)"]);
    assert_eq!((found.status, found.err.as_str()), (Some(0), ""));
    // The first fetch serves the rate of the second.
    assert_eq!(
        found.out,
        "time,metric,instance,value\n\
         2023-11-14T22:13:22.000005000Z,rate(13),,0.0\n\
         2023-11-14T22:13:24.000005000Z,rate(13),,0.0\n"
    );
}

#[test]
fn rates_of_constants_are_zero_in_the_tools_as_well() {
    let pmcd = pmcd();
    let host = pmcd.spec().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let conf = folder.path().join("k.conf");
    fs::write(&conf, "k.rate = rate(13)\nk.half = 13 / 2\n").expect("a file");
    let conf = conf.to_str().expect("UTF-8");
    let run = |arguments: &[&str]| {
        let found = run(&[arguments, &["-c", conf, "-h", &host]].concat());
        assert_eq!((found.status, found.err.as_str()), (Some(0), ""), "{arguments:?}");
        found.out
    };
    let rates = run(&["val", "-s", "2", "-t", "1msec", "k.rate"]);
    assert!(rates.contains("\nNo values available\n") && !rates.contains("nan"), "{rates}");
    assert!(rates.lines().last().is_some_and(|line| line.trim() == "0.0"), "{rates}");
    assert_eq!(run(&["probe", "-v", "k.half", "k.rate"]), "k.half 1 6.5\nk.rate 0\n");
    let values = run(&["info", "-f", "k.half", "k.rate"]);
    assert_eq!(values, "\nk.half\n    value 6.5\n\nk.rate\nNo value(s) available!\n");
}
