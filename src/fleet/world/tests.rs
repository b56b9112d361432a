//! A machine with faults, for tests of code that uses a world.

use std::io;
use std::path::Path;

use super::*;

/// This machine without a thread that computes over the fleet, and without an answer about the
/// name `nowhere`.
#[derive(Clone, Copy, Debug)]
pub struct FlawedMachine;

impl World for FlawedMachine {
    type Transport = <Machine as World>::Transport;
    type Client = <Machine as World>::Client;

    fn now() -> Nanos {
        Machine::now()
    }

    fn chance() -> f64 {
        Machine::chance()
    }

    async fn resolve(host: &str) {
        match host {
            "nowhere" => std::future::pending().await,
            _ => Machine::resolve(host).await,
        }
    }

    fn spawn<W: Future<Output = ()> + 'static>(
        name: &str,
        work: impl FnOnce() -> W + Send + 'static,
    ) -> io::Result<Job> {
        match name {
            "stage-two" => Err(io::ErrorKind::WouldBlock.into()),
            _ => Machine::spawn(name, work),
        }
    }

    fn open(path: Option<&Path>) -> io::Result<Box<dyn io::Write + Send>> {
        Machine::open(path)
    }
}
