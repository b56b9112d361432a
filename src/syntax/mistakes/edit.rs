//! An edit of a text by its bytes, as advice offers it.

use std::ops::Range;

use crate::diag::Fix;
use crate::syntax::origin::{Origin, span};

/// A range of bytes to replace, and the new text.
#[derive(Debug)]
pub(in crate::syntax) struct Edit {
    pub at: Range<usize>,
    pub text: String,
    /// True if nothing else can be meant.
    pub is_certain: bool,
}

impl Edit {
    /// An edit that is right in any case.
    pub fn certain(at: Range<usize>, text: impl Into<String>) -> Edit {
        Edit { at, text: text.into(), is_certain: true }
    }

    /// An edit that is right if the guess is.
    pub fn guess(at: Range<usize>, text: impl Into<String>) -> Edit {
        Edit { at, text: text.into(), is_certain: false }
    }

    /// The same edit at its place in the source.
    pub fn placed(self, origin: &Origin) -> Fix {
        Fix { span: span(origin, &self.at), text: self.text, is_certain: self.is_certain }
    }

    /// The text after the edit.
    pub fn applied(&self, text: &str) -> String {
        let mut edited = text.to_owned();
        edited.replace_range(self.at.clone(), &self.text);
        edited
    }
}
