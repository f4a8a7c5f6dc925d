//! All tests of this crate from outside, in one program: it is linked once.

mod agent;
mod authority;
mod conform;
mod devices;
mod documents;
mod fixtures;
#[path = "lab/main.rs"]
mod lab;
#[path = "links/main.rs"]
mod links;
mod load;
mod perf;
mod report;
mod run;
mod ssh;
