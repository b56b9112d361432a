//! The meaning of time options for a source.

use pmderive_runtime::local::LocalContext;
use pmderive_runtime::model::Timestamp;
use pmderive_runtime::time::{ReportingOptions, TimeBounds, WindowSpec, ZoneOption};

#[test]
fn the_zone_is_noted_and_dates_are_read_in_it() {
    let bounds = TimeBounds {
        first: Timestamp::new(1_709_115_330, 0),
        last: Some(Timestamp::new(1_709_283_907, 0)),
    };
    let mut source = LocalContext::new();
    let window = WindowSpec { start: Some("@10:30"), ..WindowSpec::default() };
    let options = ReportingOptions { zone: ZoneOption::Named("Asia/Kolkata"), window };
    let choices = options.choose(&mut source, bounds).unwrap();
    assert_eq!(choices.note.as_deref(), Some("Note: timezone set to \"TZ=Asia/Kolkata\""));
    assert_eq!(choices.window.start, Timestamp::new(1_709_182_800, 0));
    assert_eq!(choices.zone.clock_millis(choices.window.start), "10:30:00.000");

    let options = ReportingOptions { zone: ZoneOption::OfSource, ..ReportingOptions::default() };
    let choices = options.choose(&mut source, TimeBounds::live()).unwrap();
    let note = choices.note.unwrap();
    assert!(note.starts_with("Note: timezone set to local timezone of host \""), "{note}");
    assert_eq!(choices.window.end, None);

    let window = WindowSpec { finish: Some("-foo"), ..WindowSpec::default() };
    let options = ReportingOptions { window, ..ReportingOptions::default() };
    let error = options.choose(&mut source, bounds).unwrap_err();
    assert_eq!(error.to_string(), "invalid time window.\nfoo\n^ -- unexpected value");
}
