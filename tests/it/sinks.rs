//! Sinks of the fleet engine: their pages and messages, for peers of tests and for real
//! receivers.

mod collisions;
mod listener;
mod pmproxy;
pub mod receivers;
mod sending;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use pmderive::internal::fleet::config::RemoteWrite;
use pmderive::internal::fleet::frame::{Event, ExportedMetric, Instances, Schema};
use pmderive::internal::fleet::labels::Labels;
use pmderive::internal::fleet::sinks::client::Url;
use pmderive::internal::fleet::sinks::remote_write::SenderOptions;
use pmderive::internal::fleet::sinks::samples;
use pmderive::internal::fleet::sinks::sink_set::SinkPlace;
use pmderive::internal::fleet::slot::Nanos;
use pmderive::internal::fleet::targets::target::Target;
use pmderive_runtime::model::{Semantics, ValueType};

/// A deadline that no test waits for.
fn far() -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_secs(60)
}

/// Options of a sender to a receiver.
fn sender_to(url: &str) -> SenderOptions {
    let receiver = RemoteWrite::to(Url::parse(url).expect("a URL"));
    SenderOptions::to("test", SinkPlace(0), &receiver)
}

/// A host with a few metrics of all kinds, which sink 0 wants.
struct Host {
    target: Arc<Target>,
    of_pcp: Labels,
    schema: Arc<Schema>,
    disks: Arc<Instances>,
}

/// Values of `shop.rate`, which show whether bits are kept.
const RATES: [f64; 4] = [0.1, 1e-300, 123_456_789.123_456_79, -2.5];

impl Host {
    fn new(name: &str) -> Host {
        let metric = |name, value_type, semantics| ExportedMetric {
            help: Some(format!("about {name}, in a few words").into()),
            ..samples::exported(name, value_type, semantics, samples::sinks(&[0]))
        };
        let with_instances = |metric| ExportedMetric { has_instances: true, ..metric };
        let metrics = [
            metric("shop.hosts", ValueType::U32, Semantics::Discrete),
            with_instances(metric("shop.rate", ValueType::F64, Semantics::Instant)),
            metric("shop.requests_total", ValueType::U64, Semantics::Counter),
            metric("shop.text", ValueType::String, Semantics::Instant),
        ];
        let labels = Labels::from_iter([("rack", "a \"quoted\" \\ rack")]);
        let mut disks = Instances {
            ids: [0, 1, 2, 7].into(),
            names: ["vda", "vdb", "nvme0n1", "sdc"].map(Arc::from).into(),
            ..Instances::default()
        };
        disks.domain_labels = Labels::from_iter([("indom_name", "per disk")]);
        let target = match name {
            Target::FLEET => Arc::new(Target { labels, ..Target::fleet() }),
            _ => samples::target(name, labels),
        };
        Host {
            target,
            of_pcp: Labels::from_iter([("hostname", "vm"), ("rack", "of PCP")]),
            schema: Arc::new(Schema { metrics: metrics.into() }),
            disks: Arc::new(disks),
        }
    }

    /// A frame at a time, with these rates.
    fn frame(&self, at: Nanos, rates: [f64; 4]) -> Arc<Event> {
        let single = samples::single();
        let texts = vec![b"text"[..].into()];
        let texts = samples::Given { texts, ..samples::column(&single, &[]) };
        let columns = [
            samples::column(&single, &[3]),
            samples::column(&self.disks, &rates.map(f64::to_bits)),
            samples::column(&single, &[u64::MAX]),
            texts,
        ];
        let mut event = samples::frame(&self.target, 0, &self.schema, &columns);
        if let Event::Frame(frame) = &mut event {
            frame.at = at;
            frame.host_labels = self.of_pcp.clone();
        }
        Arc::new(event)
    }
}

/// The time now, as the engine has it.
fn now() -> Nanos {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    Nanos(u64::try_from(since.as_nanos()).expect("before 2554"))
}

/// Waits until something is there.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Status and body of an answer to these bytes.
fn ask(address: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(request.as_bytes()).expect("a request");
    answer(&mut stream)
}

/// Reads an answer to its end; the connection ends behind it.
fn answer(stream: &mut TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    (status.unwrap_or_else(|| panic!("{text:?}")), body.unwrap_or_default())
}

/// The answer to a GET of a path, with headers that end in `\r\n`.
fn get(address: SocketAddr, path: &str, headers: &str) -> (u16, String) {
    ask(
        address,
        &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n"),
    )
}
