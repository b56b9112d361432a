//! Services of the local machine for sources of metrics and their users:
//! `pcp.conf`, time zones, time windows, new files, messages. It knows no
//! source.
#![deny(missing_debug_implementations, unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

#[allow(
    clippy::disallowed_methods,
    reason = "its messages are the caller's, as those of pmprintf(3)"
)]
pub mod message;
pub mod new_file;
pub mod pcp_conf;
pub mod time;
