//! A live source that is away for a while.
//!
//! In: what each attempt to fetch from it gave. Out: why it is away, told once
//! however often it is tried. When it is tried again is not known here.

use pmderive_runtime::source::SourceError;

use super::messages::Messages;

/// What is known of a source that was there once; the default is there.
#[derive(Debug, Default)]
pub struct Absence {
    /// What was said last of why it is away.
    reason: Option<String>,
}

impl Absence {
    /// True since an attempt failed, until one succeeds.
    pub fn lasts(&self) -> bool {
        self.reason.is_some()
    }

    /// An attempt succeeded.
    pub fn end(&mut self) {
        self.reason = None;
    }

    /// An attempt failed. Says why, unless that was said of the one before.
    pub fn go_on(&mut self, error: &SourceError, messages: &Messages) {
        // Between attempts to connect there is nothing new to tell.
        if self.lasts() && matches!(error, SourceError::TooSoon { .. }) {
            return;
        }
        let reason = error.to_string();
        if self.reason.as_ref() != Some(&reason) {
            messages.error(&reason);
        }
        self.reason = Some(reason);
    }
}
