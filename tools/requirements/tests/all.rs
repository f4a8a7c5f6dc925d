//! All tests of this crate from outside, in one program: it is linked once.

mod page;
mod structure;
