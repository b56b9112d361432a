//! Samples as text, JSON, CSV, Arrow and Parquet.
//!
//! There are two kinds of reports. [`samples`] are forms for people and for
//! programs that follow a source: text, JSON and CSV, as `eval` prints them. A
//! [`table`] is for programs that analyse what was gathered: rows of one schema
//! in CSV, JSON, Arrow or Parquet, as `export` writes them. Both go through the
//! same rows, and write values, fields and descriptors the same way.
//!
//! A form is a file of its own and a row in `samples/mod.rs` or `table/mod.rs`.

mod csv;
pub(crate) mod json;
pub(crate) mod plain;
mod rows;
pub mod samples;
pub mod table;
