//! The process `pmderive`; everything it does is in [`pmderive::cli`].

#![warn(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::process::ExitCode;

fn main() -> ExitCode {
    pmderive::cli::main()
}
