//! Remote write to receivers of tests, which answer whatever they should not.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pmderive::internal::fleet::frame::Event;
use pmderive::internal::fleet::sinks::client::{Credentials, Url};
use pmderive::internal::fleet::sinks::delivery::RetryDelays;
use pmderive::internal::fleet::sinks::http::{Listen, Listener, Pages};
use pmderive::internal::fleet::sinks::newest_frames::NewestFrames;
use pmderive::internal::fleet::sinks::numbers::{RequestOutcome, SinkNumbers};
use pmderive::internal::fleet::sinks::outlets::Outlet;
use pmderive::internal::fleet::sinks::remote_write::{Change, SenderOptions};
use pmderive::internal::fleet::sinks::ring::Ring;
use pmderive::internal::fleet::sinks::tls::Identity;
use pmderive::internal::fleet::slot::Nanos;
use pmderive::internal::fleet::world::{Job, Machine};

use tokio::time::Instant;

use super::listener::listen;
use super::{Host, RATES, eventually, far, now, sender_to};

/// What a receiver does with a request.
#[derive(Clone, Copy)]
enum Does {
    /// Answers with these bytes.
    Says(&'static str),
    /// Keeps the connection, and says nothing.
    Waits,
    /// Says this and closes the connection.
    Cuts(&'static str),
}

/// A receiver with a plan; when that is done it accepts everything.
struct Receiver {
    address: SocketAddr,
    /// Heads of the requests that came.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    fn new(plan: &[Does]) -> Receiver {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("an address");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let plan = Mutex::new(plan.iter().copied().collect::<VecDeque<_>>());
        let all = Arc::clone(&heads);
        std::thread::spawn(move || {
            std::thread::scope(|scope| {
                for stream in socket.incoming().flatten() {
                    scope.spawn(|| serve(stream, &plan, &all));
                }
            });
        });
        Receiver { address, heads }
    }

    fn requests(&self) -> usize {
        self.heads.lock().expect("no panic").len()
    }
}

fn serve(stream: TcpStream, plan: &Mutex<VecDeque<Does>>, heads: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let mut stream = stream;
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.to_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
            head += &line;
        }
        if reader.read_exact(&mut vec![0; length]).is_err() {
            return;
        }
        heads.lock().expect("no panic").push(head);
        let next = plan.lock().expect("no panic").pop_front();
        match next.unwrap_or(Does::Says("HTTP/1.1 204 No Content\r\n\r\n")) {
            Does::Says(bytes) => {
                if stream.write_all(bytes.as_bytes()).is_err() {
                    return;
                }
            }
            // Until the other side ends it.
            Does::Waits => {
                let _ = reader.read_to_end(&mut Vec::new());
                return;
            }
            Does::Cuts(bytes) => {
                let _ = stream.write_all(bytes.as_bytes());
                return;
            }
        }
    }
}

struct Sink {
    ring: Arc<Ring>,
    numbers: Arc<SinkNumbers>,
    options: SenderOptions,
    change: Change,
    running: Job,
}

impl Sink {
    /// A sink that sends each event at once and tries again soon.
    fn start(address: SocketAddr, change: impl FnOnce(&mut SenderOptions)) -> Sink {
        let url = format!("http://{address}/api/v1/write");
        let mut options = sender_to(&url);
        options.limits.longest_wait = Duration::ZERO;
        let soon = Duration::from_millis(1);
        options.limits.backoff = RetryDelays { first: soon, longest: soon };
        change(&mut options);
        let numbers = Arc::new(SinkNumbers::default());
        let ring = Arc::new(Ring::new(1 << 20, Arc::clone(&numbers)));
        let started = options.clone().start::<Machine>(Arc::clone(&ring), Arc::clone(&numbers));
        let (change, running) = started.expect("a sink");
        Sink { ring, numbers, options, change, running }
    }

    fn end(self) -> Arc<SinkNumbers> {
        self.ring.close(Instant::now() + Duration::from_secs(60));
        self.running.join(far());
        self.numbers
    }
}

fn frame(at: Nanos) -> Arc<Event> {
    Host::new("web1:44321").frame(at, RATES)
}

/// Samples of a frame.
const SAMPLES: u64 = 6;

#[test]
fn answers_decide_what_becomes_of_samples() {
    use Does::{Cuts, Says};
    const REFUSED: &str = "HTTP/1.1 400 Bad\r\ncontent-length: 9\r\n\r\nno\x1b[2Jway\n";
    const MOVED: &str = "HTTP/1.1 302 Found\r\nlocation: http://x/\r\ncontent-length: 0\r\n\r\n";
    const SLOW: &str = "HTTP/1.1 429 Slow\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";
    const FAILED: &str = "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n";
    const BUSY: &str = "HTTP/1.1 503 Busy\r\nretry-after: soon\r\ncontent-length: 0\r\n\r\n";
    const ENDLESS: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok";
    const LAST: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    // What the receiver does; then: frames that are through, frames refused, requests
    // made again, and how many requests ended like this.
    type Case<'c> = (&'c [Does], u64, u64, u64, RequestOutcome, u64);
    let cases: [Case<'_>; 10] = [
        (&[], 2, 0, 0, RequestOutcome::Accepted, 2),
        (
            &[Says("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")],
            2,
            0,
            0,
            RequestOutcome::Accepted,
            2,
        ),
        (&[Says(LAST)], 2, 0, 0, RequestOutcome::Accepted, 2),
        // The text of the answer does not end.
        (&[Says(ENDLESS)], 2, 0, 0, RequestOutcome::Accepted, 2),
        (&[Says(REFUSED)], 1, 1, 0, RequestOutcome::Refused, 1),
        (&[Says(MOVED)], 1, 1, 0, RequestOutcome::Refused, 1),
        (&[Says(SLOW), Says(SLOW)], 2, 0, 2, RequestOutcome::Throttled, 2),
        (&[Says(FAILED), Says(BUSY)], 2, 0, 2, RequestOutcome::Failed, 2),
        (&[Says("garbage\r\n\r\n"), Cuts("HTTP/1.1 2")], 2, 0, 2, RequestOutcome::Broken, 2),
        (&[Cuts(""), Cuts("")], 2, 0, 2, RequestOutcome::Broken, 2),
    ];
    for (at, (plan, through, refused, retries, outcome, count)) in cases.into_iter().enumerate() {
        let receiver = Receiver::new(plan);
        let sink = Sink::start(receiver.address, |_| {});
        // Each is a message of its own.
        sink.ring.push(&frame(now()));
        eventually("the first", || (receiver.requests() > 0).then_some(()));
        sink.ring.push(&frame(now()));
        let numbers = sink.end();
        let found = (
            numbers.samples.get(),
            numbers.dropped_refused.get(),
            numbers.retries.get(),
            numbers.requests(outcome),
        );
        assert_eq!(found, (through * SAMPLES, refused * SAMPLES, retries, count), "case {at}");
        assert_eq!(receiver.requests() as u64, through + refused + retries, "case {at}");
    }
}

#[test]
fn a_receiver_that_never_answers_is_not_waited_for() {
    let receiver = Receiver::new(&[Does::Waits]);
    let sink = Sink::start(receiver.address, |options| {
        options.remote.timeout = Duration::from_millis(50);
    });
    sink.ring.push(&frame(now()));
    let numbers = Arc::clone(&sink.numbers);
    eventually("the second try", || (numbers.samples.get() == SAMPLES).then_some(()));
    assert!(sink.end().requests(RequestOutcome::TimedOut) >= 1);
}

#[test]
fn the_end_comes_at_the_deadline() {
    let receiver = Receiver::new(&[Does::Waits]);
    let sink = Sink::start(receiver.address, |options| {
        options.remote.timeout = Duration::from_secs(3600);
    });
    sink.ring.push(&frame(now()));
    eventually("the request", || (receiver.requests() == 1).then_some(()));
    sink.ring.push(&frame(now()));
    sink.ring.push(&frame(now()));
    sink.ring.close(Instant::now() + Duration::from_millis(50));
    sink.running.join(far());
    let numbers = sink.numbers;
    assert_eq!((numbers.dropped_unsent.get(), numbers.dropped_closed.get()), (SAMPLES, 2));
    assert_eq!(numbers.ring_bytes.get(), 0);
}

#[test]
fn what_is_old_is_not_sent() {
    let receiver = Receiver::new(&[]);
    let sink = Sink::start(receiver.address, |_| {});
    sink.ring.push(&frame(Nanos(0)));
    let numbers = sink.end();
    assert_eq!((numbers.dropped_old.get(), receiver.requests()), (SAMPLES, 0));
}

#[test]
fn a_receiver_that_is_away_costs_no_more_than_the_ring() {
    let receiver = Receiver::new(&[Does::Waits]);
    let url = format!("http://{}/", receiver.address);
    let mut options = sender_to(&url);
    options.remote.timeout = Duration::from_secs(3600);
    options.limits.longest_wait = Duration::ZERO;
    let numbers = Arc::new(SinkNumbers::default());
    let one = frame(now());
    let ring = Arc::new(Ring::new(10 * one.bytes_with_parts(), Arc::clone(&numbers)));
    let (_, running) =
        options.start::<Machine>(Arc::clone(&ring), Arc::clone(&numbers)).expect("a sink");
    ring.push(&one);
    eventually("the request", || (receiver.requests() == 1).then_some(()));
    (0..1000).for_each(|_| ring.push(&frame(now())));
    assert_eq!((numbers.events.get(), numbers.ring_events.get()), (1001, 10));
    assert_eq!(numbers.dropped_overflow.get(), 990);
    ring.close(Instant::now());
    running.join(far());
}

#[test]
fn requests_say_what_they_are_and_who_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    std::fs::write(&file, "open sesame").expect("a file");
    let receiver = Receiver::new(&[]);
    let sink = Sink::start(receiver.address, |options| {
        let user = "Aladdin".to_owned();
        options.remote.credentials = Credentials::Basic { user, password_file: file.clone() };
        assert!(!format!("{options:?}").contains("sesame"));
    });
    sink.ring.push(&frame(now()));
    eventually("the request", || (receiver.requests() == 1).then_some(()));
    let head = receiver.heads.lock().expect("no panic")[0].clone();
    for line in [
        "post /api/v1/write http/1.1",
        "content-encoding: snappy",
        "content-type: application/x-protobuf",
        "x-prometheus-remote-write-version: 0.1.0",
        "authorization: basic qwxhzgrpbjpvcgvuihnlc2ftzq==",
        &format!("host: {}", receiver.address),
    ] {
        assert!(head.lines().any(|found| found == line), "{line} in {head}");
    }
    // A file that is gone for a while is trouble, but nothing is lost.
    std::fs::remove_file(&file).expect("a file");
    sink.ring.push(&frame(now()));
    let numbers = &sink.numbers;
    eventually("trouble", || (numbers.requests(RequestOutcome::Broken) > 0).then_some(()));
    std::fs::write(&file, "open sesame").expect("a file");
    assert_eq!(sink.end().samples.get(), 2 * SAMPLES);
}

#[test]
fn other_options_hold_from_the_next_request_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let token_file = folder.path().join("token");
    let receiver = Receiver::new(&[]);
    let sink = Sink::start(receiver.address, |_| {});
    sink.ring.push(&frame(now()));
    eventually("the request", || (receiver.requests() == 1).then_some(()));
    let credentials = Credentials::Bearer { token_file: token_file.clone() };
    let mut options = sink.options.clone();
    options.remote.credentials = credentials;
    assert!((sink.change)(options.clone()).is_err(), "there is no such file");
    std::fs::write(&token_file, "s3cret").expect("a file");
    (sink.change)(options).expect("good options");
    sink.ring.push(&frame(now()));
    assert_eq!(sink.end().samples.get(), 2 * SAMPLES);
    let heads = receiver.heads.lock().expect("no panic");
    let has_token = |head: &String| head.contains("authorization: bearer s3cret");
    assert_eq!(heads.iter().map(has_token).collect::<Vec<_>>(), [false, true]);
}

/// Pages of a program that has none.
struct NoPages;

impl Pages for NoPages {}

#[test]
fn both_sides_of_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let other =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = write("certificate.pem", own.cert.pem());
    let key = write("key.pem", own.signing_key.serialize_pem());
    let stranger = write("stranger.pem", other.cert.pem());
    let token_file = write("token", "s3cret".into());
    let identity = Identity { certificate: certificate.clone(), key };
    let options = Listen { tls: Some(identity), token_file: Some(token_file.clone()), ..listen() };
    // With both it may be open to others.
    let everywhere = "0.0.0.0:9464".parse().expect("an address");
    Listen { address: everywhere, ..options.clone() }.check().expect("it is safe");
    let answered = Arc::new(SinkNumbers::default());
    let newest = Arc::new(NewestFrames::default());
    newest.limit(usize::MAX, Arc::clone(&answered));
    let listener = Listener::start(options, newest, Arc::new(NoPages));
    let listener = listener.expect("a listener");
    let url = format!("https://localhost:{}/metrics", listener.address().port());
    // It takes no samples, and says so once it was understood.
    for (authority, outcome) in
        [(&certificate, RequestOutcome::Refused), (&stranger, RequestOutcome::Broken)]
    {
        let sink = Sink::start(listener.address(), |options| {
            options.remote.url = Url::parse(&url).expect("a URL");
            options.remote.authorities = Some(authority.clone());
            options.remote.credentials = Credentials::Bearer { token_file: token_file.clone() };
        });
        sink.ring.push(&frame(now()));
        let numbers = &sink.numbers;
        eventually("an answer", || (numbers.requests(outcome) > 0).then_some(()));
        sink.ring.close(Instant::now());
        sink.running.join(far());
    }
    assert_eq!(answered.requests(RequestOutcome::Refused), 1);
    listener.stop((Instant::now() + Duration::from_secs(60)).into_std());
}
