//! What a scan of a long archive relies on: it allocates nothing while the
//! instances stay the same.

#[path = "../benches/synth/mod.rs"]
mod synth;

use std::path::Path;

use pmderive::diag::Diagnostics;
use pmderive::engine::{Backend, Engine};
use pmderive_runtime::archive::ArchiveContext;
use pmderive_runtime::eval::{Evaluator, Workspace};
use pmderive_runtime::source::{FetchSource, Mode};
use pmderive_testkit::counting;

use counting::allocations;
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
