//! A host that is fetched when somebody asks, and not by the clock.

use std::sync::Arc;

use super::{Host, Orders, Shared};
use crate::engine::Compiled;
use crate::fleet::condition::Condition;
use crate::fleet::plan::PlannedGroup;
use crate::fleet::slot::Slot;
use crate::fleet::target::Target;
use crate::fleet::world::World;

/// A host with its connection and previous samples. What comes of a fetch goes to the
/// outlets of [`Shared`].
pub struct Polled<W: World> {
    host: Host<W>,
    orders: Orders,
}

impl<W: World> Polled<W> {
    /// A host of a group, without a connection.
    pub fn new(target: Arc<Target>, group: Arc<PlannedGroup>) -> Polled<W> {
        let condition = Arc::new(Condition::new(Arc::clone(&target)));
        let orders = Orders { target, group, condition };
        Polled { host: Host::new(&orders), orders }
    }

    /// Fetches and evaluates, within the deadline of the group.
    ///
    /// # Errors
    /// Why there is no frame, in words.
    pub async fn sample(&mut self, slot: Slot, shared: &Shared) -> Result<(), Arc<str>> {
        let Polled { host, orders } = self;
        let outcome = host.slot_within(orders.group.deadline, slot, orders, shared).await;
        outcome.map(drop).map_err(|failure| {
            host.failed(&failure, slot, W::now(), orders, shared);
            failure.words
        })
    }

    /// What was compiled for it, once it has answered.
    pub fn compiled(&self) -> Option<&Arc<Compiled>> {
        self.host.bound.as_ref().map(|bound| &bound.compiled)
    }
}
