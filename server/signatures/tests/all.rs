//! The tests of this crate from outside, in one program: it is linked once.

mod generated;
mod rfc_examples;

#[path = "../../dnssec/tests/examples.rs"]
mod examples;
