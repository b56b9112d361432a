//! Entries for fuzzers: foreign text that sinks parse or pass on.

use std::sync::Arc;
use std::time::SystemTime;

use pmderive_runtime::model::{InstId, Semantics, ValueType};

use super::client::Url;
use super::delivery::{MAX_RETRY_AFTER, retry_after};
use super::encode::Encoder;
use super::names::MOST_LABELS;
use super::newest_frames::NewestFrames;
use super::outlets::Outlet;
use super::query::{Query, format};
use super::text::{Format, Writer};
use super::{samples, scrape};
use crate::fleet::frame::{Event, Instances, Schema};
use crate::fleet::labels::Labels;
use crate::fleet::sinks::sink_set::{SinkPlace, SinkSet};

/// Uses each line as a query, header, URL, and name or value of a label.
///
/// # Panics
/// A promise is broken.
pub fn fuzz_sinks(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines: Vec<&str> = text.split('\n').collect();
    for line in &lines {
        requests(line);
    }
    series(&lines);
}

fn requests(line: &str) {
    if let Some(query) = Query::parse(line) {
        assert!(query.get("target").is_none_or(|value| value.len() <= line.len()));
    }
    let _ = format(line);
    let epoch = SystemTime::UNIX_EPOCH;
    assert!(retry_after(line, epoch).is_none_or(|time| time <= MAX_RETRY_AFTER));
    // A possible password is not repeated.
    if let Err(error) = Url::parse(line) {
        assert!(!error.contains('@'), "{error}");
    }
}

/// Labels of all levels, and the names of a metric and of an instance.
fn series(lines: &[&str]) {
    let line = |at: usize| lines.get(at).copied().unwrap_or_default();
    let labels = |at: usize| -> Labels {
        let pairs = line(at).split(',').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.filter(|(name, _)| !name.is_empty()).collect()
    };
    let target = samples::target(line(0), labels(1));
    let instances = Arc::new(Instances {
        ids: [InstId::MIN, 0].into(),
        names: [line(5).into(), "other".into()].into(),
        domain_labels: labels(3),
        labels: [labels(4), Labels::default()].into(),
    });
    let metric = samples::exported(line(6), ValueType::F64, Semantics::Counter, SinkSet::ALL);
    let schema = Arc::new(Schema { metrics: [metric].into() });
    let column = samples::column(&instances, &[0, u64::MAX]);
    let mut event = samples::frame(&target, 1, &schema, &[column]);
    if let Event::Frame(frame) = &mut event {
        frame.host_labels = labels(2);
    }
    let mut encoder = Encoder::new(SinkPlace(0), 1, Arc::default());
    encoder.push(&event);
    assert_eq!(
        std::iter::from_fn(|| encoder.take()).map(|message| message.samples).sum::<usize>(),
        2
    );

    let newest = NewestFrames::default();
    newest.push(&Arc::new(event));
    for format in [Format::Text, Format::OpenMetrics] {
        let mut text = String::new();
        let mut writer = Writer::new(&mut text, format);
        let choice = scrape::Choice { sink: SinkPlace(0), times: false };
        if let Some(shown) = newest.frame_of(line(0)) {
            scrape::write(&mut writer, &shown, &choice);
        }
        writer.finish();
        text.lines().filter(|line| !line.starts_with('#')).for_each(check_line);
    }
}

/// Checks that a sample has a name, labels with sorted different names, and a value.
fn check_line(line: &str) {
    let is_word = |text: &str| {
        let mut chars = text.chars();
        chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let (name, rest) = line.split_once('{').unwrap_or_else(|| panic!("{line}"));
    assert!(is_word(name), "{line}");
    let (mut rest, mut last, mut count) = (rest, String::new(), 0);
    while let Some((label, value)) = rest.split_once("=\"") {
        assert!(is_word(label) && *label > *last && !label.starts_with("__"), "{line}");
        last = label.to_owned();
        count += 1;
        let mut is_escaped = false;
        let end = value.find(|c| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        let end = end.unwrap_or_else(|| panic!("{line}"));
        rest = value[end + 1..].strip_prefix(',').unwrap_or(&value[end + 1..]);
    }
    assert!(count <= MOST_LABELS, "{line}");
    let value = rest.strip_prefix("} ").unwrap_or_else(|| panic!("{line}"));
    assert!(matches!(value, "0" | "NaN"), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::tests::{Generator, mutations};

    #[test]
    fn mutated_text_keeps_the_promises() {
        let mut generator = Generator::new(7);
        for seed in [
            "web1:44321\nrack=a,__x=y,instid=3\nrack=b,a.b=1,a_b=2\nrack=c,z=\\\"\nA=a\nvda\na.b",
            "target=web1%3a44321&times=true\napplication/openmetrics-text;q=0.5,*/*\nSun, 06 Nov 1994 08:49:37 GMT\nhttps://[::1]:9090/w?a\n120",
        ] {
            fuzz_sinks(seed.as_bytes());
            mutations(seed.as_bytes(), &mut generator, fuzz_sinks);
        }
    }
}
