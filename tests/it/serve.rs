//! `pmderive serve` as its users run it: a process over a few fake hosts, with its lines, its
//! listener, signals and changing files. Every value is one that the fake hosts have at that
//! moment.

mod live;
mod receivers;
mod reload;
mod trouble;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use pmderive_runtime::model::{Timestamp, Value};
use pmderive_testkit::fleet::{FakeFleet, Plan};
use serde_json::Value as Json;

use crate::command::pmderive;

const DEFINITIONS: &str = "
# pmderive: export
s.gauge = fleet.g0
# pmderive: export
s.each = fleet.d0.g0
s.hidden = fleet.g0 * 2
";

/// A folder with the files of a small fleet.
struct Site {
    folder: tempfile::TempDir,
    fleet: FakeFleet,
}

impl Site {
    fn new(hosts: u32, config: &str) -> Site {
        let fleet = FakeFleet::start(Plan { hosts, classes: 2, ..Plan::default() }, 0);
        let fleet = fleet.expect("the loopback device");
        let site = Site { folder: tempfile::tempdir().expect("a folder"), fleet };
        site.write("hosts.json", &site.fleet.targets());
        site.write("s.conf", DEFINITIONS);
        site.write("serve.toml", config);
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces a file as careful people do: at once.
    fn write(&self, name: &str, text: &str) {
        let draft = self.path(".draft");
        std::fs::write(&draft, text).expect("a file");
        std::fs::rename(draft, self.path(name)).expect("the same folder");
    }

    fn start(&self) -> Serving {
        let child = serve(&self.path("serve.toml"));
        Serving::of(child)
    }
}

fn serve(config: &Path) -> Child {
    let mut command: Command = pmderive(&["serve", "--config"]);
    command.arg(config).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// A process that serves.
struct Serving {
    child: Child,
    /// Nothing if they are thrown away.
    lines: BufReader<Box<dyn Read + Send>>,
    log: BufReader<ChildStderr>,
}

impl Serving {
    fn of(mut child: Child) -> Serving {
        let lines = child.stdout.take().map_or_else(
            || Box::new(std::io::empty()) as Box<dyn Read + Send>,
            |lines: ChildStdout| Box::new(lines),
        );
        let lines = BufReader::new(lines);
        let log = BufReader::new(child.stderr.take().expect("piped"));
        Serving { child, lines, log }
    }

    /// The next line of values.
    fn line(&mut self) -> Json {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("UTF-8");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The next line of values that is like this.
    fn line_like(&mut self, is_it: impl Fn(&Json) -> bool) -> Json {
        loop {
            let line = self.line();
            if is_it(&line) {
                return line;
            }
        }
    }

    /// The next line of the log with a text in it.
    fn log_with(&mut self, text: &str) -> String {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.log.read_line(&mut line).expect("UTF-8"), 0, "no line with {text}");
        }
        line
    }

    /// Where it listens, by its log.
    fn address(&mut self) -> SocketAddr {
        let line = self.log_with("listening on ");
        let (_, address) = line.trim().rsplit_once(' ').expect("an address");
        address.parse().expect("an address")
    }

    /// The most memory that it has had.
    fn peak_kilobytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        peak.trim_end_matches("kB").trim().parse().expect("a number")
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().expect("kill");
        assert!(sent.success());
    }

    /// Has it end, and gives what it had still to say.
    fn end(mut self) -> (Vec<Json>, String) {
        self.signal("-TERM");
        let (mut lines, mut log) = (String::new(), String::new());
        let reading = std::thread::spawn(move || {
            self.log.read_to_string(&mut log).expect("UTF-8");
            log
        });
        self.lines.read_to_string(&mut lines).expect("UTF-8");
        let log = reading.join().expect("no panic");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0), "{log}");
        let lines = lines.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        (lines.collect(), log)
    }
}

/// Status and body of the answer to a request.
fn request(address: SocketAddr, head: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "{head}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("UTF-8");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.expect("a status"), body.to_owned())
}

const LINES: &str = "
interval = 1
[[group]]
name = 'web'
targets = ['hosts.json']
definitions = ['s.conf']
[[sink]]
kind = 'json-lines'
";

fn is_frame(line: &Json) -> bool {
    line.get("metrics").is_some()
}

/// True for a mark that a busy machine may bring about.
fn is_late(line: &Json) -> bool {
    line["reason"].as_str().is_some_and(|text| text.contains("no answer within 0.8 seconds"))
}

/// The number of the host that a line is about.
fn host_of(line: &Json) -> u32 {
    let name = line["labels"]["host"].as_str().expect("a label");
    name.strip_prefix("host").and_then(|number| number.parse().ok()).expect("a number")
}

fn seconds(text: &Json) -> Timestamp {
    let (seconds, rest) = text.as_str().and_then(|text| text.split_once('.')).expect("a time");
    let number = |text: &str| text.parse().expect("digits");
    Timestamp::new(number(seconds), number(rest))
}

fn check_values(fleet: &FakeFleet, line: &Json) {
    let (host, time) = (host_of(line), seconds(&line["stamp"]));
    let plan = fleet.plan();
    let number = |name: &str| {
        let mut metrics = plan.metrics(plan.class(host));
        metrics.find(|metric| metric.name == name).expect("a metric of the fleet").number
    };
    let value = |name: &str, instance| match plan.value(host, number(name), instance, time) {
        Value::F64(value) => value,
        other => panic!("{other:?}"),
    };
    assert_eq!(line["metrics"]["s.gauge"].as_f64(), Some(value("fleet.g0", -1)), "{line}");
    let each = line["metrics"]["s.each"].as_array().expect("a list");
    let instances = plan.instances(host, 0, time);
    assert_eq!(each.len(), instances.len());
    for (found, (id, name)) in each.iter().zip(instances) {
        let expected = serde_json::json!([id, name, value("fleet.d0.g0", id)]);
        assert_eq!(*found, expected);
    }
}

#[test]
fn lines_have_the_values_of_all_hosts() {
    let site = Site::new(5, LINES);
    let mut serving = site.start();
    let mut counts = [0; 5];
    while counts.iter().any(|count| *count < 2) {
        let line = serving.line_like(is_frame);
        assert_eq!(line["metrics"].as_object().map(serde_json::Map::len), Some(2), "{line}");
        assert_eq!(line["labels"]["job"], "web");
        assert_eq!(line["host"]["hostname"], line["labels"]["host"]);
        check_values(&site.fleet, &line);
        counts[host_of(&line) as usize] += 1;
    }
    let (rest, _) = serving.end();
    let is_mark = |line: &&Json| !is_frame(line) && !is_late(line);
    assert_eq!(rest.iter().find(is_mark), None, "an orderly end marks nothing");
}

#[test]
fn files_that_change_are_read_again() {
    let site = Site::new(3, LINES);
    let mut serving = site.start();
    for host in 0..3 {
        serving.line_like(|line| is_frame(line) && host_of(line) == host);
    }
    // A host goes.
    let targets: Json = serde_json::from_str(&site.fleet.targets()).expect("JSON");
    let less: Vec<&Json> = targets.as_array().expect("a list").iter().take(2).collect();
    site.write("hosts.json", &serde_json::to_string(&less).expect("JSON"));
    let stale = serving.line_like(|line| !is_frame(line) && !is_late(line));
    assert_eq!((host_of(&stale), &stale["reason"]), (2, &"no target any more".into()));
    assert_eq!(stale["stale"]["s.gauge"], true);
    let line = serving.log_with("read again");
    assert!(line.contains("hosts=2 added=0 removed=1"), "{line}");
    // A definition changes its meaning, another one comes.
    let more = DEFINITIONS.replace("s.gauge = fleet.g0", "s.gauge = delta(fleet.c1)")
        + "# pmderive: export\ns.more = fleet.g1\n";
    site.write("s.conf", &more);
    let line = serving.line_like(|line| is_frame(line) && line["metrics"].get("s.more").is_some());
    assert_eq!(line["metrics"].get("s.gauge"), None, "there is no difference yet: {line}");
    // A mistake is refused, and everything goes on; after SIGHUP, too.
    site.write("s.conf", "s.gauge = fleet.g0 +\n");
    let refused = "refused; the configuration before stays in use";
    serving.log_with(refused);
    serving.log_with("PMD0");
    serving.signal("-HUP");
    serving.log_with(refused);
    let line = serving.line_like(is_frame);
    let line = match line["metrics"].get("s.more") {
        Some(_) => line,
        None => serving.line_like(is_frame),
    };
    assert!(line["metrics"].get("s.more").is_some(), "{line}");
    serving.end();
}

#[test]
fn a_host_that_fails_has_stale_series_once_and_comes_back() {
    let site = Site::new(2, LINES);
    let mut serving = site.start();
    for host in 0..2 {
        serving.line_like(|line| is_frame(line) && host_of(line) == host);
    }
    site.fleet.host(1).stop();
    let stale = serving.line_like(|line| !is_frame(line) && host_of(line) == 1);
    assert!(is_late(&stale), "{stale}");
    let mut others = 0;
    while others < 4 {
        let line = serving.line();
        assert_eq!(host_of(&line), 0, "{line}");
        if is_frame(&line) {
            check_values(&site.fleet, &line);
            others += 1;
        }
    }
    site.fleet.host(1).go_on();
    let line = serving.line_like(|line| host_of(line) == 1);
    assert!(is_frame(&line), "{line}");
    serving.end();
}

#[test]
fn the_listener_shows_metrics_hosts_and_health() {
    let config = "listen = '127.0.0.1:0'\n".to_owned() + &LINES.replace("json-lines", "prometheus");
    let site = Site::new(3, &config);
    let about = "s.gauge(oneline) = A gauge\ns.each(helptext) = \"The first line.\nAnd more.\"\n";
    site.write("s.conf", &(DEFINITIONS.to_owned() + about));
    let mut serving = site.start();
    let address = serving.address();
    let get = |path: &str| request(address, &format!("GET {path} HTTP/1.1\r\nAccept: */*"));
    // All are up.
    let own = loop {
        let (status, own) = get("/metrics");
        assert_eq!(status, 200);
        if own.contains("pmderive_hosts{state=\"up\"} 3\n") {
            break own;
        }
    };
    assert!(own.contains("pmderive_config_is_good 1\n"), "{own}");
    assert!(own.contains("\npmderive_slots_answered_total "), "{own}");
    for line in [
        "# TYPE pmderive_slot_lateness_seconds histogram",
        "# TYPE pmderive_fetch_seconds histogram",
        "# TYPE pmderive_evaluate_seconds histogram",
        "# TYPE pmderive_clock_skew_seconds histogram",
        "# TYPE pmderive_sink_request_duration_seconds histogram",
        // The classes differ in a type that no definition reads.
        "pmderive_kinds 1",
    ] {
        assert!(own.lines().any(|found| found == line), "{line} in {own}");
    }
    for line in [
        "pmderive_slots_missed_total{reason=\"late\"} ",
        "pmderive_slots_missed_total{reason=\"skipped\"} ",
        "pmderive_reconnects_total ",
        "pmderive_build_info{version=\"",
        "process_cpu_seconds_total ",
        "process_start_time_seconds ",
        "process_open_fds ",
        "process_max_fds ",
    ] {
        assert!(own.lines().any(|found| found.starts_with(line)), "{line} in {own}");
    }
    for part in ["programs", "layouts", "targets", "hosts", "across", "newest", "rings", "labels"] {
        let (_, bytes) =
            own.split_once(&format!("pmderive_memory_bytes{{part=\"{part}\"}} ")).expect(part);
        let bytes: u64 = bytes.split('\n').next().and_then(|text| text.parse().ok()).expect(part);
        let is_empty = ["across", "rings", "labels"].contains(&part);
        assert_eq!(bytes == 0, is_empty, "{part}: {own}");
    }
    let target = site.fleet.address(1);
    let (status, text) = get(&format!("/metrics?target={target}"));
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("\ns_gauge{") && text.contains("# TYPE s_each gauge\n"), "{text}");
    assert!(text.contains("# HELP s_gauge A gauge\n"), "{text}");
    assert!(text.contains("# HELP s_each The first line.\n"), "{text}");
    assert!(text.contains("instname=\"i0\"") && text.contains("rack=\"r000\""), "{text}");
    assert!(!text.contains("s_hidden"), "{text}");
    let up = text.lines().find(|line| line.starts_with("pmderive_target_up{"));
    let up = up.expect("a series of the host");
    let instance = format!("instance=\"{target}\"");
    assert!(up.contains(&instance) && up.contains("rack=\"r000\"") && up.ends_with("} 1"), "{up}");
    let (status, why) = get("/metrics?target=nowhere:44321");
    assert!(status == 404 && why.contains("no target is called that"), "{why}");
    let (status, hosts) = get("/-/targets");
    let hosts: Json = serde_json::from_str(&hosts).expect("JSON");
    assert_eq!((status, hosts["targets"].as_array().map(Vec::len)), (200, Some(3)));
    assert!(hosts["targets"].as_array().expect("a list").iter().all(|one| one["state"] == "up"));
    let (status, page) = request(address, "GET /-/targets HTTP/1.1\r\nAccept: text/html");
    assert!(status == 200 && page.starts_with("<!doctype html>"), "{page}");
    assert_eq!(get("/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(request(address, "POST /-/reload HTTP/1.1"), (200, "3 hosts\n".to_owned()));
    site.write("s.conf", "s.gauge = \n");
    // It may have been noticed already; the answer is the same.
    let (status, report) = request(address, "POST /-/reload HTTP/1.1");
    assert!(status == 422 && report.contains("s.conf"), "{status} {report}");
    let (status, health) = get("/healthz");
    assert!(status == 200 && health.contains("ok, but the files"), "{health}");
    assert!(get("/metrics").1.contains("pmderive_config_is_good 0\n"));
    let (_, log) = serving.end();
    assert!(log.contains("ending: SIGTERM came"), "{log}");
}

/// Looks until there is something.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = look() {
            return found;
        }
    }
}

#[test]
fn what_splits_the_kinds_of_hosts_is_told() {
    let config = "listen = '127.0.0.1:0'\n".to_owned() + &LINES.replace("json-lines", "prometheus");
    let site = Site::new(6, &config);
    // Of the two classes the second has a counter of 32 bits.
    site.write("s.conf", "# pmderive: export\ns.count = fleet.c0\n");
    let targets: Json = serde_json::from_str(&site.fleet.targets()).expect("JSON");
    let most: Vec<&Json> = targets.as_array().expect("a list").iter().take(5).collect();
    let write = |hosts: &[&Json]| {
        site.write("hosts.json", &serde_json::to_string(hosts).expect("JSON"));
    };
    // A kind is told to be unlike most when it comes.
    write(&[most[0], most[2], most[4]]);
    let mut serving = site.start();
    let address = serving.address();
    let are_up = |count: u32| {
        let (_, own) = request(address, "GET /metrics HTTP/1.1");
        own.contains(&format!("pmderive_hosts{{state=\"up\"}} {count}\n")).then_some(own)
    };
    until(|| are_up(3));
    write(&most);
    request(address, "POST /-/reload HTTP/1.1");
    let split = "pmderive_kinds_split{metric=\"fleet.c0\",by=\"type\"} 1\n";
    let own = until(|| are_up(5).filter(|own| own.contains(split)));
    let of_kinds: Vec<&str> = own
        .lines()
        .filter(|line| line.starts_with("pmderive_kind_hosts{"))
        .filter_map(|line| line.split(' ').next_back())
        .collect();
    assert_eq!(of_kinds, ["3", "2"], "{own}");
    let (_, json) = request(address, "GET /-/targets HTTP/1.1\r\nAccept: application/json");
    let json: Json = serde_json::from_str(&json).expect("JSON");
    let kinds = json["kinds"].as_array().expect("a list");
    let words = "`fleet.c0` has type U32, not U64";
    assert_eq!((kinds.len(), &kinds[0]["differs"]), (2, &Json::Null), "{json}");
    assert_eq!((&kinds[1]["by"], &kinds[1]["metric"]), (&"type".into(), &"fleet.c0".into()));
    assert_eq!(kinds[1]["differs"], words);
    let (_, log) = serving.end();
    assert!(log.contains(&format!("unlike most: {words}")), "{log}");
}

#[test]
fn racks_have_the_sums_of_their_hosts() {
    let config = "listen = '127.0.0.1:0'\n".to_owned()
        + LINES
        + "[[sink]]\nkind = 'prometheus'\nexport = ['racks.*']\n[fleet]\ndefinitions = ['fleet.conf']\nexport = ['racks.*', '*.present']\n";
    let site = Site::new(4, &config);
    // An operand may be an expression, which is computed on each host.
    let racks = "racks.hosts = count(s.hidden) by (dc)\nracks.sum = sum(s.each) by (dc, rack)\n\
                 racks.twice = sum(s.each * 2) by (dc, rack)\nnobody.wants = sum(s.each)\n\
                 racks.mixed = count(s.each) by (dc) + mkconst(1, units=\"byte\")\n";
    site.write("fleet.conf", racks);
    let mut serving = site.start();
    let address = serving.address();
    // The values of hosts in a slot, and after it those of the fleet.
    let mut sums: BTreeMap<u64, BTreeMap<String, f64>> = BTreeMap::new();
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    let mut compared = 0;
    while compared < 2 {
        let line = serving.line_like(is_frame);
        let slot = line["slot"].as_u64().expect("a number");
        let has = line["metrics"].as_object().expect("metrics").keys();
        let has: Vec<&str> = has.map(String::as_str).collect();
        if line["target"] != "fleet" {
            assert_eq!(has, ["s.each", "s.gauge"]);
            let each = line["metrics"]["s.each"].as_array().expect("a list");
            let sum: f64 = each.iter().map(|one| one[2].as_f64().expect("a number")).sum();
            let (dc, rack) = (&line["labels"]["dc"], &line["labels"]["rack"]);
            *sums
                .entry(slot)
                .or_default()
                .entry(format!("{{dc={dc},rack={rack}}}"))
                .or_default() += sum;
            *counts.entry(slot).or_default() += 1;
        } else if counts.get(&slot) == Some(&4) {
            assert_eq!(has, ["fleet.hosts.present", "racks.hosts", "racks.sum", "racks.twice"]);
            let of = |name: &str| -> BTreeMap<String, f64> {
                let values = line["metrics"][name].as_array().expect("a list").iter();
                let of = |one: &Json| Some((one[1].as_str()?.to_owned(), one[2].as_f64()?));
                values.map(|one| of(one).expect("a name and a number")).collect()
            };
            let (found, twice) = (of("racks.sum"), of("racks.twice"));
            assert!(found.values().zip(twice.values()).all(|(one, two)| one * 2.0 == *two));
            let expected = &sums[&slot];
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
            // Here the sum is not in the order of hosts and instances.
            let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs();
            assert!(found.values().zip(expected.values()).all(is_near), "{found:?} {expected:?}");
            compared += 1;
        }
    }
    let (_, text) = request(address, "GET /metrics HTTP/1.1");
    assert!(text.contains("\nracks_hosts{dc=\"dc0\"}"), "{text}");
    assert!(text.contains("\npmderive_fleet_slots_total "), "{text}");
    // What is kept of the hosts for that takes memory.
    assert!(!text.contains("{part=\"across\"} 0\n"), "{text}");
    let (_, log) = serving.end();
    let mistake = |line: &str| line.contains("fleet.conf:5:") && line.contains("racks.mixed");
    assert!(log.lines().any(mistake), "{log}");
}

/// A service manager, and the process that it watches.
fn watched(site: &Site) -> (UnixDatagram, Command) {
    let socket = site.path("notify");
    let manager = UnixDatagram::bind(&socket).expect("a socket");
    manager.set_read_timeout(Some(std::time::Duration::from_secs(120))).expect("a time-out");
    // The manager says which process it watches.
    let mut command = Command::new("sh");
    command.args(["-c", "WATCHDOG_PID=$$ exec \"$@\"", "sh"]);
    command.args([env!("CARGO_BIN_EXE_pmderive"), "serve", "--config"]);
    command.arg(site.path("serve.toml")).env("NOTIFY_SOCKET", &socket);
    command.env("WATCHDOG_USEC", "1000").stdout(Stdio::piped()).stderr(Stdio::piped());
    (manager, command)
}

/// Waits for a line of a message to the manager.
fn hear(manager: &UnixDatagram, expected: &str) {
    let mut message = [0; 512];
    loop {
        let length = manager.recv(&mut message).expect("a message");
        let message = String::from_utf8_lossy(&message[..length]);
        if message.lines().any(|line| line == expected) {
            return;
        }
    }
}

#[test]
fn the_service_manager_hears_what_happens() {
    let site = Site::new(2, LINES);
    let (manager, mut command) = watched(&site);
    let serving = Serving::of(command.spawn().expect("it starts"));
    hear(&manager, "READY=1");
    hear(&manager, "WATCHDOG=1");
    serving.signal("-HUP");
    hear(&manager, "RELOADING=1");
    hear(&manager, "READY=1");
    serving.end();
    hear(&manager, "STOPPING=1");
}

/// Others go on where nobody reads the lines.
#[test]
fn an_output_that_nobody_reads_is_told_and_nothing_is_kept_for_it() {
    let prometheus = "[[sink]]\nkind = 'prometheus'\n";
    let site = Site::new(2, &("listen = '127.0.0.1:0'\n".to_owned() + LINES + prometheus));
    let (manager, mut command) = watched(&site);
    let mut serving = Serving::of(command.spawn().expect("it starts"));
    let address = serving.address();
    serving.lines = BufReader::new(Box::new(std::io::empty()));
    serving.log_with("the reader of the standard output has gone");
    let number = |name: &str| {
        let (_, own) = request(address, "GET /metrics HTTP/1.1");
        let (_, rest) = own.split_once(name).expect("a number");
        rest.split('\n').next().and_then(|number| number.parse::<u64>().ok()).expect("a number")
    };
    let (waiting, dropped) = loop {
        let waiting = number("\npmderive_sink_ring_events{sink=\"json-lines\"} ");
        let dropped = "\npmderive_sink_dropped_events_total{sink=\"json-lines\",reason=\"end\"} ";
        match (waiting, number(dropped)) {
            (0, 0) => {}
            counts => break counts,
        }
    };
    assert!(waiting == 0 && dropped > 0, "{waiting} wait");
    // Its thread is not stuck.
    manager.set_nonblocking(true).expect("it can be");
    while manager.recv(&mut [0; 512]).is_ok() {}
    manager.set_nonblocking(false).expect("it can be");
    (0..3).for_each(|_| hear(&manager, "WATCHDOG=1"));
    serving.end();
}

#[test]
fn a_file_that_was_moved_away_is_opened_anew() {
    let site = Site::new(2, &(LINES.to_owned() + "path = 'lines'\n"));
    let (path, moved) = (site.path("lines"), site.path("lines.1"));
    let serving = site.start();
    let wait_for = |path: &Path| {
        while std::fs::metadata(path).map_or(0, |found| found.len()) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    wait_for(&path);
    std::fs::rename(&path, &moved).expect("the same folder");
    serving.signal("-USR1");
    wait_for(&path);
    serving.end();
    for path in [path, moved] {
        let text = std::fs::read_to_string(path).expect("UTF-8");
        let lines: Vec<Json> =
            text.lines().map(|line| serde_json::from_str(line).expect("whole lines")).collect();
        lines.iter().filter(|line| is_frame(line)).for_each(|line| check_values(&site.fleet, line));
    }
}
