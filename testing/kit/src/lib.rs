//! What the tests of all crates share, once: [`skip`](mod@skip)ped tests, tests in a [`namespace`] or a [child](in_child) of their own, and a
//! [`browser`].
//!
//! It knows no other crate of the workspace, so every crate can use it in its tests, unit tests included, and no mistake of the code under
//! test is in it.
#![forbid(unsafe_code)]

pub mod browser;
mod children;
pub mod namespace;
pub mod skip;

pub use children::in_child;
pub use skip::{FILE, PACKAGES, missing, skip};
