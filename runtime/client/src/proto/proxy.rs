//! The exchange with a pmproxy(1) before it becomes a pipe to pmcd.
//!
//! Each message is a line. The client sends `pmproxy-client 1`, the proxy
//! `pmproxy-server 1`, and the client the address and port of pmcd. The proxy does not
//! answer that: the next bytes are pmcd's, or the stream ends.

use super::config::Forward;
use super::error::ProtocolError;

/// The client's first line.
pub(super) const OPENING: &[u8] = b"pmproxy-client 1\n";

const ANSWER: &[u8] = b"pmproxy-server 1\n";

/// Length of the proxy's answer at the start of `received`; `None` while it is
/// incomplete. The first wrong byte is an error.
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
