//! Files that are wrong, and receivers, disks, addresses and hosts that fail: it is told
//! which and what to do, nothing else is harmed, and memory stays bounded.

use std::io::{BufRead as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use pmderive_testkit::fake_pmcd::{FakeHost, FakePmcd, Metric, Script, World};
use pmderive_testkit::receiver::{Receiver, Reply};
use serde_json::Value as Json;

use super::{LINES, Serving, Site, check_values, host_of, is_frame, request, serve};
use crate::command::pmderive;

#[test]
fn an_address_that_is_taken_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let site = Site::new(1, &format!("listen = '{address}'\n{LINES}"));
    let output = serve(&site.path("serve.toml")).wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected = format!("pmderive: {address} is taken: ");
    assert!(said.contains(&expected), "{said}");
}

/// Runs `serve --check` with this file of targets, in little memory.
fn check_targets(site: &Site, targets: &str) -> (Option<i32>, String) {
    site.write("hosts.json", targets);
    let mut command = Command::new("sh");
    // Kilobytes: what a file says must not make the process large.
    command.args(["-c", "ulimit -v 2000000 && exec \"$@\"", "sh"]);
    command.args([env!("CARGO_BIN_EXE_pmderive"), "serve", "--check", "--config"]);
    let output = command.arg(site.path("serve.toml")).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    (output.status.code(), said.into_owned())
}

#[test]
fn files_of_targets_that_are_wrong_are_told_in_few_words() {
    let long = "x".repeat(1 << 20);
    let many: Vec<String> = (0..1_000_000).map(|at| format!("\"h{at}\"")).collect();
    let many = format!("[{{\"targets\": [{}]}}]", many.join(","));
    let doubled = format!("[{{\"targets\": [{}]}}]", vec!["\"web1\""; 1000].join(","));
    let host = |host: &str| format!("[{{\"targets\": [\"{host}\"]}}]");
    let label = |name: &str, value: &str| {
        format!("[{{\"targets\": [\"a\"], \"labels\": {{\"{name}\": \"{value}\"}}}}]")
    };
    let rows = [
        (String::new(), "this is no list of targets: EOF while parsing a value"),
        ("[{\"targets\": [\"web1\"".into(), "this is no list of targets: EOF while parsing a list"),
        (host(""), "this is no host: empty host specification"),
        (host(&long), "a target of 1048576 bytes"),
        (label("b", &long), "a label of 1048576 bytes"),
        (label(&long, "b"), "this cannot be the name of a label"),
        (many, "there are more than 100000 targets"),
    ];
    let site = Site::new(1, LINES);
    for (targets, expected) in rows {
        let (status, said) = check_targets(&site, &targets);
        let begin = &targets[..targets.len().min(60)];
        assert!(said.contains(expected), "{begin}: {}", &said[..said.len().min(2000)]);
        assert_eq!(status, Some(2), "{begin}");
        // It is for people to read.
        assert!(said.len() < 64 << 10, "{begin}: {} bytes", said.len());
    }
    let (status, said) = check_targets(&site, &doubled);
    assert!(status == Some(0) && said.len() < 64 << 10, "{said}");
    for expected in ["`web1:44321` is listed twice", "979 more targets of this file are", "1 host "]
    {
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_check_tells_what_would_fail_here() {
    let group = "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n";
    let remote =
        "[[sink]]\nkind = 'remote-write'\nurl = 'http://127.0.0.1:9/'\ntoken-file = 'no'\n";
    let lines = "[[sink]]\nkind = 'json-lines'\npath = 'no/lines.json'\n";
    let site = Site::new(1, &format!("{group}{remote}{lines}"));
    let alike = r#"[{"targets": ["a", "b", "c"], "labels": {"instance": "x"}}]"#;
    let (status, said) = check_targets(&site, alike);
    assert_eq!(status, Some(0), "{said}");
    for expected in [
        "Warning: `b:44321` has all the labels of another host",
        "warning: sink `remote-write` would not start here: ",
        "warning: sink `json-lines` would not start here: ",
        "is in a folder that does not exist",
    ] {
        assert_eq!(said.matches(expected).count(), 1, "{expected}: {said}");
    }
}

/// Whoever reads a FIFO may come later, or never.
#[test]
fn a_fifo_without_a_reader_keeps_nothing_from_beginning_or_ending() {
    let site = Site::new(1, &format!("{LINES}path = 'lines'\n"));
    let made = Command::new("mkfifo").arg(site.path("lines")).status().expect("a program");
    assert!(made.success());
    let mut serving = site.start();
    serving.log_with("watching");
    let reader = std::fs::File::open(site.path("lines")).expect("a FIFO");
    let mut line = String::new();
    std::io::BufReader::new(reader).read_line(&mut line).expect("a line");
    assert!(line.starts_with('{'), "{line}");
    serving.end();
}

/// Whatever asks for a reload need not know that the process has only begun.
#[test]
fn signals_that_come_early_do_not_end_it() {
    let site = Site::new(1, LINES);
    let (hosts, text) = (site.path("hosts.json"), site.fleet.targets());
    std::fs::remove_file(&hosts).expect("a file");
    assert!(Command::new("mkfifo").arg(&hosts).status().expect("a program").success());
    let mut serving = site.start();
    // It waits for its hosts once somebody can write them.
    let mut writer = std::fs::OpenOptions::new().write(true).open(&hosts).expect("a reader");
    ["-HUP", "-USR1"].into_iter().for_each(|signal| serving.signal(signal));
    std::io::Write::write_all(&mut writer, text.as_bytes()).expect("a reader");
    site.write("hosts.json", &text);
    drop(writer);
    serving.log_with("watching");
    serving.line_like(is_frame);
    serving.end();
}

/// A file on a network can hang for hours.
#[test]
fn a_file_that_hangs_keeps_nothing_from_being_served_or_ending() {
    let config = format!("listen = '127.0.0.1:0'\n{LINES}[[sink]]\nkind = 'prometheus'\n");
    let site = Site::new(1, &config);
    let mut serving = site.start();
    let address = serving.address();
    let hosts = site.path("hosts.json");
    std::fs::remove_file(&hosts).expect("a file");
    assert!(Command::new("mkfifo").arg(&hosts).status().expect("a program").success());
    // One request waits for the file, and another for that one.
    let asked = [(); 2].map(|()| {
        let mut stream = std::net::TcpStream::connect(address).expect("a connection");
        std::io::Write::write_all(&mut stream, b"POST /-/reload HTTP/1.1\r\nHost: [::1]\r\n\r\n")
            .expect("it takes a request");
        stream
    });
    let (status, _) = request(address, "GET /metrics HTTP/1.1");
    assert_eq!(status, 200);
    serving.signal("-HUP");
    serving.end();
    drop(asked);
}

#[test]
fn a_full_disk_harms_nothing_else() {
    let config = "listen = '127.0.0.1:0'\n".to_owned()
        + LINES
        + "path = '/dev/full'\nbuffer = '4 KB'\n[[sink]]\nkind = 'prometheus'\n";
    let site = Site::new(3, &config);
    let mut serving = site.start();
    let address = serving.address();
    let line = serving.log_with("cannot write");
    let expected = "cannot write /dev/full: No space left on device (os error 28); trying again";
    assert!(line.contains(expected), "{line}");
    let dropped = "pmderive_sink_dropped_events_total{sink=\"json-lines\",reason=\"overflow\"} ";
    loop {
        let (_, own) = request(address, "GET /metrics HTTP/1.1");
        let count = own.split_once(dropped).and_then(|(_, rest)| rest.split('\n').next());
        if count.is_some_and(|count| count != "0") {
            // What waits is bounded.
            let limit = "pmderive_sink_ring_limit_bytes{sink=\"json-lines\"} 4096\n";
            assert!(own.contains(limit), "{own}");
            break;
        }
    }
    let target = site.fleet.address(1);
    loop {
        let (status, text) = request(address, &format!("GET /metrics?target={target} HTTP/1.1"));
        // It may have been late for its first slot.
        if status == 200 && text.contains("\ns_gauge{") {
            assert!(text.contains("pmderive_target_clock_skew_seconds{dc="), "{text}");
            break;
        }
    }
    let (_, log) = serving.end();
    assert!(log.contains(" had not been delivered when it ended"), "{log}");
}

/// Hosts of two kinds in two threads have the same mistake.
#[test]
fn a_mistake_that_hosts_share_is_told_once() {
    let site = Site::new(8, &format!("threads = 2\n{LINES}"));
    site.write(
        "s.conf",
        "# pmderive: export\ns.gauge = fleet.g0\n# pmderive: export\ns.no = fleet.no\n",
    );
    let mut serving = site.start();
    for host in 0..8 {
        serving.line_like(|line| is_frame(line) && host_of(line) == host);
    }
    let (_, log) = serving.end();
    assert_eq!(log.matches("unknown metric `fleet.no`").count(), 1, "{log}");
    assert!(log.contains("s.conf:4:8"), "{log}");
}

#[test]
fn hosts_that_fail_at_once_are_told_of_or_counted() {
    const HOSTS: u64 = 60;
    let site = Site::new(1, &format!("threads = 1\n{LINES}"));
    let hosts: Vec<String> = (1..=HOSTS).map(|at| format!("\"127.1.0.{at}:1\"")).collect();
    site.write("hosts.json", &format!("[{{\"targets\": [{}]}}]", hosts.join(",")));
    let mut serving = site.start();
    let (mut lines, mut left_out) = (0, 0);
    while lines + left_out < HOSTS {
        let line = serving.log_with(" WARN ");
        let more = line.split_once(" more lines about hosts").and_then(|(begin, _)| {
            let (_, number) = begin.rsplit_once(' ')?;
            number.parse::<u64>().ok()
        });
        match more {
            Some(more) => left_out += more,
            None => lines += 1,
        }
    }
    assert!(lines + left_out == HOSTS && left_out > 0, "{lines} lines, {left_out} left out");
    serving.end();
}

#[test]
fn a_host_that_fails_is_shown_as_down() {
    let config = "listen = '127.0.0.1:0'\n".to_owned() + LINES + "[[sink]]\nkind = 'prometheus'\n";
    let site = Site::new(1, &config);
    site.write("hosts.json", "[{\"targets\": [\"127.1.0.1:1\"], \"labels\": {\"rack\": \"r9\"}}]");
    let mut serving = site.start();
    let address = serving.address();
    let down = "\npmderive_target_up{instance=\"127.1.0.1:1\",job=\"web\",rack=\"r9\"} 0\n";
    loop {
        let (status, text) = request(address, "GET /metrics?target=127.1.0.1:1 HTTP/1.1");
        if status == 200 {
            assert!(text.contains(down), "{text}");
            break;
        }
        assert!(text.contains("its first slot has not come to an end"), "{text}");
    }
    serving.end();
}

#[test]
fn a_reader_that_does_not_read_keeps_nothing_from_ending() {
    let config = "listen = '127.0.0.1:0'\n".to_owned() + LINES + "path = 'lines'\n";
    let site = Site::new(2, &config);
    let lines = site.path("lines");
    assert!(Command::new("mkfifo").arg(&lines).status().expect("mkfifo").success());
    let mut reader =
        std::fs::File::options().read(true).write(true).open(&lines).expect("a named pipe");
    // As much as there is room for.
    reader.write_all(&[b'\n'; 64 << 10]).expect("room");
    let mut command = pmderive(&["serve", "--drain", "100msec", "--config"]);
    command.arg(site.path("serve.toml")).stderr(Stdio::piped());
    let mut serving = Serving::of(command.spawn().expect("it starts"));
    let address = serving.address();
    let waiting = "pmderive_sink_ring_events{sink=\"json-lines\"} ";
    loop {
        let (_, own) = request(address, "GET /metrics HTTP/1.1");
        let count = own.split_once(waiting).and_then(|(_, rest)| rest.split('\n').next());
        // More than come at once: what came before cannot be written.
        if count.and_then(|count| count.parse::<u32>().ok()).is_some_and(|count| count > 2) {
            break;
        }
    }
    serving.signal("-TERM");
    let line = serving.log_with("does not end in time");
    assert!(line.contains("json-lines"), "{line}");
    assert_eq!(serving.child.wait().expect("it ends").code(), Some(0));
    drop(reader);
}

#[test]
fn a_receiver_that_fails_in_all_ways_harms_nothing_else() {
    let receiver = Receiver::listen().expect("a port");
    receiver.script([
        Reply::status(400),
        Reply::too_many("0"),
        Reply::status(500),
        // After the first it is tried again at once, on a new connection.
        Reply::Garbage(b"nonsense\r\n\r\n".to_vec()),
        Reply::Garbage(b"nonsense\r\n\r\n".to_vec()),
        Reply::Never,
    ]);
    let config = format!(
        "listen = '127.0.0.1:0'\n{LINES}[[sink]]\nkind = 'remote-write'\nurl = 'http://{}/'\ntimeout = 1\n",
        receiver.address()
    );
    let site = Site::new(3, &config);
    let mut serving = site.start();
    let address = serving.address();
    let line = serving.log_with("sink remote-write");
    assert!(line.contains("refuses") && line.contains("samples with 400"), "{line}");
    let outcomes = ["refused", "throttled", "failed", "broken", "timed_out", "accepted"];
    let is_done = |own: &str| {
        outcomes.iter().all(|outcome| {
            let of = "pmderive_sink_requests_total{sink=\"remote-write\",outcome=";
            !own.contains(&format!("{of}\"{outcome}\"}} 0\n"))
        })
    };
    // Other sinks go on meanwhile.
    loop {
        let line = serving.line_like(is_frame);
        check_values(&site.fleet, &line);
        if is_done(&request(address, "GET /metrics HTTP/1.1").1) {
            break;
        }
    }
    assert!(!receiver.stored().is_empty());
    let (_, log) = serving.end();
    assert!(log.contains(" takes samples again after "), "{log}");
    assert!(log.contains("could not be delivered: the receiver refused"), "{log}");
    // A receiver that says nothing leaves no colon behind.
    assert!(!log.lines().any(|line| line.ends_with(": ")), "{log}");
}

#[test]
fn a_disk_that_can_be_written_again_is_told() {
    let site = Site::new(1, &format!("{LINES}path = 'lines'\n"));
    let link = || std::os::unix::fs::symlink("/dev/full", site.path("lines")).expect("a link");
    link();
    let mut serving = site.start();
    serving.log_with("cannot write");
    std::fs::remove_file(site.path("lines")).expect("it is there");
    serving.signal("-USR1");
    let line = serving.log_with(" again after ");
    assert!(line.contains("writes ") && line.contains(" failed attempt"), "{line}");
    let lines = std::fs::read_to_string(site.path("lines")).expect("UTF-8");
    assert!(lines.starts_with('{'), "{lines}");
    serving.end();
}

/// Identifiers that get other names are other series, also after a new start of pmcd, and if an
/// instance goes and another one gets its identifier, of which pmcd gives no notice.
#[test]
fn instances_have_the_names_that_they_have_now() {
    let mut world = World::new();
    let domain = world.add_domain(&["a", "b"]);
    world.add(Metric::new("fleet.g0", Script::constant(1.5)));
    world.add(Metric::new("fleet.d0.g0", Script::constant(2.5)).per(domain));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let site = Site::new(1, LINES);
    site.write("hosts.json", &format!("[{{\"targets\": [\"{}\"]}}]", pmcd.spec()));
    let mut serving = site.start();
    let mut is_named = |name: Option<&str>| {
        // The first may have been on its way.
        (0..3).any(|_| serving.line_like(is_frame)["metrics"]["s.each"][1][1].as_str() == name)
    };
    assert!(is_named(Some("b")));
    pmcd.host().change_names(|world| world.add_instance(domain, 1, "c"));
    assert!(is_named(Some("c")));
    pmcd.host().restart(|world| world.add_instance(domain, 1, "d"));
    assert!(is_named(Some("d")));
    pmcd.host().change(|world| world.remove_instance(domain, 1));
    assert!(is_named(None));
    pmcd.host().change(|world| world.add_instance(domain, 1, "e"));
    assert!(is_named(Some("e")));
    serving.end();
}

#[test]
fn a_host_with_a_million_instances_is_told_and_harms_no_other() {
    let names: Vec<String> = (0..1_000_000).map(|at| format!("i{at}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut world = World::new();
    let domain = world.add_domain(&names);
    world.add(Metric::new("fleet.g0", Script::constant(1.5)));
    world.add(Metric::new("fleet.d0.g0", Script::constant(2.5)).per(domain));
    let pmcd = FakePmcd::start(FakeHost::new(world));
    let config =
        "listen = '127.0.0.1:0'\n".to_owned() + &LINES.replace("interval = 1", "interval = 5");
    let site = Site::new(2, &config);
    let count = "# pmderive: export\ns.count = count(fleet.d0.g0)\n";
    site.write("s.conf", &(super::DEFINITIONS.to_owned() + count));
    let mut targets: Json = serde_json::from_str(&site.fleet.targets()).expect("JSON");
    let large = serde_json::json!({ "targets": [pmcd.spec().to_string()] });
    targets.as_array_mut().expect("a list").push(large);
    site.write("hosts.json", &targets.to_string());
    let mut serving = site.start();
    let address = serving.address();
    let (mut large, mut others) = (0, 0);
    while large == 0 || others < 2 {
        let line = serving.line_like(is_frame);
        if line["labels"].get("host").is_some() {
            check_values(&site.fleet, &line);
            others += 1;
            continue;
        }
        large += 1;
        assert_eq!(line["metrics"]["s.gauge"], 1.5, "{line}");
        assert_eq!(line["metrics"].get("s.each"), None);
        assert!(line["failed"]["s.each"].is_string(), "{line}");
        // What reads too many instances has no value either, be it a single one.
        assert_eq!(line["metrics"].get("s.count"), None);
        assert!(line["failed"]["s.count"].is_string(), "{line}");
    }
    let (_, own) = request(address, "GET /metrics HTTP/1.1");
    assert!(!own.contains("pmderive_too_many_instances_total 0\n"), "{own}");
    let (_, log) = serving.end();
    assert_eq!(log.matches("more than 10000 instances").count(), 2, "{log}");
    assert!(log.contains("metric=\"s.each\"") && log.contains("metric=\"s.count\""), "{log}");
}

#[test]
fn a_host_that_announces_a_million_metrics_harms_no_other() {
    let mut world = World::new();
    world.add(Metric::new("fleet.g0", Script::constant(1.5)));
    for at in 0..1_000_000 {
        world.add(Metric::new(format!("many.m{at}"), Script::constant(2.5)));
    }
    let domain = world.add_domain(&["a"]);
    world.add(Metric::new("fleet.d0.g0", Script::constant(3.5)).per(domain));
    let host = FakeHost::new(world);
    let pmcd = FakePmcd::start(host);
    let config =
        "listen = '127.0.0.1:0'\n".to_owned() + &LINES.replace("interval = 1", "interval = 5");
    let site = Site::new(2, &config);
    // What could be asked of it is more than what is asked.
    site.write(
        "s.conf",
        &(super::DEFINITIONS.to_owned() + "# pmderive: export\ns.last = many.m999999\n"),
    );
    let mut targets: Json = serde_json::from_str(&site.fleet.targets()).expect("JSON");
    let large = serde_json::json!({ "targets": [pmcd.spec().to_string()] });
    targets.as_array_mut().expect("a list").push(large);
    site.write("hosts.json", &targets.to_string());
    let mut serving = site.start();
    let (mut large, mut others) = (0, 0);
    while large < 3 || others < 6 {
        let line = serving.line_like(is_frame);
        if line["labels"].get("host").is_some() {
            check_values(&site.fleet, &line);
            others += 1;
            continue;
        }
        large += 1;
        assert_eq!(line["metrics"]["s.gauge"], 1.5, "{line}");
        assert_eq!(line["metrics"]["s.last"], 2.5, "{line}");
        if large == 1 {
            // It says that all of its names are others now.
            pmcd.host().change_names(|world| {
                world.add(Metric::new("many.more", Script::constant(1.0)));
            });
        }
    }
    // What it announces is not kept here.
    let kilobytes = serving.peak_kilobytes();
    assert!(kilobytes < 200_000, "{kilobytes} KB");
    serving.end();
}

#[test]
fn mistakes_are_told_and_nothing_is_started() {
    let rows: &[(&str, &str)] = &[
        ("interval = 1\n", "there is no group of hosts to watch"),
        ("interval = 'soon'\n", "this should be a time from 10 msec to 1 day"),
        ("interval = '0'\n", "this should be a time from 10 msec to 1 day"),
        ("interval = -5\n", "this should be a time from 10 msec to 1 day"),
        ("interval = nan\n", "this should be a time from 10 msec to 1 day"),
        ("interval = 1e300\n", "this should be a time from 10 msec to 1 day"),
        ("deadline = true\n", "this should be a time, but has type boolean"),
        ("threads = 0\n", "this number should be 1 or greater"),
        ("[limits]\nkinds = -1\n", "this number should be 1 or greater"),
        ("[[sink]]\nkind = 'json-lines'\nbuffer = '0 Mbyte'\n", "a size is 1 byte at least"),
        ("[[sink]]\nkind = 'remote-write'\nurl = 'http://'\n", "the URL names no host"),
        ("intervall = 1\n", "there is no key `intervall` here"),
        ("deadline = 10\n", "the deadline is not shorter than the interval"),
        ("listen = 'here:1'\n", "this is no address with a port"),
        (
            "listen = '0.0.0.0:9464'\n[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n",
            "can be reached by others",
        ),
        ("[[group]]\nname = 'a'\ntargets = []\n", "a group needs the key `definitions`"),
        ("[[sink]]\nkind = 'kafka'\n", "there is no kind of sink `kafka`"),
        (
            "[[sink]]\nkind = 'prometheus'\npath = 'x'\n",
            "a sink of kind `prometheus` has no `path`",
        ),
        (
            "[[sink]]\nkind = 'json-lines'\n[[sink]]\nkind = 'json-lines'\n",
            "two sinks are called `json-lines`",
        ),
        (
            "[[sink]]\nkind = 'json-lines'\n[[sink]]\nname = 'b'\nkind = 'json-lines'\n",
            "sink `json-lines` writes to standard output, too",
        ),
        (
            "[[sink]]\nkind = 'json-lines'\n[[sink]]\nname = 'b'\nkind = 'json-lines'\npath = '/dev/stdout'\n",
            "sink `json-lines` writes to standard output, too",
        ),
        (
            "[[sink]]\nkind = 'json-lines'\npath = 'a/b'\n[[sink]]\nname = 'b'\nkind = 'json-lines'\npath = './a//b'\n",
            "sink `json-lines` writes to the same file",
        ),
        (
            "listen = '127.0.0.1:0'\n[[sink]]\nkind = 'prometheus'\n[[sink]]\nname = 'b'\nkind = 'prometheus'\n",
            "there are two sinks of kind `prometheus`",
        ),
        ("[[sink]]\nkind = 'prometheus'\n", "a sink of kind `prometheus` needs the key `listen`"),
        ("interval = '1 nsec'\n", "this should be a time from 10 msec to 1 day"),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n",
            "there is no sink, so values go nowhere",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\npassword-file = 'p'\n",
            "`user` and `password-file` need each other",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\nuser = 'u'\n",
            "`user` and `password-file` need each other",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n[fleet]\ndefinitions = ['by.conf']\n",
            "`instname` is no label of hosts",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\ninterval = 1\n[fleet]\ndefinitions = ['fleet.conf']\ngrace = 2.1\n",
            "the grace time is longer than 2 intervals",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n[fleet]\ndefinitions = ['groups.conf']\n",
            "operands of `/` have different instance domains",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\nexport = ['']\n[[sink]]\nkind = 'json-lines'\n",
            "no metric matches ``",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n[[sink]]\nkind = 'json-lines'\npath = 'serve.toml'\n",
            "which is read here",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n[[sink]]\nkind = 'json-lines'\npath = './hosts.json'\n",
            "which is read here",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n[[sink]]\nkind = 'json-lines'\npath = 's.conf'\n",
            "which is read here",
        ),
        (
            "[[sink]]\nkind = 'remote-write'\nurl = 'ftp://x'\n",
            "begins with `http://` or `https://`",
        ),
        (
            "[[sink]]\nkind = 'remote-write'\nurl = 'http://x'\nuser = 'a'\npassword-file = 'b'\ntoken-file = 'c'\n",
            "a token or for a user, not for both",
        ),
        (
            "[[sink]]\nkind = 'remote-write'\nurl = 'http://x'\nauthorities = 'ca.pem'\n",
            "this sink has no TLS",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\nlabels = { '9x' = 'y' }\n",
            "this cannot be the name of a label",
        ),
        ("[[group]]\nname = 'a'\ntargets = ['no.json']\ndefinitions = ['s.conf']\n", "cannot read"),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\nexport = ['s.gauges']\n",
            "did you mean `s.gauge`?",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n[fleet]\ndefinitions = ['fleet.conf']\nexport = ['racs.n']\n",
            "did you mean `racks.n`?",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\nexport = ['s.*']\n[[sink]]\nkind = 'json-lines'\n",
            "1 host in 1 group, 3 definitions, 3 exported, 1 sink",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n[fleet]\ndefinitions = ['fleet.conf']\ngrace = '20 sec'\n[[sink]]\nkind = 'json-lines'\n",
            "1 host in 1 group, 3 definitions, 2 exported, 1 sink",
        ),
        (
            "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n[[sink]]\nkind = 'json-lines'\npath = '/dev/null'\n[[sink]]\nname = 'b'\nkind = 'json-lines'\npath = '/dev/null'\n",
            "1 host in 1 group, 3 definitions, 2 exported, 2 sinks",
        ),
    ];
    let site = Site::new(1, "");
    site.write("fleet.conf", "racks.n = count(s.gauge) by (rack)\n");
    site.write("groups.conf", "racks.n = count(s.gauge) by (rack) / count(s.gauge) by (host)\n");
    site.write("by.conf", "racks.n = count(s.gauge) by (instname)\n");
    for (config, expected) in rows {
        site.write("serve.toml", config);
        let mut command: Command = pmderive(&["serve", "--check", "--config"]);
        let output = command.arg(site.path("serve.toml")).output().expect("it runs");
        let said =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(expected), "{config}\n{said}");
        let is_good = expected.starts_with('1');
        assert_eq!(output.status.code(), Some(if is_good { 0 } else { 2 }), "{config}\n{said}");
    }
}

/// Mistakes are shown with their lines, in logs as well.
#[test]
fn secrets_are_not_shown() {
    let site = Site::new(1, "");
    for (sink, expected) in [
        ("kind = 'remote-write'\nurl = 'http://user:secret@x/'", "'http://***********@x/'"),
        ("kind = 'remote-write'\nurl = 'ftp://secret@x/'", "'ftp://******@x/'"),
        ("kind = 'remote-write'\nurl = 'user:secret@x'", "'***********@x'"),
        ("kind = 'remote-write'\nurl = \"http://secret\\u0040x/\"", "******"),
        ("kind = 'remote-write'\nurl = 'ftp://x/w?token=secret'", "'ftp://x/w?************'"),
        ("kind = 'json-lines'\nurl = 'http://user:secret@x/'", "'http://***********@x/'"),
        ("kind = 'remote-write'\nurl = 5", "this should be a text"),
        ("kind = 'remote-write'\nurl = ['http://user:secret@x/']", "this should be a text"),
        ("kind = 'remote-write'\npassword = 'secret'", "did you mean `password-file`?"),
        ("kind = 'remote-write'\nurl = 'http://user:secret@x/", "'http://user:******@x/"),
        ("kind = 'remote-write'\ntoken = secret", "token =*******"),
        ("kind = 'json-lines'\nheaders = { X = 'Bearer secret' }", "headers = { X = ****"),
        ("kind = 'json-lines'\n[sink.headers]\nX.Y = ['secret']", "no key `headers` here"),
        ("kind = 'json-lines'\nbearer = \"\"\"\na\nsecret\"\"\"", "no key `bearer` here"),
        ("kind = 'json-lines'\nx-y = 'secret'\nlisten 1", "listen 1"),
        ("kind = 'json-lines'\nx-y = 'secret", "x-y =****"),
        ("kind = 'json-lines'\nx-y = \"\"\"\nsecret==", "this is not TOML"),
        ("kind = 'json-lines'\n[web]\nkey = 1\n[limits]\nsink = 'secret'", "sink = ****"),
    ] {
        site.write("serve.toml", &format!("[[sink]]\n{sink}\n"));
        let (status, said) = check_targets(&site, "[]");
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(expected) && !said.contains("secret"), "{sink}: {said}");
    }
}

/// Paths that are relative, also to the folder of the configuration.
#[test]
fn two_sinks_share_no_file_whatever_it_is_called() {
    let site = Site::new(1, &format!("{LINES}path = 'a'\n[[sink]]\nname = 'b'\n"));
    let long_way = format!("../{}/a", site.folder.path().file_name().expect("one").display());
    std::os::unix::fs::symlink("a", site.path("link")).expect("a link");
    let paths = ["./a", &long_way, "link"].map(|path| (path, true));
    // Before the file is there as well as then.
    for (path, is_same) in paths.into_iter().chain([("c", false)]).chain(paths) {
        let more = format!("kind = 'json-lines'\npath = '{path}'\n");
        site.write(
            "other.toml",
            &(std::fs::read_to_string(site.path("serve.toml")).expect("text") + &more),
        );
        let mut command: Command = pmderive(&["serve", "--check", "--config", "other.toml"]);
        let output = command.current_dir(site.folder.path()).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let told = said.contains("sink `json-lines` writes to the same file");
        assert_eq!(
            (told, output.status.code()),
            (is_same, Some(if is_same { 2 } else { 0 })),
            "{said}"
        );
        if !is_same {
            site.write("a", "");
        }
    }
}

#[test]
fn mistakes_of_a_command_line_are_told_in_its_words() {
    let site = Site::new(1, "");
    site.write("plain.conf", "s.gauge = fleet.g0\n");
    let rows: &[(&[&str], &[&str], i32)] = &[
        (
            &["-c", "plain.conf"],
            &[
                "Warning: no metric is exported",
                " pmderive serve --targets hosts.json -c plain.conf",
                "name metrics by `--export`, or write",
                "1 host in 1 group, 1 definition, 0 exported, 1 sink",
            ],
            0,
        ),
        (
            &["-c", "s.conf", "--export", "s.gauges"],
            &["no metric matches `s.gauges`", "<arguments>:1:56 ]", "did you mean `s.gauge`?"],
            2,
        ),
        (
            &["-c", "s.conf", "--targets", "no.json"],
            &["cannot read no.json: No such file", "<arguments>:1:47 ]"],
            2,
        ),
        (
            &["-c", "s.conf", "--listen", "here:1"],
            &["'--listen <ADDRESS>'", "an address with a port is such as 127.0.0.1:9464"],
            2,
        ),
        (
            &["-c", "s.conf", "--listen", "0.0.0.0:9464"],
            &["a token (`[web]` of a configuration)"],
            2,
        ),
        (
            &["-c", "s.conf", "-t", "1msec"],
            &["'--interval <INTERVAL>'", "an interval here is from 10 msec to 1 day"],
            2,
        ),
        (&["-c", "s.conf", "-t", "0"], &["an interval here is from 10 msec to 1 day"], 2),
        (&["-c", "s.conf", "-t", "nan"], &["a time is such as 500msec", "from 10 msec to 1"], 2),
        (&["-c", "s.conf", "-t=-5"], &["a time is such as 500msec", "from 10 msec to 1 day"], 2),
        (&["-c", "s.conf", "-t", "1e300"], &["a time is such as 500msec", "from 10 msec to"], 2),
        (&["-c", ""], &["a value is required for '--definitions <FILE>'"], 2),
        (&["-c", "s.conf", "--targets", ""], &["a value is required for '--targets <FILE>'"], 2),
        (
            &["-c", "s.conf", "--targets", "hosts.json"],
            &["Warning: hosts.json is named twice", "here it is first", "1 host in 1 group"],
            0,
        ),
    ];
    for (arguments, expected, status) in rows {
        let mut command: Command = pmderive(&["serve", "--check", "--targets", "hosts.json"]);
        let output = command.args(*arguments).current_dir(site.folder.path()).output();
        let output = output.expect("it runs");
        let said =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        for expected in *expected {
            assert!(said.contains(expected), "{arguments:?}: {said}");
        }
        let is_foreign = ["[[", "group `", "sink `"].iter().any(|word| said.contains(word));
        assert!(!is_foreign, "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(*status), "{arguments:?}: {said}");
    }
}

/// One host, and two groups that have the same files.
fn of_two_groups() -> Site {
    let group = "targets = ['hosts.json']\ndefinitions = ['s.conf']\n";
    Site::new(
        1,
        &format!(
            "[[group]]\nname = 'a'\n{group}[[group]]\nname = 'b'\n{group}[[sink]]\nkind = 'json-lines'\n"
        ),
    )
}

#[test]
fn a_mistake_in_a_file_of_two_groups_is_told_once() {
    let site = of_two_groups();
    site.write("s.conf", "s.gauge = rate(fleet.g0\n");
    let (status, said) = check_targets(&site, &site.fleet.targets());
    assert_eq!((status, said.matches("Error: ").count()), (Some(2), 1), "{said}");
}

/// Other comments may stand between a mark and its definition. One that marks nothing is
/// told, once for both groups.
#[test]
fn marks_that_mark_nothing_are_told() {
    let site = of_two_groups();
    site.write(
        "s.conf",
        "# pmderive: export\n# pmderive: allow PMD0300\ns.a = fleet.g0\n\
         #pmderive:export\n# a note\ns.b = fleet.g0\n\
         # pmderive: export\n\ns.lost = fleet.g0\n\
         # pmderive: exprot\ns.other = fleet.g0\n",
    );
    let (status, said) = check_targets(&site, &site.fleet.targets());
    assert_eq!(status, Some(0), "{said}");
    for told in ["this comment exports nothing", "this comment says nothing that is understood"] {
        assert_eq!(said.matches(told).count(), 1, "{said}");
    }
    assert!(said.contains("8 definitions, 4 exported"), "{said}");
}

#[test]
fn a_check_warns_of_what_gets_nothing() {
    let group = "[[group]]\nname = 'a'\ntargets = ['hosts.json']\ndefinitions = ['s.conf']\n";
    let sink = "[[sink]]\nkind = 'json-lines'\n";
    let two_groups = format!("{group}{}{sink}", group.replace("'a'", "'b'"));
    let site = Site::new(1, "");
    for (config, expected) in [
        (format!("listen = '127.0.0.1:0'\n{group}"), "no values are served here"),
        (format!("{group}export = []\n{sink}"), "nothing of group `a` is exported"),
        (format!("{group}export = []\n{sink}"), "sink `json-lines` gets no metric"),
        (format!("{group}{sink}export = []\n"), "sink `json-lines` gets no metric"),
        (two_groups.clone(), "here it is first"),
        (two_groups, "group `b` has no hosts"),
        (format!("threads = 100000\n{group}{sink}"), "`threads` is 256 at most; 256 are started"),
        (format!("{group}tls = 'nosuch'\n{sink}"), "nosuch: No such file"),
        (format!("{group}user = 'u'\npassword-file = 'nosuch'\n{sink}"), "nosuch: No such file"),
    ] {
        site.write("serve.toml", &config);
        let mut command: Command = pmderive(&["serve", "--check", "--config"]);
        let output = command.arg(site.path("serve.toml")).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(expected) && said.contains("arning: "), "{config}\n{said}");
        assert!(!said.contains("is listed twice"), "{config}\n{said}");
        assert_eq!(output.status.code(), Some(0), "{config}\n{said}");
    }
    site.write("serve.toml", &format!("{group}{sink}"));
    let mut command: Command = pmderive(&["serve", "--check", "--config"]);
    let output = command.arg(site.path("serve.toml")).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
