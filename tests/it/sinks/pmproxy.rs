//! Names, types and labels of series beside those of a real pmproxy.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use pmderive::internal::fleet::sinks::names::{kind_of, safe_name};
use pmderive::internal::fleet::sinks::text::Kind;
use pmderive_runtime::model::Semantics;
use pmderive_testkit::real_pmcd::{RealPmcd, RealPmproxy};

use super::eventually;

/// The body of an answer that comes in chunks; `None` if pmproxy refuses, which it
/// does now and then while others start and stop beside it.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").expect("a request");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    let mut next = |reader: &mut BufReader<TcpStream>| {
        line.clear();
        assert!(reader.read_line(&mut line).expect("a line") > 0, "the answer is cut off");
        line.trim_end().to_owned()
    };
    let status = next(&mut reader);
    if !status.contains(" 200 ") {
        eprintln!("pmproxy: {status}");
        return None;
    }
    let mut is_chunked = false;
    loop {
        let header = next(&mut reader).to_lowercase();
        is_chunked |= header == "transfer-encoding: chunked";
        if header.is_empty() {
            break;
        }
    }
    assert!(is_chunked);
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&next(&mut reader), 16).expect("a size");
        if size == 0 {
            return Some(String::from_utf8(body).expect("text"));
        }
        let begin = body.len();
        body.resize(begin + size, 0);
        reader.read_exact(&mut body[begin..]).expect("a chunk");
        assert_eq!(next(&mut reader), "");
    }
}

#[test]
fn series_are_named_as_pmproxy_names_them() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let proxy = RealPmproxy::with_http();
    let path = format!("/metrics?hostspec=127.0.0.1:{}", pmcd.port);
    let text = eventually("an answer of pmproxy", || get(proxy.port, &path));
    // What was said of the family whose lines come.
    let (mut series, mut is_counter, mut has_domain) = (String::new(), false, false);
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["#", "PCP5", metric, _, _, domain, semantics, ..] => {
                series = safe_name(metric);
                has_domain = domain != "PM_INDOM_NULL";
                let kind = match semantics {
                    "counter" => kind_of(Semantics::Counter),
                    "instant" => kind_of(Semantics::Instant),
                    "discrete" => kind_of(Semantics::Discrete),
                    _ => panic!("{line}"),
                };
                is_counter = kind == Kind::Counter;
                *counts.entry(is_counter).or_insert(0) += 1;
            }
            ["#", "HELP", name, ..] => assert_eq!(name, series),
            ["#", "TYPE", name, kind @ ("counter" | "gauge")] => {
                assert_eq!((name, kind == "counter"), (&*series, is_counter));
            }
            ["#", ..] => panic!("{line}"),
            _ => {
                let (name, labels) = line.split_once('{').unwrap_or_else(|| panic!("{line}"));
                assert_eq!(name, series);
                for label in ["instid", "instname"] {
                    assert_eq!(labels.contains(&format!("{label}=\"")), has_domain, "{line}");
                }
                assert!(labels.contains("hostname=\""), "{line}");
            }
        }
    }
    assert!(counts.values().all(|count| *count > 100), "{counts:?}");
}
