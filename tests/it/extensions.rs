//! Extensions, from definitions to values. Both backends are compared with plain models of each
//! function, over the archives of `tests/archives`.
//!
//! The table for users, `grammar/extensions.md`, is compared with the checker here. Mistakes
//! are in the `.conf` files beside this one; snapshots have their messages.

mod description;
mod functions;
mod mistakes;
mod nesting;
mod shared;
