//! What the command chooses for a server, and how a client of it ends.

use std::time::Duration;

use super::source::Opener;
use crate::dialect::Language;

/// What the command chooses.
pub struct Options {
    /// Language of the definitions.
    pub language: Language,
    /// Opens the source of metrics; without one, only texts are checked.
    pub opener: Option<Opener>,
    /// How long mistakes that the text alone tells wait for those that the source
    /// tells.
    pub grace: Duration,
    /// Diagnostics of a text that are shown at most.
    pub max_shown: usize,
}

/// How a client ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By `exit` after `shutdown`, or by being gone.
    Agreed,
    /// By `exit` without `shutdown`.
    WithoutShutdown,
}
