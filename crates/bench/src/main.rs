//! The `sixfold-bench` binary: the laboratory.
#![forbid(unsafe_code)]

fn main() {}
