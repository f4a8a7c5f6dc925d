//! All tests of this crate from outside, in one program: it is linked once.

mod reverse_names;
mod rfc6052;
