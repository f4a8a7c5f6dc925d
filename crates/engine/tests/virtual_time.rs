//! The engine in virtual time: clients, upstreams and a clock stepped by hand. `world` is the world, `cases` is what
//! is tried in it; `scenarios/*.txt` in the repository's root are exchanges that need no Rust to be read.

// As the other crates call it.
extern crate sixfold_engine as engine;

mod cases;
mod world;
