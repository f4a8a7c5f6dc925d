//! Tests of Sixfold among real programs. They put a client, Sixfold and the servers behind it into network
//! namespaces, connected by virtual Ethernet, so that nothing leaves the machine and nothing else on it is disturbed.
//! They need root and some programs; if one is missing, the test prints one line and passes.
//!
//! Everything that a test starts ends with it, even if the test fails: processes are killed by their ID, namespaces
//! and files are removed. Every wait has a limit, and no test measures speed. Nothing here knows the inside of
//! Sixfold. Read [`Lab`] first.

#![forbid(unsafe_code)]

mod authority;
mod capture;
mod certificate;
mod cookies;
mod debian;
pub mod differential;
pub mod fleet;
pub mod forgery;
mod installed;
mod kdig;
mod lab;
mod namespace;
mod process;
mod recipe;
mod requirement;
mod scratch;
mod sixfold;
pub mod steady;
pub mod validators;
pub mod zones;

pub use authority::Authority;
pub use capture::{Capture, Finished, Packet};
pub use certificate::{Certificate, SERVER_NAME};
pub use cookies::{CookieServer, DigOutput, altered_cookie, dig};
pub use debian::{Debian13, debian_mirror};
pub use installed::{Installed, RunningServer, configure};
pub use kdig::{Answer, Kdig, Record};
pub use lab::{Lab, address};
pub use namespace::Namespace;
pub use process::{CommandOutput, Process, Signal, wait_until, words};
pub use recipe::{copy_recipe, document, packaged, recipe};
pub use requirement::{Unable, missing_program};
pub use scratch::Scratch;
pub use servers::authority::Program;
pub use sixfold::{Configuration, Sixfold, bench, program};
