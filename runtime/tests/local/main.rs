//! Metrics of agents inside the process: the Linux agent over recorded trees, on this host and next
//! to pmdalinux itself; processes next to pmdaproc; samples next to pmdasample; and agents of an
//! application.

mod agents;
mod golden;
mod pcp;
mod pmdalinux;
mod pmdaproc;
mod pmdasample;
#[path = "../../examples/local_metrics/render.rs"]
mod render;

use pmderive_testkit::pminfo;
