//! The listener: what it answers, to whom, and what it refuses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use pmderive::internal::fleet::frame::{Schema, StaleReason};
use pmderive::internal::fleet::labels::Labels;
use pmderive::internal::fleet::sinks::http::{Answer, Listen, Listener, Pages};
use pmderive::internal::fleet::sinks::newest_frames::NewestFrames;
use pmderive::internal::fleet::sinks::numbers::{self, RequestOutcome, SinkNumbers};
use pmderive::internal::fleet::sinks::outlets::Outlet;
use pmderive::internal::fleet::sinks::samples;
use pmderive::internal::fleet::sinks::sink_set::SinkPlace;
use pmderive::internal::fleet::sinks::text::Writer;
use pmderive::internal::fleet::sinks::tls::Identity;
use pmderive::internal::fleet::slot::Nanos;
use pmderive::internal::fleet::targets::target::Target;
use pmderive_runtime::model::{Semantics, ValueType};

use super::{Host, RATES, answer, ask, eventually, get};

/// Pages of a program that has a page, and is well unless it is called so.
#[derive(Default)]
pub struct Own {
    pub trouble: Option<String>,
    pub numbers: Arc<SinkNumbers>,
}

impl Pages for Own {
    fn write_own(&self, writer: &mut Writer<'_>) {
        numbers::write(writer, &[("scraped", &self.numbers)]);
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }

    fn page(&self, path: &str, accept: &str) -> Option<Answer> {
        (path == "/-/targets").then(|| Answer::text(200, format!("targets as {accept}")))
    }

    fn reload(&self) -> Answer {
        Answer::text(200, "read again\n")
    }
}

/// A listener on loopback that shows what sink 0 wants.
pub fn listen() -> Listen {
    Listen { sink: Some(SinkPlace(0)), ..Listen::on("127.0.0.1:0".parse().expect("an address")) }
}

fn start(listen: Listen, newest: &Arc<NewestFrames>, own: Own) -> Listener {
    newest.limit(usize::MAX, Arc::clone(&own.numbers));
    Listener::start(listen, Arc::clone(newest), Arc::new(own)).expect("a listener")
}

fn end() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

const TEXT: &str = r#"# PCP5 shop.hosts PM_ID_NULL u32 PM_INDOM_NULL discrete none
# HELP shop_hosts about shop.hosts, in a few words
# TYPE shop_hosts gauge
shop_hosts{exported_rack="of PCP",hostname="vm",instance="web1:44321",rack="a \"quoted\" \\ rack"} 3
# PCP5 shop.rate PM_ID_NULL double - instant none
# HELP shop_rate about shop.rate, in a few words
# TYPE shop_rate gauge
shop_rate{exported_rack="of PCP",hostname="vm",indom_name="per disk",instance="web1:44321",instid="0",instname="vda",rack="a \"quoted\" \\ rack"} 0.1
shop_rate{exported_rack="of PCP",hostname="vm",indom_name="per disk",instance="web1:44321",instid="1",instname="vdb",rack="a \"quoted\" \\ rack"} 1e-300
shop_rate{exported_rack="of PCP",hostname="vm",indom_name="per disk",instance="web1:44321",instid="2",instname="nvme0n1",rack="a \"quoted\" \\ rack"} 123456789.12345679
shop_rate{exported_rack="of PCP",hostname="vm",indom_name="per disk",instance="web1:44321",instid="7",instname="sdc",rack="a \"quoted\" \\ rack"} -2.5
# PCP5 shop.requests_total PM_ID_NULL u64 PM_INDOM_NULL counter none
# HELP shop_requests_total about shop.requests_total, in a few words
# TYPE shop_requests_total counter
shop_requests_total{exported_rack="of PCP",hostname="vm",instance="web1:44321",rack="a \"quoted\" \\ rack"} 18446744073709551615
"#;

#[test]
fn a_host_is_shown_in_both_forms_until_it_is_stale() {
    let newest = Arc::new(NewestFrames::default());
    let listener = start(listen(), &newest, Own::default());
    let host = Host::new("web1:44321");
    newest.push(&host.frame(Nanos(1_700_000_000_123_000_000), RATES));
    let page = |more: &str, accept: &str| {
        get(listener.address(), &format!("/metrics?target=web1%3A44321{more}"), accept)
    };
    assert_eq!(page("", ""), (200, TEXT.to_owned()));
    let comments = TEXT.lines().filter(|line| !line.starts_with("# PCP5"));
    let open: String = comments.map(|line| format!("{line}\n")).collect::<String>() + "# EOF\n";
    let open = open.replace("HELP shop_requests_total", "HELP shop_requests");
    let open = open.replace("TYPE shop_requests_total", "TYPE shop_requests");
    let accept = "accept: application/openmetrics-text; version=1.0.0\r\n";
    assert_eq!(page("", accept), (200, open.clone()));
    let with_times = |text: &str, time: &str| {
        let line = |line: &str| match line.starts_with('#') {
            true => format!("{line}\n"),
            false => format!("{line} {time}\n"),
        };
        text.lines().map(line).collect::<String>()
    };
    assert_eq!(page("&times=true", ""), (200, with_times(TEXT, "1700000000123")));
    assert_eq!(page("&times=true", accept), (200, with_times(&open, "1700000000.123")));

    let vanished = vec![(1, samples::named(&["vda", "vdb"])), (2, samples::single())];
    let reason = StaleReason::Vanished;
    newest.push(&Arc::new(samples::stale(&host.target, 1, reason, &host.schema, vanished)));
    let left = page("", "").1;
    assert!(left.contains("nvme0n1") && !left.contains("vda"), "{left}");
    assert!(!left.contains("shop_requests_total"), "{left}");
    let reason = StaleReason::Failed("no answer".into());
    newest.push(&Arc::new(samples::stale(&host.target, 2, reason, &host.schema, Vec::new())));
    assert_eq!(page("", "").0, 404);
    listener.stop(end());
}

/// In OpenMetrics the families `x` and `x_created` take the names of a counter `x_total`.
#[test]
fn families_are_told_apart_and_what_may_fall_is_no_counter() {
    let newest = Arc::new(NewestFrames::default());
    let listener = start(listen(), &newest, Own::default());
    let (fleet, host) = (Arc::new(Target::fleet()), samples::target("h:44321", Labels::default()));
    let accept = "accept: application/openmetrics-text\r\n";
    let cases: [(&Arc<Target>, &[&str], &str, &str); 6] = [
        (&host, &["x.total"], "x_total counter", "x counter"),
        (&host, &["x", "x.total"], "x_total counter", "x_total unknown"),
        (&host, &["x.created", "x.total"], "x_total counter", "x_total unknown"),
        (&host, &["x.created_total", "x.total"], "x_total counter", "x_total unknown"),
        (&fleet, &["x.total"], "x_total gauge", "x_total gauge"),
        (&fleet, &["x.created", "x.total"], "x_total gauge", "x_total gauge"),
    ];
    for (target, names, text, open) in cases {
        let counter = |name: &&str| {
            samples::exported(name, ValueType::U64, Semantics::Counter, samples::sinks(&[0]))
        };
        let schema = Arc::new(Schema { metrics: names.iter().map(counter).collect() });
        let columns: Vec<_> =
            names.iter().map(|_| samples::column(&samples::single(), &[1])).collect();
        newest.push(&Arc::new(samples::frame(target, 0, &schema, &columns)));
        let path = match target.is_fleet() {
            true => "/metrics",
            false => "/metrics?target=h:44321",
        };
        for (headers, expected) in [("", text), (accept, open)] {
            let page = get(listener.address(), path, headers).1;
            assert!(page.contains(&format!("# TYPE {expected}\n")), "{names:?}: {page}");
        }
    }
    let page = get(listener.address(), "/metrics", "").1;
    assert!(page.contains("# PCP5 x.total PM_ID_NULL u64 PM_INDOM_NULL instant none\n"), "{page}");
    listener.stop(end());
}

#[test]
fn requests_are_answered() {
    let newest = Arc::new(NewestFrames::default());
    newest.push(&Host::new(Target::FLEET).frame(Nanos(0), RATES));
    newest.push(&Host::new("web1:44321").frame(Nanos(0), RATES));
    let listener = start(listen(), &newest, Own::default());
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    let cases: &[(&str, u16, &str)] = &[
        ("GET /metrics", 200, "\nshop_hosts{exported_rack=\"of PCP\",hostname=\"vm\",rack="),
        (
            "GET /metrics",
            200,
            "\npmderive_sink_requests_total{sink=\"scraped\",outcome=\"accepted\"}",
        ),
        ("GET /metrics?target=", 400, "target= without a name"),
        ("GET /metrics?target=%ff", 400, "not text in UTF-8"),
        ("GET /metrics?target=a%0ab", 404, "no values of a\\x0ab: it is unknown"),
        ("POST /metrics", 405, "only GET"),
        ("GET /healthz", 200, "ok"),
        ("GET /-/targets", 200, "targets as text/html"),
        ("GET /-/nothing", 404, "there is /metrics"),
        ("GET /", 404, "there is /metrics"),
        ("GET /-/reload", 405, "only POST"),
        ("POST /-/reload", 200, "read again"),
    ];
    for (request, status, text) in cases {
        let head = "accept: text/html\r\nhost: localhost:1\r\nconnection: close";
        let answered = ask(listener.address(), &format!("{request} HTTP/1.1\r\n{head}\r\n\r\n"));
        assert_eq!(answered.0, *status, "{request}");
        assert!(answered.1.contains(text), "{request}: {}", answered.1);
    }
    for (origin, status) in [("http://localhost:1", 200), ("http://evil", 403), ("null", 403)] {
        let head = format!("host: localhost:1\r\norigin: {origin}\r\nconnection: close\r\n\r\n");
        let answered = ask(listener.address(), &format!("POST /-/reload HTTP/1.1\r\n{head}"));
        assert_eq!(answered.0, status, "{origin}");
    }
    // Every host is shown alone, and aggregates without one.
    let all = get(listener.address(), "/metrics", "").1;
    assert!(!all.contains("web1"), "{all}");
    let mut stream = TcpStream::connect(listener.address()).expect("a connection");
    let request = "HEAD /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("a request");
    assert_eq!(answer(&mut stream), (200, String::new()));
    // What is no request harms nobody.
    for bytes in ["nonsense\r\n\r\n", &long] {
        let mut stream = TcpStream::connect(listener.address()).expect("a connection");
        let _ = stream.write_all(bytes.as_bytes());
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert_eq!(get(listener.address(), "/healthz", ""), (200, "ok\n".into()));
    listener.stop(end());
}

/// A name of another site may lead to this machine, for a browser with its pages.
#[test]
fn without_a_token_names_of_others_get_no_answer() {
    let listener = start(listen(), &Arc::default(), Own::default());
    for (version, host, status) in [
        ("1.1", "host: 127.0.0.1:9464\r\n", 200),
        ("1.1", "host: 192.0.2.1\r\n", 200),
        ("1.1", "host: [::1]:9464\r\n", 200),
        ("1.1", "host: [::1]\r\n", 200),
        ("1.1", "host: LocalHost\r\n", 200),
        ("1.0", "", 200),
        ("1.1", "host: evil.example:9464\r\n", 421),
        ("1.1", "host: localhost.evil.example\r\n", 421),
        ("1.1", "host: 127.0.0.1.evil.example:1\r\n", 421),
        ("1.1", "host: localhost\r\nhost: evil\r\n", 421),
        ("1.1", "host:\r\n", 421),
    ] {
        for path in ["/metrics", "/healthz", "/-/targets"] {
            let request = format!("GET {path} HTTP/{version}\r\nconnection: close\r\n{host}\r\n");
            assert_eq!(ask(listener.address(), &request).0, status, "{request}");
        }
    }
    let (_, said) = ask(listener.address(), "GET / HTTP/1.1\r\nhost: evil\r\n\r\n");
    assert!(said.contains("token-file in [web]"), "{said}");
    listener.stop(end());
}

#[test]
fn trouble_is_told() {
    let own = Own { trouble: Some("the configuration is not in force".into()), ..Own::default() };
    let listener = start(listen(), &Arc::default(), own);
    let answered = get(listener.address(), "/healthz", "");
    assert_eq!(answered, (200, "ok, but the configuration is not in force\n".into()));
    listener.stop(end());
}

/// Pages that nobody gets before the end.
struct Stuck(Mutex<mpsc::Receiver<()>>);

impl Pages for Stuck {
    fn write_own(&self, _: &mut Writer<'_>) {
        let _ = self.0.lock().map(|end| end.recv());
    }
}

#[test]
fn health_does_not_wait_for_other_pages() {
    let (release, waits) = mpsc::channel::<()>();
    let pages = Arc::new(Stuck(Mutex::new(waits)));
    let listener = Listener::start(listen(), Arc::default(), pages).expect("a listener");
    // More than there are threads for answers.
    let mut others: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(listener.address()).expect("a connection");
            stream
                .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n")
                .expect("it is sent");
            stream
        })
        .collect();
    assert_eq!(get(listener.address(), "/healthz", ""), (200, "ok\n".to_owned()));
    drop(release);
    assert_eq!(others[0].read(&mut [0]).expect("an answer"), 1);
    listener.stop(end());
}

/// Otherwise they would hold places that nobody can take from them.
#[test]
fn clients_without_the_token_do_not_wait_for_other_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cret\n").expect("a file");
    let (release, waits) = mpsc::channel::<()>();
    let pages = Arc::new(Stuck(Mutex::new(waits)));
    let listen = Listen { token_file: Some(file), ..listen() };
    let listener = Listener::start(listen, Arc::default(), pages).expect("a listener");
    let known = "authorization: Bearer s3cret\r\n";
    let request = format!("GET /metrics HTTP/1.1\r\nhost: x\r\n{known}\r\n");
    let mut others: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(listener.address()).expect("a connection");
            stream.write_all(request.as_bytes()).expect("it is sent");
            stream
        })
        .collect();
    for path in ["/metrics", "/-/reload", "/-/targets", "/nothing"] {
        assert_eq!(get(listener.address(), path, "").0, 401, "{path}");
    }
    others[0].set_nonblocking(true).expect("a socket");
    assert!(others[0].read(&mut [0]).is_err(), "the others wait still");
    others[0].set_nonblocking(false).expect("a socket");
    drop(release);
    assert_eq!(others[0].read(&mut [0]).expect("an answer"), 1);
    listener.stop(end());
}

#[test]
fn the_token_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cret\n").expect("a file");
    let own = Own::default();
    let numbers = Arc::clone(&own.numbers);
    let listen = Listen { token_file: Some(file.clone()), ..listen() };
    assert!(!format!("{listen:?}").contains("s3cret"));
    let listener = start(listen, &Arc::default(), own);
    assert!(!format!("{listener:?}").contains("s3cret"));
    let cases = [
        ("/metrics", "", 401),
        ("/metrics", "authorization: Bearer s3cre\r\n", 401),
        ("/metrics", "authorization: Basic s3cret\r\n", 401),
        ("/metrics", "authorization: Bearer\r\n", 401),
        ("/metrics", "authorization: bearer s3cret\r\n", 200),
        // Of a browser: any:s3cret, s3cret:, s3cret.
        ("/metrics", "authorization: Basic YW55OnMzY3JldA==\r\n", 200),
        ("/metrics", "authorization: Basic czNjcmV0Og==\r\n", 401),
        ("/metrics", "authorization: Basic czNjcmV0\r\n", 401),
        ("/-/targets", "", 401),
        ("/nothing", "", 401),
        ("/healthz", "", 200),
    ];
    for (path, headers, status) in cases {
        assert_eq!(get(listener.address(), path, headers).0, status, "{path} {headers}");
    }
    // The connection ends with the answer, as there may be other clients that wait for its place.
    assert_eq!(ask(listener.address(), "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").0, 401);
    // A proxy on this machine lets anybody come from loopback.
    let reload = |headers: &str| {
        let head = "POST /-/reload HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
        ask(listener.address(), &format!("{head}{headers}\r\n")).0
    };
    assert_eq!(reload(""), 401);
    assert_eq!(reload("authorization: Bearer s3cret\r\n"), 200);
    std::fs::write(&file, "another\n").expect("a file");
    let settings = listener.settings();
    settings.renew(settings.read().expect("a token"));
    let headers = "authorization: Bearer another\r\n";
    assert_eq!(get(listener.address(), "/metrics", headers).0, 200);
    std::fs::write(&file, "").expect("a file");
    assert!(settings.read().is_err());
    assert_eq!(get(listener.address(), "/metrics", headers).0, 200);
    listener.stop(end());
    assert_eq!(numbers.requests(RequestOutcome::Refused), 10);
}

/// Head and body of the answer to a GET.
fn whole(listener: &Listener, path: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(listener.address()).expect("a connection");
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let body = bytes.split_off(end + 4);
    (String::from_utf8(bytes).expect("text"), body)
}

#[test]
fn a_browser_is_asked_for_the_password_and_shows_nothing_in_frames() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cret\n").expect("a file");
    let listen = Listen { token_file: Some(file), ..listen() };
    let listener = start(listen, &Arc::default(), Own::default());
    let (head, _) = whole(&listener, "/-/targets", "");
    for line in [
        "www-authenticate: Bearer",
        "www-authenticate: Basic realm=\"pmderive\", charset=\"UTF-8\"",
        "content-security-policy: frame-ancestors 'none'",
        "x-frame-options: DENY",
        "cache-control: no-store",
    ] {
        assert!(head.lines().any(|found| found == line), "{line} in {head}");
    }
    // It brings the password by itself, also for pages of other sites; they get nothing.
    let known = "authorization: Basic YW55OnMzY3JldA==\r\n";
    for (site, status) in
        [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
    {
        let head = format!(
            "host: localhost\r\nconnection: close\r\n{known}sec-fetch-site: {site}\r\n\r\n"
        );
        let answered = ask(listener.address(), &format!("POST /-/reload HTTP/1.1\r\n{head}"));
        assert_eq!(answered.0, status, "{site}");
    }
    listener.stop(end());
}

/// A program with a page that is long.
struct Long;

impl Pages for Long {
    fn page(&self, path: &str, _: &str) -> Option<Answer> {
        let length = if path == "/-/long" { 100_000 } else { 100 };
        Some(Answer::text(200, "host ".repeat(length)))
    }
}

#[test]
fn what_is_long_is_compressed_for_those_who_accept_it() {
    let listener = Listener::start(listen(), Arc::default(), Arc::new(Long));
    let listener = listener.expect("a listener");
    for (path, accepted, is_compressed) in [
        ("/-/long", "gzip", true),
        ("/-/long", "br, GZIP;q=0.5", true),
        ("/-/long", "br\r\naccept-encoding: gzip", true),
        ("/-/long", "gzip;q=0", false),
        ("/-/long", "gzip; q=0.0, br", false),
        ("/-/long", "identity", false),
        ("/-/short", "gzip", false),
    ] {
        let (head, body) = whole(&listener, path, &format!("accept-encoding: {accepted}\r\n"));
        assert_eq!(head.contains("content-encoding: gzip"), is_compressed, "{accepted}: {head}");
        let mut text = String::new();
        match is_compressed {
            true => {
                assert!(body.len() < 5_000, "{}", body.len());
                flate2::read::GzDecoder::new(&*body).read_to_string(&mut text).expect("gzip");
            }
            false => text = String::from_utf8(body).expect("text"),
        }
        assert!(text == "host ".repeat(if path == "/-/long" { 100_000 } else { 100 }), "{path}");
    }
    let (head, body) = whole(&listener, "/-/long", "");
    assert!(!head.contains("content-encoding") && body.len() == 500_000, "{head}");
    listener.stop(end());
}

/// A program with a page of 30 MiB.
struct Huge;

impl Pages for Huge {
    fn page(&self, _: &str, _: &str) -> Option<Answer> {
        Some(Answer::of(200, "text/plain", vec![b'x'; 30 << 20]))
    }
}

#[test]
fn clients_that_do_not_read_do_not_fill_the_memory() {
    let listener = Listener::start(listen(), Arc::default(), Arc::new(Huge)).expect("a listener");
    let mut slow = [(); 3].map(|()| TcpStream::connect(listener.address()).expect("a connection"));
    for stream in &mut slow {
        stream.write_all(b"GET /-/ HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("a request");
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).expect("an answer");
        assert_eq!(&begin, b"HTTP/1.1 200");
    }
    let (head, said) = whole(&listener, "/-/", "");
    assert!(head.starts_with("HTTP/1.1 503") && head.contains("\r\nretry-after: 1"), "{head}");
    assert!(said.ends_with(b"ask again\n"));
    assert_eq!(get(listener.address(), "/healthz", "").0, 200);
    // The slowest must go.
    let body = eventually("an answer", || {
        let (head, body) = whole(&listener, "/-/", "");
        head.starts_with("HTTP/1.1 200").then_some(body)
    });
    assert_eq!(body.len(), 30 << 20);
    listener.stop(end());
}

#[test]
fn addresses_that_cannot_be() {
    let first = start(listen(), &Arc::default(), Own::default());
    let start = |listen: Listen| {
        let pages = Arc::new(Own::default());
        Listener::start(listen, Arc::default(), pages).expect_err("no listener")
    };
    let on = |address: &str| Listen::on(address.parse().expect("an address"));
    let error = start(Listen::on(first.address()));
    let taken = "is taken: end the program that listens there, or choose another port";
    assert_eq!(error, format!("{} {taken}", first.address()));
    let error = start(on("192.0.2.1:9464"));
    assert_eq!(
        error,
        "192.0.2.1:9464 can be reached by others: give the listener a certificate, a key and a \
         token (`[web]` of a configuration). An address of this machine alone needs none, such as \
         127.0.0.1:9464"
    );
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:192.0.2.1]:0"] {
        assert!(start(on(address)).contains("can be reached by others"), "{address}");
    }
    on("[::ffff:127.0.0.1]:0").check().expect("loopback");
    let nowhere = Path::new("/nonexistent/file");
    let identity = Identity { certificate: nowhere.into(), key: nowhere.into() };
    let half = Listen { tls: Some(identity.clone()), ..on("0.0.0.0:0") };
    assert!(start(half).contains("can be reached by others"));
    let error = start(Listen { tls: Some(identity), ..on("127.0.0.1:0") });
    assert_eq!(error, "/nonexistent/file: No such file or directory (os error 2)");
    first.stop(end());
}

#[test]
fn connections_are_bounded_in_number_and_time() {
    let mut listen = listen();
    listen.limits.connections = 1;
    let listener = start(listen, &Arc::default(), Own::default());
    let first = TcpStream::connect(listener.address()).expect("a connection");
    // It is in once it was answered, and keeps the only place as long as nobody else
    // wants it.
    let mut first = {
        let mut stream = first;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("a request");
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).expect("an answer");
        assert_eq!(&begin, b"HTTP/1.1 200");
        stream
    };
    let mut second = TcpStream::connect(listener.address()).expect("a connection");
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    second.write_all(request).expect("a request");
    assert_eq!(answer(&mut second).0, 200);
    // The end comes by itself.
    let _ = first.read_to_end(&mut Vec::new());
    listener.stop(end());

    let mut listen = self::listen();
    listen.limits.head_time = Duration::from_millis(50);
    let listener = start(listen, &Arc::default(), Own::default());
    let mut stream = TcpStream::connect(listener.address()).expect("a connection");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost:").expect("a part");
    // The end comes by itself.
    let _ = stream.read_to_end(&mut Vec::new());
    assert_eq!(get(listener.address(), "/healthz", "").0, 200);
    listener.stop(end());
}

#[test]
fn idle_connections_do_not_keep_it_from_ending() {
    let listener = start(listen(), &Arc::default(), Own::default());
    let address = listener.address();
    let mut idle = TcpStream::connect(address).expect("a connection");
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("a request");
    let mut begin = [0; 12];
    idle.read_exact(&mut begin).expect("an answer");
    listener.stop(Instant::now() + Duration::from_secs(600));
    eventually("the end", || TcpStream::connect(address).is_err().then_some(()));
}
