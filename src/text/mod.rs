//! Texts: those of definitions with places in them, TOML files of users, paths, sizes, bytes that
//! are not UTF-8, escapes for terminals, patches between texts, and JSON.

pub(crate) mod cache;
pub(crate) mod document;
mod escaping;
pub(crate) mod json;
#[cfg(feature = "cli")]
pub(crate) mod patch;
pub(crate) mod paths;
#[cfg(feature = "cli")]
pub(crate) mod size;
mod spans;
pub(crate) mod stray;

pub use escaping::Escaping;
pub use spans::{SourceId, SourceMap, SourceText, Span, offset};
