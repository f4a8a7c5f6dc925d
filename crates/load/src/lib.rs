//! The load generator.
#![forbid(unsafe_code)]
