//! Counts instructions of each stage and of each family of kernels, for
//! `benches/counts/run`, which runs this program under callgrind.
//!
//! Without arguments the stages run in turn. Each is prepared and runs once to
//! let buffers grow. It runs once more in [`measured_stage`], at whose end
//! callgrind writes its counts. Its files are numbered, and the printed names
//! have the same order. `compare` reads these files.

mod compare;
#[path = "../peer/families.rs"]
mod families;
mod profile;
mod stages;
#[path = "../synth/mod.rs"]
mod synth;

use std::process::ExitCode;

/// The function that callgrind counts. It finds the function by its name.
#[inline(never)]
fn measured_stage(run: &mut dyn FnMut()) {
    run();
    std::hint::black_box(());
}

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["stages"] => {
            stages::each(&mut |name, run| {
                println!("{name}");
                // The first time buffers grow.
                run();
                measured_stage(run);
            });
            ExitCode::SUCCESS
        }
        ["table", folder] => compare::print_table(folder),
        ["compare", before, now] => compare::compare(before, now),
        // `cargo bench` runs all benchmarks; without callgrind nothing is counted.
        _ => ExitCode::SUCCESS,
    }
}
