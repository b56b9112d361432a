//! Metrics of this process's own host, without a pmcd: agents inside the
//! process deliver them.
//!
//! [`LocalContext`] is a source of metrics over a list of [`Agent`]s. The
//! built-in [`LinuxAgent`] and [`ProcessAgent`] serve the metrics of
//! pmdalinux(1) and pmdaproc(1), under the same names and identifiers.
//! An application adds agents of its own by implementing the trait. Nothing here
//! knows pmcd's protocol or archives.
//!
//! ```
//! use pmderive_local::LocalContext;
//! use pmderive_core::result::ResultBatch;
//! use pmderive_core::source::{FetchList, FetchSource, MetadataSource};
//!
//! let mut context = LocalContext::new();
//! let pmid = context.lookup_names(&["kernel.all.load"])?[0].expect("the Linux agent has it");
//! let mut batch = ResultBatch::default();
//! context.fetch(&FetchList::new(vec![pmid], Vec::new()), &mut batch)?;
//! # Ok::<(), pmderive_core::source::SourceError>(())
//! ```
//!
//! Applications depend on `pmderive` or `pmderive-runtime`. They write
//! `pmderive::runtime::local` for `pmderive_local`,
//! and `pmderive::runtime::model` for `pmderive_core::model`; or `pmderive_runtime::`.
#![deny(missing_debug_implementations, unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

mod agent;
mod context;
mod files;
mod instances;
mod labels;
mod linux;
mod process;
#[cfg(any(test, feature = "fuzz"))]
mod sample;
mod table;
mod text;

pub use agent::{Agent, AgentValue, Metric, Values};
pub use context::LocalContext;
pub use instances::Instances;
pub use linux::LinuxAgent;
#[cfg(any(test, feature = "fuzz"))]
pub use linux::fuzz::fuzz_linux_files;
pub use process::ProcessAgent;
#[cfg(any(test, feature = "fuzz"))]
pub use process::fuzz::fuzz_process_files;
#[cfg(any(test, feature = "fuzz"))]
pub use sample::SampleAgent;
