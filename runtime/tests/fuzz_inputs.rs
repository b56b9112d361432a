//! Replays the inputs of this crate's fuzz targets, starting points and former
//! failures: every file of `fuzz/seeds/TARGET` and `fuzz/regressions/TARGET`.
//! Bugs that fuzzing found stay fixed without a fuzzer.

use pmderive_testkit::replays;

const FUZZ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz");

replays! {
    archive: pmderive_runtime::archive::fuzz_archive;
    archives: pmderive_runtime::archive::fuzz_archives;
    archive_writer: pmderive_runtime::archive_writer::fuzz_archive_writer;
    decompress: pmderive_runtime::archive::fuzz_decompress;
    events: pmderive_runtime::model::fuzz_events;
    folio: pmderive_runtime::record_mode::fuzz_folio;
    handshake: pmderive_runtime::proto::fuzz_handshake;
    host_spec: pmderive_runtime::context::spec::fuzz_host_spec;
    interval: pmderive_runtime::model::fuzz_interval;
    labels: pmderive_runtime::model::fuzz_labels;
    linux_files: pmderive_runtime::local::fuzz_linux_files;
    metric_spec: pmderive_runtime::model::fuzz_metric_spec;
    name_space: pmderive_runtime::name_space::fuzz_name_space;
    pattern: pmderive_runtime::pattern::fuzz_pattern;
    pdu: pmderive_runtime::pdu::fuzz_pdu;
    process_files: pmderive_runtime::local::fuzz_process_files;
    receiver: pmderive_testkit::receiver::fuzz_receiver;
    session: pmderive_testkit::fake_pmcd::fuzz_session;
    stream: pmderive_runtime::proto::fuzz_stream;
    units: pmderive_runtime::model::fuzz_units;
    value: pmderive_runtime::model::fuzz_value;
    window: pmderive_runtime::time::fuzz_window;
    zone: pmderive_runtime::time::fuzz_zone;
}
