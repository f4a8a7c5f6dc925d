//! The tests of this crate from outside, and those of the validator by its zones, in one program: it is linked once.

// The arithmetic of the validator's tests calls the crate by its full name.
extern crate dnssec as sixfold_dnssec;

#[path = "../../../server/dnssec/tests/arithmetic.rs"]
mod arithmetic;
mod attacks;
mod resolver;
mod second_opinion;
mod verdicts;
