//! Texts of definitions, places in them, bytes that are not UTF-8, and text
//! from others that a terminal must not obey.

mod escaping;
pub(crate) mod percent;
mod spans;
pub(crate) mod stray;

pub use escaping::Escaping;
pub use spans::{SourceId, SourceMap, SourceText, Span};
