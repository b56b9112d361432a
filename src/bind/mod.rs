//! Binding: from the names in expressions to the source's facts about them.
//!
//! `references` finds the names. `questions` chooses the questions and asks
//! them. [`Names`] gives the meaning of the answers. `fingerprint` holds the common part of the
//! answers of similar sources. The checker decides what a missing name means for an expression.

mod definition;
pub(crate) mod equivalent_domains;
mod fingerprint;
mod names;
mod questions;
mod references;

pub use definition::{DefinitionId, Desc};
pub(crate) use fingerprint::{Fingerprint, Identities, Literals};
pub use names::{Name, Names};
pub use questions::NameAnswer;
pub(crate) use questions::{Mentions, ask, ask_host, mentions};
pub(crate) use references::{Reference, name_in, references};
