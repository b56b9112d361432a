//! Services of the local machine for sources of metrics and their users:
//! `pcp.conf`, time zones, time windows, new files, files of bounded size. It knows no source.
#![deny(missing_debug_implementations, unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods))]

pub mod bounded;
pub mod new_file;
pub mod pcp_conf;
pub mod time;
