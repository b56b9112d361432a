//! Fleets of invented hosts, ten thousand and more in one thread. Every value
//! is known in advance.
//!
//! ```text
//!   Plan       what the fleet is like: by a seed, which hosts, instances, illnesses
//!     │        and the law that every value obeys
//!     ▼
//!   FakeFleet  the hosts of a plan behind sockets: a thread, or `fake-fleet`
//! ```
//!
//! `cargo run --release -p pmderive-testkit --bin fake-fleet` is the program.

mod definitions;
mod law;
mod plan;
mod server;
pub(crate) mod worlds;

pub use definitions::{definition, definitions, mixed_definition};
pub use law::BaseMetric;
pub use plan::{Fate, Plan, Shares};
pub use server::FakeFleet;
