//! Process entry.
use pmderive::{dialect::Dialect, engine::Backend};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let get = |name: &str| args.iter().position(|a| a == name).map(|i| args[i + 1].clone());
    let backend = match get("--backend").as_deref() {
        Some("interp") => Backend::Interp,
        _ => Backend::Jit,
    };
    let dialect = match get("--compat").as_deref() {
        Some("6.0") => Dialect::Pcp6_0,
        Some("off") => Dialect::Fixed,
        _ => Dialect::Pcp7_2,
    };
    let cases = std::fs::File::open(get("--cases").unwrap()).unwrap();
    pmderive::replay::replay(
        std::io::BufReader::new(cases),
        get("--archives").unwrap().as_ref(),
        dialect,
        backend,
        std::io::BufWriter::new(std::io::stdout()),
    )
    .unwrap();
    ExitCode::SUCCESS
}
