//! The language server, driven over its protocol by a client in this process.

mod client;
mod mistakes;
mod positions;
mod process;
mod session;
mod settings;
mod textmate;
