//! What tests, benchmarks and fuzzers need beside the product; never published.
#![deny(unsafe_code)]

pub mod fake_pmcd;
