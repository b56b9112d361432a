//! Evaluates a program: one call per fetch.
//!
//! ```text
//!   ResultBatch ── decode ──► input columns ── kernels ──► output columns ── Evaluation (view)
//!                    │ not as the layout expects               ▲
//!                    ▼                                         │ previous samples
//!                  survey ──► Layout (made once per constellation)   HostState
//!                                    │ not regular
//!                                    ▼
//!                                 general path, node by node
//! ```
//!
//! Operations that no kernel has (ranked instances, windows of time, texts)
//! take the general path too, from the columns on that lead up to them.
//!
//! What belongs to one context is in [`Evaluator`]; what one thread needs to
//! evaluate for any number of contexts, one after the other, is in [`Workspace`].

mod clock;
mod decode;
mod evaluator;
mod general;
mod history;
mod lanes;
mod layout;
mod ranked;
mod results;
mod selected;
mod verdicts;
mod windows;

pub use crate::program::Binding;
pub use evaluator::{Evaluator, Workspace};
pub use lanes::LaneSet;
pub use results::{Evaluation, Value, Values};
