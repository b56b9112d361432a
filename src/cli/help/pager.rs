//! The pager for long texts: `$PAGER`, a command of the shell, or else `less`, as git(1) does
//! it. An empty `PAGER` and `cat` mean none. `MANPAGER` does not count, as it expects a man
//! page.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;

/// The shell's exit status for an unknown command.
const NOT_FOUND: i32 = 127;

/// The pager that the environment chooses, if any.
fn chosen() -> Option<OsString> {
    let chosen = std::env::var_os("PAGER").unwrap_or_else(|| "less".into());
    (!chosen.is_empty() && chosen != "cat").then_some(chosen)
}

/// Shows a text, which may have escape sequences for bold. Returns false if there is no pager;
/// then nothing was shown.
pub fn show(text: &str) -> bool {
    let Some(pager) = chosen() else { return false };
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Leave at once if all fits on one screen; show bold; do not clear.
        command.env("LESS", "FRX");
    }
    // The pager handles interrupts while it runs.
    let interrupted = Arc::new(AtomicBool::new(false));
    let handler = signal_hook::flag::register(SIGINT, interrupted);
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // A user who has read enough closes the pager.
        let _ = input.write_all(text.as_bytes());
    }
    let status = child.wait();
    if let Ok(handler) = handler {
        signal_hook::low_level::unregister(handler);
    }
    status.is_ok_and(|status| status.code() != Some(NOT_FOUND))
}
