//! The process `pmderive`. The library does all its work, in `cli`.

#![warn(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::process::ExitCode;

fn main() -> ExitCode {
    pmderive::internal::cli::main()
}
