//! Metrics of a live pmcd. Values differ from run to run. If they do so for pmval itself, only
//! the lines above them are compared.

use super::comparison::Comparison;
use super::real_pmcd::RealPmcd;

/// More than one sample of metrics that tell the same every time.
const STABLE: &[&[&str]] = &[
    &["-s", "1", "sample.bin"],
    &["-s", "2", "-t", "0.1", "sample.bin"],
    &["-s", "2", "-t", "0.1", "-i", "bin-300,bin-100", "sample.bin"],
    &["-s", "2", "-t", "0.1", "sample.bin[bin-300, \"bin-100\"]"],
    &["-s", "2", "-t", "0.1", "-w", "2", "sample.bin"],
    &["-s", "2", "-t", "0.1", "-f", "3", "sample.double.bin"],
    &["-s", "1", "-z", "-h", "PMCD", "sample.float.bin"],
    &["-s", "1", "-Z", "EST5EDT", "sample.string.hullo"],
    &["-s", "0", "sample.bin"],
    &["-s", "2", "-t", "0.1", "-r", "sample.ulonglong.bin"],
    &["-s", "1", "-i", "nosuch", "sample.bin"],
    &["-s", "1", "-i", "nosuch", "sample.long.one"],
    &["-s", "1", "sample.long.one[nosuch]"],
    &["-s", "1", "sample.nosuch"],
    &["-s", "1", "sample"],
    &["-s", "1", "-d", "sample.bin"],
    &["-s", "1", "-S", "1sec", "sample.bin"],
    &["-s", "1", "-A", "1sec", "sample.bin"],
    &["-s", "1", "-T", "@nonsense", "sample.bin"],
    &["-T", "0.25sec", "-t", "0.1", "sample.bin"],
    &["-s", "2", "-T", "10sec", "-t", "0.1", "sample.bin"],
    &["-s", "1", "-x", "not a number", "sample.write_me"],
    &["-s", "1", "-x", "99999999999", "sample.write_me"],
    &["-s", "1", "-x", "7", "sample.write_me"],
    &["-s", "1", "-x", "7", "sample.long.one"],
    &["-s", "1", "-x", "2", "sample.string.write_me"],
    &["-s", "2", "-t", "0.1", "-w", "9", "sample.bad.nosupport"],
    &["-s", "1", "sample.bad.nosupport"],
    &["-s", "1", "sample.bad.unknown"],
    &["-s", "2", "-t", "0.1", "sample.noinst"],
    &["-h", "unix:/nonexistent", "-s", "1", "sample.bin"],
    &["-h", "127.0.0.1:1", "-s", "1", "sample.bin"],
    &["-a", "/nonexistent", "-s", "1", "sample.bin"],
];

#[test]
fn every_metric_of_a_pmcd() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let comparison = Comparison::new().expect("PCP is installed").with_pmcd(&pmcd.socket);
    let names = pmcd.tool("pminfo", &[]);
    for name in names.lines() {
        comparison.add(&["-s", "1", "-t", "0.05", name]);
    }
    comparison.finish();
}

#[test]
fn options_with_a_pmcd() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let comparison = Comparison::new().expect("PCP is installed").with_pmcd(&pmcd.socket);
    let host = format!("unix:{}", pmcd.socket.display());
    for arguments in STABLE {
        let arguments: Vec<&str> =
            arguments.iter().map(|one| if *one == "PMCD" { &host } else { *one }).collect();
        comparison.add(&arguments);
    }
    comparison.finish();
}
