//! Hosts that change while clients with shared parts read them, against clients
//! that share nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../hosts.rs"]
mod hosts;

fuzz_target!(|data: &[u8]| hosts::fuzz_hosts(data));
