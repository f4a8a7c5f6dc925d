//! Tests of the engine in virtual time. `world` simulates clients, upstreams, links and the clock; `cases` has the tests.
//! `scenarios/*.txt` in the root of the repository are exchanges as text, for readers who do not know Rust.

// The name by which the other crates use it.
extern crate sixfold_engine as engine;

mod cases;
mod layers;
mod world;
