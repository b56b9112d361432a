//! What sources of metrics and their users need of the machine that they run
//! on: `pcp.conf`, time zones and windows of time, files that come into being,
//! messages. It knows no source.
#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

#[allow(
    clippy::disallowed_methods,
    reason = "its messages are the caller's, as those of pmprintf(3)"
)]
pub mod message;
pub mod new_file;
pub mod pcp_conf;
pub mod time;
