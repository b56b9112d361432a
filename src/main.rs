//! The process `pmderive`; everything it does is in [`pmderive::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    pmderive::cli::main()
}
