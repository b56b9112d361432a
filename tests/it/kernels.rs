//! Kernels as text in `tests/kernels`, with their lanes and results. Each is read, written back
//! unchanged, and run by the interpreter and as native code.
//!
//! A kernel is followed by its data: `c0 = ` and `o0 = ` with the lanes of each
//! constant and operand, `flagged` if a lane sets a flag, and `result = `, which
//! ends a run. Several runs may follow.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use pmderive_runtime::kernel::interp::{Scratch, read, write};
use pmderive_runtime::kernel::{
    Access, Arenas, Kernel, KernelIr, LANE_GROUP, Rows, Scalar, Segment,
};
use pmderive_testkit::kernels::{kernel, lane, shown};

/// Data of one run, by the names of constants and operands.
struct Run<'t> {
    lanes: HashMap<&'t str, Vec<&'t str>>,
    flagged: bool,
    result: Vec<&'t str>,
}

fn runs<'t>(lines: &[&'t str]) -> Vec<Run<'t>> {
    let (mut runs, mut lanes, mut flagged) = (Vec::new(), HashMap::new(), false);
    for line in lines {
        match line.split_once(" = ") {
            Some(("result", result)) => {
                let result = result.split(' ').collect();
                runs.push(Run { lanes: lanes.clone(), flagged, result });
                flagged = false;
            }
            Some((name, values)) => drop(lanes.insert(name, values.split(' ').collect())),
            None => {
                assert_eq!(*line, "flagged");
                flagged = true;
            }
        }
    }
    assert!(!runs.is_empty() && runs.iter().all(|run| !run.result.is_empty()));
    runs
}

/// What a kernel makes of the data, as text, and whether a flag was set.
fn outcome(kernel: &Kernel, ir: &KernelIr, run: &Run<'_>) -> (Vec<String>, bool) {
    const COLUMN: usize = 8 * LANE_GROUP * 8;
    let count = ir.operands.iter().enumerate().filter(|(_, o)| o.access == Access::Column);
    let count = count.map(|(at, _)| run.lanes[&*format!("o{at}")].len()).max().expect("a column");
    let mut work = vec![0; (ir.operands.len() + 1) * COLUMN];
    let mut history = work.clone();
    let mut places = Vec::new();
    for (at, operand) in ir.operands.iter().enumerate() {
        let arena = if operand.previous { &mut history } else { &mut work };
        for (index, text) in run.lanes[&*format!("o{at}")].iter().enumerate() {
            let offset = at * COLUMN + index * operand.scalar.bytes();
            write(operand.scalar, arena, offset, lane(operand.scalar, text));
        }
        places.push((at * COLUMN) as u32);
    }
    let mut constants = vec![0; ir.constants.len() * 8];
    for (at, scalar) in ir.constants.iter().enumerate() {
        let text = run.lanes[&*format!("c{at}")][0];
        write(*scalar, &mut constants, at * 8, lane(*scalar, text));
    }
    let output = ir.operands.len() * COLUMN;
    let mut rows = Rows::new(ir);
    rows.push(
        ir,
        Segment { lanes: count as u32, operands: &places, output: output as u32, constants: 0 },
    );
    let mut arenas = Arenas { work: &mut work, history: &history, constants: &constants };
    let flagged = kernel.run(&mut Scratch::default(), &mut arenas, &rows, 0, 1) != 0;
    let scalar: Scalar = ir.output();
    let count = if ir.is_single() { 1 } else { count };
    let lanes = (0..count).map(|at| read(scalar, &work, output + at * scalar.bytes()));
    (lanes.map(|bits| shown(scalar, bits)).collect(), flagged)
}

#[test]
fn kernels_give_what_their_files_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder of kernels") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a file");
        for part in text.split("\n\n") {
            let lines: Vec<&str> = part.lines().filter(|line| !line.starts_with('#')).collect();
            let is_kernel = |line: &&str| line.starts_with("kernel") || line.starts_with("  ");
            let (form, data): (Vec<&str>, Vec<&str>) = lines.into_iter().partition(is_kernel);
            let form = form.join("\n") + "\n";
            let ir = kernel(&form);
            assert_eq!(ir.to_string(), form, "a kernel is written as it is read");
            let interpreted = Kernel::new(ir.clone()).expect("a kernel that is verified");
            let native = Arc::new(Kernel::new(ir.clone()).expect("a kernel that is verified"));
            #[cfg(feature = "jit")]
            pmderive::internal::jit::compile(&[Arc::clone(&native)]).expect("native code");
            for run in runs(&data) {
                for (backend, kernel) in [("interpreted", &interpreted), ("native", &native)] {
                    let (lanes, flagged) = outcome(kernel, &ir, &run);
                    assert_eq!(lanes, run.result, "{backend}:\n{form}");
                    assert_eq!(flagged, run.flagged, "flags, {backend}:\n{form}");
                }
                count += 1;
            }
        }
    }
    assert!(count > 10, "{count} runs");
}
