//! The live source: against scripted peers, and against a real pmcd.

mod fake;
mod fake_pmcd;
mod real;
mod real_pmcd;
