//! Definition files: from paths to the definitions, help texts and options in their lines.
//!
//! ```text
//! paths ── load ──► texts ── lines ──► logical lines ── config ──► definitions, help texts, options
//!                                           │
//!                                           └── outline, own_comments ──► what editors and lints need
//! ```
//!
//! [`config`] reads a line's expression with [`super::parse_expr`]'s parser; `line_habits` and
//! `config_names` say what is wrong with lines that are no definition.

mod attributes;
pub(super) mod config;
pub(super) mod config_names;
pub(super) mod control;
pub(super) mod end_comments;
pub(super) mod expression_cache;
pub(super) mod line_form;
mod line_habits;
pub(super) mod lines;
pub(super) mod load;
pub(super) mod outline;
pub(super) mod own_comments;
pub(super) mod two_definitions;
