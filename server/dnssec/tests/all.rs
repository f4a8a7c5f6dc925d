//! The tests of this crate from outside, in one program: it is linked once.

mod aggressive;
mod arithmetic;
mod canonical;
mod chain;
mod denial;
mod examples;
mod groups;
mod signature;
mod text;
mod validation;
mod world;
