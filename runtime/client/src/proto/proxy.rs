//! The few words with a pmproxy(1) before it becomes a pipe to pmcd.
//!
//! The client says `pmproxy-client 1`, the proxy `pmproxy-server 1`, the client
//! the address and port of pmcd, a line each. The proxy does not answer that:
//! the next bytes are pmcd's, or the end of the stream.

use super::config::Forward;
use super::error::ProtocolError;

/// How the client begins.
pub(super) const OPENING: &[u8] = b"pmproxy-client 1\n";

const ANSWER: &[u8] = b"pmproxy-server 1\n";

/// Length of the proxy's answer at the start of what was `received`; `None`
/// while it is incomplete. Tells from the first bytes if it is another.
pub(super) fn answer(received: &[u8]) -> Result<Option<usize>, ProtocolError> {
    if ANSWER.iter().zip(received).any(|(due, found)| due != found) {
        let shown = &received[..received.len().min(32)];
        let received = format!("\"{}\"", shown.escape_ascii());
        return Err(ProtocolError::NotPmproxy { received });
    }
    Ok((received.len() >= ANSWER.len()).then_some(ANSWER.len()))
}

/// The line that names pmcd.
pub(super) fn destination(forward: &Forward) -> String {
    format!("{} {}\n", forward.address, forward.port)
}
