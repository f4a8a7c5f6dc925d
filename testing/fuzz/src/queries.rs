//! Query files of the load generator. An accepted file is a list of questions that a server can read.

use load::QueryList;
use std::path::Path;

/// Octets of type and class.
const FIXED: usize = 4;

/// Tests one text.
pub fn run(input: &[u8]) {
    match QueryList::read(input, Path::new("queries")) {
        Ok(list) => {
            let lines = input.split(|octet| *octet == b'\n').count() as u64;
            assert!((1..=lines).contains(&list.queries()), "{} queries of {lines} lines", list.queries());
            for question in list.questions() {
                let name = wire::name_len(question);
                assert_eq!(name.map(|octets| octets + FIXED), Some(question.len()), "{question:02x?}");
                assert!(question.ends_with(&[0, 1]), "{question:02x?}");
            }
        }
        Err(error) => {
            let shown = error.to_string();
            assert!(shown.lines().all(|line| line.starts_with("queries:")), "{shown:?}");
            assert!(shown.bytes().all(|octet| octet == b'\n' || (b' '..=b'~').contains(&octet)), "{shown:?}");
        }
    }
}
