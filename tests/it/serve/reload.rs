//! Configurations that change while `serve` runs: sinks, targets beyond the limit of
//! files, and the token of the listener.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use pmderive_testkit::receiver::{Receiver, Reply};

use super::{LINES, Serving, Site, request, serve};
use crate::command::pmderive;

fn get(address: SocketAddr, path: &str) -> (u16, String) {
    request(address, &format!("GET {path} HTTP/1.1"))
}

fn reload(address: SocketAddr) -> (u16, String) {
    request(address, "POST /-/reload HTTP/1.1")
}

/// The configuration with sinks that write to the folder, in this order.
fn with_sinks(kinds: &[&str]) -> String {
    let (fleet, _) = LINES.split_once("[[sink]]").expect("a sink");
    let sink = |kind: &&str| match *kind {
        "json-lines" => "[[sink]]\nkind = 'json-lines'\npath = 'lines'\n".to_owned(),
        kind => format!("[[sink]]\nkind = '{kind}'\n"),
    };
    let sinks: String = kinds.iter().map(sink).collect();
    let across = "[fleet]\ndefinitions = ['fleet.conf']\n";
    format!("listen = '127.0.0.1:0'\n{fleet}{across}{sinks}")
}

#[test]
fn what_is_shown_follows_its_sink() {
    let site = Site::new(2, &with_sinks(&["json-lines"]));
    site.write("fleet.conf", "all.sum = sum(s.each)\n");
    let mut serving = site.start();
    let address = serving.address();
    let target = site.fleet.address(1);
    let path = format!("/metrics?target={target}");
    let shows = |expected: &str| {
        while !get(address, &path).1.contains(expected) {
            std::thread::yield_now();
        }
        while !get(address, "/metrics").1.contains("\nall_sum ") {
            std::thread::yield_now();
        }
    };
    assert_eq!(get(address, &path).0, 404);
    // It is added, moved, and goes.
    for kinds in [&["json-lines", "prometheus"], &["prometheus", "json-lines"]] {
        site.write("serve.toml", &with_sinks(kinds));
        assert_eq!(reload(address), (200, "2 hosts\n".to_owned()));
        shows("\ns_gauge{");
    }
    site.write("serve.toml", &with_sinks(&["json-lines"]));
    assert_eq!(reload(address), (200, "2 hosts\n".to_owned()));
    assert!(!get(address, &path).1.contains("s_gauge"));
    assert!(!get(address, "/metrics").1.contains("\nall_sum "));
    serving.end();
}

/// Values of the slots before have other labels.
#[test]
fn a_host_with_other_labels_has_no_values_until_its_next_slot() {
    let config = with_sinks(&["prometheus"]);
    let site = Site::new(1, &config);
    site.write("fleet.conf", "all.sum = sum(s.each)\n");
    let mut serving = site.start();
    let address = serving.address();
    let target = site.fleet.address(0);
    let path = format!("/metrics?target={target}");
    while get(address, &path).0 != 200 {
        std::thread::yield_now();
    }
    site.write("serve.toml", &config.replace("interval = 1\n", "interval = '1 day'\n"));
    let hosts = format!("[{{\"targets\": [\"{target}\"], \"labels\": {{\"a\": \"b\"}}}}]");
    site.write("hosts.json", &hosts);
    assert_eq!(reload(address).0, 200);
    // The host hears of it a little later.
    let why = loop {
        let (status, text) = get(address, &path);
        if status == 404 {
            break text;
        }
        std::thread::yield_now();
    };
    let words = "or none has since it got other labels; the next one begins within ";
    assert!(why.contains(words), "{why}");
    serving.end();
}

/// As many targets that nobody listens at.
fn targets(count: usize) -> String {
    let one = |at: usize| format!("\"127.1.{}.{}:1\"", at / 200, at % 200 + 1);
    let all: Vec<String> = (0..count).map(one).collect();
    format!("[{{\"targets\": [{}]}}]", all.join(","))
}

#[test]
fn a_reload_raises_the_limit_of_files_or_is_refused() {
    let site = Site::new(1, &("listen = '127.0.0.1:0'\n".to_owned() + LINES));
    site.write("hosts.json", &targets(2));
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn 600; ulimit -Hn 2000; exec \"$@\"", "sh"]);
    command.args([env!("CARGO_BIN_EXE_pmderive"), "serve", "--config"]);
    command.arg(site.path("serve.toml")).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    let limits = format!("/proc/{}/limits", child.id());
    let mut serving = Serving::of(child);
    let address = serving.address();
    let limit = || {
        let text = std::fs::read_to_string(&limits).expect("a process");
        let line = text.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
        line.split_whitespace().nth(3).map(str::to_owned)
    };
    assert_eq!(limit().as_deref(), Some("600"));
    site.write("hosts.json", &targets(500));
    assert_eq!(reload(address), (200, "500 hosts\n".to_owned()));
    assert_eq!(limit().as_deref(), Some("2000"));
    site.write("hosts.json", &targets(2000));
    let (status, report) = reload(address);
    assert_eq!(status, 422, "{report}");
    serving.log_with("refused; the configuration before stays in use");
    let expected = "error: 2000 hosts need 2512 open files, and the limit is 2000: raise it";
    assert!(report.starts_with(expected), "{report}");
    assert!(get(address, "/metrics").1.contains("pmderive_config_is_good 0\n"));
    serving.end();
}

#[test]
fn a_host_that_is_listed_twice_keeps_nothing_from_being_read() {
    let config = LINES.replace("'hosts.json'", "'hosts.json', 'more.json'");
    let site = Site::new(2, &("listen = '127.0.0.1:0'\n".to_owned() + &config));
    site.write("more.json", "[]");
    let mut serving = site.start();
    let address = serving.address();
    let twice = site.fleet.address(0);
    site.write("more.json", &format!("[{{\"targets\": [\"{twice}\", \"127.1.0.1:1\"]}}]"));
    assert_eq!(reload(address), (200, "3 hosts\n".to_owned()));
    for expected in ["is listed twice", "more.json:1:", "is left out here", "hosts.json:"] {
        serving.log_with(expected);
    }
    serving.end();
}

#[test]
fn what_a_sink_that_is_gone_has_lost_is_told_at_the_end() {
    // It never answers.
    let receiver = Receiver::listen().expect("a port");
    receiver.script([Reply::Never]);
    let away = format!("[[sink]]\nkind = 'remote-write'\nurl = 'http://{}/'\n", receiver.address());
    let config = "listen = '127.0.0.1:0'\n".to_owned() + LINES + "path = 'lines'\n";
    let site = Site::new(2, &(config.clone() + &away));
    let mut command = pmderive(&["serve", "--drain", "100msec", "--config"]);
    command.arg(site.path("serve.toml")).stderr(Stdio::piped());
    let mut serving = Serving::of(command.spawn().expect("it starts"));
    let address = serving.address();
    let nothing = "pmderive_sink_ring_events{sink=\"remote-write\"} 0\n";
    while get(address, "/metrics").1.contains(nothing) {}
    site.write("serve.toml", &config);
    serving.signal("-HUP");
    serving.log_with("read again");
    let (_, log) = serving.end();
    let lost = |line: &str| line.contains("remote-write: ") && line.ends_with("when it ended");
    assert!(log.lines().any(lost), "{log}");
}

#[test]
fn a_token_is_read_again_and_its_absence_is_visible() {
    let config = "listen = '127.0.0.1:0'\n".to_owned() + LINES + "[web]\ntoken-file = 'token'\n";
    let site = Site::new(1, &config);
    site.write("token", "first\n");
    let mut serving = Serving::of(serve(&site.path("serve.toml")));
    let address = serving.address();
    let own = |token: &str| {
        request(address, &format!("GET /metrics HTTP/1.1\r\nAuthorization: Bearer {token}"))
    };
    let (status, text) = own("first");
    assert!(status == 200 && text.contains("pmderive_config_is_good 1\n"), "{text}");
    std::fs::remove_file(site.path("token")).expect("a file");
    serving.signal("-HUP");
    let report = serving.log_with("token");
    assert!(report.contains("No such file"), "{report}");
    let (status, text) = own("first");
    assert!(status == 200 && text.contains("pmderive_config_is_good 0\n"), "{text}");
    assert!(!text.contains("pmderive_reloads_total 0\n"), "{text}");
    // It runs, with what was good before.
    let (status, text) = get(address, "/healthz");
    assert!(status == 200 && text.contains("ok, but the files"), "{text}");
    site.write("token", "second\n");
    // The token holds for this as well.
    assert_eq!(reload(address).0, 401);
    // The new one may have been noticed by now.
    let bearing = |token: &str| format!("POST /-/reload HTTP/1.1\r\nAuthorization: Bearer {token}");
    let answers = ["first", "second"].map(|token| request(address, &bearing(token)).0);
    assert!(answers.contains(&200), "{answers:?}");
    assert_eq!((own("first").0, own("second").0), (401, 200));
    assert_eq!(get(address, "/healthz").0, 200);
    serving.end();
}
