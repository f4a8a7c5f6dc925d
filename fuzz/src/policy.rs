//! Response policy zones, from text to tables. An accepted zone can be built. A rejected one has faults with their lines.

use engine::rpz::ResponsePolicy;
use sixfold::config::{limits, policy_zone};
use std::path::Path;

/// File name in faults.
const FILE: &str = "p.rpz";

/// Tests one text.
pub fn run(input: &[u8]) {
    match policy_zone(Path::new(FILE), input) {
        Ok(zone) => {
            // No entry is shorter than a letter, a blank and its data. One entry may stand for an address and a name.
            assert!(zone.entries.len() <= input.len());
            let policy = ResponsePolicy::build(vec![zone.clone(), zone]).expect("two small zones");
            drop(policy);
        }
        Err(faults) => {
            assert!(!faults.is_empty() && faults.len() <= limits::RPZ_FAULTS);
            let lines = 1 + input.iter().filter(|&&octet| octet == b'\n').count();
            for fault in faults {
                let place = fault.what.strip_prefix(FILE).and_then(|rest| rest.strip_prefix(':'));
                let line = place.and_then(|rest| rest.split(':').next()).and_then(|line| line.parse().ok());
                assert!(line.is_some_and(|line: usize| (1..=lines).contains(&line)), "{fault:?}");
                assert!(!fault.help.is_empty());
            }
        }
    }
}
