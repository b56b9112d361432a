//! What goes beyond libpcp, from definitions to values: against plain models of
//! each function, with both backends, over the archives of `tests/archives`.
//!
//! The table for users, `grammar/extensions.md`, is held against the checker
//! here. Mistakes are in the `.conf` files beside this one, and what is said of
//! them is in the snapshots.

#[path = "../choosing/mod.rs"]
mod choosing;
mod description;
mod functions;
mod mistakes;
mod nesting;
#[path = "../../runtime/tests/live/real_pmcd.rs"]
mod real_pmcd;
mod shared;
