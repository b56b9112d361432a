//! The archive writer: what it writes is read by our reader and by PCP's
//! tools, and equals what was given to it.

mod copies;
mod crash;
mod golden;
mod refused;
mod synthetic;
mod tools;
