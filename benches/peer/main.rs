//! pmderive's side of `benches/peer/run`: the same work as that of the C
//! programs beside it, reported in lines of the same form, and the table of
//! both.

mod families;
mod kernels;
mod measure;
#[path = "../synth/mod.rs"]
mod synth;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["kernels", ref wanted @ ..] => kernels::write(wanted),
        ["table", ref options @ ..] => table::print(options),
        // `cargo bench` runs all benchmarks; alone this one has nothing to say.
        [] | ["--bench", ..] => Ok(()),
        [mode, ref options @ ..] => measure::run(mode, options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peer: {error}");
            ExitCode::FAILURE
        }
    }
}
