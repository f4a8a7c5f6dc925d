//! All tests of this crate from outside, in one program: it is linked once.

mod own_cases;
mod process;
mod shared_cases;
mod suite;
