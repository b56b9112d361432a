//! From text to syntax trees: the only stage that knows logos and LALRPOP.

pub mod ast;
