//! Prints this host's metrics as `pminfo -dmf` does, without a pmcd.
//!
//! `cargo run -p pmderive-runtime --example local_metrics [--root DIR] [NAME...]`
//! where a name may also stand for all metrics below it, and DIR holds
//! recorded `proc` and `sys`.

use std::error::Error;

use pmderive_runtime::local::{LinuxAgent, LocalContext};
use pmderive_runtime::source::MetadataSource;

mod render;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let root = match arguments.next_if_eq("--root") {
        Some(_) => arguments.next().ok_or("--root needs a directory")?,
        None => "/".to_owned(),
    };
    let mut context = LocalContext::with_agents(vec![Box::new(LinuxAgent::with_root(root))])?;
    let mut prefixes: Vec<String> = arguments.collect();
    if prefixes.is_empty() {
        prefixes.push(String::new());
    }
    for prefix in prefixes {
        let names = context.traverse(&prefix)?;
        if names.is_empty() {
            return Err(format!("{prefix}: no such metric").into());
        }
        for metric in render::render(&mut context, &names)? {
            println!("\n{} {}", metric.name, metric.description);
            for value in metric.values {
                println!("{value}");
            }
        }
    }
    Ok(())
}
