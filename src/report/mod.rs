//! Samples as text, JSON, CSV, Arrow and Parquet.
//!
//! There are two kinds of reports. [`samples`] has forms for people and for
//! programs that follow a source: text, JSON and CSV, as `eval` prints them. A
//! [`table`] is for programs that analyse data: rows of one schema in CSV,
//! JSON, Arrow or Parquet, as `export` writes them. Both use the same rows, and
//! write values, fields and descriptors in the same way.
//!
//! [`findings`] has the results of checks and tests, for continuous integration.
//!
//! Each form has its own file, and an entry in `samples/mod.rs` or
//! `table/mod.rs`.

mod csv;
pub mod findings;
pub(crate) mod json;
pub(crate) mod plain;
mod rows;
pub mod samples;
pub mod table;
