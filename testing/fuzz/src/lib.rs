//! Targets for fuzzing: one function for each parser of foreign input. The function takes any octets, and panics if an
//! invariant is broken. Where possible the result is compared with another one: that of a plain reader, of another library, or
//! the data that were written before.
//!
//! The functions do not know their caller. libFuzzer calls them with inputs of its own making (`targets/`, and the program
//! `sixfold-fuzz`, which builds and runs these). Every test run calls them with the kept inputs (`tests/corpus.rs`). Read
//! [`TARGETS`] first, then a small target such as [`mod@cookie`]. `docs/fuzzing.md` of the project describes the use, and lists
//! the bugs that were found.
#![forbid(unsafe_code)]

// The readers of the differential tests call the crate by its full name.
extern crate wire as sixfold_wire;

pub mod advertisement;
pub mod anchors;
pub mod cache;
pub mod config;
pub mod cookie;
pub mod dnssec;
pub mod doctor;
pub mod doh;
pub mod doq;
pub mod edns;
pub mod engine;
pub mod framing;
pub mod hosts;
pub mod input;
pub mod mappings;
pub mod message;
pub mod mutate;
pub mod name;
pub mod policy;
pub mod proxy;
pub mod queries;
pub mod seeds;
pub mod stored;
pub mod told;
pub mod upstream_tls;
pub mod zone;

#[path = "../../../server/wire/tests/differential/model.rs"]
#[allow(dead_code, reason = "the differential tests use all of it")]
mod model;
#[path = "../../../server/wire/tests/differential/readers.rs"]
mod readers;
#[path = "../../../server/wire/tests/differential/view.rs"]
mod view;

/// A parser of foreign input.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name: that of the module, of the folder of its inputs, and, after `fuzz_`, of the program.
    pub name: &'static str,
    /// Tests one input. Panics if an invariant is broken.
    pub run: fn(&[u8]),
    /// The initial inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Dictionary: words of the format, besides those that libFuzzer finds by comparisons.
    pub words: &'static [&'static str],
    /// Octets of the longest input.
    pub longest_octets: usize,
    /// Share of the time, in parts of [`SHARES`].
    pub share: u64,
    /// Largest number of inputs that the project keeps.
    pub kept: usize,
}

impl Target {
    /// The words of the dictionary; for a configuration also its tables and keys.
    pub fn dictionary(&self) -> Vec<String> {
        let mut words: Vec<String> = self.words.iter().map(|&word| word.to_owned()).collect();
        if self.words == seeds::CONFIG_WORDS {
            for key in sixfold::config::described() {
                words.extend([format!("[{}]", key.table), key.name.to_owned()]);
            }
            words.sort();
            words.dedup();
        }
        words
    }
}

/// The sum of all shares.
pub const SHARES: u64 = 84;

/// All targets. The sum of `kept` is at most 243.
pub const TARGETS: [Target; 23] = [
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
        kept: 9,
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
        name: "doh",
        run: doh::run,
        seeds: seeds::doh,
        words: &[],
        longest_octets: 512,
        share: 1,
        kept: 1,
    },
    Target {
        name: "doq",
        run: doq::run,
        seeds: seeds::doq,
        words: &[],
        longest_octets: 1024,
        share: 1,
        kept: 1,
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
        name: "queries",
        run: queries::run,
        seeds: seeds::queries,
        words: seeds::QUERY_WORDS,
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
        name: "stored",
        run: stored::run,
        seeds: seeds::stored,
        words: &[],
        longest_octets: 1024,
        share: 4,
        kept: 4,
    },
    Target {
        name: "upstream_tls",
        run: upstream_tls::run,
        seeds: seeds::upstream_tls,
        words: &[],
        longest_octets: 1024,
        share: 2,
        kept: 4,
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
    Target {
        name: "dnssec",
        run: dnssec::run,
        seeds: dnssec::seeds,
        words: &[],
        longest_octets: 8192,
        share: 8,
        kept: 10,
    },
    Target {
        name: "advertisement",
        run: advertisement::run,
        seeds: advertisement::seeds,
        words: &[],
        longest_octets: 512,
        share: 1,
        kept: 4,
    },
    Target {
        name: "told",
        run: told::run,
        seeds: told::seeds,
        words: &[],
        longest_octets: 1024,
        share: 1,
        kept: 4,
    },
    Target {
        name: "mappings",
        run: mappings::run,
        seeds: mappings::seeds,
        words: &[],
        longest_octets: 512,
        share: 1,
        kept: 4,
    },
    Target {
        name: "anchors",
        run: anchors::run,
        seeds: anchors::seeds,
        words: anchors::WORDS,
        longest_octets: 3072,
        share: 2,
        kept: 6,
    },
    Target {
        name: "doctor",
        run: doctor::run,
        seeds: doctor::seeds,
        words: &[],
        longest_octets: 3072,
        share: 2,
        kept: 6,
    },
];
