//! The tests of this crate from outside, in one program: it is linked once. `differential` is one of its own.

mod building;
mod linear;
mod messages;
