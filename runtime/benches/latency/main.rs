//! Latency of fetches from a real pmcd on this machine, beside libpcp's.
//!
//! ```text
//! cargo bench -p pmderive-runtime --bench latency
//! ```
//!
//! The benchmark starts a pmcd with an agent inside it, whose answer is the
//! quickest possible, and compiles a C program over the installed libpcp. The
//! two take turns, so the machine is equally busy for both. Each prints the
//! median of its fetches, and the table has the best of the rounds. Both add up
//! the values.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use pmderive_runtime::context::{AsyncHostContext, ConnectOptions, HostContext, HostSpec};
use pmderive_runtime::model::{Pmid, RawValueRef};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource};
use pmderive_testkit::real_pmcd::RealPmcd;

const ROUNDS: usize = 9;
const FETCHES: usize = 2_000;

/// A metric whose values come in place, and one whose values come in blocks.
const METRICS: [&str; 2] = ["sampledso.long.million", "sampledso.ulonglong.million"];

/// The result of one program: nanoseconds of a fetch, and the sum of the values.
type Measured = (u64, f64);

fn main() {
    let Some(pmcd) = RealPmcd::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(libpcp) = compiled(folder.path()) else {
        eprintln!("NOT RUN: no C compiler, or no headers of libpcp");
        return;
    };
    let specs = [format!("unix:{}", pmcd.socket.display()), format!("localhost:{}", pmcd.port)];
    println!("microseconds per fetch, and ratio to libpcp");
    println!(
        "{:6} {:28} {:>6} {:>9} {:>15} {:>15}",
        "over", "metric", "count", "libpcp", "blocking", "asynchronous"
    );
    for spec in &specs {
        for metric in METRICS {
            for count in [1, 100, 2_000] {
                let mut best = [u64::MAX; 3];
                for _ in 0..ROUNDS {
                    let measured = [
                        run_libpcp(&libpcp, spec, metric, count),
                        run_blocking(spec, metric, count),
                        run_asynchronous(spec, metric, count),
                    ];
                    for (best, (time, sum)) in best.iter_mut().zip(measured) {
                        assert_eq!(sum, 1e6 * count as f64, "{metric}");
                        *best = time.min(*best);
                    }
                }
                let micros = best.map(|nanos| nanos as f64 / 1e3);
                let [libpcp, ours @ ..] = micros;
                let [blocking, asynchronous] =
                    ours.map(|ours| format!("{ours:.1} ({:.2})", ours / libpcp));
                let over = spec.split(':').next().unwrap_or_default();
                println!(
                    "{over:9} {metric:28} {count:>5} {libpcp:>9.1} {blocking:>15} {asynchronous:>15}"
                );
            }
        }
    }
}

/// The C program, if it can be compiled here.
fn compiled(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/latency/libpcp.c");
    let program = folder.join("libpcp");
    let mut compiler = Command::new("cc");
    compiler.arg("-O2").arg("-o").arg(&program).arg(source).arg("-lpcp");
    compiler.status().is_ok_and(|status| status.success()).then_some(program)
}

fn run_libpcp(program: &Path, spec: &str, metric: &str, count: usize) -> Measured {
    let arguments = [spec, metric, &count.to_string(), &FETCHES.to_string()];
    let output = Command::new(program).args(arguments).env("PCP_DERIVED_CONFIG", "").output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout);
    let (time, sum) = printed.trim().split_once(' ').expect("two numbers");
    (time.parse().expect("nanoseconds"), sum.parse().expect("a number"))
}

fn spec_and_options(spec: &str) -> (HostSpec, ConnectOptions) {
    (spec.parse().expect("a specification"), ConnectOptions::default())
}

/// The metric, many times.
fn list(pmid: Pmid, count: usize) -> FetchList {
    FetchList::new(vec![pmid; count], Vec::new())
}

fn run_blocking(spec: &str, metric: &str, count: usize) -> Measured {
    let (spec, options) = spec_and_options(spec);
    let mut host = HostContext::open_with(&spec, options).expect("a connection");
    let pmid = host.lookup_names(&[metric]).expect("an answer")[0].expect(metric);
    let list = list(pmid, count);
    let mut batch = ResultBatch::default();
    let mut times = Vec::with_capacity(FETCHES);
    let mut total = 0.0;
    for _ in 0..FETCHES {
        let start = Instant::now();
        host.fetch(&list, &mut batch).expect("values");
        total = sum(&batch);
        times.push(start.elapsed().as_nanos() as u64);
    }
    (median(times), total)
}

fn run_asynchronous(spec: &str, metric: &str, count: usize) -> Measured {
    let (spec, options) = spec_and_options(spec);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let opened = AsyncHostContext::open_with(&spec, options).await;
        let mut host: AsyncHostContext = opened.expect("a connection");
        let pmid = host.lookup_names(&[metric]).await.expect("an answer")[0].expect(metric);
        let list = list(pmid, count);
        let mut batch = ResultBatch::default();
        let mut times = Vec::with_capacity(FETCHES);
        let mut total = 0.0;
        for _ in 0..FETCHES {
            let start = Instant::now();
            host.fetch(&list, &mut batch).await.expect("values");
            total = sum(&batch);
            times.push(start.elapsed().as_nanos() as u64);
        }
        (median(times), total)
    })
}

fn median(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times[times.len() / 2]
}

fn sum(batch: &ResultBatch) -> f64 {
    let mut sum = 0.0;
    for part in batch.parts() {
        for set in part.sets() {
            for (_, value) in set.values() {
                sum += match value.map(RawValueRef::as_number) {
                    Some(RawValueRef::InPlace(word)) => f64::from(word.cast_signed()),
                    Some(RawValueRef::Number { bits, .. }) => bits as f64,
                    _ => 0.0,
                };
            }
        }
    }
    sum
}
