//! Performance metrics, and the evaluator of compiled programs over them.
//! Nothing here does input or output.
//!
//! ```text
//!   source     questions to a source of metrics, and its answers: traits
//!      │  result: a batch of values, as bytes or as columns
//!      ▼
//!   eval       layout · workspace · history     one evaluation per fetch
//!      ▲
//!   program + kernel                            made by the compiler
//!
//!   model      descriptors, units, instance domains, values, times
//! ```
//!
//! This crate knows nothing of pmcd, of archives, of the expression language
//! or of Cranelift.
//!
//! Applications depend on `pmderive` or `pmderive-runtime`. They write
//! `pmderive::runtime::` or `pmderive_runtime::` where examples have `pmderive_core::`.
#![deny(missing_debug_implementations, unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod escape;
pub mod eval;
mod evaluating;
pub mod kernel;
pub mod locks;
pub mod memory;
pub mod model;
pub mod pattern;
pub mod percent;
pub mod position;
pub mod program;
pub mod result;
pub mod source;
pub mod weak_table;
