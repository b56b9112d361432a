//! Texts: those of definitions with places in them, bytes that are not UTF-8, escapes for
//! terminals, patches between texts, and JSON.

mod escaping;
pub(crate) mod json;
#[cfg(feature = "cli")]
pub(crate) mod patch;
pub(crate) mod percent;
mod spans;
pub(crate) mod stray;

pub use escaping::Escaping;
pub use spans::{SourceId, SourceMap, SourceText, Span};
