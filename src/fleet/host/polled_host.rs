//! A host that is fetched on request, not by the clock.

use std::sync::Arc;

use super::{Host, Orders, Shared, Turn};
use crate::engine::Compiled;
use crate::fleet::condition::Condition;
use crate::fleet::plan::PlannedGroup;
use crate::fleet::slot::Slot;
use crate::fleet::targets::target::Target;
use crate::fleet::world::World;

/// A host with its connection and previous samples. Its frames go to the outlets of [`Shared`].
pub struct PolledHost<W: World> {
    host: Host<W>,
    orders: Orders,
}

impl<W: World> PolledHost<W> {
    /// A host of a group, without a connection.
    pub fn new(target: Arc<Target>, group: Arc<PlannedGroup>) -> PolledHost<W> {
        let condition = Arc::new(Condition::new(Arc::clone(&target)));
        let orders = Orders { target, group, condition };
        PolledHost { host: Host::new(&orders), orders }
    }

    /// Fetches and evaluates once, within the deadline of the group.
    ///
    /// # Errors
    /// There is no frame; the text says why.
    pub async fn sample(&mut self, slot: Slot, shared: &Shared) -> Result<(), Arc<str>> {
        let PolledHost { host, orders } = self;
        let turn = Turn { slot, orders, shared };
        let outcome = host.slot_within(orders.group.deadline, turn).await;
        outcome.map(drop).map_err(|failure| {
            host.failed(&failure, W::now(), turn);
            failure.words
        })
    }

    /// The compiled definitions, once the host has answered.
    pub fn compiled(&self) -> Option<&Arc<Compiled>> {
        self.host.bound.as_ref().map(|bound| &bound.compiled)
    }
}
