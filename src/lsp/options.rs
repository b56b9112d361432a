//! Options of a server, and the ways in which a client ends.

use std::time::Duration;

use super::source::Opener;
use crate::dialect::Language;

/// Options of a server.
pub struct Options {
    /// Language of the definitions.
    pub language: Language,
    /// Opens the source of metrics; without one, only texts are checked.
    pub opener: Option<Opener>,
    /// How long diagnostics of the text wait for those of the source.
    pub grace: Duration,
    /// Diagnostics of one text that are shown, at most.
    pub max_shown: usize,
}

/// Way in which a client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It sent `exit` after `shutdown`, or is gone.
    Agreed,
    /// It sent `exit` without `shutdown`.
    WithoutShutdown,
}
