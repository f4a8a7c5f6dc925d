//! The cases that are built in, so that a program without this project's files has them.

use crate::case::Case;

/// The cases of `conformance/`.
const CASES: &str = include_str!("../../../conformance/cases.jsonl");

/// All cases that are built in.
pub fn built_in() -> Result<Vec<Case>, String> {
    Case::read_all(CASES)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_built_in_cases_can_be_read_and_no_two_have_one_name() {
        assert!(super::built_in().unwrap().len() >= 264);
    }
}
