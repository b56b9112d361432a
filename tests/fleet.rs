//! The program of `benches/fleet` with a few hosts: that it works, and that all
//! values of all hosts are right whatever happens to them. Nothing is measured.

#[path = "../benches/fleet/main.rs"]
mod fleet;

/// Like the program itself, this one is started again for the fake hosts, and
/// for each part.
fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let is_part = given.first().is_some_and(|word| ["serve-hosts", "part"].contains(&&**word));
    let few = ["--hosts".to_owned(), "10".to_owned()];
    let outcome = fleet::run(if is_part { &given } else { &few });
    if let Err(error) = outcome {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
