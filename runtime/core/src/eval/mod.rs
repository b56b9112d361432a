//! Evaluates a program once per fetch, without input and output.
//!
//! The caller owns the connection. It fetches [`Evaluator::requests`] and
//! passes the result to [`Evaluator::evaluate`], which returns values or asks
//! about instances ([`Pending::asked`]). For a blocking source,
//! [`Evaluator::fetch`] does all that. For a host whose calls are futures,
//! `AsyncHostContext::evaluate` of the client does.
//!
//! ```text
//!               filters' domains
//!                    │
//!   ResultBatch ── decode ──► input columns ── kernels ──► output columns ── Evaluation (view)
//!                    │ not as the layout expects               ▲
//!                    ▼                                         │ previous samples
//!                  survey ──► Layout, section by section       HistoryStore
//!                                    │ not regular
//!                                    ▼
//!                                 general path, node by node
//! ```
//!
//! Operations without a kernel (ranked instances, windows of time, texts) take
//! the general path too. It starts from the columns that they need.
//!
//! An [`Evaluator`] belongs to one context. [`Buffers`] belong to one thread,
//! which evaluates for any number of contexts, one after the other.

mod clock;
mod decode;
mod evaluator;
mod general;
mod history;
mod instances;
mod lanes;
mod layout;
mod ranked;
mod results;
mod selected;
mod shared_layouts;
mod verdicts;
mod windows;

pub use crate::program::Binding;
pub use evaluator::{Asked, Buffers, Evaluator, Inconsistent, Pending, Step, Workspace};
pub use layout::{Domain, Pool as LayoutPool};
pub use results::{Evaluation, Value, Values};
pub use shared_layouts::{SharedLayouts, SharedParts};
