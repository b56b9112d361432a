//! What the engine needs of the machine: a clock and connections. A simulation
//! brings its own.

use pmderive_runtime::model::Timestamp;
use pmderive_runtime::transport::Transport;

use super::slot::Nanos;
use super::socket::NamedSocket;

/// A machine.
pub trait World: 'static {
    /// How hosts are connected to.
    type Transport: Transport + 'static;

    /// The engine's clock, which slots are counted by.
    fn now() -> Nanos;
}

/// This machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

impl World for Machine {
    type Transport = NamedSocket;

    fn now() -> Nanos {
        let now = Timestamp::now();
        let seconds = u64::try_from(now.sec).unwrap_or(0);
        Nanos(seconds.saturating_mul(1_000_000_000) + u64::from(now.nsec))
    }
}
