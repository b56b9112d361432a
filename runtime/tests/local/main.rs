//! Metrics of agents inside the process: the Linux agent over recorded trees,
//! on this host and next to pmdalinux itself, and agents of an application.

mod agents;
mod golden;
mod pmdalinux;
#[path = "../shared/pminfo.rs"]
mod pminfo;
mod render;
