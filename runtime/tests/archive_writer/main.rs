//! The archive writer: our reader and PCP's tools read its archives, and find the data given to the
//! writer.

mod copies;
mod crash;
mod golden;
mod refused;
mod synthetic;
mod tools;
