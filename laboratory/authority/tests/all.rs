//! All tests of this crate from outside, in one program: it is linked once.

mod answers;
mod polled;
mod server;
mod zone_file;
