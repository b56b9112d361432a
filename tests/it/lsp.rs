//! The language server, driven over its protocol by a client in this process.

mod client;
mod completing;
mod editing;
mod mistakes;
mod positions;
mod process;
mod refused;
mod session;
mod settings;
mod textmate;
