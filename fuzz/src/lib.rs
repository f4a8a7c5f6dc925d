//! Targets for fuzzing: one function for everything that reads what others wrote, which takes any octets and panics when
//! something that must always hold does not. What must hold is compared with something else wherever there is something: with a
//! plain reader, with other libraries, with what was written before.
//!
//! The functions know nothing of who calls them. libFuzzer does with inputs of its own making (`targets/`, and the program
//! `sixfold-fuzz` that builds and runs these), and every test run does with the inputs that were worth keeping
//! (`tests/corpus.rs`). `docs/fuzzing.md` of the project tells how, and what was found.
#![forbid(unsafe_code)]

// The readers of the differential tests call the crate by its full name.
extern crate wire as sixfold_wire;

pub mod cache;
pub mod config;
pub mod cookie;
pub mod edns;
pub mod engine;
pub mod framing;
pub mod hosts;
pub mod input;
pub mod message;
pub mod mutate;
pub mod name;
pub mod policy;
pub mod proxy;
pub mod seeds;
pub mod zone;

#[path = "../../crates/wire/tests/differential/model.rs"]
#[allow(dead_code, reason = "the differential tests use all of it")]
mod model;
#[path = "../../crates/wire/tests/differential/readers.rs"]
mod readers;
#[path = "../../crates/wire/tests/differential/view.rs"]
mod view;

/// Something that reads what others wrote.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name: that of the module, of the folder of its inputs, and behind `fuzz_` of the program.
    pub name: &'static str,
    /// Tries one input. Panics when something is wrong.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that inputs are made of, besides those that are found by comparisons.
    pub words: &'static [&'static str],
    /// Octets of the longest input.
    pub longest_octets: usize,
    /// Its share of the time, in parts of [`SHARES`].
    pub share: u64,
    /// Inputs of it that are kept in the project at most.
    pub kept: usize,
}

/// The sum of all shares.
pub const SHARES: u64 = 60;

/// All targets. At most 200 inputs are kept of all together, as the sum of `kept`.
pub const TARGETS: [Target; 12] = [
    Target {
        name: "message",
        run: message::run,
        seeds: seeds::messages,
        words: &[],
        longest_octets: 2048,
        share: 11,
        kept: 30,
    },
    Target {
        name: "name",
        run: name::run,
        seeds: seeds::names,
        words: &[],
        longest_octets: 600,
        share: 3,
        kept: 12,
    },
    Target {
        name: "edns",
        run: edns::run,
        seeds: seeds::edns,
        words: &[],
        longest_octets: 512,
        share: 2,
        kept: 10,
    },
    Target {
        name: "framing",
        run: framing::run,
        seeds: seeds::framing,
        words: &[],
        longest_octets: 2048,
        share: 2,
        kept: 10,
    },
    Target {
        name: "proxy",
        run: proxy::run,
        seeds: seeds::proxy,
        words: &[],
        longest_octets: 700,
        share: 1,
        kept: 8,
    },
    Target {
        name: "cookie",
        run: cookie::run,
        seeds: seeds::cookies,
        words: &[],
        longest_octets: 256,
        share: 1,
        kept: 6,
    },
    Target {
        name: "config",
        run: config::run,
        seeds: seeds::configs,
        words: seeds::CONFIG_WORDS,
        longest_octets: 2048,
        share: 7,
        kept: 30,
    },
    Target {
        name: "zone",
        run: zone::run,
        seeds: seeds::zones,
        words: seeds::ZONE_WORDS,
        longest_octets: 1024,
        share: 4,
        kept: 16,
    },
    Target {
        name: "policy",
        run: policy::run,
        seeds: seeds::policies,
        words: seeds::ZONE_WORDS,
        longest_octets: 1024,
        share: 4,
        kept: 16,
    },
    Target {
        name: "hosts",
        run: hosts::run,
        seeds: seeds::hosts,
        words: &[],
        longest_octets: 512,
        share: 1,
        kept: 6,
    },
    Target {
        name: "cache",
        run: cache::run,
        seeds: seeds::caches,
        words: &[],
        longest_octets: 2048,
        share: 4,
        kept: 10,
    },
    Target {
        name: "engine",
        run: engine::run,
        seeds: seeds::engines,
        words: &[],
        longest_octets: 1024,
        share: 20,
        kept: 40,
    },
];
