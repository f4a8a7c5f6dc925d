//! Hosts files: every record can be served.

use sixfold::config::hosts_text;
use std::path::Path;
use wire::Type;

/// Tests one text.
pub fn run(input: &[u8]) {
    let mut warnings = Vec::new();
    let records = hosts_text(Path::new("hosts"), input, &mut warnings);
    // One name for each word of a line but the first, and the reverse name of the address.
    assert!(records.len() <= input.len());
    for record in &records {
        assert_eq!(wire::name_len(&record.owner), Some(record.owner.len()), "{record:?}");
        assert_eq!(record.owner.to_ascii_lowercase(), record.owner.to_vec());
        let is_right = match record.rtype {
            Type::A => record.rdata.len() == 4,
            Type::AAAA => record.rdata.len() == 16,
            Type::PTR => wire::name_len(&record.rdata) == Some(record.rdata.len()),
            _ => false,
        };
        assert!(is_right && record.is_sound(), "{record:?}");
    }
    assert!(warnings.iter().all(|warning| warning.starts_with("hosts:") && !warning.contains('\n')));
    engine::local::LocalData::new(records, Vec::new());
}
