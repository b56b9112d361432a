//! The program of `benches/fleet` with a few hosts: that it works, that all
//! values of all hosts are right whatever happens to them, and that steady
//! fetches allocate nothing. Times and memory are not looked at.

#[path = "../benches/fleet/main.rs"]
mod fleet;

/// Like the program itself, this one is started again for the fake hosts, and
/// for each part.
fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let is_part = given.first().is_some_and(|word| ["serve-hosts", "part"].contains(&&**word));
    let few = ["--hosts".to_owned(), "10".to_owned()];
    let rows = match fleet::run(if is_part { &given } else { &few }) {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    if !is_part {
        let allocations = rows.iter().filter(|row| row.key.ends_with("-allocations"));
        let allocations: Vec<f64> = allocations.map(|row| row.value).collect();
        assert_eq!(allocations, [0.0, 0.0]);
    }
}
