//! The connection against recorded and made-up peers.
