//! Derived metrics of Performance Co-Pilot, compiled to native code.
//!
//! ```text
//! definition text ── syntax ──► Definitions ── bind ── check ──► typed nodes ── dag ── plan ──► Program
//!                                               ▲                                               │ jit
//!                                        MetadataSource                                         ▼
//!                     host │ archive │ local ──► FetchSource ──► bytes or columns ──► Evaluator ──► values
//! ```
//!
//! The runtime half (sources, kernels' interpreter, evaluator) is the crate
//! [`pmderive_runtime`]; this crate adds the language, the compiler and the
//! command line.
#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod bind;
pub mod check;
#[cfg(feature = "cli")]
pub mod cli;
pub mod csv;
pub mod dag;
pub mod deps;
pub mod diag;
pub mod dialect;
pub mod engine;
pub mod equivalent_domains;
pub mod explain;
pub mod export;
pub mod format;
#[cfg(feature = "jit")]
pub mod jit;
pub mod json;
mod layers;
pub mod lint;
pub mod metadata;
pub mod plain;
pub mod plan;
pub mod record;
pub mod replay;
pub mod source;
mod stray;
pub mod syntax;
pub mod unit_test;

#[doc = include_str!("design.md")]
pub mod design {}

pub use pmderive_runtime::escape;
