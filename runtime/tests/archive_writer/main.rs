//! The archive writer: our reader and PCP's tools read its archives, and find
//! what the writer was given.

mod copies;
mod crash;
mod golden;
mod refused;
mod synthetic;
mod tools;
