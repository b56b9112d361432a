//! Tests of messages, with a decoder that knows nothing of templates.

use super::*;
use crate::fleet::frame::StaleReason;
use crate::fleet::sinks::names::SeriesLabels;
use crate::fleet::sinks::samples;
use pmderive_runtime::model::{Semantics, ValueType};

/// A series with its labels, and one sample.
type Sample = (Vec<(String, String)>, u64, u64);

/// Decodes a message by the rules of protobuf alone.
fn decoded(message: &Message) -> Vec<Sample> {
    let raw = snap::raw::Decoder::new().decompress_vec(&message.body).expect("snappy");
    let series = fields(&raw).into_iter().map(|(tag, series)| {
        assert_eq!(tag, 0x0a);
        let (mut labels, mut sample) = (Vec::new(), None);
        for (tag, inside) in fields(series) {
            match tag {
                0x0a => {
                    let parts = fields(inside);
                    let text = |at: usize| String::from_utf8(parts[at].1.to_vec()).expect("UTF-8");
                    assert_eq!(parts.iter().map(|part| part.0).collect::<Vec<_>>(), [0x0a, 0x12]);
                    labels.push((text(0), text(1)));
                }
                0x12 => {
                    let (value, time) = inside[1..].split_at(8);
                    assert_eq!((inside[0], time[0]), (0x09, 0x10));
                    let (time, used) = varint(&time[1..]);
                    assert_eq!(used, inside.len() - 10);
                    let value = u64::from_le_bytes(value.try_into().expect("eight bytes"));
                    assert!(sample.replace((value, time)).is_none());
                }
                _ => panic!("{tag}"),
            }
        }
        assert!(labels.is_sorted_by(|a, b| a.0 < b.0), "{labels:?}");
        let (value, time) = sample.expect("a sample");
        (labels, value, time)
    });
    series.collect()
}

fn varint(bytes: &[u8]) -> (u64, usize) {
    let size = bytes.iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
    let value = bytes[..size].iter().rev().fold(0, |v, byte| v << 7 | u64::from(byte & 0x7f));
    (value, size)
}

/// Fields that have lengths, with their tags.
fn fields(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut fields = Vec::new();
    while let Some((tag, rest)) = bytes.split_first() {
        let (size, used) = varint(rest);
        let (field, rest) = rest[used..].split_at(size as usize);
        fields.push((*tag, field));
        bytes = rest;
    }
    fields
}

fn messages(encoder: &mut Encoder) -> Vec<Message> {
    encoder.flush();
    std::iter::from_fn(|| encoder.take()).collect()
}

fn encoder(most_samples: usize) -> Encoder {
    Encoder::new(SinkPlace(3), most_samples, Arc::default())
}

/// Combines labels by the rule, without any template.
fn plainly(
    name: &str,
    target: &Target,
    of_pcp: &Labels,
    instances: &Instances,
    at: usize,
) -> Vec<(String, String)> {
    let host = HostLabels::new(target, of_pcp);
    let series = SeriesLabels::new(&host.names, instances, at);
    let labels = series.of_host(&host).map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut all: Vec<_> = labels.chain([("__name__".into(), safe_name(name))]).collect();
    all.sort();
    all
}

#[test]
fn labels_are_put_together_as_if_made_alone() {
    let pools: [&[(&str, &str)]; 6] = [
        &[],
        &[("rack", "a"), ("Zone", "1")],
        &[("rack", "b"), ("hostname", "vm"), ("_x", "y"), ("a.b", "1"), ("a_b", "2")],
        &[("instid", "x"), ("instname", "y"), ("instance", "z"), ("Zone", "")],
        &[("device_name", "vda"), ("rack", "c"), ("A", "a")],
        &[("indom_name", "per disk"), ("z", "z"), ("exported_rack", "w")],
    ];
    let labels = |at: usize| Labels::from_iter(pools[at].iter().copied());
    let metric = samples::exported(
        "disk.dev.read",
        ValueType::F64,
        Semantics::Counter,
        samples::sinks(&[3]),
    );
    let schema = Arc::new(Schema { metrics: [metric].into() });
    let mut encoder = encoder(usize::MAX);
    let mut expected = Vec::new();
    for turn in 0..2 * 6 * 6 * 6 * 6_usize {
        let at = |step: u32| turn / 6_usize.pow(step) % 6;
        let target = samples::target("web1:44321", labels(at(0)));
        let of_pcp = labels(at(1));
        let names: [Arc<str>; 2] = ["vda".into(), "".into()];
        let instances = Arc::new(match turn % 7 {
            0 => Instances { ids: [-1].into(), ..Instances::default() },
            _ => Instances {
                ids: [0, 300].into(),
                names: names.into(),
                domain_labels: labels(at(2)),
                labels: [labels(at(3)), labels(0)].into(),
            },
        });
        let bits: Vec<u64> = (0..instances.ids.len()).map(|_| 2.5_f64.to_bits()).collect();
        let column = samples::column(&instances, &bits);
        let mut event = samples::frame(&target, turn as u64, &schema, &[column]);
        if let Event::Frame(frame) = &mut event {
            frame.host_labels = of_pcp.clone();
        }
        encoder.push(&event);
        for at in 0..instances.ids.len() {
            let labels = plainly("disk.dev.read", &target, &of_pcp, &instances, at);
            expected.push((labels, 2.5_f64.to_bits(), turn as u64 * 1000));
        }
    }
    let found: Vec<_> = messages(&mut encoder).iter().flat_map(decoded).collect();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}

#[test]
fn only_what_the_sink_wants_is_sent_and_series_end() {
    let metric = |name, value_type, places: &[u32]| {
        samples::exported(name, value_type, Semantics::Instant, samples::sinks(places))
    };
    let metrics = [
        metric("a.wanted", ValueType::U32, &[3]),
        metric("b.of_others", ValueType::U32, &[0, 1, 2]),
        metric("c.text", ValueType::String, &[3]),
        metric("d.failed", ValueType::F64, &[3]),
    ];
    let schema = Arc::new(Schema { metrics: metrics.into() });
    let target = samples::target("web1:44321", Labels::default());
    let (two, one) = (samples::named(&["x", "y"]), samples::single());
    let mut failed = samples::column(&one, &[0]);
    failed.status = Status::Failed(pmderive_runtime::model::PmStatus(-12357));
    let texts = samples::Given { texts: vec![b"text"[..].into()], ..samples::column(&one, &[]) };
    let columns = [samples::column(&two, &[1, 2]), samples::column(&one, &[3]), texts, failed];
    let mut encoder = encoder(10);
    encoder.push(&samples::frame(&target, 5, &schema, &columns));
    let ended = vec![(0, samples::named(&["x"])), (1, one.clone()), (2, one.clone()), (9, one)];
    encoder.push(&samples::stale(&target, 6, StaleReason::Vanished, &schema, ended));
    let series = |id: &str, name: &str, bits: u64, time| {
        let instance = ("instance", "web1:44321");
        let labels = [("__name__", "a_wanted"), instance, ("instid", id), ("instname", name)];
        (labels.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec(), bits, time)
    };
    let messages = messages(&mut encoder);
    assert_eq!(messages.len(), 1);
    assert_eq!((messages[0].samples, messages[0].oldest), (3, Nanos(5_000_000_000)));
    assert_eq!(
        decoded(&messages[0]),
        [
            series("0", "x", 1_f64.to_bits(), 5000),
            series("1", "y", 2_f64.to_bits(), 5000),
            series("0", "x", 0x7ff0_0000_0000_0002, 6000),
        ]
    );
}

/// Receivers refuse a message with two samples of a series.
#[test]
fn the_last_value_of_an_instance_is_sent() {
    let metric = samples::exported("n", ValueType::U64, Semantics::Instant, samples::sinks(&[3]));
    let schema = Arc::new(Schema { metrics: [metric].into() });
    let target = samples::target("web1:44321", Labels::default());
    let named = Arc::into_inner(samples::named(&["a", "b", "a", "c"])).expect("not shared");
    let twice = Arc::new(Instances { ids: [0, 1, 0, 2].into(), ..named });
    let mut encoder = encoder(10);
    let column = samples::column(&twice, &[5, 6, 7, 8]);
    encoder.push(&samples::frame(&target, 1, &schema, &[column]));
    encoder.push(&samples::stale(&target, 2, StaleReason::Vanished, &schema, vec![(0, twice)]));
    let messages = messages(&mut encoder);
    assert_eq!(messages[0].samples, 6);
    let values: Vec<f64> =
        decoded(&messages[0]).iter().map(|(_, bits, _)| f64::from_bits(*bits)).collect();
    assert_eq!(values[..3], [6.0, 7.0, 8.0]);
}

#[test]
fn messages_are_as_long_as_they_may_be() {
    let metric = samples::exported("n", ValueType::U64, Semantics::Instant, samples::sinks(&[3]));
    let schema = Arc::new(Schema { metrics: [metric].into() });
    let target = samples::target("web1:44321", Labels::default());
    let names: Vec<String> = (0..7).map(|at| at.to_string()).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let column = samples::column(&samples::named(&names), &[0; 7]);
    let mut encoder = encoder(5);
    encoder.push(&samples::frame(&target, 1, &schema, std::slice::from_ref(&column)));
    encoder.push(&samples::frame(&target, 2, &schema, &[column]));
    assert!(encoder.is_begun());
    let messages = messages(&mut encoder);
    let sizes: Vec<_> = messages.iter().map(|m| (m.samples, decoded(m).len())).collect();
    assert_eq!(sizes, [(5, 5), (5, 5), (4, 4)]);
    assert!(!encoder.is_begun());
}

#[test]
fn messages_of_long_labels_have_fewer_samples() {
    let metric = samples::exported("n", ValueType::U64, Semantics::Instant, samples::sinks(&[3]));
    let schema = Arc::new(Schema { metrics: [metric].into() });
    let target = samples::target("web1:44321", Labels::default());
    let long = "x".repeat(1000);
    let column = samples::column(&samples::named(&[&*long; 10_000]), &[0; 10_000]);
    let mut encoder = encoder(usize::MAX);
    encoder.push(&samples::frame(&target, 1, &schema, &[column]));
    let messages = messages(&mut encoder);
    let sizes: Vec<_> = messages.iter().map(|message| message.samples).collect();
    assert!(matches!(sizes[..], [first, _] if first > 7_000 && first < 9_000), "{sizes:?}");
    assert_eq!(sizes.iter().sum::<usize>(), 10_000);
}

#[test]
fn what_is_nobodys_is_forgotten() {
    let metric = samples::exported("n", ValueType::U64, Semantics::Instant, samples::sinks(&[3]));
    let schema = Arc::new(Schema { metrics: [metric].into() });
    let target = samples::target("web1:44321", Labels::default());
    let long = "x".repeat(1000);
    let names: Vec<&str> = (0..100).map(|_| &*long).collect();
    let kept = samples::named(&names);
    let mut encoder = encoder(usize::MAX);
    let mut most = 0;
    // Some 100 KB each.
    for turn in 0..500 {
        let instances = if turn % 2 == 0 { Arc::clone(&kept) } else { samples::named(&names) };
        let column = samples::column(&instances, &[0; 100]);
        encoder.push(&samples::frame(&target, turn, &schema, &[column]));
        encoder.flush();
        encoder.take().expect("a message");
        most = most.max(encoder.template_bytes);
        let counted: usize = encoder.templates.values().map(|(_, kept)| kept.size()).sum();
        assert_eq!(encoder.template_bytes, counted);
    }
    assert!(most > MAX_TEMPLATE_BYTES && most < MAX_TEMPLATE_BYTES + (1 << 20), "{most}");
    let of_kept = encoder.templates.keys().filter(|key| key.0 == Arc::as_ptr(&kept).addr());
    assert_eq!(of_kept.count(), 1);
}

#[test]
fn numbers_of_variable_length() {
    for (value, size) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)] {
        let mut out = Vec::new();
        put_varint(&mut out, value);
        assert_eq!((out.len(), varint_size(value), varint(&out)), (size, size, (value, size)));
    }
}
