//! What the tests of all crates share, once: [`skip`](mod@skip)ped tests, tests in a [`namespace`] of their own, a
//! [`browser`], [`Folder`]s, [`Random`] numbers, [messages](message) from text, a false [`client`], a false
//! [`Upstream`], a false server that is [`Listening`] for connections, and [waits](wait).
//!
//! Of the workspace it knows only `splitmix`, the generator of those numbers. So every crate can use it in its tests, unit tests included,
//! and no mistake of the code under test is in it.
#![forbid(unsafe_code)]

pub mod browser;
pub mod client;
mod folder;
pub mod listening;
pub mod message;
pub mod namespace;
mod random;
pub mod skip;
pub mod upstream;
pub mod wait;

pub use folder::Folder;
pub use listening::Listening;
pub use message::{Query, name, query};
pub use random::Random;
pub use skip::{FILE, PACKAGES, missing, skip};
pub use upstream::Upstream;
pub use wait::{Killed, TIMEOUT, free_port, wait_until};
