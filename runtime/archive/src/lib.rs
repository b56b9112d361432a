//! Archives of Performance Co-Pilot. [`archive`] reads them as a source of metrics.
//! [`archive_writer`] writes them. [`record_mode`] has pmlogger(1) make them and keeps the
//! folio that holds them together.
//!
//! Applications depend on `pmderive` or `pmderive-runtime`. They write
//! `pmderive::runtime::archive`, say, for `pmderive_archive::archive`,
//! and `pmderive::runtime::model` for `pmderive_core::model`; or `pmderive_runtime::`.
#![deny(missing_debug_implementations, unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod archive;
pub mod archive_writer;
pub mod record_mode;
