//! The listener and remote write beside real receivers: Debian's Prometheus and
//! VictoriaMetrics (`tests/real-prometheus`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use pmderive::internal::fleet::frame::{Event, Schema, StaleReason};
use pmderive::internal::fleet::labels::Labels;
use pmderive::internal::fleet::sinks::http::Listener;
use pmderive::internal::fleet::sinks::newest_frames::NewestFrames;
use pmderive::internal::fleet::sinks::numbers::{self, SinkNumbers};
use pmderive::internal::fleet::sinks::outlets::Outlet;
use pmderive::internal::fleet::sinks::ring::Ring;
use pmderive::internal::fleet::sinks::sink_set::SinkPlace;
use pmderive::internal::fleet::sinks::text::{Format, Writer};
use pmderive::internal::fleet::sinks::{samples, scrape};
use pmderive::internal::fleet::slot::Nanos;
use pmderive::internal::fleet::targets::target::Target;
use pmderive::internal::fleet::world::Machine;
use pmderive_runtime::model::{Semantics, ValueType};
use pmderive_testkit::real_receivers::{Receiver, promtool_check_metrics};

use super::listener::{Own, listen};
use super::{Host, RATES, eventually, far, get, now, sender_to};

/// The answer to a query at a time, or now: labels and value of each series, sorted.
pub fn query(receiver: &Receiver, query: &str, at: Option<Nanos>) -> Vec<(String, f64)> {
    let mut path = "/api/v1/query?query=".to_owned();
    for byte in query.bytes() {
        path += &format!("%{byte:02x}");
    }
    if let Some(at) = at {
        path += &format!("&time={}", at.0 as f64 / 1e9);
    }
    let answer: serde_json::Value = serde_json::from_str(&receiver.get(&path)).expect("JSON");
    let results = answer["data"]["result"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let series = |result: &serde_json::Value| {
        let value = result["value"][1].as_str().expect("a value").parse().expect("a number");
        (result["metric"].to_string(), value)
    };
    let mut series: Vec<_> = results.iter().map(series).collect();
    series.sort_by(|(a, _), (b, _)| a.cmp(b));
    series
}

/// Labels of `shop.rate` as receivers show them, in the order of the identifiers.
fn labels() -> [String; 4] {
    [("0", "vda"), ("1", "vdb"), ("2", "nvme0n1"), ("7", "sdc")].map(|(id, name)| {
        let labels = serde_json::json!({
            "__name__": "shop_rate", "exported_rack": "of PCP", "hostname": "vm",
            "indom_name": "per disk", "instance": "web1:44321", "instid": id, "instname": name,
            "rack": "a \"quoted\" \\ rack",
        });
        labels.to_string()
    })
}

fn without_job(series: Vec<(String, f64)>) -> Vec<(String, f64)> {
    let label = |labels: String| {
        let mut labels: serde_json::Value = serde_json::from_str(&labels).expect("JSON");
        labels.as_object_mut().expect("labels").remove("job");
        labels.to_string()
    };
    series.into_iter().map(|(labels, value)| (label(labels), value)).collect()
}

#[test]
fn promtool_accepts_what_is_shown() {
    let numbers = SinkNumbers::default();
    let mut own = String::new();
    numbers::write(
        &mut Writer::new(&mut own, Format::Text),
        &[("a\"b", &numbers), ("c", &numbers)],
    );
    // Our own series are also named as is the habit.
    let Some((status, words)) = promtool_check_metrics(&own) else { return };
    assert_eq!((status, &*words), (0, ""), "{own}");
    let newest = NewestFrames::default();
    newest.push(&Host::new("web1:44321").frame(now(), RATES));
    let mut text = String::new();
    let choice = scrape::Choice { sink: SinkPlace(0), times: true };
    let shown = newest.frame_of("web1:44321").expect("it is there");
    scrape::write(&mut Writer::new(&mut text, Format::Text), &shown, &choice);
    let (status, words) = promtool_check_metrics(&text).expect("it is there");
    assert_eq!((status, &*words), (0, ""), "{text}");
    // It tells text that cannot be read.
    assert_eq!(promtool_check_metrics("a{b=} 1\n").expect("it is there").0, 1);
}

#[test]
fn prometheus_scrapes_what_is_shown() {
    let newest = Arc::new(NewestFrames::default());
    let host = Host::new("web1:44321");
    newest.push(&host.frame(now(), RATES));
    newest.push(&Host::new(Target::FLEET).frame(now(), RATES));
    let own = Own::default();
    newest.limit(usize::MAX, Arc::clone(&own.numbers));
    let listener = Listener::start(listen(), Arc::clone(&newest), Arc::new(own));
    let listener = listener.expect("a listener");
    let root = format!("http://{}/metrics", listener.address());
    let urls = [root.clone(), format!("{root}?target=web1:44321")];
    let Some(prometheus) = Receiver::prometheus(&urls) else { return };
    let of_host = eventually("a scrape", || {
        let found = query(&prometheus, "shop_rate{instance=\"web1:44321\"}", None);
        (!found.is_empty()).then_some(found)
    });
    let mut expected: Vec<_> = labels().into_iter().zip(RATES).collect();
    expected.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert_eq!(without_job(of_host), expected);
    // It asks for OpenMetrics, where the family of a counter has another name.
    let counter = "shop_requests_total{instance=\"web1:44321\"}";
    let found = query(&prometheus, counter, None);
    assert_eq!(found.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [u64::MAX as f64]);
    let own = "pmderive_sink_request_duration_seconds_bucket{le=\"+Inf\"} > 0";
    eventually("our own numbers", || (!query(&prometheus, own, None).is_empty()).then_some(()));
    // What is absent ends.
    newest.push(&Arc::new(samples::stale(
        &host.target,
        0,
        StaleReason::TargetRemoved,
        &host.schema,
        Vec::new(),
    )));
    eventually("the end of a series", || {
        let is_gone = query(&prometheus, counter, None).is_empty();
        (is_gone && get(listener.address(), "/healthz", "").0 == 200).then_some(())
    });
    listener.stop(Instant::now() + Duration::from_secs(60));
}

/// Sends two frames and the end of two series, and asks for all of them.
fn sends_to(receiver: &Receiver, rates: [f64; 4], is_same: impl Fn(f64, f64) -> bool) {
    let numbers = Arc::new(SinkNumbers::default());
    let ring = Arc::new(Ring::new(1 << 20, Arc::clone(&numbers)));
    let url = format!("http://127.0.0.1:{}/api/v1/write", receiver.port);
    let mut options = sender_to(&url);
    // More messages than one.
    options.limits.most_samples = 5;
    let (_, running) =
        options.start::<Machine>(Arc::clone(&ring), Arc::clone(&numbers)).expect("a sink");

    let host = Host::new("web1:44321");
    let end = now().0 / 1_000_000_000;
    let second = |before: u64| Nanos((end - before) * 1_000_000_000);
    ring.push(&host.frame(second(20), RATES));
    ring.push(&host.frame(second(10), rates));
    let reason = StaleReason::Vanished;
    let series = vec![(1, samples::named(&["vda", "vdb"]))];
    let mut ended = samples::stale(&host.target, 0, reason, &host.schema, series);
    if let Event::Stale(stale) = &mut ended {
        // The series have labels of their domain.
        let (disks, series) = (&host.disks, &mut stale.series[0].1);
        let instances = Arc::get_mut(series).expect("ours alone");
        instances.domain_labels = disks.domain_labels.clone();
        stale.at = second(5);
        stale.host_labels = host.of_pcp.clone();
    }
    ring.push(&Arc::new(ended));
    ring.close((Instant::now() + Duration::from_secs(60)).into());
    running.join(far());
    assert_eq!(numbers.samples.get(), 6 + 6 + 2);

    let check = |at: Nanos, expected: &[(String, f64)]| {
        let mut expected = expected.to_vec();
        expected.sort_by(|(a, _), (b, _)| a.cmp(b));
        let found = eventually("samples", || {
            let found = query(receiver, "shop_rate", Some(at));
            (found.len() == expected.len()).then_some(found)
        });
        for ((labels, value), (expected_labels, expected)) in found.iter().zip(&expected) {
            assert_eq!(labels, expected_labels);
            assert!(is_same(*value, *expected), "{value:?} is not {expected:?}");
        }
    };
    let all = labels();
    let with = |rates: [f64; 4]| all.clone().into_iter().zip(rates).collect::<Vec<_>>();
    check(second(15), &with(RATES));
    check(second(8), &with(rates));
    check(second(4), &with(rates)[2..]);
}

#[test]
fn prometheus_has_what_was_sent_bit_for_bit() {
    let Some(receiver) = Receiver::prometheus(&[]) else { return };
    let rates = [f64::MAX, 5e-324, -0.0, f64::INFINITY];
    sends_to(&receiver, rates, |found, expected| found.to_bits() == expected.to_bits());
}

#[test]
fn victoria_metrics_has_what_was_sent() {
    let Some(receiver) = Receiver::victoria() else { return };
    // It has one exponent of ten for values of a series that are stored together.
    let rates = RATES.map(|rate| rate * 3.0);
    sends_to(&receiver, rates, |found, expected| {
        found == expected || (found - expected).abs() <= expected.abs() * 1e-12
    });
}

/// Sends one frame of each of many hosts, and asks for every value.
fn every_value_is_there(receiver: &Receiver, is_same: impl Fn(f64, f64) -> bool) {
    // More make a measurement of it.
    let hosts = std::env::var("PMDERIVE_HOSTS").map_or(20, |hosts| hosts.parse().expect("hosts"));
    let (metrics, instances) = (100, 10);
    let names: Vec<String> = (0..instances).map(|at| format!("disk{at}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let disks = samples::named(&names);
    let metric = |at: usize| {
        samples::exported(
            &format!("load.m{at:03}"),
            ValueType::F64,
            Semantics::Instant,
            samples::sinks(&[0]),
        )
    };
    let schema = Arc::new(Schema { metrics: (0..metrics).map(metric).collect() });
    // No two are the same.
    let value = |host: usize, metric: usize, lane: usize| {
        ((host * metrics + metric) * instances + lane) as f64 * 0.1 + 1e-9
    };

    let numbers = Arc::new(SinkNumbers::default());
    let ring = Arc::new(Ring::new(64 << 20, Arc::clone(&numbers)));
    let url = format!("http://127.0.0.1:{}/api/v1/write", receiver.port);
    let options = sender_to(&url);
    let (_, running) =
        options.start::<Machine>(Arc::clone(&ring), Arc::clone(&numbers)).expect("a sink");
    let at = Nanos(now().0 / 1_000_000_000 * 1_000_000_000);
    let begun = Instant::now();
    for host in 0..hosts {
        let target = samples::target(&format!("web{host}:44321"), Labels::default());
        let column = |metric| {
            let bits: Vec<u64> =
                (0..instances).map(|lane| value(host, metric, lane).to_bits()).collect();
            samples::column(&disks, &bits)
        };
        let columns: Vec<samples::Given> = (0..metrics).map(column).collect();
        let mut event = samples::frame(&target, 0, &schema, &columns);
        if let Event::Frame(frame) = &mut event {
            frame.at = at;
        }
        ring.push(&Arc::new(event));
    }
    ring.close((Instant::now() + Duration::from_secs(60)).into());
    running.join(far());
    let total = hosts * metrics * instances;
    println!("{total} samples, {} bytes: {:?}", numbers.bytes.get(), begun.elapsed());
    assert_eq!((numbers.samples.get(), numbers.dropped_overflow.get()), (total as u64, 0));

    let mut found = 0;
    for host in 0..hosts {
        let wanted = format!("{{instance=\"web{host}:44321\",__name__=~\"load_.*\"}}");
        let series = eventually("samples", || {
            let series = query(receiver, &wanted, Some(at));
            (series.len() == metrics * instances).then_some(series)
        });
        for (labels, number) in series {
            let labels: serde_json::Value = serde_json::from_str(&labels).expect("JSON");
            let text = |name: &str| labels[name].as_str().expect("a label");
            let metric = text("__name__").strip_prefix("load_m").expect("ours");
            let [metric, lane] = [metric, text("instid")].map(|n| n.parse().expect("a number"));
            assert!(is_same(number, value(host, metric, lane)), "{labels} {number}");
            found += 1;
        }
    }
    assert_eq!(found, total);
}

#[test]
fn prometheus_has_every_value_of_many_hosts() {
    let Some(receiver) = Receiver::prometheus(&[]) else { return };
    every_value_is_there(&receiver, |found, expected| found.to_bits() == expected.to_bits());
}

#[test]
fn victoria_metrics_has_every_value_of_many_hosts() {
    let Some(receiver) = Receiver::victoria() else { return };
    every_value_is_there(&receiver, |found, expected| {
        (found - expected).abs() <= expected.abs() * 1e-12
    });
}
