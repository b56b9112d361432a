//! The receiver from outside: accepted requests, complaints, and scripted answers.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use pmderive_testkit::choices::Choices;
use pmderive_testkit::receiver::{
    Receiver, Reply, Request, STALE, Sample, Series, WriteRequest, decompress,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Appends a field of bytes.
fn field(out: &mut Vec<u8>, number: u8, content: &[u8]) {
    out.push(number << 3 | 2);
    number_of_bytes(out, content.len());
    out.extend_from_slice(content);
}

fn number_of_bytes(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn encoded(series: &[Series]) -> Vec<u8> {
    let mut request = Vec::new();
    for Series { labels, samples } in series {
        let mut message = Vec::new();
        for (name, value) in labels {
            let mut label = Vec::new();
            field(&mut label, 1, name.as_bytes());
            field(&mut label, 2, value.as_bytes());
            field(&mut message, 1, &label);
        }
        for Sample { value, timestamp } in samples {
            let mut sample = vec![1 << 3 | 1];
            sample.extend_from_slice(&value.to_bits().to_le_bytes());
            sample.push(2 << 3);
            number_of_bytes(&mut sample, usize::try_from(*timestamp).expect("after 1970"));
            field(&mut message, 2, &sample);
        }
        field(&mut request, 1, &message);
    }
    snap::raw::Encoder::new().compress_vec(&request).expect("small")
}

fn series(name: &str, samples: &[(i64, f64)]) -> Series {
    let sample = |(timestamp, value): &(i64, f64)| Sample { value: *value, timestamp: *timestamp };
    Series {
        labels: vec![("__name__".into(), name.into()), ("job".into(), "test".into())],
        samples: samples.iter().map(sample).collect(),
    }
}

const HEADERS: [(&str, &str); 3] = [
    ("content-encoding", "snappy"),
    ("content-type", "application/x-protobuf"),
    ("x-prometheus-remote-write-version", "0.1.0"),
];

fn request(body: Vec<u8>) -> Request {
    Request {
        method: "POST".into(),
        path: "/api/v1/write".into(),
        headers: HEADERS.map(|(name, value)| (name.into(), value.into())).into(),
        body,
    }
}

fn sent(body: &[u8]) -> Vec<u8> {
    let headers = HEADERS.map(|(name, value)| format!("{name}: {value}\r\n")).concat();
    let length = body.len();
    let head = format!("POST /api/v1/write HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// Sends a request over a connection of its own, and reads for as long as
/// something comes.
fn post(receiver: &pmderive_testkit::receiver::Listening, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(receiver.address()).expect("it listens");
    stream.write_all(&sent(body)).expect("it reads");
    stream.shutdown(std::net::Shutdown::Write).expect("a connection");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn what_is_in_order_is_stored_bit_for_bit() {
    let receiver = Receiver::new();
    let stale = f64::from_bits(STALE);
    let sent = [
        vec![series("a", &[(1, -0.0), (2, 0.1 + 0.2)]), series("b", &[(1, f64::INFINITY)])],
        vec![series("a", &[(3, stale)])],
    ];
    for series in &sent {
        assert_eq!(receiver.answer(request(encoded(series))), Some((204, None)));
    }
    let stored = receiver.stored();
    let a = &stored[&series("a", &[]).labels];
    assert_eq!(a[..], series("a", &[(1, -0.0), (2, 0.1 + 0.2), (3, stale)]).samples);
    assert!(a[2].is_stale() && !a[0].is_stale());
    assert_ne!(Sample { value: f64::NAN, timestamp: 3 }, a[2]);
    assert_eq!(stored.len(), 2);
    let seen = receiver.requests();
    let content = WriteRequest { series: sent[0].clone(), metadata: Vec::new() };
    assert_eq!(seen[0].content, Ok(content));
    assert_eq!(receiver.complaints(), [""; 0]);
}

#[test]
fn what_is_wrong_is_complained_about() {
    let receiver = Receiver::new();
    let good = encoded(&[series("a", &[(5, 1.0)])]);
    assert_eq!(receiver.answer(request(good.clone())), Some((204, None)));
    // The same again may be a retry.
    assert_eq!(receiver.answer(request(good.clone())), Some((204, None)));
    assert_eq!(receiver.complaints().len(), 0);
    let without = |name: &str| {
        let mut request = request(good.clone());
        request.headers.retain(|(known, _)| known != name);
        request
    };
    let nameless = Series { labels: Vec::new(), ..series("", &[(1, 1.0)]) };
    let cases = [
        (Request { method: "GET".into(), ..request(good.clone()) }, 405, "GET"),
        (without("content-encoding"), 415, "snappy"),
        (without("content-type"), 415, "protobuf"),
        (without("x-prometheus-remote-write-version"), 400, "0.1.0"),
        (request(good[1..].to_vec()), 400, ""),
        (request(vec![1, 0, 7]), 400, "wire type 7"),
        (request(encoded(&[series("a", &[(4, 1.0)])])), 400, "comes after"),
        (request(encoded(&[series("a", &[(5, 2.0)])])), 400, "comes after"),
        (request(encoded(&[nameless])), 400, "no name"),
    ];
    for (count, (request, status, complaint)) in (1..).zip(cases) {
        assert_eq!(receiver.answer(request), Some((status, None)), "{complaint}");
        let complaints = receiver.complaints();
        assert_eq!(complaints.len(), count);
        assert!(complaints[count - 1].contains(complaint), "{complaints:?}");
    }
    // A correct series is accepted beside a wrong one.
    let both = encoded(&[series("a", &[(1, 1.0)]), series("b", &[(1, 1.0)])]);
    assert_eq!(receiver.answer(request(both)), Some((400, None)));
    assert!(receiver.stored().contains_key(&series("b", &[]).labels));
}

#[test]
fn it_answers_as_its_script_says() {
    let receiver = Receiver::listen().expect("a port");
    assert!(receiver.url().starts_with("http://127.0.0.1:"));
    let body = |time| encoded(&[series("a", &[(time, 1.0)])]);
    let stored = || receiver.stored().values().map(Vec::len).sum::<usize>();
    receiver.script([
        Reply::status(500),
        Reply::too_many("120"),
        Reply::Garbage(b"\0\xffnonsense".to_vec()),
        Reply::status(400),
        Reply::Cut(9),
        Reply::status(200),
    ]);
    let answers = (1..=7).map(|time| (post(&receiver, &body(time)), stored()));
    let answers: Vec<(String, usize)> = answers.collect();
    let begins = |at: usize, text: &str| assert!(answers[at].0.starts_with(text), "{answers:?}");
    begins(0, "HTTP/1.1 500 ");
    begins(1, "HTTP/1.1 429 ");
    assert!(answers[1].0.contains("\r\nRetry-After: 120\r\n"));
    begins(2, "\0\u{fffd}nonsense");
    begins(3, "HTTP/1.1 400 ");
    assert_eq!(answers[4].0, "HTTP/1.1 ");
    begins(5, "HTTP/1.1 200 ");
    begins(6, "HTTP/1.1 204 ");
    let counts: Vec<usize> = answers.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [0, 0, 0, 0, 1, 2, 3]);

    receiver.always(Reply::Never);
    let mut stream = TcpStream::connect(receiver.address()).expect("it listens");
    stream.write_all(&sent(&body(9))).expect("it reads");
    // It never answers.
    stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket");
    let error = stream.read(&mut [0]).expect_err("no answer");
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    receiver.always(Reply::ByMerit);
    assert!(post(&receiver, &body(10)).starts_with("HTTP/1.1 204 "));
    assert_eq!(receiver.requests().len(), 9);
}

/// In virtual time, over no socket; two requests of one connection.
#[tokio::test(start_paused = true)]
async fn it_is_late_in_virtual_time() {
    let receiver = Receiver::new();
    receiver.script([Reply::Late(Duration::from_secs(3600))]);
    let (mut ours, theirs) = tokio::io::duplex(64);
    let serving = receiver.clone();
    let served = tokio::spawn(async move { serving.serve(theirs).await });
    let begin = tokio::time::Instant::now();
    for (time, hours) in [(1, 1), (2, 1)] {
        let body = encoded(&[series("a", &[(time, 1.0)])]);
        ours.write_all(&sent(&body)).await.expect("it reads");
        let mut answer = [0; 24];
        ours.read_exact(&mut answer).await.expect("an answer");
        assert!(answer.starts_with(b"HTTP/1.1 204 "));
        assert_eq!(begin.elapsed().as_secs() / 3600, hours);
    }
    drop(ours);
    served.await.expect("no panic").expect("the end of the stream");
    assert_eq!(receiver.requests().len(), 2);
}

/// Expands the output of other compressors.
#[test]
fn everything_is_decompressed() {
    let mut choices = Choices(1);
    for _ in 0..300 {
        let scale = choices.below(18);
        let length = choices.below(2 << scale);
        let variety = 1 + choices.below(256);
        let bytes: Vec<u8> = (0..length).map(|_| choices.below(variety) as u8).collect();
        let compressed = snap::raw::Encoder::new().compress_vec(&bytes).expect("small");
        assert!(decompress(&compressed, length) == Ok(bytes), "{length} bytes");
    }
}
