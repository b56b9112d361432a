//! The promises of windows and zones about any bytes, for fuzzers.

use pmderive_core::model::Timestamp;

use super::posix::PosixZone;
use super::zoneinfo::ZoneFile;
use super::{TimeWindow, TimeZone, WindowSpec};

/// Reads lines of text as zone, start, finish, alignment and origin of a
/// window.
pub fn fuzz_window(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split('\n');
    let zone = TimeZone::parse_strict(lines.next().unwrap_or_default());
    let zone = zone.unwrap_or_else(|_| TimeZone::utc());
    let [start, finish, align, origin] = [(); 4].map(|()| lines.next());
    let spec = WindowSpec { start, finish, align, origin, as_libpcp: false };
    let first = Timestamp { sec: 1_709_115_330, nsec: 250_000_000 };
    let last = Timestamp { sec: 1_709_283_907, nsec: 500_000_000 };
    for end in [Some(last), None] {
        match TimeWindow::parse_at(&spec, (first, end), &zone, first) {
            Ok(window) => {
                assert!(window.start >= first, "{window:?}");
                assert!(window.end.is_none_or(|found| end.is_none_or(|end| found <= end)));
                assert!(window.origin >= window.start || window.end < Some(window.start));
            }
            Err(error) => assert!(error.text.is_char_boundary(error.offset), "{error}"),
        }
    }
}

/// Reads a text as a zone and bytes as a zone file, and shows times in them.
pub fn fuzz_zone(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let zone = PosixZone::parse(&text);
    let file = ZoneFile::parse(data);
    for second in [i64::MIN, -1, 0, 951_782_400, 1_720_000_000, i64::MAX] {
        assert!(zone.at(second).offset.abs() <= 26 * 3600, "{text}");
        assert!(file.as_ref().is_none_or(|file| file.at(second).offset.abs() <= 26 * 3600));
    }
    if let Ok(zone) = TimeZone::parse_strict(&text) {
        let time = Timestamp { sec: 1_720_000_000, nsec: 0 };
        assert!(zone.ctime(time).len() >= 24);
        if let Some(second) = zone.local(time).second_in(&zone, None) {
            assert_eq!(zone.local(Timestamp { sec: second, nsec: 0 }), zone.local(time));
        }
    }
}
