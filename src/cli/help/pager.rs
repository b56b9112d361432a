//! A program that shows long text page by page, as git(1) uses one: `$PAGER`,
//! a command of the shell, or else `less`. An empty `PAGER` and `cat` mean none.
//! `MANPAGER` does not count: what is written there expects a man page.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;

/// What the shell says of a command that is not there.
const NOT_FOUND: i32 = 127;

/// The pager that the environment asks for; none if there is to be none.
fn chosen() -> Option<OsString> {
    let chosen = std::env::var_os("PAGER").unwrap_or_else(|| "less".into());
    (!chosen.is_empty() && chosen != "cat").then_some(chosen)
}

/// Shows a text, which may have escape sequences for bold. False if there is no
/// pager, and nothing was shown.
pub fn show(text: &str) -> bool {
    let Some(pager) = chosen() else { return false };
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Leave at once if all is on one screen, show bold, do not clear.
        command.env("LESS", "FRX");
    }
    // Interrupts are the pager's while it runs.
    let interrupted = Arc::new(AtomicBool::new(false));
    let handler = signal_hook::flag::register(SIGINT, interrupted);
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // Whoever has read enough closes it.
        let _ = input.write_all(text.as_bytes());
    }
    let status = child.wait();
    if let Ok(handler) = handler {
        signal_hook::low_level::unregister(handler);
    }
    status.is_ok_and(|status| status.code() != Some(NOT_FOUND))
}
