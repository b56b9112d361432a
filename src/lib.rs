//! Derived metrics of Performance Co-Pilot, compiled to native code.
//!
//! A derived metric is an expression over performance metrics, such as
//! `delta(disk.dev.total_bytes) / delta(disk.dev.total)`. This crate reads
//! definitions, checks them against the metadata of a metric source, compiles
//! them, and evaluates them on every fetch, with libpcp's answers to the last
//! digit. Sources are hosts (pmcd's protocol), archives and this machine. The
//! crate [`runtime`] has the sources and the evaluator.
//!
//! ```
//! use pmderive::runtime::fetch_group::FetchGroup;
//! use pmderive::runtime::local::LocalContext;
//! use pmderive::{Definitions, Engine, Session};
//!
//! let definitions = Definitions::default();
//! definitions.register("my.load", "sum(kernel.all.load) / hinv.ncpu")?;
//!
//! // This machine; a host would be `HostContext::open(&"web17".parse()?)?`.
//! let session = Session::new(Engine::default(), definitions, LocalContext::new())?;
//! let mut group = FetchGroup::new(session);
//! let load = group.item::<f64>("my.load")?;
//! group.fetch()?;
//! println!("{}", group.get(load)?);
//! # assert!(group.get(load)? >= 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | To | see |
//! |---|---|
//! | read values by name, in a program's own units | [`Session`] in a [`FetchGroup`](runtime::fetch_group) |
//! | fetch base and derived metrics, without copies | [`Session::read`] |
//! | register, replace and take away definitions | [`Definitions`] |
//! | evaluate over thousands of hosts with futures | [`Engine::bind_host`], [`Engine::evaluated`] |
//! | check definitions, and show their mistakes | [`Engine::examine`], [`diag`], [`lint`] |
//! | write values as tables or archives | [`report`], [`record`] |
//! | see how definitions are understood and computed, and why | [`explain`] |
//! | test definitions, and write them in one style | [`unit_test`], [`format`](mod@format) |
//! | begin with a program that works | [`manual::programs`] |
//! | know the language, the command and everything else | [`manual`] |
//! | change this crate | [`design`] |
//!
//! ```text
//! definition text ── syntax ──► definitions ── bind ── check ──► typed nodes ── dag ── plan ──► Program
//!                                               ▲                                               │ jit
//!                                        MetadataSource                                         ▼
//!                     host │ archive │ local ──► FetchSource ──► bytes or columns ──► Evaluator ──► values
//! ```
//!
//! The message of an error includes its cause. `source()` returns only causes that the
//! message does not include, so chains say nothing twice. Causes for programs are in fields
//! of the error.
//!
//! Features: `jit` (native code by Cranelift, on by default; without it
//! everything is interpreted), `render` (diagnostics drawn with carets), `cli`
//! (the command, on by default), `columnar` (Arrow and Parquet), `fleet` (the
//! command watches whole fleets), `lsp` (the command serves editors). Without any of them
//! the crate [`runtime`] is still whole: hosts with TLS and SASL, archives, this machine.
//!
//! No version promises the modules that are hidden here. They are for the command
//! and for tests.
#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

mod bind;
mod check;
#[cfg(feature = "cli")]
mod cli;
mod dag;
#[cfg(feature = "cli")]
mod deps;
#[doc = include_str!("design.md")]
pub mod design {}
pub mod diag;
pub mod dialect;
pub mod engine;
pub mod explain;
#[cfg(feature = "fleet")]
mod fleet;
pub mod format;
mod functions;
#[cfg(feature = "jit")]
mod jit;
mod lanes;
mod layers;
pub mod lint;
#[cfg(feature = "lsp")]
mod lsp;
pub mod manual;
pub mod metadata;
mod plan;
mod project;
pub mod record;
mod replay;
pub mod report;
#[cfg(any(feature = "fleet", feature = "lsp"))]
mod stamps;
pub mod syntax;
mod text;
pub mod unit_test;

#[doc(inline)]
pub use diag::{Diagnostic, Diagnostics};
#[doc(inline)]
pub use dialect::{Dialect, Language};
#[doc(inline)]
pub use engine::{
    Backend, Definitions, Engine, Reading, Readings, Registered, Registry, Sample, Session, Space,
};
pub use pmderive_runtime as runtime;
use pmderive_runtime::escape;
#[doc(inline)]
pub use text::{Escaping, SourceId, SourceMap, SourceText, Span};

/// Parts of private modules for the command, tests and benchmarks. No version
/// promises any of it.
#[doc(hidden)]
pub mod internal {
    /// Types and units of expressions.
    pub mod check {
        pub use crate::check::*;
    }
    /// The command.
    #[cfg(feature = "cli")]
    pub mod cli {
        pub use crate::cli::*;
    }
    /// The code of `serve`.
    #[cfg(feature = "fleet")]
    pub mod fleet {
        pub use crate::fleet::*;
    }
    /// Native code.
    #[cfg(feature = "jit")]
    pub mod jit {
        pub use crate::jit::*;
    }
    /// The server of editors.
    #[cfg(feature = "lsp")]
    pub mod lsp {
        pub use crate::lsp::*;
    }
    /// Answers to cases recorded from libpcp.
    pub mod replay {
        pub use crate::replay::*;
    }
}

#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
