//! Response policy zones, from text to tables. An accepted zone can be built. A rejected one has faults with their lines. When bad
//! records are left out, the others are the same, and each is counted.

use engine::rpz::ResponsePolicy;
use sixfold::config::{BadRecords, limits, policy_zone};
use std::path::Path;

/// File name in faults.
const FILE: &str = "p.rpz";

/// Tests one text.
pub fn run(input: &[u8]) {
    let refusing = policy_zone(Path::new(FILE), input, BadRecords::Refuse);
    let skipping = policy_zone(Path::new(FILE), input, BadRecords::Skip);
    if let Ok(zone) = &skipping {
        let left_out = zone.skipped.count();
        assert_eq!(left_out == 0, refusing.is_ok());
        assert!(left_out > 0 || refusing.as_ref().is_ok_and(|same| same.zone.entries == zone.zone.entries));
        assert!(zone.zone.entries.len() + left_out <= input.len());
        let warnings = zone.skipped.warnings(Path::new(FILE));
        assert_eq!(warnings.is_empty(), left_out == 0);
        assert!(warnings.len() <= limits::RPZ_REASONS + 1);
    }
    match refusing {
        Ok(read) => {
            let zone = read.zone;
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
