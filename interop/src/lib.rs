//! Sixfold among real programs. The tests of this crate put a client, Sixfold and the servers behind it into network
//! namespaces of their own, connected by virtual Ethernet, so that nothing leaves the machine and nothing on it is
//! disturbed. They need root and some programs; what is missing is said in one line, and the test passes.
//!
//! Everything that a test starts ends with it: processes are killed by their ID, namespaces and files removed, also
//! when the test fails. Every wait has an end, and none measures speed.

#![forbid(unsafe_code)]

mod authority;
mod capture;
mod cookies;
pub mod differential;
pub mod forgery;
mod kdig;
mod lab;
mod namespace;
mod process;
mod requirement;
mod scratch;
mod sixfold;
pub mod zones;

pub use authority::{Authority, Program};
pub use capture::{Capture, Finished, Packet};
pub use cookies::{CookieServer, CookieSoftware, DigOutput, altered_cookie, dig};
pub use kdig::{Answer, Kdig, Record};
pub use lab::{Lab, address};
pub use namespace::Namespace;
pub use process::{CommandOutput, Process, wait_until};
pub use requirement::{missing_program, report_skip};
pub use scratch::Scratch;
pub use sixfold::{Configuration, Sixfold, bench, program};
