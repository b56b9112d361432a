//! Fleets in virtual time: fake pmcds in the same thread, under tokio's paused clock. Events happen
//! to them by a seeded schedule.
//!
//! ```text
//!   Script     how often what happens
//!     │ seed
//!     ▼
//!   schedule   what happens to which host, and when: known beforehand
//!     │
//!     ▼
//!   Fleet      lets it happen; keeps a log, and a model of every answer
//!     ▲
//!   Socket     the client's end of a connection, for AsyncHostContext
//!
//!   Receiver   takes remote write, or not, by a seed of its own
//!   Disk       takes what is written, or not
//! ```
//!
//! Only the seed and the client's actions determine a run. A seed therefore gives
//! the same run again, log included, if the client uses no chance either.
//! `tokio::select!` has to be `biased`. The delays of
//! [`ConnectOptions`](pmderive_client::context::ConnectOptions) between attempts to
//! connect have to be empty, because chance spreads them.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use pmderive_client::context::{AsyncHostContext, ConnectOptions};
//! use pmderive_testkit::fleet::Plan;
//! use pmderive_testkit::sim::{Fleet, Script, Socket};
//!
//! let runtime = tokio::runtime::Builder::new_current_thread()
//!     .enable_time()
//!     .start_paused(true)
//!     .build()?;
//! runtime.block_on(async {
//!     let plan = Plan { hosts: 10, classes: 2, ..Plan::default() };
//!     let script = Script { jumps: 20.0, ..Script::calm(Duration::from_secs(3600)) };
//!     let fleet = Fleet::new(7, plan, &script);
//!
//!     let options = ConnectOptions { reconnect_delays: Vec::new(), ..Default::default() };
//!     let spec = format!("pcp://{}", fleet.plan().name(3)).parse()?;
//!     let mut context = AsyncHostContext::<Socket>::open_over(&spec, options).await?;
//!     let gauge = fleet.plan().metric(fleet.plan().class(3), 1);
//!     for _ in 0..360 {
//!         tokio::time::sleep(Duration::from_secs(10)).await;
//!         let result = context.fetch_values(&[gauge.desc.pmid]).await?;
//!         // However the clock jumped, each value is that of its moment.
//!         let answer = fleet.answer(3, result.timestamp).expect("this host answered that");
//!         let values = result.sets[0].decode(gauge.desc.value_type)?;
//!         assert_eq!(values, fleet.truth(&answer).values(&gauge));
//!     }
//!     assert!(fleet.log().to_string().contains("the clock jumps to"));
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod disk;
mod fleet;
mod log;
mod periods;
mod receiver;
mod schedule;
mod socket;

pub use disk::Disk;
pub use fleet::{Answer, Answers, Fleet, Truth};
pub use log::{Entry, Log, What};
pub use receiver::{Mood, Receiver, ReceiverAnswer, SeriesId};
pub use schedule::{HostEvent, Script};
pub use socket::Socket;
