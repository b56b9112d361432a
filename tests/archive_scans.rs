//! What a scan of a long archive relies on: it allocates nothing while the
//! instances stay the same.

#[path = "../benches/synth/mod.rs"]
mod synth;

use std::path::Path;

use pmderive::diag::Diagnostics;
use pmderive::engine::{Backend, Engine};
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::eval::{Evaluator, Workspace};
use pmderive_runtime::result::ResultBatch;
use pmderive_runtime::source::{FetchList, FetchSource, MetadataSource, Mode};
use pmderive_testkit::counting;

use counting::{allocations, held_bytes};
use synth::{LANGUAGE, Synth, definitions, register, write_archive};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// A scan with derived metrics in progress.
struct Scan {
    archive: ArchiveContext,
    evaluator: Evaluator,
    workspace: Workspace,
}

impl Scan {
    /// Begins at one end of an archive, with as many metrics per type as it has.
    fn new(path: &Path, mode: Mode, metrics: u32) -> Scan {
        let mut archive = ArchiveContext::open(path).expect("an archive");
        let registry = register(&definitions("mix", 4 * metrics, metrics));
        let engine = Engine::new(LANGUAGE, Backend::Interp);
        let compiled = engine
            .compile(&registry, &registry.all(), &mut archive, &mut Diagnostics::default())
            .expect("metadata are readable");
        let origin = match mode {
            Mode::Backward | Mode::Interpolated { step: ..0 } => archive.end_time(),
            _ => Ok(archive.label().start),
        };
        archive.set_mode(mode, Some(origin.expect("it has records"))).expect("it is an archive");
        let evaluator = compiled.evaluator();
        Scan { archive, evaluator, workspace: Workspace::default() }
    }

    /// Goes on by a number of fetches; gives how many there were.
    fn fetch(&mut self, times: usize) -> usize {
        let Scan { archive, evaluator, workspace } = self;
        (0..times).take_while(|_| evaluator.fetch(archive, workspace).is_ok()).count()
    }
}

#[test]
fn steady_scans_allocate_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("steady");
    write_archive(&path, Synth::new(2, 5), 1500);
    for (mode, before, during) in [
        (Mode::Forward, 1000, 400),
        (Mode::Backward, 1000, 400),
        (Mode::Interpolated { step: 250_000_000 }, 4000, 1600),
        (Mode::Interpolated { step: -250_000_000 }, 4000, 1600),
        (Mode::Interpolated { step: 3_300_000_000 }, 300, 100),
        (Mode::Interpolated { step: -3_300_000_000 }, 300, 100),
    ] {
        let mut scan = Scan::new(&path, mode, 2);
        assert_eq!(scan.fetch(before), before, "{mode:?}");
        let made = allocations(|| assert_eq!(scan.fetch(during), during, "{mode:?}"));
        assert_eq!(made, 0, "{mode:?}");
    }
}

/// What a further context of an archive holds between records, however far it
/// has come: thousands of them are open at a time.
#[test]
fn a_further_context_between_records_is_small() {
    const METRICS: usize = 100;
    const VALUES: usize = 10 * METRICS;
    // Windows and what is there once; then what each metric and each value takes.
    const MOST: usize = 64 * 1024 + 650 * METRICS + 120 * VALUES;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small");
    write_archive(&path, Synth::new(34, 10), 400);
    let mut first = ArchiveContext::open(&path).expect("an archive");
    let names = first.traverse("").expect("it has names");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let pmids = first.lookup_names(&names).expect("it knows its names");
    let list = FetchList::new(pmids.into_iter().flatten().take(METRICS).collect(), Vec::new());
    assert_eq!(list.pmids().len(), METRICS);
    for step in [500_000_000, -500_000_000] {
        let mut batch = ResultBatch::default();
        let mut fetch = |context: &mut ArchiveContext, times: usize| {
            for _ in 0..times {
                context.fetch(&list, &mut batch).expect("there is more");
            }
        };
        let origin = match step > 0 {
            true => first.label().start,
            false => first.end_time().expect("it has records"),
        };
        first.set_mode(Mode::Interpolated { step }, Some(origin)).expect("archives have it");
        fetch(&mut first, 20);
        let before = held_bytes();
        let mut further = ArchiveContext::open(&path).expect("an archive");
        further.set_mode(Mode::Interpolated { step }, Some(origin)).expect("archives have it");
        for times in [10, 100, 500] {
            fetch(&mut further, times);
            let held = (held_bytes() - before).unsigned_abs();
            assert!(held < MOST, "{step}: {held} bytes after {times} fetches, {MOST} may be");
        }
    }
}
