//! What goes beyond libpcp, from definitions to values: against plain models of
//! each function, with both backends, over the archives of `tests/archives`.
//!
//! The table for users, `grammar/extensions.md`, is held against the checker
//! here. Mistakes are in the `.conf` files beside this one, and what is said of
//! them is in the snapshots.

mod description;
mod functions;
mod mistakes;
mod nesting;
mod shared;
